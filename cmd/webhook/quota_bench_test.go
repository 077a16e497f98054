package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/policy"
	"github.com/flight-operator/flight-operator/internal/quota"
	"github.com/flight-operator/flight-operator/internal/quota/store"
)

// till is a namespace under a quota, with the guard of buckets in force. It plays the controller, which counts.
type till struct {
	*testing.T
	admin client.Client
	// hasty is told at once what others are told after repeats.
	hasty      client.Client
	controller client.Client
	namespace  string
	policy     *flightsv1.FlightPolicy
}

// newTill needs a webhook that runs. The policy isn't stored yet.
func newTill(t *testing.T, enforcement flightsv1.Enforcement, rego string) *till {
	t.Helper()
	k := &till{T: t, admin: newClient(t, plane.Config), hasty: newClient(t, hastily(plane.Config))}
	k.namespace = namespace(t, k.admin)
	k.policy = policyOf("quota-"+k.namespace, k.namespace, enforcement, rego)
	guardBuckets(t, k.admin)
	config, err := plane.ServiceAccountConfig(t.Context(), program.DefaultNamespace, "flight-controller")
	if err != nil {
		t.Fatal(err)
	}
	k.controller = newClient(t, config)
	return k
}

// countedTill is a till whose policy serves everywhere and is counted.
func countedTill(t *testing.T, rego string, replicas ...*webhookProgram) *till {
	t.Helper()
	k := newTill(t, flightsv1.EnforcementEnforce, rego)
	k.put(replicas...)
	k.count()
	return k
}

// put stores the policy and waits until all replicas serve it.
func (k *till) put(replicas ...*webhookProgram) {
	k.Helper()
	putPolicy(k.T, k.admin, replicas[0], k.policy)
	for _, w := range replicas[1:] {
		waitFor(k.T, k.admin, w, k.policy)
	}
}

// hastily doesn't let a client hear that it should ask again.
func hastily(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Header.Del("Retry-After")
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// guardBuckets puts the guard of quota buckets in force, and gives the controller the rights that it counts with.
func guardBuckets(t *testing.T, admin client.Client) {
	t.Helper()
	guard := filepath.Join(plane.Root(), "config/guard/quota.yaml")
	if out, err := kubectl(t, "", "apply", "-f", guard); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	name := "test-counts"
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"flights.com"}, Resources: []string{"quotabuckets"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: program.DefaultNamespace, Name: "flight-controller"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		deleteAfter(t, admin, object)
	}
	t.Cleanup(func() {
		if out, err := plane.KubectlCommand(context.Background(), "delete", "-f", guard).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	probe := &flightsv1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"},
		Policy:     "p", PolicyUID: "u", PolicyGeneration: 1, Scope: flightsv1.QuotaScopeNamespace, Key: "k",
	}
	eventually(t, "the guard is in force", func(ctx context.Context) error {
		if err := admin.Create(ctx, probe.DeepCopy(), client.DryRunAll); err == nil {
			return errors.New("an admin may make a bucket")
		}
		return nil
	})
}

// ticket is one of the till's namespace.
func (k *till) ticket(name string, seats int32) *flightsv1.FlightTicket {
	ft := newTicket(k.namespace, name)
	ft.Spec.Number = seats
	return ft
}

// count counts every bucket of the policy as the controller does, and then says that the policy is counted.
func (k *till) count() {
	k.Helper()
	engine := policy.NewEngine(policy.RuleQuota)
	if err := engine.Set(k.Context(), k.policy); err != nil {
		k.Fatal(err)
	}
	var tickets flightsv1.FlightTicketList
	var buckets flightsv1.QuotaBucketList
	if err := errors.Join(k.admin.List(k.Context(), &tickets), k.admin.List(k.Context(), &buckets)); err != nil {
		k.Fatal(err)
	}
	counts := map[types.NamespacedName][]quota.Ticket{}
	claims := map[types.NamespacedName]*quota.Claim{}
	for i := range buckets.Items {
		if b := &buckets.Items[i]; b.PolicyUID == k.policy.UID {
			counts[client.ObjectKeyFromObject(b)] = nil
		}
	}
	for i := range tickets.Items {
		k.claim(engine.Quotas()[0], &tickets.Items[i], counts, claims)
	}
	editor := &store.Editor{Reader: k.admin, Writer: k.controller, Deleter: k.controller}
	for place, of := range counts {
		if _, err := editor.Edit(k.Context(), place, claims[place], func(p *quota.Page) error {
			return p.Count(quota.Snapshot{
				From: tickets.ResourceVersion, To: tickets.ResourceVersion, PolicyGeneration: k.policy.Generation, Sample: claims[place],
				Tickets: func(yield func(quota.Ticket) bool) {
					for _, t := range of {
						if !yield(t) {
							return
						}
					}
				},
			})
		}); err != nil {
			k.Fatal(err)
		}
	}
	k.policy.Status.CountedGeneration = k.policy.Generation
	if err := k.admin.Status().Update(k.Context(), k.policy); err != nil {
		k.Fatal(err)
	}
}

// claim enters a ticket in the counts of all buckets that it claims.
func (k *till) claim(of policy.Quota, ft *flightsv1.FlightTicket, counts map[types.NamespacedName][]quota.Ticket, claims map[types.NamespacedName]*quota.Claim) {
	k.Helper()
	holding, err := policy.NewHolding(ft, nil)
	if err != nil {
		k.Fatal(err)
	}
	all, err := of.Claims(k.Context(), holding)
	if err != nil {
		k.Fatal(err)
	}
	for _, c := range all {
		place := c.Place(ft.Namespace, program.DefaultNamespace)
		claims[place] = &c
		counts[place] = append(counts[place], quota.Ticket{
			Name: client.ObjectKeyFromObject(ft), UID: ft.UID, Generation: ft.Generation, Revision: ft.ResourceVersion,
			Amount: c.Amount, Created: ft.CreationTimestamp.Time,
		})
	}
}

// bucket is that of a key; nil if there is none.
func (k *till) bucket(scope quota.Scope, key string) *flightsv1.QuotaBucket {
	k.Helper()
	place := quota.Claim{PolicyUID: k.policy.UID, Scope: scope, Key: key}.Place(k.namespace, program.DefaultNamespace)
	var b flightsv1.QuotaBucket
	err := k.admin.Get(k.Context(), place, &b)
	if client.IgnoreNotFound(err) != nil {
		k.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &b
}

// stands fails unless the bucket of a key is as said, as in "used 1, reserved 2 in 3 entries".
func (k *till) stands(scope quota.Scope, key, want string) {
	k.Helper()
	got := "missing"
	if b := k.bucket(scope, key); b != nil {
		got = fmt.Sprintf("used %d, reserved %d in %d entries", b.Used, b.Reserved, len(b.Entries))
	}
	if got != want {
		k.Errorf("bucket %s is %s, want %s", key, got, want)
	}
}

// settles waits until the bucket of a key has so many entries: what is taken back is taken back after the answer.
func (k *till) settles(scope quota.Scope, key string, entries int) {
	k.Helper()
	eventually(k.T, "entries of "+key, func(context.Context) error {
		if b := k.bucket(scope, key); b == nil || len(b.Entries) != entries {
			return fmt.Errorf("the bucket is %+v, want %d entries", b, entries)
		}
		return nil
	})
}
