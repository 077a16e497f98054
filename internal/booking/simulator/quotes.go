package simulator

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"github.com/flight-operator/flight-operator/internal/money"
)

// quote is an offer that was made to an account for an order.
type quote struct {
	account string
	order   Order
	offer   Quote
}

// hashOf is stable between runs, unlike the maps and seeds of the standard library.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	// Writing to a hash never fails.
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// airline is an invented carrier with its share of the basic price, in percent.
type airline struct {
	code    string
	percent int64
	stops   bool
}

// offers makes the quotes for an order: the same route, cabin and seats cost the same at any time. The caller holds mu.
func (s *Simulator) offers(account string, order Order, now time.Time) []Quote {
	airlines := []airline{{"ZZ", 100, false}, {"XQ", 115, false}, {"ZZ", 94, true}}
	var made []Quote
	for _, a := range airlines {
		// A third of the routes has no cheap connection.
		if a.stops && hashOf(order.Origin+order.Destination)%3 == 0 {
			continue
		}
		offer := Quote{
			Id: "q-" + s.newID(), Price: s.price(order, a), Carriers: []string{a.code},
			Segments: segments(order, a, now), ExpiresAt: now.Add(s.quoteTTL()).UTC(),
		}
		s.quotes[offer.Id] = quote{account: account, order: order, offer: offer}
		made = append(made, offer)
	}
	slices.SortStableFunc(made, func(a, b Quote) int {
		return int(parse(a.Price).Minor - parse(b.Price).Minor)
	})
	return made
}

func (s *Simulator) quoteTTL() time.Duration {
	if ttl := s.settings.QuoteTTL.Duration; ttl > 0 {
		return ttl
	}
	return 30 * time.Minute
}

// price is 40 to 439 major units a seat and direction, times cabin and airline.
func (s *Simulator) price(order Order, a airline) Money {
	code := s.settings.Currency
	if code == "" {
		code = "EUR"
	}
	major := int64(40 + hashOf(order.Origin+"-"+order.Destination)%400)
	cabins := map[Cabin]int64{PremiumEconomy: 160, Business: 320, First: 550}
	cabin, dearer := cabins[order.Cabin]
	if !dearer {
		cabin = 100
	}
	major = major * cabin / 100 * a.percent / 100 * int64(order.Seats)
	if order.ReturnDate != "" {
		major *= 2
	}
	plain := Money{Amount: fmt.Sprint(major), Currency: code}
	return Money{Amount: parse(plain).Decimal(), Currency: code}
}

func parse(m Money) money.Amount {
	// Our own prices parse; a caller's ceiling was checked before.
	amount, _ := money.Parse(m.Amount, m.Currency)
	return amount
}

func segments(order Order, a airline, now time.Time) []Segment {
	outward := legs(order, a, order.Origin, order.Destination, departure(order.DepartureDate, now))
	if order.ReturnDate == "" {
		return outward
	}
	return append(outward, legs(order, a, order.Destination, order.Origin, departure(order.ReturnDate, now))...)
}

// departure is nine in the morning of the day, or of the day in two weeks where none was asked for.
func departure(day string, now time.Time) time.Time {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		at = now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 14)
	}
	return at.Add(9 * time.Hour)
}

func legs(order Order, a airline, from, to string, at time.Time) []Segment {
	cabin := order.Cabin
	if cabin == "" {
		cabin = Economy
	}
	leg := func(from, to string, at time.Time, hours time.Duration) Segment {
		return Segment{
			Origin: from, Destination: to, DepartsAt: at, ArrivesAt: at.Add(hours * time.Hour), Cabin: cabin,
			MarketingCarrier: a.code, OperatingCarrier: a.code,
			FlightNumber: fmt.Sprintf("%s%d", a.code, 100+hashOf(from+to)%900),
		}
	}
	if !a.stops {
		return []Segment{leg(from, to, at, 5)}
	}
	const hub = "XZH"
	return []Segment{leg(from, hub, at, 3), leg(hub, to, at.Add(5*time.Hour), 3)}
}

// take checks that a quote can be booked for an order under a ceiling. The caller holds mu.
func (s *Simulator) take(account, id string, order Order, ceiling Money) (Quote, error) {
	q, ok := s.quotes[id]
	limit, err := money.Parse(ceiling.Amount, ceiling.Currency)
	switch {
	case err != nil:
		return Quote{}, refusal("invalid_ceiling", "The ceiling is not an amount of money.")
	case !ok || q.account != account:
		return Quote{}, refusal("offer_not_found", "This account was made no such offer.")
	case !q.offer.ExpiresAt.After(s.now()):
		return Quote{}, refusal("offer_expired", "The offer has expired; ask for a new one.")
	case !reflect.DeepEqual(q.order, order):
		return Quote{}, refusal("order_mismatch", "The offer was made for another order.")
	case parse(q.offer.Price).Currency != limit.Currency || parse(q.offer.Price).Minor > limit.Minor:
		return Quote{}, refusal("price_above_ceiling", "The offer costs more than the ceiling allows.")
	}
	return q.offer, nil
}

// forget drops quotes that expired an hour ago. The caller holds mu.
func (s *Simulator) forget(now time.Time) {
	for id, q := range s.quotes {
		if q.offer.ExpiresAt.Add(time.Hour).Before(now) {
			delete(s.quotes, id)
		}
	}
}
