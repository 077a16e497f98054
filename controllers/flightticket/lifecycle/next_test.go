package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
)

func TestNextLeadsATicketToItsBooking(t *testing.T) {
	decide(t, map[string]decision{
		"a deleted ticket without our finalizer is left alone": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Ticket.Deleting, o.Ticket.Finalizer = true, false }),
			action: lifecycle.Nothing,
		},
		"the finalizer comes before anything": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Ticket.Finalizer = false }),
			action: lifecycle.AddFinalizer,
		},
		"a place that can't be understood waits for the spec": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Ticket.Wanted, o.Ticket.Problem = nil, "spec.from: no place is called Lundon"
			}),
			action: lifecycle.Nothing, reason: flightsv1.ReasonPlaceRefused, mood: flightsv1.ConditionStalled,
		},
		"a suspended ticket is not booked": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Ticket.Suspend = true }),
			action: lifecycle.Nothing, reason: flightsv1.ReasonSuspended,
		},
		"a ticket without provider waits for one": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Provider = lifecycle.Provider{} }),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotFound, after: 10 * time.Minute,
			mood: flightsv1.ConditionReconciling,
		},
		"a ticket whose provider is missing waits for it": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Provider = lifecycle.Provider{Name: "gone"} }),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotFound, after: 10 * time.Minute,
		},
		"a provider without a good credential is waited for, and the ticket has not failed": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Provider.Ready = false }),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: 10 * time.Minute,
			mood: flightsv1.ConditionReconciling,
		},
		"a provider that this process has not connected yet is looked at again soon": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Provider.Ready, o.Provider.Connecting = false, true }),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: 2 * time.Second,
			mood: flightsv1.ConditionReconciling,
		},
		"an open breaker is waited for before an operation is written": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Heard.Verdict.Kind, o.Provider.Wait = lifecycle.VerdictAllowed, 7*time.Second
			}),
			action: lifecycle.Wait, after: 7 * time.Second,
		},
		"the owner is looked up before the first book": {seen: unbooked(), action: lifecycle.LookupOwner},
		"a failed owner look-up buys nothing": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Heard.Owner = &lifecycle.Listing{Err: failure(booking.ClassUnavailable, "connection_refused")}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: time.Second,
		},
		"a booking that another owner has is not ours": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Heard.Owner = &lifecycle.Listing{Bookings: []booking.Booking{
					{ID: "x", Status: booking.StatusConfirmed, Names: booking.Names{Owner: "prod/team-a/other"}},
				}}
			}),
			action: lifecycle.Quote,
		},
		"a cancelled booking of an earlier incarnation doesn't hinder": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Heard.Owner = &lifecycle.Listing{Bookings: []booking.Booking{
					{ID: "x", Status: booking.StatusCancelled, Names: booking.Names{Owner: o.Ticket.Names.Owner()}},
				}}
			}),
			action: lifecycle.Quote,
		},
		"a live booking of this very ticket is recorded though the status was lost": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Heard.Owner = ownListing(o, booking.StatusConfirmed) }),
			action: lifecycle.Record, reason: flightsv1.ReasonBooked,
		},
		"a pending booking of this very ticket is waited for though the status was lost": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { o.Heard.Owner = ownListing(o, booking.StatusPending) }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: time.Minute,
		},
		"nothing is quoted before the policies are loaded": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Heard.Owner, o.PoliciesLoaded = &lifecycle.Listing{}, false
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonPolicyError, after: 2 * time.Second,
		},
		"the policies are asked with an offer": {seen: with(unbooked(), quoted), action: lifecycle.Gate},
		"an offer above the ceiling is not bought": {
			seen:   with(unbooked(), func(o *lifecycle.Observation) { quoted(o); o.Ticket.Ceiling = euros(91239) }),
			action: lifecycle.Wait, reason: flightsv1.ReasonPriceExceeded, after: 10 * time.Minute,
			mood: flightsv1.ConditionStalled,
		},
		"an offer at the ceiling is bought": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Ticket.Ceiling, o.Heard.Verdict.Kind, o.Heard.Room = euros(91240), lifecycle.VerdictAllowed, room
			}),
			action: lifecycle.StartOperation, reason: flightsv1.ReasonBooking,
		},
		"an offer in another currency is not bought": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Ticket.Ceiling = money.Amount{Minor: 1 << 40, Currency: "USD"}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonCurrencyMismatch, after: 10 * time.Minute,
		},
		"a policy refuses at the second gate": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Heard.Verdict = lifecycle.Verdict{Kind: lifecycle.VerdictRefused, Messages: []string{"no"}}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonPolicyRefused, after: 10 * time.Minute,
			mood: flightsv1.ConditionStalled,
		},
		"a policy that can't be evaluated lets nothing through": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Heard.Verdict = lifecycle.Verdict{Kind: lifecycle.VerdictError, Messages: []string{"time-out"}}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonPolicyError, after: time.Second,
		},
		"a refused quote is a refusal": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Heard.Offer = &lifecycle.Quotation{Err: failure(booking.ClassRefused, "no_offers")}
			}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBookingRefused, mood: flightsv1.ConditionStalled,
		},
		"a throttled quote waits as long as it is told": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				quoted(o)
				o.Heard.Offer = &lifecycle.Quotation{Err: &booking.CallError{
					Class: booking.ClassThrottled, Code: "rate_limited", RetryAfter: 9 * time.Second,
				}}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: 9 * time.Second,
		},
	})
}

func TestARefusalStandsUntilSomethingItRestsOnChanges(t *testing.T) {
	refused := sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "sold_out"))
	step := lifecycle.Next(refused)
	o := refused
	o.Ticket.Status, o.Heard, o.Fresh = step.Status, lifecycle.Heard{}, false
	if again := lifecycle.Next(o); again.Action != lifecycle.Nothing {
		t.Fatalf("the provider is asked again: %s", again.Action)
	}
	changes := map[string]func(*lifecycle.Observation){
		"the spec":                   func(o *lifecycle.Observation) { o.Ticket.Generation++ },
		"the provider":               func(o *lifecycle.Observation) { o.Provider.Generation++ },
		"the provider's incarnation": func(o *lifecycle.Observation) { o.Provider.Identity.UID = "provider-2" },
		"the annotation":             func(o *lifecycle.Observation) { o.Ticket.ReconcileRequestedAt = "now" },
		"the credential": func(o *lifecycle.Observation) {
			o.Provider.CredentialsRotatedAt = &metav1.Time{Time: o.Now.Add(time.Minute)}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			if again := lifecycle.Next(with(o, change)); again.Action != lifecycle.LookupOwner {
				t.Errorf("got %s, want a new attempt", again.Action)
			}
		})
	}
}

func TestAnAttemptIsNeverNumberedTwice(t *testing.T) {
	o := unbooked()
	quoted(&o)
	o.Heard.Verdict.Kind, o.Heard.Room = lifecycle.VerdictAllowed, room
	o.Heard.Owner = ownListing(&o, booking.StatusCancelled) // attempt 7, which the status knows nothing of
	step := lifecycle.Next(o)
	if got := step.Status.Operation.ClientReference; got != "prod/uid-1/8" {
		t.Errorf("got the reference %s, want prod/uid-1/8", got)
	}
}

func TestSendByIsWellInsideTheLifetimeOfTheKey(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0: time.Minute, time.Hour: time.Minute, time.Minute: 30 * time.Second, time.Nanosecond: time.Minute, // too short to use
	} {
		o := unbooked()
		quoted(&o)
		o.Heard.Verdict.Kind, o.Heard.Room, o.Provider.KeyTTL = lifecycle.VerdictAllowed, room, ttl
		op := lifecycle.Next(o).Status.Operation
		if got := op.SendBy.Sub(op.StartedAt.Time); got != want {
			t.Errorf("a key that lives %s: sends stop after %s, want %s", ttl, got, want)
		}
	}
}

func TestTheSameFactsGiveTheSameStatus(t *testing.T) {
	o := with(unbooked(), func(o *lifecycle.Observation) { o.Provider.Ready, o.Provider.Trouble = false, "no Secret" })
	first := lifecycle.Next(o)
	o.Ticket.Status, o.Now = first.Status, o.Now.Add(time.Hour)
	second := lifecycle.Next(o)
	if len(first.Status.Conditions) == 0 || !slices.Equal(texts(first), texts(second)) {
		t.Errorf("the conditions flap: %v, then %v", texts(first), texts(second))
	}
}

func texts(s lifecycle.Step) []string {
	var all []string
	for _, c := range s.Status.Conditions {
		all = append(all, c.Type+c.Reason+c.Message+c.LastTransitionTime.String())
	}
	return all
}

func TestALongMessageIsCut(t *testing.T) {
	o := unbooked()
	o.Ticket.Wanted, o.Ticket.Problem = nil, strings.Repeat("ä", 40000)
	ready := meta.FindStatusCondition(lifecycle.Next(o).Status.Conditions, flightsv1.ConditionReady)
	if len(ready.Message) > 32768 || !strings.HasSuffix(ready.Message, "(cut)") {
		t.Errorf("a message of %d bytes", len(ready.Message))
	}
}

func TestEveryActionIsNamedOnce(t *testing.T) {
	seen := map[lifecycle.Action]bool{}
	for _, action := range lifecycle.Actions() {
		if seen[action] || action == "" {
			t.Errorf("action %q is listed twice or has no name", action)
		}
		seen[action] = true
	}
}
