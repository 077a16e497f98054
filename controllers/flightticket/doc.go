// Package flightticket carries out what the package lifecycle decides: it observes a ticket, asks for the next step,
// does that one thing, and looks again.
//
// It knows the Kubernetes API, the booking port and the policies, each through an interface of its own. It decides
// nothing: what is bought, when an operation is over and what a condition says is the core's.
package flightticket

// The rights that this controller uses. The finalizer is patched, the status is updated; nothing else of a ticket is
// ever written.
//
// +kubebuilder:rbac:groups=flights.com,resources=flighttickets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flights.com,resources=flighttickets/status,verbs=update
// +kubebuilder:rbac:groups=flights.com,resources=bookingproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The rights of the program as a whole: the election of a leader, and the authentication of those who read metrics.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=flight-operator-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=flight-operator-system,resources=leases,resourceNames=flight-controller,verbs=get;update
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
