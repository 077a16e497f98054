// Package apiproxy stands between one controller and the servers that it calls, for tests of crashes: the API server and
// a booking API. It numbers what the controller does, and asks the test at each moment of a request whether it goes on:
// before it is sent, after the server has carried it out, and after the answer is delivered. It can hold back watches, so
// that the controller's caches lag.
//
// The controller's own credentials are passed on, so that its real rights hold. It knows paths of HTTP and nothing of
// tickets, and is in no shipped program.
package apiproxy
