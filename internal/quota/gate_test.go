package quota_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/quota"
)

func TestTheSecondGate(t *testing.T) {
	ticket := func(uid string, amount int64, created int, committed bool) quota.Ticket {
		return quota.Ticket{UID: types.UID(uid), Generation: 1, Amount: amount, Created: time.Unix(int64(created), 0), Committed: committed}
	}
	this := ticket("uid-a", 4, 50, false)
	departed := func(b *flightsv1.QuotaBucket) {
		b.Retained, b.Departures = 6, []flightsv1.QuotaDeparture{{UID: "old"}}
	}
	for _, test := range []struct {
		name     string
		bucket   *flightsv1.QuotaBucket
		from     string
		tickets  []quota.Ticket
		refusal  string // empty and wait empty: bookable
		wait     string
		policies int64 // the snapshot's policy generation
	}{
		{"alone", counted(4), "100", []quota.Ticket{this}, "", "", 1},
		{"younger tickets beyond the limit", counted(14), "100", []quota.Ticket{this, ticket("b", 10, 60, false)}, "", "", 1},
		{"older tickets that leave room", counted(10), "100", []quota.Ticket{this, ticket("b", 6, 40, false)}, "", "", 1},
		{"older tickets that leave none", counted(11), "100", []quota.Ticket{this, ticket("b", 7, 40, false)}, "requested 4, limit 10, used 7, reserved 0, left 3", "", 1},
		{"of the same second, the smaller UID first", counted(14), "100", []quota.Ticket{this, ticket("uid-9", 10, 50, false)}, "left 0", "", 1},
		{"of the same second, the larger UID second", counted(14), "100", []quota.Ticket{this, ticket("uid-b", 10, 50, false)}, "", "", 1},
		{"a younger ticket that is booked already", counted(11), "100", []quota.Ticket{this, ticket("b", 7, 60, true)}, "left 3", "", 1},
		{"what is retained", counted(4, func(b *flightsv1.QuotaBucket) { b.Retained = 7 }), "100", []quota.Ticket{this}, "kept for tickets that are gone 7", "", 1},
		{"a leaving ticket isn't taken twice", counted(4, departed), "100", []quota.Ticket{this, ticket("old", 6, 1, true)}, "", "", 1},
		{"not among the tickets", counted(4), "100", nil, "", "the ticket is not counted yet", 1},
		{"an entry of its own is open", counted(0, entries(entry("x", "a", 4, 0))), "100", []quota.Ticket{this}, "", "the ticket is not counted yet", 1},
		{"an entry of another is open", counted(4, entries(entry("x", "b", 6, 0))), "100", []quota.Ticket{this}, "", "", 1},
		{"a cache behind the count", counted(4), "99", []quota.Ticket{this}, "", "the cache is at revision 99", 1},
		{"a bucket that nobody counted", counted(0, func(b *flightsv1.QuotaBucket) { b.CountedRevision = "" }), "100", []quota.Ticket{this}, "", "being counted", 1},
		{"a bucket that an earlier policy counted", counted(4, func(b *flightsv1.QuotaBucket) { b.CountedGeneration = 0 }), "100", []quota.Ticket{this}, "", "being counted", 1},
		{"a snapshot of another policy", counted(4), "100", []quota.Ticket{this}, "", "has changed (generation 2, not 1)", 2},
		{"a bucket of a later policy", counted(4, func(b *flightsv1.QuotaBucket) { b.PolicyGeneration = 2 }), "100", []quota.Ticket{this}, "", "has changed (generation 2, not 1)", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := quota.Snapshot{From: test.from, To: test.from, PolicyGeneration: test.policies, Tickets: slices.Values(test.tickets)}
			err := quota.Open(test.bucket).Bookable(seats(4), this.UID, s)
			var refused *quota.RefusedError
			switch {
			case errors.As(err, &refused) != (test.refusal != ""):
				t.Errorf("got %v", err)
			case (err == nil) != (test.refusal+test.wait == ""):
				t.Errorf("got %v", err)
			case err != nil && !strings.Contains(err.Error(), test.refusal+test.wait):
				t.Errorf("got %v, want %s", err, test.refusal+test.wait)
			}
		})
	}
}
