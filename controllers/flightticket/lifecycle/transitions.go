package lifecycle

import (
	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// StateGone stands in a Transition for a ticket whose finalizer is off. No ticket shows it.
const StateGone flightsv1.TicketState = "Gone"

// Transition is one way that a ticket can go. The list of them is closed: a test walks all ways and compares, and
// docs/ticket-states.md is drawn from it.
type Transition struct {
	// From is empty for a ticket whose status was never written, or was lost. To may be StateGone.
	From, To flightsv1.TicketState
	// On is the reason of the condition Ready afterwards; for StateGone it is why the ticket could go.
	On string
}

// Transitions returns the closed list, by the states that they lead from and to.
func Transitions() []Transition {
	var all []Transition
	for _, w := range ways() {
		for _, on := range w.on {
			all = append(all, Transition{From: w.from, To: w.to, On: on})
		}
	}
	return all
}

// way is all transitions between two states.
type way struct {
	from, to flightsv1.TicketState
	on       []string
}

func ways() []way {
	return []way{
		{"", flightsv1.StatePending, []string{
			flightsv1.ReasonPolicyError, flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady,
			flightsv1.ReasonQuotaCounting, flightsv1.ReasonQuotaError, flightsv1.ReasonSuspended,
		}},
		{"", flightsv1.StateBooking, []string{flightsv1.ReasonBooking}},
		{"", flightsv1.StateBooked, []string{flightsv1.ReasonBooked, flightsv1.ReasonChanging}},
		{"", flightsv1.StateCancelling, []string{
			flightsv1.ReasonCancelling, flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
		}},
		{"", flightsv1.StateStalled, []string{
			flightsv1.ReasonAdoptionRefused, flightsv1.ReasonAdoptionRequired, flightsv1.ReasonBookingRefused,
			flightsv1.ReasonCurrencyMismatch, flightsv1.ReasonPlaceRefused, flightsv1.ReasonPolicyRefused,
			flightsv1.ReasonPriceExceeded, flightsv1.ReasonQuotaExceeded,
		}},
		{"", StateGone, []string{flightsv1.ReasonNotBooked}},
		{flightsv1.StatePending, flightsv1.StatePending, []string{
			flightsv1.ReasonPolicyError, flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady,
			flightsv1.ReasonQuotaCounting, flightsv1.ReasonQuotaError, flightsv1.ReasonSuspended,
		}},
		{flightsv1.StatePending, flightsv1.StateBooking, []string{flightsv1.ReasonBooking}},
		{flightsv1.StatePending, flightsv1.StateBooked, []string{flightsv1.ReasonBooked, flightsv1.ReasonChanging}},
		{flightsv1.StatePending, flightsv1.StateCancelling, []string{
			flightsv1.ReasonCancelling, flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
		}},
		{flightsv1.StatePending, flightsv1.StateStalled, []string{
			flightsv1.ReasonAdoptionRefused, flightsv1.ReasonAdoptionRequired, flightsv1.ReasonBookingRefused,
			flightsv1.ReasonCurrencyMismatch, flightsv1.ReasonPlaceRefused, flightsv1.ReasonPolicyRefused,
			flightsv1.ReasonPriceExceeded, flightsv1.ReasonQuotaExceeded,
		}},
		{flightsv1.StatePending, StateGone, []string{flightsv1.ReasonNotBooked}},
		{flightsv1.StateBooking, flightsv1.StatePending, []string{flightsv1.ReasonBooking}},
		{flightsv1.StateBooking, flightsv1.StateBooking, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonBooking, flightsv1.ReasonOperationPending,
			flightsv1.ReasonOutcomeUnknown, flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady,
		}},
		{flightsv1.StateBooking, flightsv1.StateBooked, []string{flightsv1.ReasonBooked, flightsv1.ReasonChanging}},
		{flightsv1.StateBooking, flightsv1.StateCancelling, []string{
			flightsv1.ReasonBooking, flightsv1.ReasonCancelling,
		}},
		{flightsv1.StateBooking, flightsv1.StateStalled, []string{
			flightsv1.ReasonBookingRefused, flightsv1.ReasonOperationPending, flightsv1.ReasonOutcomeUnknown,
		}},
		{flightsv1.StateBooked, flightsv1.StateBooked, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonBooked, flightsv1.ReasonPolicyError,
			flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
			flightsv1.ReasonQuotaError, flightsv1.ReasonSuspended,
		}},
		{flightsv1.StateBooked, flightsv1.StateChanging, []string{flightsv1.ReasonChanging}},
		{flightsv1.StateBooked, flightsv1.StateCancelling, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonCancelled, flightsv1.ReasonCancelling,
			flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
		}},
		{flightsv1.StateBooked, flightsv1.StateStalled, []string{
			flightsv1.ReasonChangeRefused, flightsv1.ReasonCurrencyMismatch, flightsv1.ReasonDrifted,
			flightsv1.ReasonPlaceRefused, flightsv1.ReasonPolicyRefused, flightsv1.ReasonPriceExceeded,
			flightsv1.ReasonQuotaExceeded,
		}},
		{flightsv1.StateBooked, StateGone, []string{flightsv1.ReasonRetained}},
		{flightsv1.StateChanging, flightsv1.StateBooked, []string{flightsv1.ReasonBooked, flightsv1.ReasonChanging}},
		{flightsv1.StateChanging, flightsv1.StateChanging, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonChanging, flightsv1.ReasonOperationPending,
			flightsv1.ReasonOutcomeUnknown, flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady,
		}},
		{flightsv1.StateChanging, flightsv1.StateCancelling, []string{
			flightsv1.ReasonCancelling, flightsv1.ReasonChanging,
		}},
		{flightsv1.StateChanging, flightsv1.StateStalled, []string{
			flightsv1.ReasonChangeRefused, flightsv1.ReasonOutcomeUnknown,
		}},
		{flightsv1.StateCancelling, flightsv1.StateCancelling, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonCancelled, flightsv1.ReasonCancelling,
			flightsv1.ReasonOperationPending, flightsv1.ReasonOutcomeUnknown, flightsv1.ReasonProviderNotFound,
			flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
		}},
		{flightsv1.StateCancelling, flightsv1.StateStalled, []string{
			flightsv1.ReasonCancellationRefused, flightsv1.ReasonOutcomeUnknown,
		}},
		{flightsv1.StateCancelling, StateGone, []string{
			flightsv1.ReasonCancelled, flightsv1.ReasonNotBooked, flightsv1.ReasonRetained,
		}},
		{flightsv1.StateStalled, flightsv1.StatePending, []string{
			flightsv1.ReasonBooking, flightsv1.ReasonPolicyError, flightsv1.ReasonProviderNotFound,
			flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting, flightsv1.ReasonQuotaError,
			flightsv1.ReasonSuspended,
		}},
		{flightsv1.StateStalled, flightsv1.StateBooking, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonBooking, flightsv1.ReasonOperationPending,
			flightsv1.ReasonOutcomeUnknown, flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady,
		}},
		{flightsv1.StateStalled, flightsv1.StateBooked, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonBooked, flightsv1.ReasonChanging, flightsv1.ReasonPolicyError,
			flightsv1.ReasonProviderNotFound, flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
			flightsv1.ReasonQuotaError, flightsv1.ReasonSuspended,
		}},
		{flightsv1.StateStalled, flightsv1.StateChanging, []string{flightsv1.ReasonChanging}},
		{flightsv1.StateStalled, flightsv1.StateCancelling, []string{
			flightsv1.ReasonAccountChanged, flightsv1.ReasonBooking, flightsv1.ReasonCancelled,
			flightsv1.ReasonCancelling, flightsv1.ReasonOutcomeUnknown, flightsv1.ReasonProviderNotFound,
			flightsv1.ReasonProviderNotReady, flightsv1.ReasonQuotaCounting,
		}},
		{flightsv1.StateStalled, flightsv1.StateStalled, []string{
			flightsv1.ReasonAdoptionRefused, flightsv1.ReasonAdoptionRequired, flightsv1.ReasonBookingRefused,
			flightsv1.ReasonChangeRefused, flightsv1.ReasonCurrencyMismatch, flightsv1.ReasonDrifted,
			flightsv1.ReasonPlaceRefused, flightsv1.ReasonPolicyRefused, flightsv1.ReasonPriceExceeded,
			flightsv1.ReasonQuotaExceeded,
		}},
		{flightsv1.StateStalled, StateGone, []string{flightsv1.ReasonNotBooked, flightsv1.ReasonRetained}},
	}
}
