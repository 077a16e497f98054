package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/ledger"
)

// wide is the output that tells what holds the buckets, too.
const wide = "wide"

// quotaOptions are those of `kubectl flights quota`.
type quotaOptions struct {
	access           *access
	output           *genericclioptions.PrintFlags
	everywhere       bool
	policy, selector string
	// now is the time that the end of a window is compared with.
	now func() time.Time
	// colour is for terminals alone, and not for those who don't want it (no-color.org).
	colour bool
}

func newQuota(streams genericiooptions.IOStreams) *cobra.Command {
	o := &quotaOptions{
		access: newAccess(streams), output: genericclioptions.NewPrintFlags(""), now: time.Now,
		colour: printers.IsTerminal(streams.Out) && os.Getenv("NO_COLOR") == "",
	}
	c := &cobra.Command{
		Use:   "quota [-n NAMESPACE | -A]",
		Short: "Show what is left of the quotas that concern a namespace, the fullest first",
		Long: `Show what is left of the quotas that concern a namespace, the fullest first: those of its own, and those that all
namespaces share, as far as you may read them.

Used is what stored tickets take, reserved what admitted ones take that are not counted yet, retained what stays taken by
tickets that are gone. The state is Open, Full, OverLimit (nobody loses anything, and nobody gets more), Counting (what is
used is being summed; new tickets are refused until then, for a moment) or PolicyGone (the quota is no more).

With -o wide a second table tells which tickets hold each bucket. What is counted is worked out as the controller does it,
from the policy and the tickets that you may read; what can't be worked out is told as (others).`,
		Example: `  # what is left for this namespace?
  kubectl flights quota

  # which tickets hold it?
  kubectl flights quota --policy team-seats -o wide

  # all namespaces
  kubectl flights quota -A`,
		Args: noNames,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(c.Context())
		},
	}
	return o.addFlags(c)
}

func (o *quotaOptions) addFlags(c *cobra.Command) *cobra.Command {
	o.access.addFlags(c)
	o.output.AddFlags(c)
	flags := c.Flags()
	flags.Lookup("output").Usage = "Output format. One of: (" + strings.Join(append(o.output.AllowedFormats(), wide), ", ") + ")."
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "the quotas of all namespaces")
	flags.StringVar(&o.policy, "policy", "", "only those of the FlightPolicy of this name")
	flags.StringVarP(&o.selector, "selector", "l", "", "only buckets with these labels, as in kubectl get")
	utilruntime.Must(c.RegisterFlagCompletionFunc("policy", o.completePolicies)) // it fails only without that flag
	return c
}

func (o *quotaOptions) validate() error {
	if _, err := labels.Parse(o.selector); err != nil {
		return exit.Usagef("--selector: %v", err)
	}
	if *o.output.OutputFormat == wide || o.asTable() {
		return nil
	}
	_, err := o.output.ToPrinter()
	var unknown genericclioptions.NoCompatiblePrinterError
	if errors.As(err, &unknown) {
		unknown.AllowedFormats = append(unknown.AllowedFormats, wide)
		return exit.Usagef("--output: %v", unknown)
	}
	if err != nil {
		return exit.Usagef("--output: %v", err)
	}
	return nil
}

// asTable says that neither --output nor --template asks for anything.
func (o *quotaOptions) asTable() bool {
	return *o.output.OutputFormat == "" && *o.output.TemplatePrinterFlags.TemplateArgument == ""
}

func (o *quotaOptions) run(ctx context.Context) error {
	b, err := o.open()
	if err != nil {
		return err
	}
	found, err := b.list(ctx)
	if err != nil {
		return err
	}
	ledger.Sort(found)
	switch {
	case *o.output.OutputFormat != wide && !o.asTable():
		return o.printObjects(found)
	case len(found) == 0:
		fmt.Fprintln(o.access.streams.ErrOut, o.nothing(b.namespace))
		return nil
	}
	policies, err := b.policies(ctx)
	if err != nil {
		return err
	}
	if err := o.printTable(ledger.Table(found, policies, o.now())); err != nil || *o.output.OutputFormat != wide {
		return err
	}
	return o.printHolders(ctx, b, found, policies)
}

// open leads to the buckets that the flags ask for.
func (o *quotaOptions) open() (*buckets, error) {
	c, namespace, err := o.access.connect()
	if err != nil {
		return nil, err
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("read --selector: %w", err)
	}
	b := &buckets{client: c, namespace: namespace, policy: o.policy, selector: selector, notes: o.access.streams.ErrOut}
	if o.everywhere {
		b.namespace = ""
	}
	return b, nil
}

// nothing says that there are no buckets, and why that may be.
func (o *quotaOptions) nothing(namespace string) string {
	where, what := "namespace "+namespace, "No quota"
	if namespace == "" {
		where = "any namespace"
	}
	if o.policy != "" {
		what += " of policy " + o.policy
	}
	if o.selector != "" {
		what += " with labels " + o.selector
	}
	return what + " concerns " + where + " so far: a quota shows once the first ticket is counted in it. Which policies there are: kubectl get flightpolicies"
}

// printObjects prints the buckets themselves.
func (o *quotaOptions) printObjects(found []flightsv1.QuotaBucket) error {
	scheme, _, err := kinds()
	if err != nil {
		return err
	}
	printer, err := o.output.WithTypeSetter(scheme).ToPrinter()
	if err != nil {
		return fmt.Errorf("prepare the output: %w", err)
	}
	for i := range found {
		found[i].SetGroupVersionKind(flightsv1.GroupVersion.WithKind("QuotaBucket"))
	}
	objects := []runtime.Object{&flightsv1.QuotaBucketList{Items: found}}
	if *o.output.OutputFormat == "name" { // its printer takes no lists
		objects = nil
		for i := range found {
			objects = append(objects, &found[i])
		}
	}
	for _, object := range objects {
		if err := printer.PrintObj(object, o.access.streams.Out); err != nil {
			return fmt.Errorf("print the quota buckets: %w", err)
		}
	}
	return nil
}

// printTable prints as kubectl does. Colours come last, since they would count as characters of a column.
func (o *quotaOptions) printTable(table runtime.Object) error {
	var text bytes.Buffer
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &text); err != nil {
		return fmt.Errorf("print the quota buckets: %w", err)
	}
	shown := text.String()
	if o.colour {
		shown = ledger.Colour(shown)
	}
	_, err := io.WriteString(o.access.streams.Out, shown)
	return err
}

// printHolders prints what holds the buckets, and on standard error what of that could not be found out.
func (o *quotaOptions) printHolders(ctx context.Context, b *buckets, found []flightsv1.QuotaBucket, policies ledger.Policies) error {
	claims, err := ledger.NewClaims(ctx, found, policies, operatorNamespace)
	if err != nil {
		return err
	}
	if policies == nil {
		fmt.Fprintln(o.access.streams.ErrOut, unreadPolicies)
	} else if err := b.eachTicket(ctx, found, claims.Add); err != nil {
		return err
	}
	table, problems := claims.Table(found)
	for _, problem := range problems {
		fmt.Fprintln(o.access.streams.ErrOut, problem)
	}
	if len(table.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(o.access.streams.Out)
	return o.printTable(table)
}

// completePolicies offers the policies of the buckets that can be read: policies themselves most people may not list.
func (o *quotaOptions) completePolicies(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	b, err := o.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	b.policy, b.notes = "", io.Discard
	found, err := b.list(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return ledger.PolicyNames(found), cobra.ShellCompDirectiveNoFileComp
}
