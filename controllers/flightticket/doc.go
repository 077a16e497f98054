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
