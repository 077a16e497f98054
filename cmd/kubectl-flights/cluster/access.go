package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// access leads to a cluster: the flags of kubectl that matter here, and the client that they make.
type access struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
}

func newAccess(streams genericiooptions.IOStreams) *access {
	all := genericclioptions.NewConfigFlags(true)
	return &access{streams: streams, flags: &genericclioptions.ConfigFlags{
		KubeConfig: all.KubeConfig, Context: all.Context, Namespace: all.Namespace, Timeout: all.Timeout,
		Impersonate: all.Impersonate, ImpersonateUID: all.ImpersonateUID, ImpersonateGroup: all.ImpersonateGroup,
	}}
}

func (a *access) addFlags(c *cobra.Command) { a.flags.AddFlags(c.Flags()) }

// open leads to the tickets of a namespace.
func (a *access) open() (*tickets, error) {
	c, namespace, err := a.connect()
	if err != nil {
		return nil, err
	}
	return &tickets{client: c, namespace: namespace}, nil
}

// connect makes the client, and finds the namespace: the flag's, or the context's.
func (a *access) connect() (c client.WithWatch, namespace string, err error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("load the kubeconfig: %w", err)
	}
	namespace, _, err = a.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace: %w", err)
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NewWarningWriter(a.streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	scheme, mapper, err := kinds()
	if err != nil {
		return nil, "", err
	}
	c, err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, "", fmt.Errorf("make a client: %w", err)
	}
	return c, namespace, nil
}

// kinds knows what the commands read without asking the API server what it serves.
func kinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	if err := flightsv1.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("build the scheme: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(flightsv1.GroupVersion.WithKind("FlightTicket"), meta.RESTScopeNamespace)
	mapper.Add(flightsv1.GroupVersion.WithKind("QuotaBucket"), meta.RESTScopeNamespace)
	mapper.Add(flightsv1.GroupVersion.WithKind("FlightPolicy"), meta.RESTScopeRoot)
	return scheme, mapper, nil
}

// completionTimeout bounds how long a shell waits for names.
const completionTimeout = 3 * time.Second

// complete offers the names of tickets that are not named yet, at most limit of them in all; 0 is any number. What can't be
// listed is not offered.
func (a *access) complete(limit int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		t, err := a.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := t.names(ctx, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
