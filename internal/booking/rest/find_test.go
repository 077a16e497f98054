package rest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

func TestALookupReadsEveryPageAndSortsTheNewestFirst(t *testing.T) {
	sim, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	r := request(t, p, "")
	const many = 205
	for i := range many {
		r.Names.ClientReference = fmt.Sprintf("ref-%d", i)
		if o := p.Book(t.Context(), r); o.Kind != booking.Confirmed {
			t.Fatalf("book %d = %+v (%v)", i, o, o.Failure)
		}
	}
	found, err := p.FindByOwner(t.Context(), r.Names.Owner)
	if err != nil || len(found) != many {
		t.Fatalf("found %d, %v, want %d", len(found), err, many)
	}
	for i, b := range found {
		if want := fmt.Sprintf("ref-%d", many-1-i); b.Names.ClientReference != want {
			t.Fatalf("booking %d is %s, want %s", i, b.Names.ClientReference, want)
		}
	}
	if n := sim.Count(simulator.OpFind); n != 3 {
		t.Errorf("pages read = %d, want 3", n)
	}
}

func TestALookupIsWholeOrFails(t *testing.T) {
	mine := bookingJSON("confirmed")
	cases := map[string]struct {
		body string
		code string
	}{
		"pages that never end":            {`{"bookings":[` + mine + `],"nextCursor":"again"}`, booking.CodeTooManyBookings},
		"a booking of another owner":      {`{"bookings":[` + strings.ReplaceAll(mine, "owner-1", "owner-2") + `]}`, booking.CodeInvalidAnswer},
		"a booking without an id":         {`{"bookings":[` + strings.ReplaceAll(mine, "bk-1", "") + `]}`, booking.CodeInvalidAnswer},
		"no list at all":                  {`{}`, booking.CodeInvalidAnswer},
		"null for a list":                 {`{"bookings":null}`, booking.CodeInvalidAnswer},
		"a list of what isn't a booking":  {`{"bookings":[7]}`, booking.CodeInvalidAnswer},
		"a booking that holds the token":  {`{"bookings":[` + strings.ReplaceAll(mine, "bk-1", testToken) + `]}`, booking.CodeInvalidAnswer},
		"a page that breaks off silently": {`{"bookings":[` + mine, booking.CodeInvalidAnswer},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := dial(t, serveCanned(t, canned{200, asJSON, c.body}), nil)
			found, err := p.FindByOwner(t.Context(), "owner-1")
			if e := callError(t, err); e.Class != booking.ClassUnavailable || e.Code != c.code || found != nil {
				t.Errorf("found %v, error %v, want %s", found, e, c.code)
			}
		})
	}
}

func TestNamesWithAnyCharacterAreFoundWhole(t *testing.T) {
	_, server := start(t, simulator.Options{})
	p := dial(t, server, nil)
	r := request(t, p, "")
	for _, name := range []string{"a&b=c", "ü/é", "100% sure?", "#1", "a+b c", `"quoted"`, "1,2"} {
		r.Names.ClientReference, r.Names.Owner = name, "owner/"+name
		if o := p.Book(t.Context(), r); o.Kind != booking.Confirmed {
			t.Fatalf("book %q = %+v (%v)", name, o, o.Failure)
		}
		byReference, err := p.FindByClientReference(t.Context(), name)
		if err != nil || len(byReference) != 1 {
			t.Errorf("find %q = %v, %v, want one", name, byReference, err)
		}
	}
}

func TestTheCheapestQuoteInTheFirstOnesCurrencyIsTaken(t *testing.T) {
	quote := func(id, amount, currency string) string {
		return fmt.Sprintf(`{"id":%q,"price":{"amount":%q,"currency":%q},"carriers":["ZZ"],"segments":[],
			"expiresAt":"2026-12-01T00:00:00Z"}`, id, amount, currency)
	}
	cases := map[string]struct {
		quotes []string
		want   string // empty: an error
	}{
		"the first":               {[]string{quote("q-1", "90", "EUR"), quote("q-2", "99.50", "EUR")}, "q-1"},
		"a later one":             {[]string{quote("q-1", "99.50", "EUR"), quote("q-2", "90", "EUR")}, "q-2"},
		"no other currency":       {[]string{quote("q-1", "99.50", "EUR"), quote("q-2", "1", "USD")}, "q-1"},
		"none at all":             {nil, ""},
		"a price that is none":    {[]string{quote("q-1", "-1", "EUR")}, ""},
		"a currency that is none": {[]string{quote("q-1", "1", "ZZZ")}, ""},
		"no id":                   {[]string{quote("", "1", "EUR")}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := `{"quotes":[` + strings.Join(c.quotes, ",") + `]}`
			p := dial(t, serveCanned(t, canned{200, asJSON, body}), nil)
			offer, err := p.Quote(t.Context(), testOrder())
			if c.want == "" {
				if e := callError(t, err); e.Code != booking.CodeInvalidAnswer {
					t.Errorf("error = %v, want an invalid answer", e)
				}
				return
			}
			if err != nil || offer.ID != c.want {
				t.Errorf("offer = %+v, %v, want %s", offer, err, c.want)
			}
		})
	}
}

func TestAnEndpointWithAPathKeepsIt(t *testing.T) {
	var path string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"acct-7"}`))
	}))
	t.Cleanup(server.Close)
	server.URL += "/flights/v1"
	if account, err := dial(t, server, nil).Account(t.Context()); err != nil || account.ID != "acct-7" || path != "/flights/v1/account" {
		t.Errorf("account = %v, %v from path %s", account, err, path)
	}
}
