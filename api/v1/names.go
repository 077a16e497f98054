package v1

// Finalizers, annotations and labels. Each is a public contract: a change needs a decision record.
const (
	// BookingFinalizer keeps a ticket until its booking is cancelled, or proven absent at the account it was
	// booked with. The mutating webhook sets it at create and restores it at update; the controller removes it.
	BookingFinalizer = "flights.com/booking"

	// ProviderInUseFinalizer keeps a BookingProvider while a ticket has a booking or an open operation with it.
	ProviderInUseFinalizer = "flights.com/provider-in-use"

	// RequestedByAnnotation is the username that created the ticket. Only the mutating webhook writes it: it is
	// set at create and restored at update, so a user can't name somebody else.
	RequestedByAnnotation = "flights.com/requested-by"

	// RequestedByGroupsAnnotation is a JSON list of the groups that the requester had when the ticket was created,
	// capped by the webhook and restored at update like the requester. The second gate and the audit read both.
	RequestedByGroupsAnnotation = "flights.com/requested-by-groups"

	// ReconcileRequestedAtAnnotation asks for a reconcile at once whenever its value changes. Any text will do; a
	// time is usual.
	ReconcileRequestedAtAnnotation = "flights.com/reconcile-requested-at"

	// OriginLabel and DestinationLabel carry the IATA codes of the resolved route, for selectors. The mutating
	// webhook sets them.
	OriginLabel      = "flights.com/origin"
	DestinationLabel = "flights.com/destination"
)
