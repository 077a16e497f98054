package policy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
)

// RequestError says that a request is not one that policies can be asked about. The caller must refuse.
type RequestError struct {
	// Field is the path in the ticket or request: "spec.maxPrice", "stage".
	Field string
	Err   error
}

// Error names the field and what is wrong with it.
func (e *RequestError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// lastApplied is where kubectl apply keeps a copy of the manifest; policies must not mistake it for the ticket.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// SameMetadata says whether the metadata that policies may rest on is the same in two tickets: labels and annotations, as
// far as policies see them. What isn't the same must be put to the policies, or a policy that demands an annotation could
// be had to agree with one that is taken away again.
func SameMetadata(a, b *flightsv1.FlightTicket) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(ticketAnnotations(a), ticketAnnotations(b))
}

// ticketAnnotations are those that policies see: not kubectl's, and not those that ask the controller for another try or
// decide about a booking that exists, which must stay free for tickets that a younger policy would refuse. Who may decide
// is RBAC's to say.
func ticketAnnotations(t *flightsv1.FlightTicket) map[string]string {
	seen := maps.Clone(t.Annotations)
	for _, unseen := range []string{
		lastApplied, flightsv1.ReconcileRequestedAtAnnotation, flightsv1.AdoptBookingAnnotation,
		flightsv1.ResolveOperationAnnotation, flightsv1.RetainBookingAnnotation, flightsv1.DecidedByAnnotation,
	} {
		delete(seen, unseen)
	}
	return seen
}

// field is one member of a Rego object.
type field = [2]*ast.Term

// buildInput turns a request into the members of the input document, all but parameters, which differ by policy. It
// runs once a request: all policies share the values. Its shape is input.schema.json, and a test holds the two equal.
func buildInput(r Request) ([]field, error) {
	if err := checkRequest(r); err != nil {
		return nil, err
	}
	ticket, err := ticketValue(r.Ticket)
	if err != nil {
		return nil, err
	}
	in := []field{
		text("stage", string(r.Stage)),
		text("operation", string(r.Operation)),
		{ast.InternedTerm("dryRun"), ast.InternedTerm(r.DryRun)},
		object("user", text("username", r.User.Username), texts("groups", r.User.Groups)),
		requesterField(r.Ticket),
		object("namespace", text("name", r.Namespace.Name), stringMap("labels", r.Namespace.Labels),
			stringMap("annotations", r.Namespace.Annotations)),
		{ast.InternedTerm("ticket"), ticket},
		routeField(r.Route),
		text("now", r.Now.UTC().Format(time.RFC3339)),
	}
	if r.OldTicket != nil {
		// A stored ticket may break a rule that is younger than it, and must still be mendable: what can't be read
		// of it is left out.
		old, err := ticketValue(r.OldTicket)
		if err != nil {
			trimmed := r.OldTicket.DeepCopy()
			trimmed.Spec.MaxPrice = nil
			if old, err = ticketValue(trimmed); err != nil {
				return nil, err
			}
		}
		in = append(in, field{ast.InternedTerm("oldTicket"), old})
	}
	if r.Offer != nil {
		in = append(in, offerField(*r.Offer))
	}
	return in, nil
}

// requesterField is who created the ticket, as the webhook wrote it down. It is never guessed from who asks now: what is
// counted by requester must come out the same from the stored ticket.
func requesterField(t *flightsv1.FlightTicket) field {
	return text("requester", t.Annotations[flightsv1.RequestedByAnnotation])
}

func checkRequest(r Request) error {
	switch {
	case r.Ticket == nil:
		return &RequestError{"ticket", errors.New("is missing")}
	case r.Now.IsZero():
		return &RequestError{"now", errors.New("is missing")}
	case r.Stage != StageAdmission && r.Stage != StageBooking && r.Stage != StageAudit:
		return &RequestError{"stage", fmt.Errorf("%q is none of Admission, Booking, Audit", r.Stage)}
	case r.Operation != flightsv1.OperationCreate && r.Operation != flightsv1.OperationUpdate:
		return &RequestError{"operation", fmt.Errorf("%q is none of CREATE, UPDATE", r.Operation)}
	}
	return nil
}

// ticketValue is metadata and spec, with the defaults that the API server would set. Status is left out: it changes
// without a generation, and what decides must not. So is what kubectl apply writes down for itself.
func ticketValue(t *flightsv1.FlightTicket) (*ast.Term, error) {
	spec, err := specField(t.Spec)
	if err != nil {
		return nil, err
	}
	meta := append(identity(t), stringMap("labels", t.Labels), stringMap("annotations", ticketAnnotations(t)))
	if t.Generation != 0 {
		meta = append(meta, field{ast.InternedTerm("generation"), ast.InternedTerm(t.Generation)})
	}
	return ast.ObjectTerm(object("metadata", meta...), spec), nil
}

// identity are the members of metadata that never change.
func identity(t *flightsv1.FlightTicket) []field {
	meta := []field{text("name", t.Name), text("namespace", t.Namespace)}
	meta = appendText(meta, "uid", string(t.UID))
	if !t.CreationTimestamp.IsZero() {
		meta = append(meta, text("creationTimestamp", t.CreationTimestamp.UTC().Format(time.RFC3339)))
	}
	return meta
}

func specField(s flightsv1.FlightTicketSpec) (field, error) {
	spec := []field{
		text("from", s.From), text("to", s.To),
		{ast.InternedTerm("number"), ast.InternedTerm(max(s.Number, 1))},
		text("deletionPolicy", defaulted(string(s.DeletionPolicy), string(flightsv1.DeletionPolicyCancel))),
		{ast.InternedTerm("suspend"), ast.InternedTerm(s.Suspend)},
		passengersField(s.Passengers),
	}
	spec = appendText(spec, "departureDate", string(s.DepartureDate))
	spec = appendText(spec, "returnDate", string(s.ReturnDate))
	spec = appendText(spec, "cabin", string(s.Cabin))
	spec = appendText(spec, "costCenter", s.CostCenter)
	if s.ProviderRef != nil {
		spec = append(spec, object("providerRef", text("name", s.ProviderRef.Name)))
	}
	if s.MaxPrice != nil {
		price, err := money.Parse(s.MaxPrice.Amount, s.MaxPrice.Currency)
		if err != nil {
			return field{}, &RequestError{"spec.maxPrice", err}
		}
		spec = append(spec, moneyField("maxPrice", price))
	}
	return object("spec", spec...), nil
}

func passengersField(passengers []flightsv1.Passenger) field {
	terms := make([]*ast.Term, len(passengers))
	for i, p := range passengers {
		one := []field{text("givenName", p.GivenName), text("familyName", p.FamilyName)}
		one = appendText(one, "birthDate", string(p.BirthDate))
		one = appendText(one, "email", p.Email)
		one = appendText(one, "phone", p.Phone)
		one = appendText(one, "title", p.Title)
		one = appendText(one, "gender", p.Gender)
		terms[i] = ast.ObjectTerm(one...)
	}
	return field{ast.InternedTerm("passengers"), ast.ArrayTerm(terms...)}
}

func routeField(r places.Route) field {
	return object("route",
		placeField("origin", r.Origin), placeField("destination", r.Destination),
		field{ast.InternedTerm("distanceKm"), ast.InternedTerm(r.DistanceKm)},
		field{ast.InternedTerm("international"), ast.InternedTerm(r.International)})
}

func placeField(name string, p places.Place) field {
	return object(name, text("text", p.Text), text("kind", string(p.Kind)), text("iata", p.IATA),
		texts("airports", p.Airports), text("city", p.City), text("country", p.Country))
}

func offerField(o booking.Offer) field {
	members := taken(o.Price, booking.Written(o.Segments))
	return object("offer", append(members, text("id", o.ID), text("expiresAt", o.ExpiresAt.UTC().Format(time.RFC3339)))...)
}

// taken is what stays of an offer once it is taken.
func taken(price money.Amount, flights []flightsv1.Segment) []field {
	segments := make([]*ast.Term, len(flights))
	for i, s := range flights {
		segments[i] = ast.ObjectTerm(
			text("origin", s.Origin), text("destination", s.Destination),
			text("departsAt", s.DepartsAt), text("arrivesAt", s.ArrivesAt),
			text("marketingCarrier", s.MarketingCarrier), text("operatingCarrier", s.OperatingCarrier),
			text("flightNumber", s.FlightNumber), text("cabin", string(s.Cabin)))
	}
	return []field{moneyField("price", price), {ast.InternedTerm("segments"), ast.ArrayTerm(segments...)}}
}

func moneyField(name string, a money.Amount) field {
	return object(name, field{ast.InternedTerm("minor"), ast.InternedTerm(a.Minor)}, text("currency", a.Currency))
}

func object(name string, members ...field) field {
	return field{ast.InternedTerm(name), ast.ObjectTerm(members...)}
}

// text is a string member. API server input is valid UTF-8; what a caller makes up offline is made so, because JSON
// has nothing else.
func text(name, value string) field {
	return field{ast.InternedTerm(name), ast.InternedTerm(strings.ToValidUTF8(value, "\uFFFD"))}
}

// appendText adds a string member unless it is empty: an optional field that isn't set is absent in Rego.
func appendText(to []field, name, value string) []field {
	if value == "" {
		return to
	}
	return append(to, text(name, value))
}

func texts(name string, values []string) field {
	terms := make([]*ast.Term, len(values))
	for i, v := range values {
		terms[i] = ast.InternedTerm(strings.ToValidUTF8(v, "\uFFFD"))
	}
	return field{ast.InternedTerm(name), ast.ArrayTerm(terms...)}
}

func stringMap(name string, values map[string]string) field {
	members := make([]field, 0, len(values))
	for k, v := range values {
		members = append(members, text(k, v))
	}
	return object(name, members...)
}

func defaulted(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
