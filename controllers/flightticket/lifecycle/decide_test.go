package lifecycle_test

import (
	"testing"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/booking"
)

func TestNextFindsOutWhatBecameOfAnOperation(t *testing.T) {
	decide(t, map[string]decision{
		"a fresh operation is sent": {
			seen:   with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) { o.Heard.Sent = nil }),
			action: lifecycle.Send,
		},
		"a fresh operation past its send-by is closed, certainly unsent": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard.Sent = nil
				late(o)
			}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBooking,
		},
		"a fresh operation of a deleted ticket is closed instead of sent": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard.Sent, o.Ticket.Deleting = nil, true
			}),
			action: lifecycle.CloseOperation,
		},
		"an operation that is not fresh is never sent again without keys": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard.Sent, o.Fresh = nil, false
			}),
			action: lifecycle.Find,
		},
		"an operation that is not fresh is replayed with keys before send-by": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard.Sent, o.Fresh, o.Provider.KeyTTL = nil, false, time.Hour
				o.Ticket.Status.Operation.Keyed, o.Ticket.Status.Operation.Outcome = true, "Unknown"
			}),
			action: lifecycle.Send,
		},
		"an operation that is not fresh is looked up with keys after send-by": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Heard.Sent, o.Fresh, o.Provider.KeyTTL = nil, false, time.Hour
				o.Ticket.Status.Operation.Keyed, o.Ticket.Status.Operation.Outcome = true, "Unknown"
				late(o)
			}),
			action: lifecycle.Find,
		},
		"an early look that finds nothing proves nothing": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				op := o.Ticket.Status.Operation
				asked := op.SendBy.Add(o.Provider.Timeout + o.Provider.MaxProcessing + o.Provider.ReadLag)
				o.Fresh, o.Heard = false, lifecycle.Heard{Found: &lifecycle.Listing{AskedAt: asked, KnownFor: time.Hour}}
				late(o)
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: time.Minute,
		},
		"a look that begins after anything sent could take effect proves absence": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				op := o.Ticket.Status.Operation
				asked := op.SendBy.Add(o.Provider.Timeout + o.Provider.MaxProcessing + o.Provider.ReadLag + 1)
				o.Fresh, o.Heard = false, lifecycle.Heard{Found: &lifecycle.Listing{AskedAt: asked, KnownFor: time.Hour}}
				late(o)
			}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBooking,
		},
		"another account proves nothing about an open operation": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Fresh, o.Heard, o.Provider.Identity.Account = false, lifecycle.Heard{}, "acct-8"
				late(o)
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonAccountChanged, after: 10 * time.Minute,
		},
		"a provider that was created again proves nothing": {
			seen: with(sent(flightsv1.OperationBook, booking.Outcome{}), func(o *lifecycle.Observation) {
				o.Fresh, o.Heard, o.Provider.Identity.UID = false, lifecycle.Heard{}, "provider-2"
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonAccountChanged, after: 10 * time.Minute,
		},
		"a refusal on the first send closes the operation": {
			seen:   sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "sold_out")),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBookingRefused, mood: flightsv1.ConditionStalled,
		},
		"a refusal after an unknown answer closes nothing": {
			seen: with(sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "sold_out")),
				func(o *lifecycle.Observation) { o.Fresh = false }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
		"a replayed refusal closes the operation": {
			seen: with(sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "sold_out")),
				func(o *lifecycle.Observation) { o.Fresh, o.Heard.Sent.Replayed = false, true }),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBookingRefused,
		},
		"an expired offer is quoted anew and is no refusal": {
			seen:   sent(flightsv1.OperationBook, rejected(booking.ClassRefused, "offer_expired")),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonBooking, mood: flightsv1.ConditionReconciling,
		},
		"a refused credential closes nothing": {
			seen:   sent(flightsv1.OperationBook, rejected(booking.ClassCredential, "token_refused")),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooking, after: 10 * time.Minute,
		},
		"a 429 closes nothing": {
			seen:   sent(flightsv1.OperationBook, rejected(booking.ClassThrottled, "rate_limited")),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooking, after: time.Minute,
		},
		"an answer about another booking is no answer": {
			seen: sent(flightsv1.OperationBook, booking.Outcome{Kind: booking.Confirmed, Booking: &booking.Booking{
				ID: "x", Status: booking.StatusConfirmed, Names: booking.Names{ClientReference: "prod/uid-1/99"},
			}}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
	})
}

func TestNextKeepsABookingAsTheSpecAsksOrLetsItGo(t *testing.T) {
	decide(t, map[string]decision{
		"a booked ticket rests": {
			seen: booked(), action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: pollInterval,
		},
		"a booked ticket rests though its provider is gone": {
			seen:   with(booked(), func(o *lifecycle.Observation) { o.Provider = lifecycle.Provider{Name: "simulator"} }),
			action: lifecycle.Wait, reason: flightsv1.ReasonBooked, after: pollInterval,
		},
		"the booking is read before it is changed": {
			seen:   with(edited(), func(o *lifecycle.Observation) { o.Heard.Read = nil }),
			action: lifecycle.ReadBooking,
		},
		"a change is quoted": {seen: edited(), action: lifecycle.Quote},
		"a booking with the reference of another ticket is not changed": {
			seen: with(edited(), func(o *lifecycle.Observation) {
				o.Heard.Read.Booking.Names.ClientReference = "prod/uid-9/1"
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: 10 * time.Minute, mood: flightsv1.ConditionStalled,
		},
		"a suspended ticket is not changed": {
			seen: with(edited(), func(o *lifecycle.Observation) {
				o.Ticket.Suspend, o.Heard.Read = true, nil
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonSuspended, after: pollInterval,
		},
		"a booking with an earlier change pending is waited for": {
			seen:   with(edited(), func(o *lifecycle.Observation) { o.Heard.Read.Booking.Status = booking.StatusPending }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: time.Minute,
			mood: flightsv1.ConditionReconciling,
		},
		"a booking with an earlier change pending for too long is a person's to ask about": {
			seen: with(edited(), func(o *lifecycle.Observation) {
				o.Heard.Read.Booking.Status = booking.StatusPending
				o.Ticket.Status = lifecycle.Next(*o).Status
				late(o)
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: 10 * time.Minute,
			mood: flightsv1.ConditionStalled,
		},
		"a booking that the provider can't find is waited for while reads may lag": {
			seen: with(edited(), func(o *lifecycle.Observation) {
				o.Heard.Read.Err = failure(booking.ClassNotFound, "booking_not_found")
				o.Heard.Read.AskedAt = o.Ticket.Status.Booking.BookedAt.Time
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: 2 * time.Second,
		},
		"a booking that the provider no longer has drifted": {
			seen: with(edited(), func(o *lifecycle.Observation) {
				o.Heard.Read.Err, o.Heard.Read.KnownFor = failure(booking.ClassNotFound, "booking_not_found"), time.Minute
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonDrifted, after: 10 * time.Minute,
		},
		"a refused change keeps the old booking": {
			seen:   sent(flightsv1.OperationChange, rejected(booking.ClassRefused, "sold_out")),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonChangeRefused, mood: flightsv1.ConditionStalled,
		},
		"a change for an old version is no refusal": {
			seen: sent(flightsv1.OperationChange, booking.Outcome{Kind: booking.Rejected, Failure: &booking.CallError{
				Class: booking.ClassConflict, Code: "version_mismatch", HTTPStatus: 412,
			}}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonChanging, mood: flightsv1.ConditionReconciling,
		},
		"an unconditional change whose outcome is unknown is left to a person": {
			seen: with(sent(flightsv1.OperationChange, booking.Outcome{}), func(o *lifecycle.Observation) {
				late(o)
				o.Ticket.Status.Operation.BookingVersion = ""
				o.Fresh, o.Heard = false, lifecycle.Heard{Read: &lifecycle.Reading{AskedAt: o.Now, Booking: asRead(*o)}}
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 10 * time.Minute,
			mood: flightsv1.ConditionStalled,
		},
		"an accepted change is not sent again": {
			seen:   with(sent(flightsv1.OperationChange, booking.Outcome{Kind: booking.Pending}), func(o *lifecycle.Observation) { o.Fresh = false }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: 2 * time.Second,
		},

		"a ticket that was never booked goes at once though its provider is gone": {
			seen: with(unbooked(), func(o *lifecycle.Observation) {
				o.Ticket.Deleting, o.Provider = true, lifecycle.Provider{Name: "gone"}
			}),
			action: lifecycle.RemoveFinalizer,
		},
		"a retained booking lets its ticket go": {
			seen:   with(leaving(), func(o *lifecycle.Observation) { o.Ticket.Retain = true }),
			action: lifecycle.RemoveFinalizer,
		},
		"a booking is cancelled before its ticket goes": {
			seen:   with(leaving(), func(o *lifecycle.Observation) { o.Heard.Room = room }),
			action: lifecycle.StartOperation, reason: flightsv1.ReasonCancelling,
		},
		"room is asked for before an operation is written down": {seen: leaving(), action: lifecycle.Admit},
		"without room nothing is written down": {
			seen: with(leaving(), func(o *lifecycle.Observation) {
				o.Heard.Room = &lifecycle.Admission{Err: &booking.CallError{
					Class: booking.ClassUnavailable, Code: booking.CodeRateLimited, RetryAfter: 3 * time.Second,
				}}
			}),
			action: lifecycle.Wait, after: 3 * time.Second,
		},
		"a booking with the reference of another ticket is not cancelled": {
			seen: with(leaving(), func(o *lifecycle.Observation) {
				o.Heard.Read.Booking.Names.ClientReference = "prod/uid-9/1"
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonCancellationRefused, after: 10 * time.Minute,
		},
		"a pending booking is waited for before it is cancelled": {
			seen:   with(leaving(), func(o *lifecycle.Observation) { o.Heard.Read.Booking.Status = booking.StatusPending }),
			action: lifecycle.Wait, reason: flightsv1.ReasonOperationPending, after: time.Minute,
		},
		"a 404 while reads may lag leaves the finalizer on": {
			seen: with(leaving(), func(o *lifecycle.Observation) {
				o.Heard.Read.Err = failure(booking.ClassNotFound, "booking_not_found")
				o.Heard.Read.AskedAt = o.Ticket.Status.Booking.BookedAt.Time
			}),
			action: lifecycle.Wait, after: 2 * time.Second,
		},
		"a 404 at the same account is the end of the booking": {
			seen: with(leaving(), func(o *lifecycle.Observation) {
				o.Heard.Read.Err, o.Heard.Read.KnownFor = failure(booking.ClassNotFound, "booking_not_found"), time.Minute
			}),
			action: lifecycle.Record, reason: flightsv1.ReasonCancelled,
		},
		"an unreadable booking leaves the finalizer on": {
			seen: with(leaving(), func(o *lifecycle.Observation) {
				o.Heard.Read.Err = failure(booking.ClassUnavailable, "connection_refused")
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonProviderNotReady, after: time.Second,
		},
		"a refused cancellation is looked into first": {
			seen:   sent(flightsv1.OperationCancel, rejected(booking.ClassConflict, "not_cancellable")),
			action: lifecycle.ReadBooking,
		},
		"a refused cancellation of a booking that stands keeps the finalizer": {
			seen: with(sent(flightsv1.OperationCancel, rejected(booking.ClassConflict, "not_cancellable")),
				func(o *lifecycle.Observation) {
					o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Booking: asRead(*o)}
				}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonCancellationRefused, mood: flightsv1.ConditionStalled,
		},
		"a cancellation that comes too early is tried anew": {
			seen: with(sent(flightsv1.OperationCancel, rejected(booking.ClassConflict, "booking_pending")),
				func(o *lifecycle.Observation) {
					o.Heard.Read = &lifecycle.Reading{AskedAt: o.Now, Booking: asRead(*o)}
				}),
			action: lifecycle.CloseOperation, reason: flightsv1.ReasonCancelling,
		},
		"a cancellation that answers with a live booking is not believed": {
			seen: with(sent(flightsv1.OperationCancel, booking.Outcome{Kind: booking.Confirmed}), func(o *lifecycle.Observation) {
				b := asRead(*o)
				o.Heard.Sent.Booking = &b
			}),
			action: lifecycle.Wait, reason: flightsv1.ReasonOutcomeUnknown, after: 2 * time.Second,
		},
	})
}
