// Package lifecycle decides what is done next for a ticket. Next is a pure function from an Observation to a Step: one
// action out of a closed set, and the status that goes with it.
//
// It holds the promise that nothing is bought twice, lost or left behind, wherever a process dies and whatever a booking
// API answers. The rules that the promise rests on:
//
//   - An operation is written down, with a random id, before it is sent. A process that finds one which it did not
//     write itself in this run must assume that it was sent.
//   - Such an operation is closed only by a booking that is found, by a replayed answer, or by proven absence: a
//     look-up at the same account, later than anything that was sent could still take effect.
//   - What another account says about a booking proves nothing.
//   - Before a ticket's first purchase the provider is asked for bookings under the ticket's name.
//
// The package does no I/O. It knows no clock, no logger, no Kubernetes client and no policy engine: all of it comes in
// as values. It must stay that way, or the crash tests no longer cover every path.
package lifecycle
