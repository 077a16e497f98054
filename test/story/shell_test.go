package story

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flight-operator/flight-operator/test/scene"
)

// shell is a person at a prompt: kubectl and its plugin are in the PATH, and the kubeconfig leads to the scene's namespace.
type shell struct {
	*scene.Scene
	dir string // where the person is
	env []string
}

// newShell makes a prompt of a user; an empty name is the administrator.
func newShell(s *scene.Scene, user string) *shell {
	s.Helper()
	sh := &shell{Scene: s, dir: s.TempDir()}
	kubectl := s.Kubectl(s.Context)
	if kubectl.Err != nil {
		s.Fatal(kubectl.Err)
	}
	bin := filepath.Join(sh.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		s.Fatal(err)
	}
	for _, program := range [][2]string{{kubectl.Path, "kubectl"}, {house.plugin, "kubectl-flights"}} {
		if err := os.Symlink(program[0], filepath.Join(bin, program[1])); err != nil {
			s.Fatal(err)
		}
	}
	kubeconfig := filepath.Join(sh.dir, "kubeconfig")
	writeKubeconfig(s, kubeconfig, user)
	path := bin + string(os.PathListSeparator) + os.Getenv("PATH")
	sh.env = append(os.Environ(), "PATH="+path, "KUBECONFIG="+kubeconfig, "HOME="+sh.dir)
	return sh
}

func writeKubeconfig(s *scene.Scene, path, user string) {
	s.Helper()
	config := rest.CopyConfig(s.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		s.Fatal(err)
	}
	const name = "scene"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken, Impersonate: user,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: s.Namespace}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		s.Fatal(err)
	}
}

// run types a line.
func (sh *shell) run(line string) scene.Answer {
	sh.Helper()
	cmd := exec.CommandContext(sh.Context, "bash", "-euo", "pipefail", "-c", line)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = sh.dir, sh.env, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		sh.Fatalf("%s: %v", line, err)
	}
	return scene.Answer{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// do types a line that must work, and returns what it said.
func (sh *shell) do(line string) scene.Answer {
	sh.Helper()
	a := sh.run(line)
	if a.Code != 0 {
		sh.Fatalf("%s ended with code %d: %s%s", line, a.Code, a.Out, a.Err)
	}
	return a
}
