package lifecycle

import (
	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// afford returns the step of a ticket whose quotas have not said that there is room: to ask them, or to wait. False: there
// is room. An answer that isn't known is none.
func afford(o Observation, kind flightsv1.OperationKind, ask Action, answer QuotaAnswer) (Step, bool) {
	r := report{state: o.resting(), message: answer.Message}
	switch answer.Kind {
	case QuotaNotAsked:
		return Step{Action: ask}, true
	case QuotaRoom:
		return Step{}, false
	case QuotaFull:
		r.reason, r.mood = flightsv1.ReasonQuotaExceeded, stalled
		r.message = "nothing is booked until there is room: " + answer.Message
		if kind == flightsv1.OperationChange {
			r.message = "the booking stays as it is until there is room: " + answer.Message
		}
		return o.warn(CauseFull, r), true
	case QuotaCounting:
		r.reason, r.mood = flightsv1.ReasonQuotaCounting, reconciling
		return o.wait(CauseCounting, r), true
	default:
		r.reason = flightsv1.ReasonQuotaError
		return o.warn(CauseAnew, r), true
	}
}

// letGo takes the finalizer off once all of the ticket that must outlive it is in its quotas: without the ticket nobody
// could tell any more what it took. The event tells what becomes of the booking; nil: there is nothing to tell.
func letGo(o Observation, event *Event) Step {
	switch gone := o.Heard.Departure; {
	case gone == nil:
		return Step{Action: Depart}
	case gone.Missing != "":
		return o.wait(CauseCounting, report{
			state: flightsv1.StateCancelling, reason: flightsv1.ReasonQuotaCounting, mood: reconciling,
			message: "goes once its quotas have kept what outlives it: " + gone.Missing,
		})
	default:
		return Step{Action: RemoveFinalizer, Event: event}
	}
}
