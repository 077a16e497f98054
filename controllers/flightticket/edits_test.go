package flightticket

import (
	"hash/maphash"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
)

func TestOnlyEditsThatConcernATicketAreLookedAt(t *testing.T) {
	cases := map[string]struct {
		edit func(*flightsv1.FlightTicket)
		want bool
	}{
		"the spec":                      {func(t *flightsv1.FlightTicket) { t.Generation++ }, true},
		"the deletion":                  {func(t *flightsv1.FlightTicket) { t.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
		"our finalizer is taken off":    {func(t *flightsv1.FlightTicket) { t.Finalizers = nil }, true},
		"our annotation":                {func(t *flightsv1.FlightTicket) { t.Annotations[flightsv1.AdoptBookingAnnotation] = "b-1" }, true},
		"a new value of our annotation": {func(t *flightsv1.FlightTicket) { t.Annotations[flightsv1.ReconcileRequestedAtAnnotation] = "2" }, true},
		"somebody else's annotation":    {func(t *flightsv1.FlightTicket) { t.Annotations["example.com/seen"] = "2" }, false},
		"a label":                       {func(t *flightsv1.FlightTicket) { t.Labels = map[string]string{"team": "a"} }, false},
		"somebody else's finalizer":     {func(t *flightsv1.FlightTicket) { t.Finalizers = append(t.Finalizers, "example.com/x") }, false},
		"the status":                    {func(t *flightsv1.FlightTicket) { t.Status.Attempts++ }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			was := &flightsv1.FlightTicket{ObjectMeta: metav1.ObjectMeta{
				Finalizers:  []string{flightsv1.BookingFinalizer},
				Annotations: map[string]string{flightsv1.ReconcileRequestedAtAnnotation: "1", "example.com/seen": "1"},
			}}
			is := was.DeepCopy()
			c.edit(is)
			if got := ticketChanged().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
				t.Errorf("is looked at: %t, want %t", got, c.want)
			}
		})
	}
}

// reconciler is one whose quotas have room for everything.
func reconciler() *Reconciler {
	r, err := New(Options{Quotas: unlimited{}})
	if err != nil {
		panic(err)
	}
	return r
}

// observed is a pass over a ticket that waits for a provider.
func observed() *pass {
	p := &pass{r: reconciler(), ticket: &flightsv1.FlightTicket{ObjectMeta: metav1.ObjectMeta{
		Name: "ticket", UID: "uid-1", Generation: 1, Annotations: map[string]string{},
	}}}
	p.o.Provider = lifecycle.Provider{Found: true, Ready: true, Generation: 1}
	return p
}

func TestATicketThatWaitsIsLeftAloneUntilSomethingThatConcernsItChanges(t *testing.T) {
	seed, now := maphash.MakeSeed(), time.Now()
	m := newMemory()
	m.rests(ticket, rest{
		facts: digest(seed, observed().facts()), wish: digest(seed, observed().wish()), due: now.Add(time.Minute),
		waits: lifecycle.Waits{lifecycle.CauseUnavailable: now},
	})
	cases := map[string]struct {
		edit               func(*pass)
		rests, keepsItsWay bool
	}{
		"nothing":                    {func(*pass) {}, true, true},
		"a label":                    {func(p *pass) { p.ticket.Labels = map[string]string{"a": "b"} }, true, true},
		"another's annotation":       {func(p *pass) { p.ticket.Annotations["example.com/seen"] = "x" }, true, true},
		"the provider is not ready":  {func(p *pass) { p.o.Provider.Ready = false }, false, true},
		"the policies":               {func(p *pass) { p.r.policies.Add(1) }, false, true},
		"the status was lost":        {func(p *pass) { p.ticket.Status.ObservedGeneration = -1 }, false, true},
		"the spec":                   {func(p *pass) { p.ticket.Generation++ }, false, false},
		"our annotation":             {func(p *pass) { p.ticket.Annotations[flightsv1.ReconcileRequestedAtAnnotation] = "x" }, false, false},
		"the provider's spec":        {func(p *pass) { p.o.Provider.Generation++ }, false, false},
		"the credential":             {func(p *pass) { p.o.Provider.CredentialsRotatedAt = &metav1.Time{Time: now} }, false, false},
		"another ticket of its name": {func(p *pass) { p.ticket.UID = "uid-2" }, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := observed()
			c.edit(p)
			if got := m.due(ticket, digest(seed, p.facts()), now) > 0; got != c.rests {
				t.Errorf("rests: %t, want %t", got, c.rests)
			}
			if got := len(m.waits(ticket, digest(seed, p.wish()))) > 0; got != c.keepsItsWay {
				t.Errorf("its pause goes on: %t, want %t", got, c.keepsItsWay)
			}
		})
	}
	if m.due(ticket, digest(seed, observed().facts()), now.Add(time.Minute)) != 0 {
		t.Error("it rests beyond its time")
	}
}

func TestACacheThatIsBehindWhatWasWrittenIsNotBelieved(t *testing.T) {
	m := newMemory()
	if m.overtakes(ticket, "7") {
		t.Error("a ticket that was never written is read past the cache")
	}
	m.wrote(ticket, "100")
	for _, behind := range []string{"7", "99", "99", "not a number"} {
		if !m.overtakes(ticket, behind) {
			t.Errorf("version %s is believed, though 100 was written", behind)
		}
	}
	if m.overtakes(other, "7") {
		t.Error("another ticket is concerned")
	}
	if m.overtakes(ticket, "100") || m.overtakes(ticket, "7") {
		t.Error("a cache that has caught up once is not believed")
	}
}

func TestFirstLooksAreSpreadOverTheWholeIntervalAndLaterOnesKeepIt(t *testing.T) {
	const every = 10 * time.Minute
	now, early, late := time.Now(), 0, 0
	for range 1000 {
		m := newMemory()
		in := m.lookIn(ticket, every, now)
		if in < 0 || in > every {
			t.Fatalf("the first look is in %s", in)
		}
		if again := m.lookIn(ticket, every, now.Add(time.Second)); again != in-time.Second {
			t.Fatalf("the first look moved from %s to %s", in, again)
		}
		if in < every/2 {
			early++
		} else {
			late++
		}
		m.lookedAt(ticket, now)
		if in := m.lookIn(ticket, every, now); in < every || in > every+every/5 {
			t.Fatalf("the next look is in %s", in)
		}
		if in := m.lookIn(ticket, 2*every, now); in < 2*every {
			t.Fatalf("with another interval the next look is in %s", in)
		}
	}
	if early < 300 || late < 300 {
		t.Errorf("%d first looks are in the first half of the interval, %d in the second", early, late)
	}
}

func TestThePollIntervalOfATicketHasAFloorAndFallsBackToTheFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 10 * time.Minute, "30m": 30 * time.Minute, "1s": 10 * time.Minute, "often": 10 * time.Minute,
	} {
		p := observed()
		p.r.Recheck = 10 * time.Minute
		p.ticket.Annotations[flightsv1.PollIntervalAnnotation] = text
		if got := p.pollInterval(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
