package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// certManagerNamespace is where an installed cert-manager lives and where its ClusterIssuers look for Secrets.
const certManagerNamespace = "cert-manager"

// StartCertManager installs cert-manager's CRDs, starts its controllers and its cainjector, and returns once they
// have made an Issuer ready. They run with every right: they stand in for a part of the cluster, not for ours.
func (p *Plane) StartCertManager(ctx context.Context) (*Process, error) {
	paths, err := Programs(ctx, p.progress, CertManager)
	if err != nil {
		return nil, err
	}
	if err := p.installCertManagerCRDs(ctx); err != nil {
		return nil, fmt.Errorf("install cert-manager's CRDs: %w", err)
	}
	config, err := p.AddUser("cert-manager", "system:masters")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(p.dir, "certmanager.kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: certManagerNamespace}}
	if err := client.IgnoreAlreadyExists(p.client.Create(ctx, namespace)); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", certManagerNamespace, err)
	}
	child, err := p.StartProcess(ProcessOptions{Name: string(CertManager), Path: paths[CertManager], Args: []string{
		"--kubeconfig=" + kubeconfig, "--cluster-resource-namespace=" + certManagerNamespace,
	}})
	if err != nil {
		return nil, err
	}
	return child, p.probeCertManager(ctx, child)
}

// installCertManagerCRDs takes the CRDs out of the very module that the program is built from.
func (p *Plane) installCertManagerCRDs(ctx context.Context) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", recipes()[CertManager].module)
	list.Dir = filepath.Join(p.root, recipes()[CertManager].folder)
	list.Env = append(environWithout("GOFLAGS"), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("find cert-manager's module: %w", withOutput(err))
	}
	crds := envtest.CRDInstallOptions{ErrorIfPathMissing: true, MaxTime: startPatience}
	for _, plural := range []string{"certificaterequests", "certificates", "clusterissuers", "issuers"} {
		crds.Paths = append(crds.Paths, filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds", "cert-manager.io_"+plural+".yaml"))
	}
	_, err = envtest.InstallCRDs(p.Config, crds)
	return err
}

// probeCertManager returns once an Issuer made for the purpose is ready, and deletes it.
func (p *Plane) probeCertManager(ctx context.Context, child *Process) error {
	issuer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1",
		"kind":       "Issuer",
		"metadata":   map[string]any{"namespace": certManagerNamespace, "generateName": "probe-"},
		"spec":       map[string]any{"selfSigned": map[string]any{}},
	}}
	if err := p.client.Create(ctx, issuer); err != nil {
		return fmt.Errorf("create a probing Issuer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	err := child.WaitFor(ctx, "cert-manager to make an Issuer ready", func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(issuer), issuer)
		return err == nil && conditionTrue(issuer, "Ready"), err
	})
	if err != nil {
		return err
	}
	if err := p.client.Delete(ctx, issuer); err != nil {
		return fmt.Errorf("delete the probing Issuer: %w", err)
	}
	return nil
}

// conditionTrue says whether an object of any kind has a condition with status True.
func conditionTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, each := range conditions {
		if c, ok := each.(map[string]any); ok && c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}
