package installation

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/internal/controlplane"
)

// Account is the account of every token that Start and RotateToken hand to the simulator.
const Account = "acct-1"

// Simulator is the booking API as a process of its own. It outlives every restart of the controller, as an airline does.
type Simulator struct {
	// URL is the booking API, AdminURL the switches and the ledger.
	URL, AdminURL string
	// Log is the file with what it wrote.
	Log string

	authority string // file
	token     string
	process   *controlplane.Process
}

// startSimulator starts the booking API with a token of this run.
func (i *Installation) startSimulator(ctx context.Context) error {
	s := &Simulator{
		Log: filepath.Join(i.Dir, "booking-simulator.log"), authority: filepath.Join(i.Dir, "booking-simulator-ca.crt"),
		token: rand.Text(),
	}
	tokens := tokensIn(i.Dir)
	if err := os.WriteFile(tokens, []byte(s.token+" "+Account+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the simulator's tokens: %w", err)
	}
	// The log of an earlier run in the same folder would answer for this one.
	if err := os.Remove(s.Log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	process, err := i.Plane.StartProcess(controlplane.ProcessOptions{
		Name: "booking-simulator", Path: i.built["booking-simulator"], Log: s.Log,
		Args: []string{"--write-ca=" + s.authority, "--token-file=" + tokens},
	})
	if err != nil {
		return err
	}
	s.process = process
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := process.WaitFor(ctx, "the simulator's addresses", s.readAddresses); err != nil {
		return err
	}
	i.Simulator = s
	return s.SetSettings(ctx, i.options.Settings)
}

// tokensIn is the file with the tokens that the simulator starts with.
func tokensIn(dir string) string { return filepath.Join(dir, "booking-simulator-tokens") }

// readAddresses takes the line that the simulator prints once it listens.
func (s *Simulator) readAddresses(context.Context) (bool, error) {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return false, err
	}
	line, _, whole := bytes.Cut(text, []byte("\n"))
	if !whole {
		return false, nil
	}
	var ready struct{ API, Admin string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return false, fmt.Errorf("read the simulator's first line %q: %w", line, err)
	}
	s.URL, s.AdminURL = ready.API, ready.Admin
	return true, nil
}

// Token is the one that the simulator was started with.
func (s *Simulator) Token() string { return s.token }

// Authority is the PEM that its certificate is signed by.
func (s *Simulator) Authority() ([]byte, error) {
	text, err := os.ReadFile(s.authority)
	if err != nil {
		return nil, fmt.Errorf("read the simulator's authority: %w", err)
	}
	return text, nil
}

// Ledger returns what was ever booked, the calls that arrived and every breach of the ledger's rules.
func (s *Simulator) Ledger(ctx context.Context) (simulator.Snapshot, error) {
	var snapshot simulator.Snapshot
	err := s.ask(ctx, http.MethodGet, "ledger", nil, &snapshot)
	return snapshot, err
}

// Live returns the bookings that are confirmed or pending, the oldest first.
func (s *Simulator) Live(ctx context.Context) ([]simulator.Booking, error) {
	snapshot, err := s.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	var live []simulator.Booking
	for _, record := range snapshot.Bookings {
		if b := record.Booking(); b.Status == simulator.Confirmed || b.Status == simulator.Pending {
			live = append(live, b)
		}
	}
	return live, nil
}

// Inject switches a fault on.
func (s *Simulator) Inject(ctx context.Context, f simulator.Fault) error {
	return s.ask(ctx, http.MethodPost, "faults", f, nil)
}

// Faults returns those that are on, with what is left of them.
func (s *Simulator) Faults(ctx context.Context) ([]simulator.Fault, error) {
	var faults []simulator.Fault
	err := s.ask(ctx, http.MethodGet, "faults", nil, &faults)
	return faults, err
}

// ClearFaults switches all faults off.
func (s *Simulator) ClearFaults(ctx context.Context) error {
	return s.ask(ctx, http.MethodDelete, "faults", nil, nil)
}

// Settings returns how the simulator behaves while it is well.
func (s *Simulator) Settings(ctx context.Context) (simulator.Settings, error) {
	var settings simulator.Settings
	err := s.ask(ctx, http.MethodGet, "settings", nil, &settings)
	return settings, err
}

// SetSettings replaces the settings. What the provider declares is another matter: see Installation.ApplyProvider.
func (s *Simulator) SetSettings(ctx context.Context, settings simulator.Settings) error {
	return s.ask(ctx, http.MethodPut, "settings", settings, nil)
}

// SetTokens replaces all tokens by these, each with its account.
func (s *Simulator) SetTokens(ctx context.Context, tokens map[string]string) error {
	return s.ask(ctx, http.MethodPut, "tokens", tokens, nil)
}

// CancelOutside cancels a live booking as the airline would.
func (s *Simulator) CancelOutside(ctx context.Context, id string) error {
	return s.ask(ctx, http.MethodPost, "bookings/"+id+"/cancel", nil, nil)
}

// ask makes one call to the switches.
func (s *Simulator) ask(ctx context.Context, method, path string, send, receive any) error {
	var body io.Reader
	if send != nil {
		text, err := json.Marshal(send)
		if err != nil {
			return fmt.Errorf("encode what is sent to the simulator: %w", err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.AdminURL+"/_simulator/"+path, body)
	if err != nil {
		return err
	}
	request.Close = true // no idle connection stays behind for the tests that look for such
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the simulator: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the simulator's answer: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the simulator answers %s %s with %s: %s", method, path, answer.Status, text)
	}
	if receive == nil {
		return nil
	}
	if err := json.Unmarshal(text, receive); err != nil {
		return fmt.Errorf("decode the simulator's answer: %w", err)
	}
	return nil
}
