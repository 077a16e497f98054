package story

import (
	"slices"
	"strings"
	"testing"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// The ticket of the README, word for word, booked with the provider that is the default one.
func TestTheFirstTicketIsBookedShownAndCancelled(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	s.Says(s.Do(scene.Manifest, "apply", "-f", "-"), "flightticket.flights.com/my-flight-ticket created")
	s.Do("", "wait", "--for=condition=Ready", "flightticket/my-flight-ticket", "--timeout=120s")
	reference := s.Do("", "get", "ticket", "my-flight-ticket", "-o", "jsonpath={.status.booking.reference}")
	if len(reference) != 6 {
		t.Errorf("the reference is %q", reference)
	}

	narrow := rows(s.Do("", "get", "tickets"))
	wantHeader(t, narrow, "NAME FROM TO SEATS STATE REFERENCE AGE")
	if row := narrow[1]; !slices.Equal(row[:6], []string{"my-flight-ticket", "Mumbai", "London", "2", "Booked", reference}) {
		t.Errorf("the row reads %q", row)
	}
	wide := rows(s.Do("", "get", "tickets", "-o", "wide"))
	wantHeader(t, wide, "NAME FROM TO SEATS STATE REFERENCE POLICY MESSAGE AGE")
	if row := wide[1]; row[6] != "Compliant" || row[7] != "booking" || row[8] != reference {
		t.Errorf("the wide row reads %q", row)
	}
	for _, name := range []string{"ft", "ticket", "tickets", "flightticket", "flighttickets", "flights"} {
		s.Says(s.Do("", "get", name, "-o", "name"), "flightticket.flights.com/my-flight-ticket")
	}
	s.Says(s.Do("", "describe", "ticket", "my-flight-ticket"), reference, "Normal", "Booked")

	mine := func(r simulator.Record) bool {
		return strings.HasSuffix(r.Booking().Owner, "/"+s.Namespace+"/my-flight-ticket")
	}
	wantLive(t, s, mine, 1)
	s.Do("", "delete", "ticket", "my-flight-ticket", "--timeout=120s") // it waits for the finalizer
	wantLive(t, s, mine, 0)
}

// wantLive counts the live bookings in the ledger of the default provider.
func wantLive(t *testing.T, s *scene.Scene, mine func(simulator.Record) bool, want int) {
	t.Helper()
	ledger := house.ledger(s)
	live := 0
	for _, r := range ledger.Bookings {
		if status := r.Booking().Status; mine(r) && (status == simulator.Confirmed || status == simulator.Pending) {
			live++
		}
	}
	if live != want {
		t.Errorf("%d bookings are live, want %d: %+v", live, want, ledger.Bookings)
	}
	if len(ledger.Violations) > 0 {
		t.Errorf("the ledger was violated: %+v", ledger.Violations)
	}
}

func TestATicketIsChangedInPlaceAndAnEditThatConcernsNoFlightIsNotBookedAgain(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("trip"))
	first := s.Booked("trip", 2).Status.Booking
	s.Apply(s.TicketManifest("trip", "number: 3"))
	second := s.Booked("trip", 3).Status.Booking
	if second.ID != first.ID || second.Reference != first.Reference {
		t.Errorf("the change made another booking: %+v, then %+v", first, second)
	}
	calls := s.Simulator.Count(simulator.OpBook) + s.Simulator.Count(simulator.OpChange)
	s.Do("", "label", "ticket", "trip", "team=alpha")
	s.Do("", "annotate", "ticket", "trip", "note=window seat")
	edit(s, "trip", "s/^  number: 3$/  number: 3\\n  costCenter: R-12/")
	s.Booked("trip", 3)
	if cost := s.Do("", "get", "ticket", "trip", "-o", "jsonpath={.spec.costCenter}"); cost != "R-12" {
		t.Errorf("the edit stored cost center %q", cost)
	}
	if now := s.Simulator.Count(simulator.OpBook) + s.Simulator.Count(simulator.OpChange); now != calls {
		t.Errorf("%d calls that book or change, %d before the edits", now, calls)
	}
	s.Live(1)
	s.Do("", "delete", "ticket", "trip", "--timeout=120s")
	s.Live(0)
}

// edit is kubectl edit with sed as the editor.
func edit(s *scene.Scene, ticket, script string) {
	s.Helper()
	cmd := s.Kubectl(s.Context, "--namespace="+s.Namespace, "edit", "ticket", ticket)
	cmd.Env = append(cmd.Env, "KUBE_EDITOR=sed -i -e '"+script+"'")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("kubectl edit: %v: %s", err, out)
	}
}

func TestAFullTicketTakesEveryField(t *testing.T) {
	t.Parallel()
	s := scene.WithBooking(t, house.stage, simulator.Settings{}, nil)
	s.Apply(s.TicketManifest("full", "departureDate: 2099-03-01", "returnDate: 2099-03-09", "cabin: Business",
		`maxPrice: {amount: "99999.50", currency: EUR}`, "costCenter: R-12", "deletionPolicy: Retain",
		"passengers: [{givenName: Asha, familyName: Rao, birthDate: 1990-02-28, email: asha@example.com, "+
			`phone: "+442071838750", title: Dr, gender: F}]`))
	booked := s.Booked("full", 2).Status
	if o := booked.Booking.Order; o.Origin != "BOM" || o.Destination != "LON" {
		t.Errorf("the order goes from %s to %s", o.Origin, o.Destination)
	}
	order := s.Simulator.LiveBookings()[0].Order
	if len(order.Passengers) != 1 || order.DepartureDate != "2099-03-01" || order.ReturnDate != "2099-03-09" || order.Cabin == "" {
		t.Errorf("the provider was asked for %+v", order)
	}
	s.Do("", "delete", "ticket", "full", "--timeout=120s")
	s.Live(1) // it was to be retained
}

// rows splits a table that kubectl printed.
func rows(table string) [][]string {
	var split [][]string
	for line := range strings.Lines(table) {
		split = append(split, strings.Fields(line))
	}
	return split
}

func wantHeader(t *testing.T, table [][]string, want string) {
	t.Helper()
	if len(table) != 2 {
		t.Fatalf("the table has %d lines: %q", len(table), table)
	}
	if got := strings.Join(table[0], " "); got != want {
		t.Errorf("the columns are %s, want %s", got, want)
	}
}
