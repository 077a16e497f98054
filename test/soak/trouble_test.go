package soak

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// trouble counts what went wrong, as far as budgets rest on it.
type trouble struct {
	// strikes are the calls that faults were armed for.
	strikes int
	// turnedAway is how often the credential was refused for a while.
	turnedAway int
	// rounds is how often a second of Retry-After can have gone by while calls were throttled.
	rounds int
	// outages is how often nothing was answered for a while.
	outages int
	// outside are bookings that somebody else changed or cancelled.
	outside int
}

// breakThings lets one thing after another go wrong, each for a while.
func (s *soak) breakThings(end time.Time) {
	for n := 0; time.Now().Before(end) && s.Context.Err() == nil; n++ {
		span := time.Duration(500+s.trouble.IntN(3000)) * time.Millisecond
		switch kind := s.trouble.IntN(20); {
		case kind < 11:
			s.fault()
			s.pass(span)
			s.Simulator.ClearFaults() // what struck nobody would wait for the next call, and strike when all else is well
		case kind < 13:
			s.slow(span)
		case kind < 14:
			s.outage(span)
		case kind < 16:
			s.turnAway(n, span)
		case kind < 18:
			s.throttle(span)
		default:
			s.meddle()
		}
	}
}

// pass lets time go by: how long something goes wrong is what a soak is about.
func (s *soak) pass(span time.Duration) {
	select {
	case <-time.After(span):
	case <-s.Context.Done():
	}
}

// fault arms one of the effects for a few calls of one kind, or of all.
func (s *soak) fault() {
	effects := simulator.Effects()
	operations := []simulator.Operation{
		"", simulator.OpBook, simulator.OpBook, simulator.OpChange, simulator.OpCancel, simulator.OpFind, simulator.OpGet, simulator.OpQuote,
	}
	f := simulator.Fault{
		Effect: effects[s.trouble.IntN(len(effects))], Operation: operations[s.trouble.IntN(len(operations))],
		Times: 1 + s.trouble.IntN(5), Delay: metav1.Duration{Duration: time.Duration(1+s.trouble.IntN(7000)) * time.Millisecond},
	}
	switch f.Effect {
	case simulator.EffectThrottle:
		f.RetryAfter = "1"
		s.broken.rounds += f.Times
	case simulator.EffectUnauthorized:
		return // turnAway does that, and puts a good credential back
	}
	s.broken.strikes += f.Times
	s.Inject(f)
}

// outage resets every connection for a while.
func (s *soak) outage(span time.Duration) {
	s.broken.outages++
	s.Inject(simulator.Fault{Effect: simulator.EffectResetBefore})
	s.pass(span)
	s.Simulator.ClearFaults()
}

// slow has every answer take long, though not too long, and bookings be processed first.
func (s *soak) slow(span time.Duration) {
	slow := settings()
	slow.Latency = metav1.Duration{Duration: time.Duration(s.trouble.IntN(400)) * time.Millisecond}
	slow.Processing = metav1.Duration{Duration: time.Duration(s.trouble.IntN(900)) * time.Millisecond}
	slow.ProcessingFails = s.trouble.IntN(4) == 0
	s.Simulator.SetSettings(slow)
	s.pass(span)
	s.Simulator.SetSettings(settings())
}

// turnAway refuses the credential, and puts another one of the same account into the Secret after a while.
func (s *soak) turnAway(n int, span time.Duration) {
	s.broken.turnedAway++
	s.Simulator.SetTokens(map[string]string{})
	s.pass(span)
	token := fmt.Sprintf("%s-%d", s.Token(), n)
	s.Simulator.SetTokens(map[string]string{token: scene.Account})
	s.StoreToken(token)
}

// throttle lets few calls through in a second.
func (s *soak) throttle(span time.Duration) {
	tight := settings()
	tight.RateLimit, tight.RateBurst = float64(2+s.trouble.IntN(10)), 2
	s.broken.rounds += 1 + int(span/time.Second)
	s.Simulator.SetSettings(tight)
	s.pass(span)
	s.Simulator.SetSettings(settings())
}

// meddle changes or cancels a live booking from outside.
func (s *soak) meddle() {
	live := s.Simulator.LiveBookings()
	if len(live) == 0 {
		return
	}
	b := live[s.trouble.IntN(len(live))]
	s.broken.outside++
	if s.trouble.IntN(2) == 0 {
		b.Order.Seats = 1 + b.Order.Seats%5
		s.ended(s.Simulator.ChangeOutside(b.Id, b.Order))
		return
	}
	s.ended(s.Simulator.CancelOutside(b.Id))
}

// ended forgives that a booking was cancelled by its ticket meanwhile.
func (s *soak) ended(err error) {
	if err != nil {
		s.say("not changed from outside: %v", err)
	}
}

// mend puts everything right.
func (s *soak) mend() {
	s.Simulator.ClearFaults()
	s.Simulator.SetSettings(settings())
	s.Simulator.AddToken(s.Token(), scene.Account)
	s.StoreToken(s.Token())
}
