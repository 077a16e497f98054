package simulator

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
)

// Snapshot is what GET /_simulator/ledger answers.
type Snapshot struct {
	Totals     Totals      `json:"totals"`
	Violations []Violation `json:"violations"`
	Bookings   []Record    `json:"bookings"`
	Calls      []Call      `json:"calls"`
}

// AdminHandler serves the switches of a simulator that runs as a process, under /_simulator/:
//
//	GET    /_simulator/ledger                 totals, violations, bookings with their history, calls
//	GET    /_simulator/faults                 the faults that are on
//	POST   /_simulator/faults                 switches one Fault on
//	DELETE /_simulator/faults                 switches all off
//	GET    /_simulator/settings               the Settings
//	PUT    /_simulator/settings               replaces them
//	PUT    /_simulator/tokens                 replaces the tokens: {"token": "account"}; there is no way to read them
//	POST   /_simulator/bookings/{id}/cancel   cancels from outside
//	POST   /_simulator/bookings/{id}/change   changes from outside to the Order in the body
//
// It asks for no credential, so it belongs on a loopback listener; requests for any other host name are refused, which
// keeps web pages in a browser on this machine out.
func (s *Simulator) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_simulator/ledger", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, Snapshot{Totals: s.Totals(), Violations: s.Violations(), Bookings: s.Ledger(), Calls: s.Calls()})
	})
	mux.HandleFunc("GET /_simulator/faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Faults()) })
	mux.HandleFunc("POST /_simulator/faults", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		if readJSON(w, r, &f) {
			done(w, s.Inject(f))
		}
	})
	mux.HandleFunc("DELETE /_simulator/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		done(w, nil)
	})
	mux.HandleFunc("GET /_simulator/settings", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Settings()) })
	mux.HandleFunc("PUT /_simulator/settings", func(w http.ResponseWriter, r *http.Request) {
		var settings Settings
		if !readJSON(w, r, &settings) {
			return
		}
		err := settings.Validate()
		if err == nil {
			s.SetSettings(settings)
		}
		done(w, err)
	})
	mux.HandleFunc("PUT /_simulator/tokens", func(w http.ResponseWriter, r *http.Request) {
		var tokens map[string]string
		if readJSON(w, r, &tokens) {
			s.SetTokens(tokens)
			done(w, nil)
		}
	})
	mux.HandleFunc("POST /_simulator/bookings/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		done(w, s.CancelOutside(r.PathValue("id")))
	})
	mux.HandleFunc("POST /_simulator/bookings/{id}/change", func(w http.ResponseWriter, r *http.Request) {
		var order Order
		if readJSON(w, r, &order) {
			done(w, s.ChangeOutside(r.PathValue("id"), order))
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			writeProblem(w, newProblem(http.StatusForbidden, "forbidden", "The switches are served to this machine alone."))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	// A mistyped switch that does nothing would make a test pass for the wrong reason.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		writeBadRequest(w, r, err)
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	// The caller may be gone; nothing depends on it.
	_ = json.NewEncoder(w).Encode(value)
}

func done(w http.ResponseWriter, err error) {
	var p *problem
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.As(err, &p):
		writeProblem(w, p)
	default:
		writeProblem(w, newProblem(http.StatusBadRequest, "bad_request", err.Error()))
	}
}
