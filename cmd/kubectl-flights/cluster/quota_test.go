package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/kubectl-flights/exit"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// quotaPolicy stores a policy that counts seats by namespace and month.
func (d *desk) quotaPolicy(limit string) *flightsv1.FlightPolicy {
	d.Helper()
	p := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "team-seats-"},
		Spec: flightsv1.FlightPolicySpec{
			Library: "quota-seats-per-namespace-month", Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"max": ` + limit + `}`)},
		},
	}
	d.store(p)
	return p
}

// store creates an object that goes with the test.
func (d *desk) store(object client.Object) {
	d.Helper()
	if err := d.admin.Create(d.ctx, object); err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() {
		if err := client.IgnoreNotFound(d.admin.Delete(context.Background(), object)); err != nil {
			d.Error(err)
		}
	})
}

// bucket stores a bucket that was counted, as the controller would.
func (d *desk) bucket(p *flightsv1.FlightPolicy, scope flightsv1.QuotaScope, key string, edit func(*flightsv1.QuotaBucket)) *flightsv1.QuotaBucket {
	d.Helper()
	namespace := d.namespace
	if scope == flightsv1.QuotaScopeCluster {
		namespace = operatorNamespace
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := d.admin.Create(d.ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			d.Fatal(err)
		}
	}
	resets := metav1.NewTime(time.Date(2127, 4, 1, 0, 0, 0, 0, time.UTC))
	b := &flightsv1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: quota.BucketName(p.UID, scope, key), Labels: map[string]string{"desk": d.namespace},
		},
		Policy: p.Name, PolicyUID: p.UID, PolicyGeneration: p.Generation, Scope: scope, Key: key, Resets: &resets,
		Limit: 20, CountedRevision: "1", CountedGeneration: p.Generation,
	}
	edit(b)
	b.Available = max(0, b.Limit-b.Used-b.Reserved-b.Retained)
	d.store(b)
	return b
}

func used(n int64) func(*flightsv1.QuotaBucket) {
	return func(b *flightsv1.QuotaBucket) { b.Used = n }
}

// rows are the fields of each line of a table, without its head.
func rows(out string) [][]string {
	var found [][]string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		found = append(found, strings.Fields(line))
	}
	return found
}

func TestQuotaShowsTheBucketsOfTheNamespaceAndOfTheClusterTheFullestFirst(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(5))
	d.bucket(p, flightsv1.QuotaScopeCluster, "all-"+d.namespace, func(b *flightsv1.QuotaBucket) { b.Used, b.Reserved, b.Retained = 12, 4, 2 })
	code, out, errs := d.call("quota", "--policy", p.Name)
	if code != exit.OK || errs != "" {
		t.Fatalf("code %d, %q, %q", code, out, errs)
	}
	head, _, _ := strings.Cut(out, "\n")
	if words := strings.Join(strings.Fields(head), " "); words != "NAMESPACE POLICY KEY USED RESERVED LIMIT AVAILABLE RESETS STATE # USED + RESERVED = RETAINED . FREE" {
		t.Errorf("the head is %q", words)
	}
	got := rows(out)
	if len(got) != 2 {
		t.Fatalf("%s", out)
	}
	for i, want := range []string{
		"(cluster) " + p.Name + " all-" + d.namespace + " 12 4 20 2 in … (2127-04-01) Open [############++++==..]",
		d.namespace + " " + p.Name + " 2127-03 5 0 20 15 in … (2127-04-01) Open [#####...............]",
	} {
		if len(got[i]) > 8 {
			got[i][8] = "…" // how many years it is depends on the day of the test
		}
		if line := strings.Join(got[i], " "); line != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("what is no terminal gets colours: %q", out)
	}
}

func TestQuotaSaysWhatIsBeingCountedAndWhatIsOverItsLimit(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(25))
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-04", func(b *flightsv1.QuotaBucket) { b.CountedRevision, b.CountedGeneration = "", 0 })
	_, out, _ := d.call("quota", "--policy", p.Name)
	if !strings.Contains(out, " OverLimit ") || !strings.Contains(out, " Counting ") {
		t.Errorf("%s", out)
	}
	p.Spec.Parameters.Raw = []byte(`{"max": 10}`)
	if err := d.admin.Update(d.ctx, p); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := d.call("quota", "--policy", p.Name); !strings.Contains(out, " Counting,OverLimit ") {
		t.Errorf("the policy has changed, and it says %s", out)
	}
}

func TestQuotaTellsWhichTicketsHoldABucket(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	for name, number := range map[string]int32{"counted": 3, "flying": 4} {
		d.store(&flightsv1.FlightTicket{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
			Spec: flightsv1.FlightTicketSpec{
				From: "Mumbai", To: "London", Number: number, DepartureDate: "2127-03-14",
				Passengers: []flightsv1.Passenger{{GivenName: "Secret", FamilyName: "Traveller"}},
			},
		})
	}
	flying := d.read("flying")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", func(b *flightsv1.QuotaBucket) {
		b.Used, b.Reserved, b.Retained = 5, 4, 1
		b.Entries = []flightsv1.QuotaEntry{{
			Nonce: strings.Repeat("0a", 16), Namespace: d.namespace, Name: "flying", UID: flying.UID, Generation: 1, PolicyGeneration: 1, Amount: 4,
		}}
	})
	code, out, errs := d.call("quota", "--policy", p.Name, "-o", "wide")
	if code != exit.OK || errs != "" || strings.Contains(out, "Secret") || strings.Contains(out, "Traveller") {
		t.Fatalf("code %d, %q, %q", code, out, errs)
	}
	_, holders, found := strings.Cut(out, "\n\n")
	if !found {
		t.Fatalf("there is no second table: %s", out)
	}
	var got []string
	for _, row := range rows(holders) {
		got = append(got, strings.Join(row[3:], " "))
	}
	want := []string{d.namespace + "/flying 4 in flight", d.namespace + "/counted 3 counted", "(others) 2 counted", "(tickets that are gone) 1 retained"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestQuotaPrintsTheObjectsThemselves(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	b := d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(5))
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.Unmarshal(text, into) },
	} {
		var shown flightsv1.QuotaBucketList
		code, out, errs := d.call("quota", "--policy", p.Name, "-o", format)
		if err := decode([]byte(out), &shown); code != exit.OK || err != nil {
			t.Fatalf("%s: code %d, %v, %q", format, code, err, errs)
		}
		if shown.Kind != "QuotaBucketList" || len(shown.Items) != 1 || shown.Items[0].Kind != "QuotaBucket" || shown.Items[0].Used != 5 {
			t.Errorf("%s: %s", format, out)
		}
	}
	for args, want := range map[string]string{
		"-o name":                        "quotabucket.flights.com/" + b.Name + "\n",
		"-o jsonpath={.items[*].key}":    "2127-03",
		"--template={{.kind}}":           "QuotaBucketList",
		"-o name -l desk=nowhere":        "",
		"-o name -l desk=" + d.namespace: "quotabucket.flights.com/" + b.Name + "\n",
	} {
		if code, out, errs := d.call(append([]string{"quota", "--policy", p.Name}, strings.Fields(args)...)...); code != exit.OK || out != want {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
}

func TestQuotaWithoutBucketsSaysSo(t *testing.T) {
	d := newDesk(t)
	for args, want := range map[string]string{
		"--policy none":         "No quota of policy none concerns namespace " + d.namespace + " so far",
		"-A -l desk=none":       "No quota with labels desk=none concerns any namespace so far",
		"--policy none -o wide": "kubectl get flightpolicies",
	} {
		if code, out, errs := d.call(append([]string{"quota"}, strings.Fields(args)...)...); code != exit.OK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
	var shown flightsv1.QuotaBucketList
	if code, out, errs := d.call("quota", "--policy", "none", "-o", "json"); code != exit.OK || json.Unmarshal([]byte(out), &shown) != nil || shown.Items == nil {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

// tenant may read buckets and tickets of the namespace, and nothing else.
func (d *desk) tenant(name string) {
	d.Helper()
	d.store(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"flights.com"}, Resources: []string{"flighttickets", "quotabuckets"}, Verbs: []string{"get", "list"}}},
	})
	d.store(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
}

func TestATenantSeesTheQuotasOfTheNamespaceAndReadsWhoCanShowMore(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(5))
	d.bucket(p, flightsv1.QuotaScopeCluster, "all-"+d.namespace, used(5))
	name := "tenant-of-" + d.namespace
	d.tenant(name)
	code, out, errs := d.call("quota", "-o", "wide", "--as", name)
	if code != exit.OK || !strings.Contains(out, " 2127-03 ") || strings.Contains(out, "(cluster)") || !strings.Contains(out, "(others)") {
		t.Errorf("code %d, %q", code, out)
	}
	if errs != unreadClusterWide+"\n"+unreadPolicies+"\n" {
		t.Errorf("it says %q", errs)
	}
	code, out, errs = d.call("quota", "-A", "--as", name)
	if code != exit.Failed || out != "" || !strings.Contains(errs, "name yours with --namespace") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestSomebodyWithoutAnyRightReadsWhatToAskFor(t *testing.T) {
	d := newDesk(t)
	code, out, errs := d.call("quota", "--as", "nobody")
	if code != exit.Failed || out != "" || !strings.Contains(errs, "list the quota buckets of namespace "+d.namespace) || !strings.Contains(errs, "bind the ClusterRole view or flights-view") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

// Who may read cluster-wide buckets and policies, and tickets of one namespace only.
func TestTicketsOfOtherNamespacesAreNotToldByNameToThoseWhoMayNotListThem(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeCluster, "all-"+d.namespace, used(5))
	name := "manager-of-" + d.namespace
	d.tenant(name)
	d.store(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"flights.com"}, Resources: []string{"flightpolicies", "quotabuckets"}, Verbs: []string{"get", "list"}}},
	})
	d.store(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	code, out, errs := d.call("quota", "-o", "wide", "--policy", p.Name, "--as", name)
	if code != exit.OK || errs != unreadTickets+"\n" || !strings.Contains(out, "(others)") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestThePoliciesOfBucketsAreCompleted(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(5))
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-04", used(5))
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root := &cobra.Command{Use: "kubectl-flights"}
	root.AddCommand(Commands(streams)...)
	root.SetOut(out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{cobra.ShellCompRequestCmd, "quota", "--kubeconfig=" + d.kubeconfig, "--namespace=" + d.namespace, "--policy", ""})
	if err := root.ExecuteContext(d.ctx); err != nil {
		t.Fatal(err)
	}
	if offered := strings.Count(out.String(), p.Name+"\n"); offered != 1 {
		t.Errorf("it is offered %d times: %s", offered, out)
	}
}

func TestATerminalGetsColoursUnlessItWantsNone(t *testing.T) {
	d := newDesk(t)
	p := d.quotaPolicy("20")
	d.bucket(p, flightsv1.QuotaScopeNamespace, "2127-03", used(5))
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := &quotaOptions{access: newAccess(streams), output: genericclioptions.NewPrintFlags(""), policy: p.Name, now: time.Now, colour: true}
	*o.access.flags.KubeConfig, *o.access.flags.Namespace = d.kubeconfig, d.namespace
	if err := errors.Join(o.validate(), o.run(d.ctx)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "[\x1b[34m#####\x1b[0m\x1b[2m") {
		t.Errorf("%q", out)
	}
}
