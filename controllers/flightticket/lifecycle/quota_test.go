package lifecycle_test

import (
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

func answering(kind lifecycle.QuotaKind) lifecycle.QuotaAnswer {
	return lifecycle.QuotaAnswer{Kind: kind, Message: "quota q of policy p"}
}

// ready is a ticket that is booked next, or whose booking is changed, if its quotas have room.
func ready(o lifecycle.Observation) lifecycle.Observation {
	return with(o, func(o *lifecycle.Observation) {
		quoted(o)
		o.Heard.Verdict.Kind, o.Heard.Room = lifecycle.VerdictAllowed, room
	})
}

func before(o lifecycle.Observation, said lifecycle.QuotaAnswer) lifecycle.Observation {
	o.Heard.Quotas, o.Heard.Offer = said, nil
	o.Heard.Owner = &lifecycle.Listing{AskedAt: o.Now}
	return o
}

func withOffer(o lifecycle.Observation, said lifecycle.QuotaAnswer) lifecycle.Observation {
	o = ready(o)
	o.Heard.Hold = said
	return o
}

func TestQuotasAreAskedBeforeAnythingIsBought(t *testing.T) {
	none := lifecycle.QuotaAnswer{}
	decide(t, map[string]decision{
		"before an offer is asked for": {seen: before(unbooked(), none), action: lifecycle.CheckQuotas},
		"before an offer for a change": {seen: before(edited(), none), action: lifecycle.CheckQuotas},
		"with room an offer is asked for": {
			seen: before(unbooked(), answering(lifecycle.QuotaRoom)), action: lifecycle.Quote,
		},
		"with the offer before the order is written down":  {seen: withOffer(unbooked(), none), action: lifecycle.HoldQuotas},
		"with the offer before a change is written down":   {seen: withOffer(edited(), none), action: lifecycle.HoldQuotas},
		"with room for the offer the order is written":     {seen: withOffer(unbooked(), answering(lifecycle.QuotaRoom)), action: lifecycle.StartOperation},
		"room with the provider is asked for before":       {seen: with(withOffer(unbooked(), none), func(o *lifecycle.Observation) { o.Heard.Room = nil }), action: lifecycle.Admit},
		"a cancellation asks none, since it makes room":    {seen: with(leaving(), forgetQuotas), action: lifecycle.StartOperation},
		"an operation that is written down is not stopped": {seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) { o.Heard = lifecycle.Heard{Quotas: answering(lifecycle.QuotaFull)} }), action: lifecycle.Send},
		"a booking that is found is written down without room": {
			seen: with(before(unbooked(), answering(lifecycle.QuotaFull)), func(o *lifecycle.Observation) {
				o.Heard.Owner = ownListing(o, booking.StatusConfirmed)
			}),
			action: lifecycle.Record, reason: flightsv1.ReasonBooked,
		},
	})
}

func forgetQuotas(o *lifecycle.Observation) {
	o.Heard.Quotas, o.Heard.Hold, o.Heard.Room = lifecycle.QuotaAnswer{}, lifecycle.QuotaAnswer{}, room
}

func TestATicketWithoutRoomWaits(t *testing.T) {
	cases := map[string]decision{}
	for name, seen := range map[string]func(lifecycle.QuotaAnswer) lifecycle.Observation{
		"before an offer":     func(said lifecycle.QuotaAnswer) lifecycle.Observation { return before(unbooked(), said) },
		"with the offer":      func(said lifecycle.QuotaAnswer) lifecycle.Observation { return withOffer(unbooked(), said) },
		"before a change":     func(said lifecycle.QuotaAnswer) lifecycle.Observation { return before(edited(), said) },
		"with a change offer": func(said lifecycle.QuotaAnswer) lifecycle.Observation { return withOffer(edited(), said) },
	} {
		cases[name+", for room"] = decision{
			seen: seen(answering(lifecycle.QuotaFull)), action: lifecycle.Wait, reason: flightsv1.ReasonQuotaExceeded,
			after: pollInterval, mood: flightsv1.ConditionStalled,
		}
		cases[name+", for the count"] = decision{
			seen: seen(answering(lifecycle.QuotaCounting)), action: lifecycle.Wait, reason: flightsv1.ReasonQuotaCounting,
			after: time.Second, mood: flightsv1.ConditionReconciling,
		}
		cases[name+", for an answer"] = decision{
			seen: seen(answering(lifecycle.QuotaError)), action: lifecycle.Wait, reason: flightsv1.ReasonQuotaError, after: time.Second,
		}
		cases[name+", when it is not understood"] = decision{
			seen: seen(answering("Perhaps")), action: lifecycle.Wait, reason: flightsv1.ReasonQuotaError, after: time.Second,
		}
	}
	decide(t, cases)
}

func TestATicketStaysUntilWhatOutlivesItIsKept(t *testing.T) {
	unkept := func(o *lifecycle.Observation) {
		o.Heard.Departure = &lifecycle.Departure{Missing: "quota q of policy p"}
	}
	unasked := func(o *lifecycle.Observation) { o.Heard.Departure = nil }
	retained := func(o *lifecycle.Observation) { o.Ticket.Retain = true }
	gone := func(o *lifecycle.Observation) { o.Heard.Owner = &lifecycle.Listing{AskedAt: o.Now} }
	waits := func(seen lifecycle.Observation) decision {
		return decision{
			seen: seen, action: lifecycle.Wait, reason: flightsv1.ReasonQuotaCounting, after: time.Second,
			mood: flightsv1.ConditionReconciling,
		}
	}
	decide(t, map[string]decision{
		"its quotas are asked":                           {seen: with(with(going(), gone), unasked), action: lifecycle.Depart},
		"its quotas are asked when its booking stays":    {seen: with(with(leaving(), retained), unasked), action: lifecycle.Depart},
		"it waits for them":                              waits(with(with(going(), gone), unkept)),
		"it waits for them when its booking stays":       waits(with(with(leaving(), retained), unkept)),
		"it waits for them where no provider is asked":   waits(with(going(), func(o *lifecycle.Observation) { o.Provider.Found = false; unkept(o) })),
		"it goes then":                                   {seen: with(going(), gone), action: lifecycle.RemoveFinalizer},
		"its booking is cancelled before they are asked": {seen: with(leaving(), func(o *lifecycle.Observation) { o.Heard.Room = room; unkept(o) }), action: lifecycle.StartOperation},
	})
	step := lifecycle.Next(with(with(forgotten(), gone), unkept))
	if step.Status.ObservedGeneration != -1 {
		t.Error("a ticket whose status was lost is no longer known as one while it waits")
	}
}

func TestWhatWasHeardIsUsedAgainWhileItHoldsGood(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	heard := func(ago time.Duration) lifecycle.Heard {
		return lifecycle.Heard{
			Owner: &lifecycle.Listing{AskedAt: now.Add(-ago)}, Read: &lifecycle.Reading{AskedAt: now.Add(-ago)},
			Offer:  &lifecycle.Quotation{AskedAt: now.Add(-ago), Offer: booking.Offer{ExpiresAt: now.Add(time.Minute)}},
			Quotas: answering(lifecycle.QuotaRoom), Hold: answering(lifecycle.QuotaRoom), Room: room,
			Departure: &lifecycle.Departure{}, Verdict: lifecycle.Verdict{Kind: lifecycle.VerdictAllowed},
		}
	}
	if kept := heard(time.Minute).Kept(now); kept.Owner == nil || kept.Read == nil || kept.Offer == nil ||
		kept.Quotas.Kind != "" || kept.Hold.Kind != "" || kept.Room != nil || kept.Departure != nil || kept.Verdict.Kind != "" {
		t.Errorf("kept %+v, want the provider's answers alone", kept)
	}
	if kept := heard(2 * time.Hour).Kept(now); kept.Owner != nil || kept.Read != nil || kept.Offer != nil {
		t.Errorf("answers of two hours ago are built on: %+v", kept)
	}
	for cause, keeps := range map[lifecycle.Cause]bool{
		lifecycle.CauseFull: true, lifecycle.CauseCounting: true, lifecycle.CauseHeld: false, lifecycle.CauseUnavailable: false,
	} {
		if (lifecycle.Step{Cause: cause}).Keeps() != keeps {
			t.Errorf("a ticket that waits, %s, keeps what it heard: %t", cause, !keeps)
		}
	}
}
