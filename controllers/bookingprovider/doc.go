// Package bookingprovider connects to booking APIs: it reads the credential of each BookingProvider, finds out whose
// account it is and whether the API answers, says so in the provider's conditions, and holds the connections that
// tickets are booked with.
//
// It knows Secrets, the REST client and its guard. It knows no ticket beyond which provider it uses, and logs, stores
// and shows no token.
package bookingprovider

// The rights that this controller uses. It reads one Secret by name; for another name the admin adds a Role, which the
// provider's condition prints.
//
// +kubebuilder:rbac:groups=flights.com,resources=bookingproviders,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flights.com,resources=bookingproviders/status,verbs=update
// +kubebuilder:rbac:groups=flights.com,resources=flighttickets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=flight-operator-system,resources=secrets,resourceNames=flight-operator-credentials,verbs=get;list;watch
