package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// controllers are those that matter without a node. Deployments and their like are left out: their pods could only
// wait for a node for ever.
func controllers() string {
	return strings.Join([]string{
		"namespace-controller", "garbage-collector-controller", "resourcequota-controller",
		"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller",
	}, ",")
}

// startControllerManager starts kube-controller-manager under the rights that RBAC gives it and its controllers,
// and returns once it has made the default namespace's ServiceAccount.
func (p *Plane) startControllerManager(ctx context.Context, path string) error {
	config, err := p.AddUser("system:kube-controller-manager")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(p.dir, "controller-manager.kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	authority := filepath.Join(p.dir, "api-server-ca.crt")
	if err := os.WriteFile(authority, p.Config.CAData, 0o600); err != nil {
		return fmt.Errorf("write the API server's authority: %w", err)
	}
	child, err := p.StartProcess(ProcessOptions{Name: string(ControllerManager), Path: path, Args: []string{
		"--kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + filepath.Join(p.certDir(), "sa-signer.key"), // written by envtest
		"--root-ca-file=" + authority,
		"--use-service-account-credentials=true",
		"--controllers=" + controllers(),
		"--leader-elect=false",
		"--secure-port=0", // it serves nothing that we read
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return child.WaitFor(ctx, "the ServiceAccount default/default", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, err
	})
}
