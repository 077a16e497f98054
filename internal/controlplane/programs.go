package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Program is one of the executables that a control plane is made of.
type Program string

// The programs. CertManager stands in for an installed cert-manager.
const (
	Etcd              Program = "etcd"
	APIServer         Program = "kube-apiserver"
	ControllerManager Program = "kube-controller-manager"
	Kubectl           Program = "kubectl"
	CertManager       Program = "certmanager"
)

// AllPrograms lists every program in the order in which a person waits for them.
func AllPrograms() []Program {
	return []Program{Etcd, APIServer, ControllerManager, Kubectl, CertManager}
}

// recipe says how a program is built.
type recipe struct {
	folder   string // the nested module that pins it, below the root of the work tree
	target   string // the package to build
	module   string // the module whose version names the program
	patience string // how long a first build takes, for the person who waits
	asset    bool   // KUBEBUILDER_ASSETS may hold it
}

// recipes holds one recipe a program. They differ in data only.
func recipes() map[Program]recipe {
	const kubernetes = "k8s.io/kubernetes"
	return map[Program]recipe{
		Etcd:              {"hack/cluster", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", "about a minute", true},
		APIServer:         {"hack/cluster", kubernetes + "/cmd/kube-apiserver", kubernetes, "about 5 minutes", true},
		ControllerManager: {"hack/cluster", kubernetes + "/cmd/kube-controller-manager", kubernetes, "about 3 minutes", false},
		Kubectl:           {"hack/cluster", kubernetes + "/cmd/kubectl", kubernetes, "about a minute", true},
		CertManager:       {"hack/certmanager", ".", "github.com/cert-manager/cert-manager", "about 3 minutes", false},
	}
}

// Programs returns the paths of the named programs, of all when none is named. What is missing is built from its
// pinned module into a cache outside the work tree, and progress (may be nil) is told what, and how long it may
// take. Several processes may ask at once: one builds, the others wait.
//
// Where KUBEBUILDER_ASSETS names a folder that holds etcd, kube-apiserver or kubectl, those are taken instead.
// The error names the program and ends with what the Go tool said.
func Programs(ctx context.Context, progress io.Writer, names ...Program) (map[Program]string, error) {
	if len(names) == 0 {
		names = AllPrograms()
	}
	if progress == nil {
		progress = io.Discard
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	paths := make(map[Program]string, len(names))
	for _, name := range names {
		r, ok := recipes()[name]
		if !ok {
			return nil, fmt.Errorf("no recipe for a program named %q", name)
		}
		if path, ok := givenAsset(name, r); ok {
			paths[name] = path
			continue
		}
		b, err := newBuild(root, name, r)
		if err != nil {
			return nil, fmt.Errorf("prepare the build of %s: %w", name, err)
		}
		if paths[name], err = b.ensure(ctx, progress); err != nil {
			return nil, fmt.Errorf("build %s %s: %w", name, b.version, err)
		}
	}
	return paths, nil
}

// givenAsset returns the program out of KUBEBUILDER_ASSETS, if it is there.
func givenAsset(name Program, r recipe) (string, bool) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" || !r.asset {
		return "", false
	}
	path := filepath.Join(folder, string(name))
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

// pinnedVersion reads a module's version out of the text of a go.mod.
func pinnedVersion(gomod []byte, module string) (string, error) {
	line := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\S+)`)
	match := line.FindSubmatch(gomod)
	if match == nil {
		return "", fmt.Errorf("its go.mod requires no %s", module)
	}
	return string(match[1]), nil
}

// linkFlags strips symbol tables, which makes the programs a third smaller, and gives Kubernetes programs the
// version of the module that they are built from: the linker is the only place that can, and without it they call
// themselves v0.0.0-master. The tree state is the one that Kubernetes uses for a source archive; its commit isn't
// known from a module.
func linkFlags(module, version string) string {
	flags := "-s -w"
	if module != "k8s.io/kubernetes" {
		return flags
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return flags
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s"+
			" -X %[1]s.gitTreeState=archive -X %[1]s.gitCommit=unknown", pkg, version, parts[0], parts[1])
	}
	return flags
}
