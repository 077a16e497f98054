package lifecycle

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// mood says which of the kstatus conditions beside Ready is true.
type mood int

const (
	idle        mood = iota // neither: the ticket rests, as when it is ready or suspended
	reconciling             // the controller works, or waits for something that will come
	stalled                 // a person has to change something
)

// report is what the ticket's status says in words.
type report struct {
	state   flightsv1.TicketState
	ready   bool
	reason  string
	message string
	mood    mood
	// code is the provider's code if the message repeats its words. They may differ from answer to answer, and a status is
	// written on transitions only: as long as reason and code are those of before, the message stays as it was.
	code string
	// lost says that the booking in the status is known not to exist any more.
	lost bool
}

// maxMessage is the longest message in runes. The API server takes 32768 bytes; nobody reads that much.
const maxMessage = 2000

// tell completes a status with conditions, state and route. It is the only place that sets them, so that the same
// facts always give the same words and conditions don't flap.
func (o Observation) tell(s *flightsv1.FlightTicketStatus, r report) flightsv1.FlightTicketStatus {
	r.message = o.steady(r) + o.postscript(s.Operation)
	s.ObservedGeneration = o.Ticket.Generation
	if o.Ticket.ReconcileRequestedAt != "" {
		s.LastHandledReconcileAt = o.Ticket.ReconcileRequestedAt
	}
	s.State = r.state
	if r.mood == stalled {
		s.State = flightsv1.StateStalled
	}
	if o.Ticket.Route != nil {
		s.Route = o.Ticket.Route
	}
	o.set(s, flightsv1.ConditionReady, truth(r.ready), r.reason, r.message)
	o.while(s, flightsv1.ConditionReconciling, r.mood == reconciling, r)
	o.while(s, flightsv1.ConditionStalled, r.mood == stalled, r)
	o.tellBooked(s, r)
	o.tellVerdict(s)
	o.tellQuotas(s)
	return *s
}

// steady returns the message of a report, or the one that stands if it says the same in other words of the provider.
func (o Observation) steady(r report) string {
	ready := meta.FindStatusCondition(o.Ticket.Status.Conditions, flightsv1.ConditionReady)
	if r.code == "" || ready == nil || ready.Reason != r.reason || ready.ObservedGeneration != o.Ticket.Generation ||
		!strings.HasSuffix(ready.Message, "("+r.code+")") {
		return r.message
	}
	return ready.Message
}

func (o Observation) tellBooked(s *flightsv1.FlightTicketStatus, r report) {
	if r.lost {
		o.set(s, flightsv1.ConditionBooked, metav1.ConditionFalse, r.reason, r.message)
		return
	}
	if s.Booking == nil || s.Booking.CancelledAt != nil {
		o.set(s, flightsv1.ConditionBooked, metav1.ConditionFalse, flightsv1.ReasonNotBooked, "no booking exists")
		return
	}
	o.set(s, flightsv1.ConditionBooked, metav1.ConditionTrue, flightsv1.ReasonBooked, describe(*s.Booking))
}

func (o Observation) tellVerdict(s *flightsv1.FlightTicketStatus) {
	reasons := strings.Join(o.Heard.Verdict.Messages, "; ")
	switch o.Heard.Verdict.Kind {
	case VerdictNotAsked:
	case VerdictAllowed:
		o.set(s, flightsv1.ConditionPolicyCompliant, metav1.ConditionTrue, flightsv1.ReasonCompliant,
			"every policy allows the ticket")
	case VerdictRefused:
		o.set(s, flightsv1.ConditionPolicyCompliant, metav1.ConditionFalse, flightsv1.ReasonPolicyRefused, reasons)
	case VerdictError:
		o.set(s, flightsv1.ConditionPolicyCompliant, metav1.ConditionUnknown, flightsv1.ReasonPolicyError, reasons)
	}
}

func (o Observation) tellQuotas(s *flightsv1.FlightTicketStatus) {
	answer := o.Heard.Hold
	if answer.Kind == QuotaNotAsked {
		answer = o.Heard.Quotas
	}
	switch answer.Kind {
	case QuotaNotAsked:
	case QuotaRoom:
		o.set(s, flightsv1.ConditionQuotaHeld, metav1.ConditionTrue, flightsv1.ReasonQuotaHeld,
			"every quota of the ticket has room for it")
	case QuotaFull:
		o.set(s, flightsv1.ConditionQuotaHeld, metav1.ConditionFalse, flightsv1.ReasonQuotaExceeded, answer.Message)
	case QuotaCounting:
		o.set(s, flightsv1.ConditionQuotaHeld, metav1.ConditionUnknown, flightsv1.ReasonQuotaCounting, answer.Message)
	default:
		o.set(s, flightsv1.ConditionQuotaHeld, metav1.ConditionUnknown, flightsv1.ReasonQuotaError, answer.Message)
	}
}

// while keeps a condition only as long as it is true.
func (o Observation) while(s *flightsv1.FlightTicketStatus, kind string, is bool, r report) {
	if is {
		o.set(s, kind, metav1.ConditionTrue, r.reason, r.message)
		return
	}
	meta.RemoveStatusCondition(&s.Conditions, kind)
}

func (o Observation) set(
	s *flightsv1.FlightTicketStatus, kind string, is metav1.ConditionStatus, reason, message string,
) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: capped(message),
		ObservedGeneration: o.Ticket.Generation, LastTransitionTime: metav1.NewTime(o.Now),
	})
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func capped(message string) string {
	if utf8.RuneCountInString(message) <= maxMessage {
		return message
	}
	return string([]rune(message)[:maxMessage]) + " (cut)"
}

// describe names a booking for a person.
func describe(b flightsv1.BookingStatus) string {
	if b.Reference == "" {
		return "booking " + b.ID + " with " + b.Provider.Name
	}
	return "booking " + b.Reference + " (" + b.ID + ") with " + b.Provider.Name
}

// prior returns the status as it was, to be edited.
func (o Observation) prior() *flightsv1.FlightTicketStatus { return o.Ticket.Status.DeepCopy() }

// news says whether the ticket's reason was another one before, so that an event is told once and not at every look.
func (o Observation) news(reason string) bool {
	ready := meta.FindStatusCondition(o.Ticket.Status.Conditions, flightsv1.ConditionReady)
	return ready == nil || ready.Reason != reason || ready.ObservedGeneration != o.Ticket.Generation
}

// resting is the state of a ticket that has no open operation.
func (o Observation) resting() flightsv1.TicketState {
	switch {
	case o.Ticket.Deleting:
		return flightsv1.StateCancelling
	case o.Ticket.Status.Booking != nil:
		return flightsv1.StateBooked
	default:
		return flightsv1.StatePending
	}
}
