// Package v1 holds the kinds of the API group flights.com: FlightTicket, FlightPolicy, BookingProvider and
// QuotaBucket.
//
// It knows shape only: fields, defaults, CEL rules, condition types and reasons. It holds no logic and imports
// nothing else of this module, so that clients can import it alone.
//
// +kubebuilder:object:generate=true
// +groupName=flights.com
package v1
