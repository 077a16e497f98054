package v1

// Condition types. Ready, Reconciling and Stalled follow kstatus (sigs.k8s.io/cli-utils/pkg/kstatus): Reconciling and
// Stalled are present only while they are true.
const (
	// ConditionReady is true when the object is as its spec asks.
	ConditionReady = "Ready"
	// ConditionReconciling is true while the controller works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when nothing more happens until a person changes something.
	ConditionStalled = "Stalled"

	// ConditionBooked (FlightTicket) is true while a booking exists.
	ConditionBooked = "Booked"
	// ConditionPolicyCompliant (FlightTicket) is false when a policy refuses the ticket as it stands.
	ConditionPolicyCompliant = "PolicyCompliant"
	// ConditionQuotaHeld (FlightTicket) is what the quotas said last, before an operation: true when they had room for the
	// ticket, false when they had none.
	ConditionQuotaHeld = "QuotaHeld"

	// ConditionCredentialsAccepted (BookingProvider) is true when the provider accepted the credential.
	ConditionCredentialsAccepted = "CredentialsAccepted"
	// ConditionReachable (BookingProvider) is true when the provider answers.
	ConditionReachable = "Reachable"
)

// Reasons of a FlightTicket's conditions.
const (
	// ReasonBooked: the booking is as the spec asks.
	ReasonBooked = "Booked"
	// ReasonNotBooked: no booking exists.
	ReasonNotBooked = "NotBooked"
	// ReasonBooking: a book operation is open.
	ReasonBooking = "Booking"
	// ReasonChanging: a change operation is open.
	ReasonChanging = "Changing"
	// ReasonCancelling: a cancel operation is open, or about to be.
	ReasonCancelling = "Cancelling"
	// ReasonCancelled: the booking is cancelled and the ticket is going.
	ReasonCancelled = "Cancelled"
	// ReasonRetained: the ticket is going and its booking stays with the provider.
	ReasonRetained = "Retained"
	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonOutcomeUnknown: a call was sent and no usable answer came; it is being looked up.
	ReasonOutcomeUnknown = "OutcomeUnknown"
	// ReasonOperationPending: the provider accepted the call and has not finished.
	ReasonOperationPending = "OperationPending"
	// ReasonBookingRefused: the provider refused to book.
	ReasonBookingRefused = "BookingRefused"
	// ReasonChangeRefused: the provider or a policy refused the change; the old booking stands.
	ReasonChangeRefused = "ChangeRefused"
	// ReasonCancellationRefused: the provider refused to cancel; the ticket stays.
	ReasonCancellationRefused = "CancellationRefused"
	// ReasonPriceExceeded: every offer costs more than spec.maxPrice, or the provider charged more than it had quoted.
	ReasonPriceExceeded = "PriceExceeded"
	// ReasonCurrencyMismatch: the offers are in another currency than spec.maxPrice, so they can't be compared.
	ReasonCurrencyMismatch = "CurrencyMismatch"
	// ReasonPolicyRefused: a policy refuses the ticket as it stands now; nothing is booked.
	ReasonPolicyRefused = "PolicyRefused"
	// ReasonPolicyError: a policy could not be evaluated; nothing is booked.
	ReasonPolicyError = "PolicyError"
	// ReasonQuotaExceeded: a quota has no room for the ticket; nothing is booked or changed until it has.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonQuotaCounting: a quota of the ticket is being counted; the ticket goes on once that is done.
	ReasonQuotaCounting = "QuotaCounting"
	// ReasonQuotaError: the quotas of the ticket could not be asked; nothing is booked or changed.
	ReasonQuotaError = "QuotaError"
	// ReasonQuotaHeld: every quota of the ticket has room for it.
	ReasonQuotaHeld = "QuotaHeld"
	// ReasonCompliant: every policy allows the ticket.
	ReasonCompliant = "Compliant"
	// ReasonPlaceRefused: from or to can't be resolved, or are the same place.
	ReasonPlaceRefused = "PlaceRefused"
	// ReasonProviderNotFound: the named provider does not exist, or there is no default one.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonProviderNotReady: the provider's credential is missing or refused, or it can't be reached.
	ReasonProviderNotReady = "ProviderNotReady"
	// ReasonAccountChanged: the credential belongs to another account than the booking or operation.
	ReasonAccountChanged = "AccountChanged"
	// ReasonAdoptionRequired: the provider has a booking for this ticket's name that this ticket did not make.
	ReasonAdoptionRequired = "AdoptionRequired"
	// ReasonAdopted: the ticket took over a booking that exists (an event).
	ReasonAdopted = "Adopted"
	// ReasonAdoptionRefused: the booking named for adoption can't be taken over; the message says why.
	ReasonAdoptionRefused = "AdoptionRefused"
	// ReasonResolved: a person decided what became of an operation (an event).
	ReasonResolved = "Resolved"
	// ReasonDrifted: the booking was changed or cancelled at the provider.
	ReasonDrifted = "Drifted"
)

// Reasons of a FlightPolicy's conditions.
const (
	// ReasonServing: every live webhook replica serves this generation.
	ReasonServing = "Serving"
	// ReasonRollingOut: some live webhook replica serves another generation still.
	ReasonRollingOut = "RollingOut"
	// ReasonCompileFailed: the policy does not compile; what it matches is refused under Enforce.
	ReasonCompileFailed = "CompileFailed"
	// ReasonCounting: every live webhook replica serves this generation, and its quotas are being counted.
	ReasonCounting = "Counting"
	// ReasonNoReplicas: no webhook replica reports.
	ReasonNoReplicas = "NoReplicas"
)

// Reasons of a BookingProvider's conditions.
const (
	// ReasonAccepted: the provider accepted the credential.
	ReasonAccepted = "Accepted"
	// ReasonSecretNotFound: the Secret does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret has no such key, or its value is empty.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretForbidden: the controller may not read the Secret; the message holds the Role to add.
	ReasonSecretForbidden = "SecretForbidden"
	// ReasonSecretInvalid: the Secret's value can't be a bearer token.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonCredentialsRefused: the provider refused the credential.
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonNotTried: the provider was not asked, because something before failed.
	ReasonNotTried = "NotTried"
	// ReasonAnswering: the provider answers.
	ReasonAnswering = "Answering"
	// ReasonUnreachable: the provider can't be reached or answers with errors.
	ReasonUnreachable = "Unreachable"
	// ReasonEndpointForbidden: the endpoint resolves to an address that is not allowed.
	ReasonEndpointForbidden = "EndpointForbidden"
	// ReasonProviderReady: the provider can be booked with.
	ReasonProviderReady = "ProviderReady"
	// ReasonDeleting: the provider is being deleted. It takes no new tickets, serves those that have a booking or an open
	// operation with it, and goes when they are gone.
	ReasonDeleting = "Deleting"
)
