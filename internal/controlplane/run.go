package controlplane

import (
	"context"
	"fmt"
	"os"
)

// RunTests starts one plane for all tests of a package and returns the code to exit with:
//
//	func TestMain(m *testing.M) {
//		os.Exit(controlplane.RunTests(m, controlplane.Options{}, func(p *controlplane.Plane) { plane = p }))
//	}
//
// Tests that share a plane keep apart by namespace. A plane that can't be started or stopped fails the package.
func RunTests(m interface{ Run() int }, o Options, use func(*Plane)) int {
	p, err := Start(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	use(p)
	code := m.Run()
	if err := p.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return max(code, 1)
	}
	return code
}
