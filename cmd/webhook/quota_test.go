package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// seatsTo4 is a quota of 4 seats a namespace, with a warning from the third on.
const seatsTo4 = `package seats
quota contains {
	"key": "2027-03", "scope": "Namespace", "amount": input.ticket.spec.number, "limit": 4, "warn_at": 3, "resets": "2027-04-01T00:00:00Z",
}
`

func TestAQuotaReadsAsAPersonSeesIt(t *testing.T) {
	w := startWebhook(t)
	k := countedTill(t, seatsTo4, w)
	const key = "2027-03"
	text := func(name string, seats int) string {
		return strings.NewReplacer("my-flight-ticket", name, "number: 2", fmt.Sprintf("number: %d", seats)).Replace(manifest)
	}
	var story strings.Builder
	for _, s := range []struct {
		what, text string
		args       []string
		stands     string // the bucket afterwards
	}{
		{"A dry run writes nothing", text("first", 2), []string{"create", "--dry-run=server"}, "missing"},
		{"The first two seats", text("first", 2), []string{"create", "--save-config"}, "used 0, reserved 2 in 1 entries"},
		{"The third, with a warning", text("second", 1), []string{"create", "--save-config"}, "used 0, reserved 3 in 2 entries"},
		{"The fourth and fifth", text("third", 2), []string{"create", "--save-config"}, "used 0, reserved 3 in 2 entries"},
		{"The same as a dry run", text("third", 2), []string{"create", "--dry-run=server"}, "used 0, reserved 3 in 2 entries"},
		{"A raise that fits", text("second", 2), []string{"apply"}, "used 0, reserved 4 in 3 entries"},
		{"A raise that doesn't", text("second", 3), []string{"apply"}, "used 0, reserved 4 in 3 entries"},
		{"The same again changes nothing", text("second", 2), []string{"apply"}, "used 0, reserved 4 in 3 entries"},
		{"A lowering gives room back only once it is counted", text("first", 1), []string{"apply"}, "used 0, reserved 4 in 3 entries"},
		{"Until then another seat finds no room", text("third", 1), []string{"create", "--save-config"}, "used 0, reserved 4 in 3 entries"},
	} {
		out, _ := kubectl(t, s.text, append(s.args, "-n", k.namespace, "-f", "-")...) // the story says whether it is refused
		story.WriteString("# " + s.what + "\n" + out + "\n")
		k.stands(quota.Namespace, key, s.stands)
	}
	k.count()
	k.stands(quota.Namespace, key, "used 3, reserved 0 in 0 entries")
	out, err := kubectl(t, text("third", 1), "create", "-n", k.namespace, "-f", "-")
	story.WriteString("# Once it is counted, it does\n" + out)
	if err != nil {
		t.Error(err)
	}
	k.stands(quota.Namespace, key, "used 3, reserved 1 in 1 entries")
	golden(t, "quota.golden", strings.ReplaceAll(story.String(), k.namespace, "team-a"))
	if log := w.logged(); !strings.Contains(log, `"quota":"refused","quotaPolicies":"`+k.policy.Name+`"`) || strings.Contains(log, key) {
		t.Errorf("the log lacks who refused, or holds a key:\n%s", log)
	}
}

func TestWhatSaysNothingOfSeatsReservesNothing(t *testing.T) {
	k := countedTill(t, seatsTo4, startWebhook(t))
	ft := k.ticket("trip", 2)
	if err := k.admin.Create(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	before := k.bucket(quota.Namespace, "2027-03").ResourceVersion
	for what, edit := range map[string]func(){
		"an annotation": func() { ft.Annotations["a"] = "b" },
		"a label":       func() { ft.Labels["a"] = "b" },
		"fewer seats":   func() { ft.Spec.Number = 1 },
		"a cost centre": func() { ft.Spec.CostCenter = "research" },
	} {
		edit()
		if err := k.admin.Update(t.Context(), ft); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := k.admin.Delete(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	if err := k.admin.Get(t.Context(), client.ObjectKeyFromObject(ft), ft); err != nil {
		t.Fatal(err)
	}
	ft.Annotations["a"] = "c"
	if err := k.admin.Update(t.Context(), ft); err != nil {
		t.Errorf("a ticket that is being deleted: %v", err)
	}
	release(t, k.admin, ft)
	if after := k.bucket(quota.Namespace, "2027-03").ResourceVersion; after != before {
		t.Error("the bucket was written")
	}
}

func TestAQuotaThatOnlyWarnsWritesNothing(t *testing.T) {
	w := startWebhook(t)
	k := newTill(t, flightsv1.EnforcementWarn, seatsTo4)
	k.put(w)
	k.count()
	out, err := kubectl(t, strings.Replace(manifest, "number: 2", "number: 5", 1), "create", "-n", k.namespace, "-f", "-")
	if err != nil || !strings.Contains(out, "Warning: "+k.policy.Name+": would refuse: quota \"2027-03\" has no room: requested 5, limit 4, used 0") {
		t.Errorf("%v: %s", err, out)
	}
	k.stands(quota.Namespace, "2027-03", "missing")
}

func TestATicketThatComesDuringTheCountGetsInAfterIt(t *testing.T) {
	w := startWebhook(t)
	k := newTill(t, flightsv1.EnforcementEnforce, seatsTo4)
	if err := k.admin.Create(t.Context(), k.ticket("older", 3)); err != nil {
		t.Fatal(err)
	}
	k.put(w)
	for _, options := range [][]client.CreateOption{nil, {client.DryRunAll}} {
		err := k.hasty.Create(t.Context(), k.ticket("early", 1), options...)
		if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "is being counted") || !strings.HasSuffix(err.Error(), "nothing was stored, retry") {
			t.Errorf("before the count: %v", err)
		}
	}
	patient := make(chan error, 1)
	go func() { patient <- k.admin.Create(context.Background(), k.ticket("patient", 1)) }()
	k.count()
	if err := <-patient; err != nil {
		t.Errorf("who asks again: %v", err)
	}
	if err := k.hasty.Create(t.Context(), k.ticket("late", 1)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "used 3, reserved 1, left 0") {
		t.Errorf("once it is full: %v", err)
	}
}

func TestAChangedPolicyIsCountedAgainBeforeItAdmits(t *testing.T) {
	w := startWebhook(t)
	k := countedTill(t, seatsTo4, w)
	if err := k.admin.Create(t.Context(), k.ticket("trip", 3)); err != nil {
		t.Fatal(err)
	}
	k.count()
	k.policy.Spec.Rego = strings.Replace(seatsTo4, `"limit": 4`, `"limit": 5`, 1)
	if err := k.admin.Update(t.Context(), k.policy); err != nil {
		t.Fatal(err)
	}
	waitFor(t, k.admin, w, k.policy)
	if err := k.hasty.Create(t.Context(), k.ticket("more", 2)); !apierrors.IsTooManyRequests(err) {
		t.Errorf("before the second count: %v", err)
	}
	k.count()
	if err := k.hasty.Create(t.Context(), k.ticket("more", 2)); err != nil {
		t.Errorf("after the second count: %v", err)
	}
	k.stands(quota.Namespace, "2027-03", "used 3, reserved 2 in 1 entries")
}

// bothScopes counts tickets in each namespace, and seats in all.
const bothScopes = `package both
quota contains {"key": "tickets", "scope": "Namespace", "amount": 1, "limit": 2}
quota contains {"key": "seats", "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 5}
`

func TestEveryBucketWithoutRoomIsNamedAndHoldsNothing(t *testing.T) {
	w := startWebhook(t)
	k := newTill(t, flightsv1.EnforcementEnforce, bothScopes)
	other := namespace(t, k.admin)
	k.policy.Spec.Match.Namespaces = append(k.policy.Spec.Match.Namespaces, other)
	k.put(w)
	k.count()
	elsewhere := k.ticket("trip", 2)
	elsewhere.Namespace = other
	for _, ft := range []*flightsv1.FlightTicket{k.ticket("first", 1), k.ticket("second", 1), elsewhere} {
		if err := k.admin.Create(t.Context(), ft); err != nil {
			t.Fatal(err)
		}
	}
	k.stands(quota.Namespace, "tickets", "used 0, reserved 2 in 2 entries")
	k.stands(quota.Cluster, "seats", "used 0, reserved 4 in 3 entries")
	err := k.admin.Create(t.Context(), k.ticket("third", 2))
	for _, part := range []string{
		"2 reasons:", `quota "tickets" has no room: requested 1, limit 2, used 0, reserved 2, left 0; it never resets`,
		`quota "seats" has no room: requested 2, limit 5, used 0, reserved 4, left 1; it never resets`,
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal lacks %s: %v", part, err)
		}
	}
	var status apierrors.APIStatus
	if errors.As(err, &status); status == nil || len(status.Status().Details.Causes) != 2 || status.Status().Details.Causes[0].Type != "QuotaExceeded" {
		t.Errorf("the causes are %+v", status)
	}
	third := k.ticket("third", 1)
	third.Namespace = other
	if err := k.admin.Create(t.Context(), third); err != nil {
		t.Errorf("in a namespace with room: %v", err)
	}
	// One bucket has room and the other hasn't: what was written to the first is taken back.
	fourth := k.ticket("fourth", 1)
	if err := k.admin.Create(t.Context(), fourth); !apierrors.IsForbidden(err) {
		t.Errorf("beyond both: %v", err)
	}
	k.settles(quota.Namespace, "tickets", 2)
	k.settles(quota.Cluster, "seats", 4)
}

func TestInANamespaceThatIsBeingDeletedAMissingBucketIsNoHindrance(t *testing.T) {
	const byCostCenter = `package centres
quota contains {"key": input.ticket.spec.costCenter, "scope": "Namespace", "amount": 1, "limit": 1} if input.ticket.spec.costCenter
quota contains {"key": "seats", "scope": "Cluster", "amount": input.ticket.spec.number, "limit": 3}
`
	k := countedTill(t, byCostCenter, startWebhook(t))
	ft := k.ticket("trip", 1)
	if err := k.admin.Create(t.Context(), ft); err != nil {
		t.Fatal(err)
	}
	if err := k.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}); err != nil {
		t.Fatal(err)
	}
	ft.Spec.CostCenter, ft.Spec.Number = "research", 2
	if err := k.hasty.Update(t.Context(), ft); err != nil {
		t.Errorf("a bucket that can't be made: %v", err)
	}
	k.stands(quota.Namespace, "research", "missing")
	k.stands(quota.Cluster, "seats", "used 0, reserved 2 in 2 entries")
	ft.Spec.Number = 4
	if err := k.hasty.Update(t.Context(), ft); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "requested 4 in place of 2, limit 3") {
		t.Errorf("beyond a bucket of another namespace: %v", err)
	}
}

// What decides after our webhook: the name, and the API server's own quota of objects.
func TestWhatIsRefusedLaterLeavesAnEntryAndNothingElse(t *testing.T) {
	k := countedTill(t, strings.Replace(seatsTo4, `"limit": 4`, `"limit": 9`, 1), startWebhook(t))
	if err := k.admin.Create(t.Context(), k.ticket("trip", 1)); err != nil {
		t.Fatal(err)
	}
	if err := k.admin.Create(t.Context(), k.ticket("trip", 5)); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("a name that is taken: %v", err)
	}
	k.stands(quota.Namespace, "2027-03", "used 0, reserved 5 in 2 entries") // of one name the larger counts
	k.limitObjects(1)
	if err := k.admin.Create(t.Context(), k.ticket("more", 3)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: one") {
		t.Fatalf("more objects than there may be: %v", err)
	}
	k.stands(quota.Namespace, "2027-03", "used 0, reserved 8 in 3 entries")
	k.count()
	// The first is counted. The others are no ticket's: they hold until they have aged.
	k.stands(quota.Namespace, "2027-03", "used 1, reserved 7 in 2 entries")
}

// limitObjects lets so many tickets into the namespace, and no ConfigMap, by the API server's own means.
func (k *till) limitObjects(n int64) {
	k.Helper()
	counted := func(tickets, maps int64) corev1.ResourceList {
		return corev1.ResourceList{
			"count/flighttickets.flights.com": *resource.NewQuantity(tickets, resource.DecimalSI),
			"count/configmaps":                *resource.NewQuantity(maps, resource.DecimalSI),
		}
	}
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: counted(n, 0)},
	}
	if err := k.admin.Create(k.Context(), q); err != nil {
		k.Fatal(err)
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: counted(n, 0)} // as a controller manager would say
	if err := k.admin.Status().Update(k.Context(), q); err != nil {
		k.Fatal(err)
	}
	eventually(k.T, "the quota of objects is in force", func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, GenerateName: "probe-"}}
		if err := k.admin.Create(ctx, probe); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("a probe ends with %w", err)
		}
		return nil
	})
}

// createPatiently creates a ticket, and asks again while a policy runs out of its time, which it does where the processors are
// wanted elsewhere.
func (k *till) createPatiently(ft *flightsv1.FlightTicket) error {
	var said error
	err := wait.PollUntilContextTimeout(k.Context(), 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		said = k.admin.Create(ctx, ft.DeepCopy())
		return said == nil || !strings.Contains(said.Error(), "could not be evaluated"), nil
	})
	return cmp.Or(said, err)
}

func TestTwoReplicasThatRaceForTheLastSeatsGiveEachOnce(t *testing.T) {
	replicas := startReplicas(t, "replica-a", "replica-b")
	k := countedTill(t, seatsTo4, replicas...)
	var in, out atomic.Int32
	var all sync.WaitGroup
	for i := range 40 {
		ft := k.ticket(fmt.Sprintf("trip-%d", i), 1)
		ft.Labels = map[string]string{"replica": replicas[i%2].options.replica}
		all.Go(func() {
			switch err := k.createPatiently(ft); {
			case err == nil:
				in.Add(1)
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "has no room"):
				out.Add(1)
			default:
				t.Errorf("neither stored nor refused: %v", err)
			}
		})
	}
	all.Wait()
	if in.Load() != 4 || out.Load() != 36 {
		t.Errorf("%d are in and %d are out, want 4 and 36", in.Load(), out.Load())
	}
	k.stands(quota.Namespace, "2027-03", "used 0, reserved 4 in 4 entries")
	k.count()
	k.stands(quota.Namespace, "2027-03", "used 4, reserved 0 in 0 entries")
}
