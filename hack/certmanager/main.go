// Command certmanager runs cert-manager's own controllers and its cainjector in one process, against the cluster of
// a kubeconfig. It stands in for an installed cert-manager where there is no node that could run its pods.
//
// It knows cert-manager and nothing of ours. It leaves out what needs the network or a pod: ACME, Vault, Venafi and
// cert-manager's own webhook. It must not be shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	crca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	crselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // the issuer kind CA
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // the issuer kind SelfSigned
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// workers is how many objects each controller works on at once; one is too few when every certificate of the
// installation is asked for in the same second.
const workers = 2

func main() {
	// A set of its own: libraries put flags of the same names into the process-wide one.
	flags := flag.NewFlagSet("certmanager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig of the cluster to serve (needed)")
	namespace := flags.String("cluster-resource-namespace", "cert-manager", "namespace of the Secrets that ClusterIssuers name")
	_ = flags.Parse(os.Args[1:]) // it exits on errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "certmanager:", err)
		os.Exit(1)
	}
}

// run serves until the context ends or one of the controllers fails. The kubeconfig is never searched for: the
// cluster of a person's own kubeconfig must not be served by accident.
func run(ctx context.Context, kubeconfig, namespace string) error {
	if kubeconfig == "" {
		return errors.New("--kubeconfig is needed: the path of the kubeconfig of the cluster to serve")
	}
	ctrl.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runControllers(ctx, kubeconfig, namespace) })
	group.Go(func() error { return runInjector(ctx, kubeconfig) })
	return group.Wait()
}

// controllerNames are the controllers that a SelfSigned or CA issuer needs. Naming them here also links their
// packages, which register themselves.
func controllerNames() []string {
	return []string{
		issuers.ControllerName, clusterissuers.ControllerName,
		trigger.ControllerName, keymanager.ControllerName, requestmanager.ControllerName,
		readiness.ControllerName, issuing.ControllerName, revisionmanager.ControllerName,
		approver.ControllerName, crselfsigned.CRControllerName, crca.CRControllerName,
	}
}

// runControllers issues certificates until the context ends.
func runControllers(ctx context.Context, kubeconfig, namespace string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   200,
		KubernetesAPIBurst: 400,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
	})
	if err != nil {
		return fmt.Errorf("prepare the controllers: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("build the clients: %w", err)
	}

	known := controller.Known()
	group, ctx := errgroup.WithContext(ctx)
	var built []controller.Interface
	for _, name := range controllerNames() {
		construct, ok := known[name]
		if !ok {
			return fmt.Errorf("no controller %q in this cert-manager; it has %q", name, slices.Sorted(maps.Keys(known)))
		}
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("build controller %s: %w", name, err)
		}
		built = append(built, c)
	}
	// Informers are asked for while the controllers are built, so the factories start after the last of them.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	for _, c := range built {
		group.Go(func() error { return c.Run(workers, ctx) })
	}
	return group.Wait()
}

// runInjector fills the CA bundles of webhook configurations and CRDs until the context ends.
func runInjector(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig %s: %w", kubeconfig, err)
	}
	// The injector's field manager is the user agent's prefix: with none, the API server refuses every apply.
	config = rest.AddUserAgent(config, "cainjector")
	scheme, err := injectorScheme()
	if err != nil {
		return fmt.Errorf("build the injector's scheme: %w", err)
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return fmt.Errorf("build the injector's manager: %w", err)
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
	if err != nil {
		return fmt.Errorf("register the injectors: %w", err)
	}
	return manager.Start(ctx)
}

// injectorScheme holds the kinds that the injector reads and writes.
func injectorScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, cmapi.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
