package v1

// Finalizers, annotations and labels. Each is a public contract: a change needs a decision record.
const (
	// BookingFinalizer keeps a ticket until its booking is cancelled, or proven absent at the account it was
	// booked with. The mutating webhook sets it at create and restores it at update; the controller removes it.
	BookingFinalizer = "flights.com/booking"

	// ProviderInUseFinalizer keeps a BookingProvider while a ticket has a booking or an open operation with it.
	ProviderInUseFinalizer = "flights.com/provider-in-use"

	// QuotaFinalizer keeps a QuotaBucket in service until nothing is held in it: a bucket that is missing would be taken
	// for one that nothing is counted in yet. Who creates a bucket sets it; the controller removes it.
	QuotaFinalizer = "flights.com/quota"

	// RequestedByAnnotation is the username that created the ticket. Only the mutating webhook writes it: it is
	// set at create and restored at update, so a user can't name somebody else.
	RequestedByAnnotation = "flights.com/requested-by"

	// RequestedByGroupsAnnotation is a JSON list of the groups that the requester had when the ticket was created,
	// capped by the webhook and restored at update like the requester. The second gate and the audit read both.
	RequestedByGroupsAnnotation = "flights.com/requested-by-groups"

	// ReconcileRequestedAtAnnotation asks for a reconcile at once whenever its value changes. Any text will do; a
	// time is usual.
	ReconcileRequestedAtAnnotation = "flights.com/reconcile-requested-at"

	// PollIntervalAnnotation is how often the booking of a ticket is read again to see whether it was changed or cancelled
	// at the provider, as a Go duration ("30m"). The least is a minute; up to a fifth is added, so that tickets don't ask
	// together.
	PollIntervalAnnotation = "flights.com/poll-interval"

	// AdoptBookingAnnotation names the booking at the provider that a ticket without one takes over instead of buying. To
	// set it takes the RBAC verb adopt on the ticket. The booking must have been made for a ticket of the same namespace,
	// and no other ticket may hold it.
	AdoptBookingAnnotation = "flights.com/adopt-booking"

	// ResolveOperationAnnotation is a person's word on an operation whose outcome could not be found out: the operation's
	// id, then "not-done", or "done", or, for a book operation, "done" and the booking's id, each after a blank. To set it
	// takes the RBAC verb resolve on the ticket. It speaks of that operation alone.
	ResolveOperationAnnotation = "flights.com/resolve-operation"

	// RetainBookingAnnotation names the booking that is to stay with the provider when the ticket goes, also if the ticket
	// is being deleted already and its spec is frozen. To set it takes the RBAC verb retain on the ticket.
	RetainBookingAnnotation = "flights.com/retain-booking"

	// DecidedByAnnotation is the username that last set one of the three annotations above to another value. Only the
	// mutating webhook writes it.
	DecidedByAnnotation = "flights.com/decided-by"

	// OriginLabel and DestinationLabel carry the IATA codes of the resolved route, for selectors. The mutating
	// webhook sets them.
	OriginLabel      = "flights.com/origin"
	DestinationLabel = "flights.com/destination"
)

// RBAC verbs on flighttickets beside the usual ones. The validating webhook asks the API server for them
// (SubjectAccessReview) when the annotation of that name changes.
const (
	VerbAdopt   = "adopt"
	VerbResolve = "resolve"
	VerbRetain  = "retain"
)
