package main

import (
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestATicketIsBookedChangedAndCancelled(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	booked := p.untilBooked(2)
	if booked.Status.Booking.Reference == "" || booked.Status.Route.Origin.IATA != "BOM" {
		t.Errorf("incomplete status: %+v", booked.Status)
	}
	p.live(1)
	p.patch(ticket, `{"spec":{"number":3}}`)
	p.untilBooked(3)
	p.live(1)
	p.remove(ticket)
	p.untilGone()
	p.live(0)
	p.events("Booked", "Changed", "Cancelled")
	p.noCanary()
}

// events fails unless users were told of these.
func (p *place) events(reasons ...string) {
	p.Helper()
	told := map[string]bool{}
	options := &client.ListOptions{Namespace: p.namespace}
	watch, err := admin.Watch(p.ctx, &eventsv1.EventList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if e, ok := event.Object.(*eventsv1.Event); ok {
			told[e.Reason] = true
		}
		missing := 0
		for _, reason := range reasons {
			if !told[reason] {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
	p.Errorf("told %v, want %v", told, reasons)
}

// noCanary fails if a token can be read anywhere but in the Secret.
func (p *place) noCanary() {
	p.Helper()
	for _, kind := range []string{"flighttickets,events", "bookingproviders"} {
		out, err := plane.Kubectl(p.ctx, "get", kind, "-A", "-o", "yaml")
		if err != nil {
			p.Fatal(err)
		}
		if strings.Contains(out, canary) {
			p.Errorf("a token is in %s", kind)
		}
	}
}

func TestATicketWaitsForItsCredentialAndIsBookedWhenItComes(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.untilProvider(flightsv1.ReasonProviderReady)
	p.storeToken("")
	p.untilProvider(flightsv1.ReasonSecretKeyNotFound)
	p.apply(nil)
	p.until("saying what to do", func(t *flightsv1.FlightTicket) bool {
		ready := readyOf(t) // at first it may say that the provider is being connected
		return ready != nil && ready.Reason == flightsv1.ReasonProviderNotReady &&
			strings.Contains(ready.Message, "store the booking API's token there")
	})
	p.storeToken(p.token() + "-wrong")
	p.untilProvider(flightsv1.ReasonCredentialsRefused)
	p.live(0)
	p.sim.AddToken(p.token()+"-new", "acct-7")
	p.storeToken(p.token() + "-new")
	p.untilBooked(2)
	provider := p.untilProvider(flightsv1.ReasonProviderReady)
	if provider.Status.CredentialsRotatedAt == nil || provider.Status.Account != "acct-7" {
		t.Errorf("status of the provider: %+v", provider.Status)
	}
	p.noCanary()
}

func readyOf(t *flightsv1.FlightTicket) *metav1.Condition {
	return meta.FindStatusCondition(t.Status.Conditions, flightsv1.ConditionReady)
}

func TestAnotherSecretThatMayNotBeReadIsSaidWithTheRoleToAdd(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, func(provider *flightsv1.BookingProvider) {
		provider.Spec.CredentialsSecretRef.Name = "another-secret"
	})
	provider := p.untilProvider(flightsv1.ReasonSecretForbidden)
	message := meta.FindStatusCondition(provider.Status.Conditions, flightsv1.ConditionReady).Message
	if !strings.Contains(message, "kind: RoleBinding") || !strings.Contains(message, "another-secret") {
		t.Errorf("the message does not hold the Role to add: %s", message)
	}
}

func TestATicketIsBookedOnceThoughTheAnswerWasLost(t *testing.T) {
	for name, settings := range map[string]simulator.Settings{
		"by a provider that remembers keys": {IdempotencyKeyTTL: metav1.Duration{Duration: time.Hour}},
		"by a provider that takes none":     {},
	} {
		for _, effect := range []simulator.Effect{
			simulator.EffectDropAfter, simulator.EffectErrorAfter, simulator.EffectTruncate, simulator.EffectGarbage,
			simulator.EffectNoID,
		} {
			t.Run(name+", "+string(effect), func(t *testing.T) {
				p := newPlace(t, settings, nil)
				p.inject(simulator.Fault{Operation: simulator.OpBook, Effect: effect, Times: 1})
				ticket := p.apply(nil)
				p.untilBooked(2)
				p.live(1)
				p.remove(ticket)
				p.untilGone()
				p.live(0)
				if made := p.sim.Totals().Made; made != 1 {
					t.Errorf("%d bookings were made, want 1", made)
				}
			})
		}
	}
}

func TestAChangeAndACancellationHappenOnceThoughTheAnswerWasLost(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	p.inject(simulator.Fault{Operation: simulator.OpChange, Effect: simulator.EffectDropAfter, Times: 1})
	p.patch(ticket, `{"spec":{"number":4}}`)
	p.untilBooked(4)
	p.inject(simulator.Fault{Operation: simulator.OpCancel, Effect: simulator.EffectDropAfter, Times: 1})
	p.remove(ticket)
	p.untilGone()
	p.live(0)
}

func TestARefusalIsSaidOnceAndTriedAgainWhenTheSpecChanges(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectEcho, Times: 1})
	ticket := p.apply(nil)
	refused := p.untilReason(flightsv1.ReasonBookingRefused)
	if !meta.IsStatusConditionTrue(refused.Status.Conditions, flightsv1.ConditionStalled) {
		t.Errorf("not stalled: %+v", refused.Status.Conditions)
	}
	p.noCanary()
	p.patch(ticket, `{"spec":{"number":1}}`)
	p.untilBooked(1)
	if books := p.sim.Count(simulator.OpBook); books != 2 {
		t.Errorf("%d book calls, want 2", books)
	}
}

func TestARefusedChangeKeepsTheOldBooking(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	p.inject(simulator.Fault{Operation: simulator.OpChange, Effect: simulator.EffectRefuse, Times: 1})
	p.patch(ticket, `{"spec":{"number":5}}`)
	refused := p.untilReason(flightsv1.ReasonChangeRefused)
	if refused.Status.Booking == nil || refused.Status.Booking.Order.Seats != 2 {
		t.Errorf("the old booking is not kept: %+v", refused.Status.Booking)
	}
	p.patch(ticket, `{"spec":{"number":2}}`)
	p.untilBooked(2)
	p.live(1)
}

func TestATicketIsBookedWhenTheAPIComesUp(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.untilProvider(flightsv1.ReasonProviderReady)
	p.inject(simulator.Fault{Effect: simulator.EffectDropBefore})
	p.apply(nil)
	p.untilProvider(flightsv1.ReasonUnreachable)
	p.untilReason(flightsv1.ReasonProviderNotReady)
	p.sim.ClearFaults()
	p.untilBooked(2)
	p.live(1)
}

func TestAProviderThatAnswersGarbageIsUnreachableAndNothingIsBooked(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	p.inject(simulator.Fault{Effect: simulator.EffectHTML})
	p.sim.SetSettings(simulator.Settings{})
	p.patchProvider(`{"spec":{"timeout":"6s"}}`)
	p.untilProvider(flightsv1.ReasonUnreachable)
	p.apply(nil)
	p.untilReason(flightsv1.ReasonProviderNotReady)
	p.sim.ClearFaults()
	p.untilBooked(2)
	p.live(1)
}

func (p *place) patchProvider(patch string) {
	p.Helper()
	if err := admin.Patch(p.ctx, p.provider, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		p.Fatal(err)
	}
}

func TestASuspendedTicketIsNotBookedUntilItIsResumed(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(func(t *flightsv1.FlightTicket) { t.Spec.Suspend = true })
	p.untilReason(flightsv1.ReasonSuspended)
	p.live(0)
	p.patch(ticket, `{"spec":{"suspend":false}}`)
	p.untilBooked(2)
}

func TestATicketThatIsCreatedAgainIsNotBoughtAgain(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(func(t *flightsv1.FlightTicket) { t.Spec.DeletionPolicy = flightsv1.DeletionPolicyRetain })
	p.untilBooked(2)
	p.remove(ticket)
	p.untilGone()
	p.live(1)
	again := p.apply(nil)
	p.untilReason(flightsv1.ReasonAdoptionRequired)
	p.live(1)
	p.remove(again)
	p.untilGone()
	p.live(1)
}

func TestAPolicyRefusesAtTheSecondGateAndItsRemovalLetsTheTicketThrough(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	policy := &flightsv1.FlightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "closed-" + p.namespace},
		Spec: flightsv1.FlightPolicySpec{
			Rego:  "package closed\n\ndeny contains \"nobody travels now\" if input.stage == \"Booking\"\n",
			Match: flightsv1.PolicyMatch{Namespaces: []string{p.namespace}},
		},
	}
	if err := admin.Create(p.ctx, policy); err != nil {
		t.Fatal(err)
	}
	p.sim.SetSettings(simulator.Settings{})
	p.apply(func(t *flightsv1.FlightTicket) { t.Spec.Suspend = true })
	ticket := p.untilReason(flightsv1.ReasonSuspended)
	p.patch(ticket, `{"spec":{"suspend":false}}`)
	refused := p.untilReason(flightsv1.ReasonPolicyRefused)
	if !strings.Contains(readyOf(refused).Message, "nobody travels now") {
		t.Errorf("the reason is not told: %s", readyOf(refused).Message)
	}
	p.live(0)
	if err := admin.Delete(p.ctx, policy); err != nil {
		t.Fatal(err)
	}
	p.untilBooked(2)
}

func TestADeletedTicketWaitsForAGoodCredentialAndThenGoes(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	p.sim.RevokeToken(p.token())
	p.remove(ticket)
	p.until("waiting for the credential", func(t *flightsv1.FlightTicket) bool {
		return readyOf(t).Reason == flightsv1.ReasonProviderNotReady
	})
	p.live(1)
	p.sim.AddToken(p.token()+"-new", "acct-7")
	p.storeToken(p.token() + "-new")
	p.untilGone()
	p.live(0)
}

func TestACredentialOfAnotherAccountProvesNothing(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	p.sim.AddToken(p.token()+"-other", "acct-8")
	p.storeToken(p.token() + "-other")
	p.untilAccount("acct-8")
	p.remove(ticket)
	p.until("waiting for its account", func(t *flightsv1.FlightTicket) bool {
		return readyOf(t).Reason == flightsv1.ReasonAccountChanged
	})
	p.live(1)
	p.storeToken(p.token())
	p.untilGone()
	p.live(0)
}

func (p *place) untilAccount(account string) {
	p.Helper()
	options := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + p.provider.Name}}
	watch, err := admin.Watch(p.ctx, &flightsv1.BookingProviderList{}, options)
	if err != nil {
		p.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if provider, ok := event.Object.(*flightsv1.BookingProvider); ok && provider.Status.Account == account {
			return
		}
	}
	p.Fatalf("the provider did not come to account %s", account)
}

func TestAnOrderThatIsAcceptedAndConfirmedLaterIsBooked(t *testing.T) {
	p := newPlace(t, simulator.Settings{Processing: metav1.Duration{Duration: 500 * time.Millisecond}}, nil)
	p.apply(nil)
	p.untilBooked(2)
	p.live(1)
}

func TestAProviderInUseStaysUntilItsLastTicketIsGone(t *testing.T) {
	p := newPlace(t, simulator.Settings{}, nil)
	ticket := p.apply(nil)
	p.untilBooked(2)
	if err := admin.Delete(p.ctx, p.provider); err != nil {
		t.Fatal(err)
	}
	provider := p.untilProvider(flightsv1.ReasonDeleting, p.namespace+"/"+ticket.Name)
	if !meta.IsStatusConditionFalse(provider.Status.Conditions, flightsv1.ConditionReady) {
		t.Errorf("the provider says %+v", provider.Status.Conditions)
	}
	late := p.apply(func(t *flightsv1.FlightTicket) { t.Name = "late" })
	p.until("told that the provider goes", func(t *flightsv1.FlightTicket) bool {
		ready := readyOf(t)
		return t.Name == late.Name && ready != nil && ready.Reason == flightsv1.ReasonProviderNotFound &&
			strings.Contains(ready.Message, "is being deleted")
	})
	p.remove(ticket)
	p.untilGone()
	p.live(0)
	options := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "metadata.name=" + p.provider.Name}}
	watch, err := admin.Watch(p.ctx, &flightsv1.BookingProviderList{}, options)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if event.Type == "DELETED" {
			return
		}
	}
	t.Fatal("the provider does not go")
}
