// Package places resolves what people write (a city, an airport, an IATA code) to IATA codes, from an embedded table.
//
// It does no I/O, and knows no Kubernetes and no policy.
package places

// Kind says what a place is.
type Kind string

// The kinds of place.
const (
	KindAirport Kind = "airport" // one airport
	KindCity    Kind = "city"    // a city or metropolitan area; Airports lists what it stands for
	KindCode    Kind = "code"    // three capital letters that the table lacks; accepted, known to nobody here
)

// Place is a resolved place.
type Place struct {
	Text     string   `json:"text"` // as the user wrote it, trimmed
	Kind     Kind     `json:"kind"`
	IATA     string   `json:"iata"`     // airport or metropolitan code: BOM, LON
	Airports []string `json:"airports"` // sorted; the airport itself for an airport; the code itself for KindCode
	City     string   `json:"city"`     // "" for KindCode
	Country  string   `json:"country"`  // ISO 3166-1 alpha-2; "" for KindCode
	Name     string   `json:"-"`        // display name, as in "London (LON), GB" or "Heathrow (LHR), London, GB"
	Lat, Lon float64  `json:"-"`        // of the airport, or the mean of a city's airports
}

// Route is a pair of resolved places.
type Route struct {
	Origin        Place `json:"origin"`
	Destination   Place `json:"destination"`
	DistanceKm    int   `json:"distanceKm"` // great circle, rounded; 0 when an end is KindCode
	International bool  `json:"international"`
}

// UnknownError says that a text names no place we know. Suggestions are the nearest names, best first, at most five.
type UnknownError struct {
	Text        string
	Suggestions []string
}

// AmbiguousError says that a text names several places. Candidates are sorted display texts that Lookup would resolve
// to one place each, as in "San Jose, CR".
type AmbiguousError struct {
	Text       string
	Candidates []string
}

// SamePlaceError says that both ends of a route are the same place once resolved, as "Bombay" and "Mumbai", or an
// airport and the metropolitan area that it belongs to.
type SamePlaceError struct{ From, To, IATA string }

// Error says what is wrong and what to do.
func (e *UnknownError) Error() string { panic("to be written") }

// Error says what is wrong and what to do.
func (e *AmbiguousError) Error() string { panic("to be written") }

// Error says what is wrong and what to do.
func (e *SamePlaceError) Error() string { panic("to be written") }

// Lookup resolves one text. Errors are *UnknownError and *AmbiguousError.
func Lookup(text string) (Place, error) { panic("to be written") }

// Resolve resolves both ends of a route. Errors are those of Lookup, wrapped in *EndError, and *SamePlaceError.
func Resolve(from, to string) (Route, error) { panic("to be written") }

// EndError says which end of a route an error belongs to.
type EndError struct {
	Field string // "from" or "to"
	Err   error
}

// Error returns the message of the wrapped error.
func (e *EndError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *EndError) Unwrap() error { return e.Err }

// TableDate is the day that the embedded table was made on, as in "2026-11-30".
func TableDate() string { panic("to be written") }
