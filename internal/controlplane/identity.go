package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// tokenLifetime of ServiceAccount tokens. The default of one hour would end a long `make dev` with refusals.
const tokenLifetime = 24 * time.Hour

// AddUser returns the configuration of a person who authenticates with a client certificate and has exactly the
// rights that RBAC gives to the name and the groups.
func (p *Plane) AddUser(name string, groups ...string) (*rest.Config, error) {
	user, err := p.env.AddUser(envtest.User{Name: name, Groups: groups}, unhurried())
	if err != nil {
		return nil, fmt.Errorf("add user %s: %w", name, err)
	}
	return user.Config(), nil
}

// ServiceAccountConfig returns the configuration of a program that runs under a ServiceAccount, which must exist:
// a token of it, valid for 24 h, and nothing of the administrator's.
func (p *Plane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := p.client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(p.Config)
	config.BearerToken = request.Status.Token
	config.QPS, config.Burst = p.Config.QPS, p.Config.Burst
	return config, nil
}

// WriteKubeconfig writes a configuration as a kubeconfig file that its owner alone can read.
func (p *Plane) WriteKubeconfig(path string, config *rest.Config) error {
	const name = "flight-operator"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	text, err := clientcmd.Write(*file)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %s: %w", path, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Kubectl runs kubectl as the administrator and returns what it printed. The error holds what it printed to
// standard error, which is what a person would read.
func (p *Plane) Kubectl(ctx context.Context, args ...string) (string, error) {
	out, err := p.KubectlCommand(ctx, args...).Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %q: %w", args, withOutput(err))
	}
	return string(out), nil
}

// KubectlCommand prepares kubectl as the administrator, for callers that need its standard input, another user
// (--kubeconfig in args wins) or its streams apart. Its home is the run folder, so that a person's caches and
// preferences neither change a test nor are changed by it. Ctrl-C at a terminal reaches only the caller, whose context
// then ends it: else it could fail before the caller knows why.
func (p *Plane) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.kubectl, args...)
	cmd.Dir = p.root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.adminKubeconfig(), "HOME="+p.dir, "KUBECACHEDIR="+filepath.Join(p.dir, "kube-cache"))
	return cmd
}

// KubectlPath is the kubectl that belongs to this plane.
func (p *Plane) KubectlPath() string { return p.kubectl }

// unhurried lifts the client's own rate limit: the API server is ours alone.
func unhurried() *rest.Config { return &rest.Config{QPS: 1000, Burst: 2000} }

// withOutput adds what a command wrote to standard error.
func withOutput(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}
