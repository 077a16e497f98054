package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"unicode"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/instruction"
)

// maxBookingID is the longest id of a booking that a person may name.
const maxBookingID = 200

// Rights says what users may do. The API server knows.
type Rights interface {
	// May says whether a user has an RBAC verb on the ticket of a namespace and name. An error means that nobody could
	// tell; the caller must refuse.
	May(ctx context.Context, user authenticationv1.UserInfo, verb, namespace, name string) (bool, error)
}

// decision is an annotation by which a person decides something about a ticket that RBAC's usual verbs don't cover.
type decision struct {
	annotation string
	// verb is what it takes to give the annotation another value that isn't empty.
	verb string
	// wrong says what is wrong with a value, for a person; empty if nothing is.
	wrong func(r *ticketReview, value string) string
}

// decisions are all that there are. Each goes with a verb of its own, so that a cluster admin can give one alone.
func decisions() []decision {
	return []decision{
		{flightsv1.AdoptBookingAnnotation, flightsv1.VerbAdopt, wrongAdoption},
		{flightsv1.ResolveOperationAnnotation, flightsv1.VerbResolve, wrongResolution},
		{flightsv1.RetainBookingAnnotation, flightsv1.VerbRetain, wrongRetention},
	}
}

// decides says whether an annotation is given another value that isn't empty. To take one away decides nothing.
func (d decision) decides(now, before map[string]string) bool {
	return now[d.annotation] != "" && now[d.annotation] != before[d.annotation]
}

// rightAsked is a question about a verb, and what came of it.
type rightAsked struct{ verb, result string }

// checkDecisions refuses a decision that says nothing sensible about the stored ticket, or whose user lacks the verb. An
// error means that nobody could tell whether the user has it.
func (v ticketValidator) checkDecisions(ctx context.Context, r *ticketReview) error {
	for _, d := range decisions() {
		if !d.decides(r.ticket.Annotations, r.before()) {
			continue
		}
		if text := d.wrong(r, r.ticket.Annotations[d.annotation]); text != "" {
			r.refuseAnnotation(d.annotation, metav1.CauseTypeFieldValueInvalid, text)
		}
		if err := v.checkRight(ctx, r, d); err != nil {
			return err
		}
	}
	return nil
}

func (v ticketValidator) checkRight(ctx context.Context, r *ticketReview, d decision) error {
	user, name := r.req.UserInfo, cmp.Or(r.req.Name, r.ticket.Name)
	may, err := v.rights.May(ctx, user, d.verb, r.req.Namespace, name)
	switch {
	case err != nil:
		r.rights = append(r.rights, rightAsked{d.verb, resultUndecided})
		return fmt.Errorf("ask whether the user has the verb %s: %w", d.verb, err)
	case may:
		r.rights = append(r.rights, rightAsked{d.verb, resultAllowed})
	default:
		r.rights = append(r.rights, rightAsked{d.verb, resultDenied})
		r.refuseAnnotation(d.annotation, metav1.CauseTypeForbidden, lacking(user.Username, d.verb, r.req.Namespace, name))
	}
	return nil
}

// lacking says which verb is missing and prints the rule to add.
func lacking(user, verb, namespace, name string) string {
	return fmt.Sprintf("user %q lacks the verb %s on FlightTicket %s in namespace %s; who administers the cluster may bind the "+
		"ClusterRole flights-admin there, or a Role with the rule "+
		`{apiGroups: ["flights.com"], resources: ["flighttickets"], verbs: [%q]}`, oneLine(user, maxWarningText), verb, name, namespace, verb)
}

// before are the annotations of the stored ticket; none at create.
func (r *ticketReview) before() map[string]string {
	if r.old == nil {
		return nil
	}
	return r.old.Annotations
}

func (r *ticketReview) refuseAnnotation(key string, code metav1.CauseType, text string) {
	r.refuseField("metadata.annotations["+key+"]", code, text)
}

// checkPollInterval refuses an interval that the controller would not follow. One that was stored before stays.
func (r *ticketReview) checkPollInterval() {
	value := r.ticket.Annotations[flightsv1.PollIntervalAnnotation]
	if value == "" || value == r.before()[flightsv1.PollIntervalAnnotation] {
		return
	}
	if _, err := instruction.ParsePollInterval(value); err != nil {
		r.refuseAnnotation(flightsv1.PollIntervalAnnotation, metav1.CauseTypeFieldValueInvalid, err.Error())
	}
}

// booked is the booking of the stored ticket that still exists; nil if there is none.
func (r *ticketReview) booked() *flightsv1.BookingStatus {
	if r.old == nil || r.old.Status.Booking == nil || r.old.Status.Booking.CancelledAt != nil {
		return nil
	}
	return r.old.Status.Booking
}

func wrongAdoption(r *ticketReview, value string) string {
	switch booked := r.booked(); {
	case !isBookingID(value):
		return notABookingID(value)
	case r.old != nil && r.old.DeletionTimestamp != nil:
		return "the ticket is being deleted and takes no booking over; create it again once it is gone, and adopt then"
	case booked != nil:
		return fmt.Sprintf("the ticket has booking %s already and can't take another one over; delete it, and create another "+
			"ticket that adopts %s", booked.ID, value)
	default:
		return ""
	}
}

func wrongRetention(r *ticketReview, value string) string {
	switch booked := r.booked(); {
	case !isBookingID(value):
		return notABookingID(value)
	case r.old == nil:
		return "a new ticket has no booking yet; leave the annotation out, and set spec.deletionPolicy to Retain if its booking " +
			"is to outlive it"
	case booked == nil:
		return "the ticket has no booking that could stay with the provider"
	case booked.ID != value:
		return fmt.Sprintf("the ticket's booking is %s and not %s; read the ticket again", booked.ID, value)
	default:
		return ""
	}
}

func wrongResolution(r *ticketReview, value string) string {
	said, err := instruction.ParseResolution(value)
	switch {
	case err != nil:
		return err.Error()
	case said.Booking != "" && !isBookingID(said.Booking):
		return notABookingID(said.Booking)
	case r.old == nil:
		return "a new ticket has no open operation; leave the annotation out"
	case r.old.Status.Operation == nil:
		return "the ticket has no open operation, so there is nothing to decide"
	}
	op := r.old.Status.Operation
	switch {
	case op.ID != said.Operation:
		return fmt.Sprintf("the open operation is %s and not %.200q; read the ticket again, and decide about that one", op.ID, said.Operation)
	case said.Booking != "" && op.Kind != flightsv1.OperationBook:
		return fmt.Sprintf("a %s operation makes no booking, so none can be named: write %q", op.Kind,
			instruction.Resolution{Operation: op.ID, Done: true})
	case said.Done && said.Booking == "" && op.Kind == flightsv1.OperationBook && op.BookingID == "":
		return fmt.Sprintf("name the booking that the operation made: %q and the provider's id of it",
			instruction.Resolution{Operation: op.ID, Done: true})
	default:
		return ""
	}
}

// isBookingID says whether a text can be a provider's id of a booking: it is printed, compared and put into addresses.
func isBookingID(text string) bool {
	if text == "" || utf8.RuneCountInString(text) > maxBookingID || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func notABookingID(text string) string {
	return fmt.Sprintf("%.50q is no booking's id: it has 1 to %d printable characters and no blanks", text, maxBookingID)
}
