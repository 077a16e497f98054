// Package scene gives a test of a running installation what it has to itself: a namespace, a booking API in the test's
// own process, the BookingProvider that leads there and its key in the Secret of credentials. Tests of one installation
// keep apart in this way, whether the installation was started by the test or is somebody's `make dev`.
//
// It knows kubectl, the kinds and the simulator. It must not know how an installation is started or stopped, and is in
// no shipped program.
package scene
