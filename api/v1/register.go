package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version that every kind of this package is served under.
var GroupVersion = schema.GroupVersion{Group: "flights.com", Version: "v1"}

// AddToScheme registers the kinds of this package with a scheme. It never fails; the error is there for the
// signature that client-go's schemes share.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&FlightTicket{}, &FlightTicketList{},
		&FlightPolicy{}, &FlightPolicyList{},
		&BookingProvider{}, &BookingProviderList{},
		&QuotaBucket{}, &QuotaBucketList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
