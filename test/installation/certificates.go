package installation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// mountCertificates keeps a folder for each program's certificate, as a kubelet keeps a mounted Secret: whole at any
// moment, and renewed when cert-manager renews it. It returns once both folders are filled.
func (i *Installation) mountCertificates(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(i.Plane.Config)
	if err != nil {
		return fmt.Errorf("make a client of Secrets: %w", err)
	}
	folders := map[string]string{"flight-webhook-tls": i.Webhook.tlsDir(i.Dir), "flight-controller-tls": i.Controller.tlsDir(i.Dir)}
	mount := func(object any) {
		secret, ok := object.(*corev1.Secret)
		if !ok || folders[secret.Name] == "" {
			return
		}
		if err := writeMount(folders[secret.Name], secret); err != nil {
			fmt.Fprintf(i.options.Progress, "mount Secret %s: %v\n", secret.Name, err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(Namespace))
	_, err = factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    mount,
		UpdateFunc: func(_, renewed any) { mount(renewed) },
	})
	if err != nil {
		return fmt.Errorf("watch Secrets: %w", err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	factory.Start(watching.Done())
	i.unmount = func() { stop(); factory.Shutdown() }
	return i.WaitFor(ctx, "the certificates of cert-manager", func(context.Context) (bool, error) {
		for _, folder := range folders {
			if _, err := os.Stat(filepath.Join(folder, "tls.key")); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// writeMount replaces the files of a mounted Secret at once: they are links through ..data, which is renamed over.
func writeMount(folder string, secret *corev1.Secret) error {
	version := filepath.Join(folder, "..version-"+secret.ResourceVersion)
	if err := os.MkdirAll(version, 0o700); err != nil {
		return err
	}
	for name, content := range secret.Data {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			return err
		}
	}
	before, err := os.Readlink(filepath.Join(folder, "..data"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if before == filepath.Base(version) {
		return nil
	}
	fresh := filepath.Join(folder, "..data_new")
	if err := os.Symlink(filepath.Base(version), fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(folder, "..data")); err != nil {
		return err
	}
	for name := range secret.Data {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(folder, name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(folder, before))
}
