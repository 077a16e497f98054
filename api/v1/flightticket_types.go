package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cabin is a class of travel, in the words of the booking API.
// +kubebuilder:validation:Enum=Economy;PremiumEconomy;Business;First
type Cabin string

// The cabins that a ticket may ask for.
const (
	CabinEconomy        Cabin = "Economy"
	CabinPremiumEconomy Cabin = "PremiumEconomy"
	CabinBusiness       Cabin = "Business"
	CabinFirst          Cabin = "First"
)

// DeletionPolicy says what becomes of a booking whose ticket is deleted.
// +kubebuilder:validation:Enum=Cancel;Retain
type DeletionPolicy string

const (
	// DeletionPolicyCancel cancels the booking before the ticket goes.
	DeletionPolicyCancel DeletionPolicy = "Cancel"
	// DeletionPolicyRetain leaves the booking with the provider.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// Date is a calendar date without a time zone, as in 2027-03-14 (RFC 3339 full-date).
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:XValidation:rule="self.matches('^(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$')",message="must be a date from 1900 to 2199 as in 2027-03-14: year, month and day"
// +kubebuilder:validation:XValidation:rule="!self.matches('^(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$') || int(self.substring(8, 10)) <= (self.substring(5, 7) in ['04', '06', '09', '11'] ? 30 : self.substring(5, 7) != '02' ? 31 : int(self.substring(0, 4)) % 4 == 0 && (int(self.substring(0, 4)) % 100 != 0 || int(self.substring(0, 4)) % 400 == 0) ? 29 : 28)",message="must be a day that exists in the calendar"
type Date string

// Money is an amount of one currency.
type Money struct {
	// Amount is a decimal number in the currency's major unit, as in "120" or "99.50". It is a string because
	// binary floating point can't hold cents.
	// +required
	// +kubebuilder:validation:MaxLength=17
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,12}([.][0-9]{1,4})?$')",message="must be a decimal number as in \"120\" or \"99.50\""
	Amount string `json:"amount"`

	// Currency is the ISO 4217 code, as in "EUR".
	// +required
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="must be an ISO 4217 code as in EUR"
	Currency string `json:"currency"`
}

// Passenger is a person who travels on the ticket.
type Passenger struct {
	// GivenName is the first name as in the travel document.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	GivenName string `json:"givenName"`

	// FamilyName is the last name as in the travel document.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	FamilyName string `json:"familyName"`

	// BirthDate is the date of birth.
	// +optional
	BirthDate Date `json:"birthDate,omitempty"`

	// Email is where the airline sends notices.
	// +optional
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^@\s]+@[^@\s]+$')`,message="must be an email address as in asha@example.com"
	Email string `json:"email,omitempty"`

	// Phone is a number in E.164 form, as in "+442071838750".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+][1-9][0-9]{1,14}$')",message="must be a number in E.164 form, as in +442071838750"
	Phone string `json:"phone,omitempty"`

	// Title is the form of address.
	// +optional
	// +kubebuilder:validation:Enum=Mr;Mrs;Ms;Miss;Dr
	Title string `json:"title,omitempty"`

	// Gender as in the travel document.
	// +optional
	// +kubebuilder:validation:Enum=F;M;X
	Gender string `json:"gender,omitempty"`
}

// ProviderReference names a BookingProvider.
type ProviderReference struct {
	// Name of the BookingProvider.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// FlightTicketSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.returnDate) || has(self.departureDate)",message="a returnDate needs a departureDate",fieldPath=".returnDate"
// +kubebuilder:validation:XValidation:rule="!has(self.returnDate) || !has(self.departureDate) || self.returnDate >= self.departureDate",message="returnDate must not be before departureDate",fieldPath=".returnDate"
// +kubebuilder:validation:XValidation:rule="!has(self.passengers) || size(self.passengers) <= self.number",message="more passengers than seats: raise number or name fewer passengers",fieldPath=".passengers"
type FlightTicketSpec struct {
	// From is where the journey starts: a city ("Mumbai", "London, CA"), an airport ("Heathrow") or an IATA code
	// ("LHR"). A city with several airports stands for all of them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'\pC')`,message="must hold no control characters, line breaks or invisible characters"
	From string `json:"from"`

	// To is where the journey ends, in the same form as from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'\pC')`,message="must hold no control characters, line breaks or invisible characters"
	To string `json:"to"`

	// Number of seats, 1 to 5; 1 if it is left out.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Number int32 `json:"number,omitempty"`

	// DepartureDate is the day of the outward flight, as in 2027-03-14. It must not be in the past when it is set.
	// Without it the provider's next offer is taken.
	// +optional
	DepartureDate Date `json:"departureDate,omitempty"`

	// ReturnDate is the day of the return flight, as in 2027-03-21; none means one way.
	// +optional
	ReturnDate Date `json:"returnDate,omitempty"`

	// Cabin is the class of travel; none leaves it to the provider, which offers its cheapest.
	// +optional
	Cabin Cabin `json:"cabin,omitempty"`

	// Passengers are the people who travel, at most one a seat.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Passengers []Passenger `json:"passengers,omitempty"`

	// MaxPrice is the most that the whole ticket may cost. It is sent with the order as a ceiling: nothing is
	// bought above it. It must be in the currency that the provider offers.
	// +optional
	MaxPrice *Money `json:"maxPrice,omitempty"`

	// CostCenter is whom the journey is charged to. Policies may demand it and count by it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'\pC')`,message="must hold no control characters, line breaks or invisible characters"
	CostCenter string `json:"costCenter,omitempty"`

	// ProviderRef names the BookingProvider; none means the default one. It can't change once the ticket is booked
	// or an operation is open.
	// +optional
	ProviderRef *ProviderReference `json:"providerRef,omitempty"`

	// DeletionPolicy says what becomes of the booking when the ticket is deleted: Cancel it (default), or Retain it with the
	// provider.
	// +optional
	// +kubebuilder:default=Cancel
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Suspend stops new operations: nothing is booked or changed while it is true. An operation already open is
	// still resolved, and deletion still cancels.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// TicketState is the one-word summary of where a ticket is. Conditions say more; programs should read those.
// +kubebuilder:validation:Enum=Pending;AwaitingApproval;Booking;Booked;Changing;Cancelling;Stalled
type TicketState string

// The states of a ticket.
const (
	// StatePending: nothing is booked and no operation is open.
	StatePending TicketState = "Pending"
	// StateAwaitingApproval: a policy holds the ticket until somebody approves it.
	StateAwaitingApproval TicketState = "AwaitingApproval"
	// StateBooking: a book operation is open.
	StateBooking TicketState = "Booking"
	// StateBooked: the booking exists. Whether it is what the spec now asks is told by the condition Ready.
	StateBooked TicketState = "Booked"
	// StateChanging: a change operation is open.
	StateChanging TicketState = "Changing"
	// StateCancelling: a cancel operation is open.
	StateCancelling TicketState = "Cancelling"
	// StateStalled: nothing more happens until a person changes something; the message says what.
	StateStalled TicketState = "Stalled"
)

// OperationKind is what an operation asks of the provider.
// +kubebuilder:validation:Enum=Book;Change;Cancel
type OperationKind string

// The kinds of operation.
const (
	OperationBook   OperationKind = "Book"
	OperationChange OperationKind = "Change"
	OperationCancel OperationKind = "Cancel"
)

// Order is what is asked of a provider, with places resolved to IATA codes. It is stored whole, so that the same
// bytes can be sent again after an edit of the spec or an upgrade of the controller.
type Order struct {
	// Origin is the IATA code of an airport or a metropolitan area.
	// +required
	// +kubebuilder:validation:MaxLength=3
	Origin string `json:"origin"`

	// Destination is the IATA code of an airport or a metropolitan area.
	// +required
	// +kubebuilder:validation:MaxLength=3
	Destination string `json:"destination"`

	// Seats is the number of seats.
	// +required
	Seats int32 `json:"seats"`

	// DepartureDate of the outward flight.
	// +optional
	DepartureDate Date `json:"departureDate,omitempty"`

	// ReturnDate of the return flight.
	// +optional
	ReturnDate Date `json:"returnDate,omitempty"`

	// Cabin is the class of travel.
	// +optional
	Cabin Cabin `json:"cabin,omitempty"`

	// Passengers are the people who travel.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Passengers []Passenger `json:"passengers,omitempty"`
}

// ProviderIdentity pins the provider and the account that an operation or a booking belongs to. What another
// account says about a booking proves nothing.
type ProviderIdentity struct {
	// Name of the BookingProvider.
	// +required
	Name string `json:"name"`

	// UID of the BookingProvider.
	// +required
	UID types.UID `json:"uid"`

	// Account is the provider's own name for the account that the credential belongs to.
	// +required
	Account string `json:"account"`
}

// Segment is one flight, as the provider told it when the offer was taken or the booking confirmed. What quotas count by
// must come out the same from the stored ticket as from the offer, so all that policies see of a flight is here.
type Segment struct {
	// Origin is the IATA code of the airport that the flight departs from.
	// +required
	// +kubebuilder:validation:MaxLength=3
	Origin string `json:"origin"`

	// Destination is the IATA code of the airport that the flight arrives at.
	// +required
	// +kubebuilder:validation:MaxLength=3
	Destination string `json:"destination"`

	// DepartsAt is when the flight departs, in the form of RFC 3339 and with the offset from UTC that the provider told: its
	// day is that of the place of departure.
	// +required
	// +kubebuilder:validation:MaxLength=40
	DepartsAt string `json:"departsAt"`

	// ArrivesAt is when the flight arrives, in the same form.
	// +required
	// +kubebuilder:validation:MaxLength=40
	ArrivesAt string `json:"arrivesAt"`

	// MarketingCarrier is the IATA code of the airline that sells the flight.
	// +required
	// +kubebuilder:validation:MaxLength=3
	MarketingCarrier string `json:"marketingCarrier"`

	// OperatingCarrier is the IATA code of the airline that flies.
	// +optional
	// +kubebuilder:validation:MaxLength=3
	OperatingCarrier string `json:"operatingCarrier,omitempty"`

	// FlightNumber as in "BA138".
	// +required
	// +kubebuilder:validation:MaxLength=10
	FlightNumber string `json:"flightNumber"`

	// Cabin is the class of travel, where the provider tells it.
	// +optional
	Cabin Cabin `json:"cabin,omitempty"`
}

// BookingStatus is the booking that exists at the provider, as last read or confirmed.
type BookingStatus struct {
	// ID is the provider's identifier.
	// +required
	ID string `json:"id"`

	// Reference is the record locator that travellers use.
	// +optional
	Reference string `json:"reference,omitempty"`

	// ClientReference is the name that the booking carries for this ticket and attempt.
	// +optional
	ClientReference string `json:"clientReference,omitempty"`

	// Version is the provider's version of the booking (ETag), sent back with a change as If-Match.
	// +optional
	Version string `json:"version,omitempty"`

	// Provider is where the booking lives.
	// +required
	Provider ProviderIdentity `json:"provider"`

	// Order is what is booked, which may be older than the spec.
	// +required
	Order Order `json:"order"`

	// Price is what the booking costs; where the provider doesn't tell, what was agreed.
	// +optional
	Price *Money `json:"price,omitempty"`

	// Segments are the flights that are booked: as the provider tells them of the booking, else as it offered them. None
	// for a booking of which it told neither, or that was written down by a version that didn't keep them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Segments []Segment `json:"segments,omitempty"`

	// Carrier is the IATA code of the airline that sells the first segment.
	// +optional
	Carrier string `json:"carrier,omitempty"`

	// BookedAt is when the provider confirmed the booking.
	// +optional
	BookedAt *metav1.Time `json:"bookedAt,omitempty"`

	// AdoptedBy is who had this ticket take the booking over; empty if the ticket made it. A booking that a ticket neither
	// made nor adopted is never changed or cancelled for it.
	// +optional
	AdoptedBy string `json:"adoptedBy,omitempty"`

	// CancelledAt is when the booking was seen to be gone. It stands only while the ticket itself is going.
	// +optional
	CancelledAt *metav1.Time `json:"cancelledAt,omitempty"`
}

// OperationStatus is a call to the provider that was written down before it was sent, and is not closed yet.
type OperationStatus struct {
	// ID is random, and the idempotency key where the provider takes one. It is never derived from the ticket: a
	// restored backup would repeat it.
	// +required
	ID string `json:"id"`

	// Kind of operation.
	// +required
	Kind OperationKind `json:"kind"`

	// Attempt counts the book operations of this ticket, from 1. It is part of the client reference.
	// +required
	Attempt int64 `json:"attempt"`

	// Generation of the ticket that the operation serves.
	// +required
	Generation int64 `json:"generation"`

	// ClientReference is the name that the booking carries or will carry at the provider for this ticket and attempt.
	// +optional
	ClientReference string `json:"clientReference,omitempty"`

	// Owner is the name that all bookings of a ticket of this namespace and name carry at the provider.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Order is what is asked for; none for a cancellation.
	// +optional
	Order *Order `json:"order,omitempty"`

	// BookingID is the booking that is changed or cancelled, or the one that a provider accepted without finishing.
	// +optional
	BookingID string `json:"bookingID,omitempty"`

	// BookingVersion is sent as If-Match with a change.
	// +optional
	BookingVersion string `json:"bookingVersion,omitempty"`

	// OfferID is the provider's quote that the order accepts.
	// +optional
	OfferID string `json:"offerID,omitempty"`

	// Price is what the quote said; a provider must not charge more.
	// +optional
	Price *Money `json:"price,omitempty"`

	// Segments are the flights that the quote offered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Segments []Segment `json:"segments,omitempty"`

	// Provider is where the operation is sent.
	// +required
	Provider ProviderIdentity `json:"provider"`

	// StartedAt is when the operation was written down.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// SendBy is the last moment at which the operation may be sent or replayed. Afterwards it is only looked up.
	// +required
	SendBy metav1.MicroTime `json:"sendBy"`

	// SettlesAt is when nothing that was sent can take effect any more, by what the provider declared when the operation
	// was written, or sent again later. A provider that declares longer times since is given them; one that declares
	// shorter ones is not.
	// +optional
	SettlesAt *metav1.MicroTime `json:"settlesAt,omitempty"`

	// Keyed says that the operation is sent with its id as Idempotency-Key. One that was sent without is never sent again
	// with one, whatever the provider declares meanwhile.
	// +optional
	Keyed bool `json:"keyed,omitempty"`

	// Outcome is empty until an answer came that does not close the operation: Pending when the provider accepted it
	// but has not finished, Unknown when no usable answer came.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Unknown
	Outcome string `json:"outcome,omitempty"`
}

// RouteEnd is one end of a resolved route.
type RouteEnd struct {
	// Text as the user wrote it.
	// +required
	Text string `json:"text"`

	// IATA is the code of the airport or metropolitan area.
	// +required
	IATA string `json:"iata"`

	// City is the name of the city.
	// +optional
	City string `json:"city,omitempty"`

	// Country is the ISO 3166-1 alpha-2 code.
	// +optional
	Country string `json:"country,omitempty"`
}

// RouteStatus is what the places in the spec were resolved to.
type RouteStatus struct {
	// +required
	Origin RouteEnd `json:"origin"`
	// +required
	Destination RouteEnd `json:"destination"`
}

// FlightTicketStatus is what the controller observed. Only the controller writes it.
type FlightTicketStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak of. It is -1 until the controller
	// has seen the ticket, so that nothing calls a new ticket ready.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State is the one-word summary.
	// +optional
	State TicketState `json:"state,omitempty"`

	// Conditions: Ready always; Reconciling and Stalled only while true; Booked, PolicyCompliant, QuotaHeld.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Route is what from and to were resolved to.
	// +optional
	Route *RouteStatus `json:"route,omitempty"`

	// Booking is the booking that exists.
	// +optional
	Booking *BookingStatus `json:"booking,omitempty"`

	// Operation is the call to the provider that is not closed yet.
	// +optional
	Operation *OperationStatus `json:"operation,omitempty"`

	// Attempts is how many book operations were started so far.
	// +optional
	Attempts int64 `json:"attempts,omitempty"`

	// Refusal is what the provider's last refusal rests on. While all of it still stands, the provider is not asked
	// again.
	// +optional
	Refusal *RefusalStatus `json:"refusal,omitempty"`

	// LastHandledReconcileAt is the value of the annotation flights.com/reconcile-requested-at that was acted on last. Once
	// it equals the annotation, the rest of the status is newer than the request. A request to read a booking that could not
	// be read yet is not handled.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// RefusalStatus is the state of the world in which a provider refused an operation. When any of it differs, the
// operation is tried again.
type RefusalStatus struct {
	// Kind of the operation that was refused.
	// +required
	Kind OperationKind `json:"kind"`

	// Generation of the ticket.
	// +required
	Generation int64 `json:"generation"`

	// ProviderUID is the UID of the BookingProvider.
	// +required
	ProviderUID types.UID `json:"providerUID"`

	// ProviderGeneration is the generation of the BookingProvider.
	// +required
	ProviderGeneration int64 `json:"providerGeneration"`

	// CredentialsRotatedAt is the time of the provider's last change of credential.
	// +optional
	CredentialsRotatedAt *metav1.Time `json:"credentialsRotatedAt,omitempty"`

	// ReconcileRequestedAt is the value of the annotation flights.com/reconcile-requested-at.
	// +optional
	ReconcileRequestedAt string `json:"reconcileRequestedAt,omitempty"`
}

// FlightTicket is a flight that a user wants. It is checked by the FlightPolicies at admission, booked with a
// BookingProvider, changed when its spec changes, and cancelled when it is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=flighttickets,scope=Namespaced,shortName=ft;ticket;tickets,categories=flights
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.spec.from`
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=`.spec.to`
// +kubebuilder:printcolumn:name="Seats",type=integer,JSONPath=`.spec.number`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reference",type=string,JSONPath=`.status.booking.reference`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="PolicyCompliant")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FlightTicket struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	// +required
	Spec FlightTicketSpec `json:"spec"`

	// Status is what the controller observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status FlightTicketStatus `json:"status,omitempty"`
}

// FlightTicketList is a list of FlightTickets.
//
// +kubebuilder:object:root=true
type FlightTicketList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FlightTicket `json:"items"`
}
