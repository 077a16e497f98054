package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/money"
	"github.com/flight-operator/flight-operator/internal/places"
)

// example is the input of one of a policy's own tests. Its fields are those of Request, as they are written in YAML.
type example struct {
	Stage     Stage               `json:"stage"`
	Operation flightsv1.Operation `json:"operation"`
	DryRun    bool                `json:"dryRun"`
	User      struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	Namespace struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"namespace"`
	Ticket    *flightsv1.FlightTicket `json:"ticket"`
	OldTicket *flightsv1.FlightTicket `json:"oldTicket"`
	Offer     *exampleOffer           `json:"offer"`
	Now       time.Time               `json:"now"`
}

type exampleOffer struct {
	ID       string       `json:"id"`
	Price    money.Amount `json:"price"`
	Segments []struct {
		Origin           string          `json:"origin"`
		Destination      string          `json:"destination"`
		DepartsAt        time.Time       `json:"departsAt"`
		ArrivesAt        time.Time       `json:"arrivesAt"`
		MarketingCarrier string          `json:"marketingCarrier"`
		OperatingCarrier string          `json:"operatingCarrier"`
		FlightNumber     string          `json:"flightNumber"`
		Cabin            flightsv1.Cabin `json:"cabin"`
	} `json:"segments"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// readExample reads the input of a test, which may name no field that a request lacks.
func readExample(raw []byte) (Request, error) {
	var in example
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Request{}, fmt.Errorf("input: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if in.Ticket == nil {
		return Request{}, errors.New("input: there is no ticket")
	}
	in.fill()
	route, err := places.Resolve(in.Ticket.Spec.From, in.Ticket.Spec.To)
	if err != nil {
		return Request{}, fmt.Errorf("input.ticket: %w", err)
	}
	return Request{
		Stage: in.Stage, Operation: in.Operation, DryRun: in.DryRun,
		User:      User{in.User.Username, in.User.Groups},
		Namespace: Namespace{in.Namespace.Name, in.Namespace.Labels, in.Namespace.Annotations},
		Ticket:    in.Ticket, OldTicket: in.OldTicket, Route: route, Offer: in.offer(), Now: in.Now,
	}, nil
}

// fill completes what a test leaves out, as the API server and the webhook would: a ticket that the user creates.
func (in *example) fill() {
	s := samples()[0].request
	in.User.Username = cmp.Or(in.User.Username, s.User.Username)
	in.Namespace.Name = cmp.Or(in.Namespace.Name, in.Ticket.Namespace, s.Namespace.Name)
	if in.Now.IsZero() {
		in.Now = s.Now
	}
	if in.Stage == "" {
		in.Stage = StageAdmission
		if in.Offer != nil {
			in.Stage = StageBooking
		}
	}
	if in.Operation == "" {
		in.Operation = flightsv1.OperationCreate
		if in.OldTicket != nil {
			in.Operation = flightsv1.OperationUpdate
		}
	}
	for _, t := range []*flightsv1.FlightTicket{in.Ticket, in.OldTicket} {
		if t != nil {
			in.fillTicket(t)
		}
	}
}

func (in *example) fillTicket(t *flightsv1.FlightTicket) {
	full := fullTicket()
	t.Name = cmp.Or(t.Name, full.Name)
	t.Namespace = in.Namespace.Name
	t.UID = cmp.Or(t.UID, full.UID)
	t.Generation = cmp.Or(t.Generation, full.Generation)
	if t.CreationTimestamp.IsZero() {
		t.CreationTimestamp.Time = in.Now
	}
	if _, known := t.Annotations[flightsv1.RequestedByAnnotation]; !known {
		t.Annotations = maps.Clone(t.Annotations)
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[flightsv1.RequestedByAnnotation] = in.User.Username
	}
	t.Spec.Number = max(t.Spec.Number, 1)
}

func (in *example) offer() *booking.Offer {
	if in.Offer == nil {
		return nil
	}
	o := &booking.Offer{ID: in.Offer.ID, Price: in.Offer.Price, ExpiresAt: in.Offer.ExpiresAt}
	for _, s := range in.Offer.Segments {
		o.Segments = append(o.Segments, booking.Segment(s))
	}
	return o
}

// runTests decides on a policy's own examples, and tells each that doesn't come out as expected.
func (rev *revision) runTests(ctx context.Context, tests []flightsv1.PolicyTest, limit time.Duration) []Problem {
	var problems []Problem
	for i, test := range tests {
		if err := rev.runTest(ctx, test, limit); err != nil {
			problems = append(problems, Problem{Field: fmt.Sprintf("spec.tests[%d]", i), Message: fmt.Sprintf("%q: %v", test.Name, err)})
		}
	}
	return problems
}

func (rev *revision) runTest(ctx context.Context, test flightsv1.PolicyTest, limit time.Duration) error {
	r, err := readExample(test.Input.Raw)
	if err != nil {
		return err
	}
	shared, err := buildInput(r)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	var over atomic.Bool
	a, err := rev.evaluate(ctx, shared, &over, limit)
	if err != nil {
		return fmt.Errorf("it can't be evaluated: %w", err)
	}
	var patches []Patch
	if rev.program.mutate != nil {
		found, err := rev.patches(ctx, evaluation{shared: shared, over: &over, limit: limit})
		if err != nil {
			return fmt.Errorf("it can't be evaluated: %w", err)
		}
		if _, patches, err = ApplyPatches(r.Ticket, found); err != nil {
			return err
		}
	}
	return compareAll(test.Expect, said(a, patches))
}

// said is an answer as a test expects it.
func said(a answer, patches []Patch) map[string][]string {
	out := map[string][]string{string(RuleHold): a.holds}
	for _, d := range a.denials {
		out["deny"] = append(out["deny"], d.Message)
	}
	for _, w := range a.warnings {
		out["warn"] = append(out["warn"], w.Message)
	}
	for _, c := range a.claims {
		out[string(RuleQuota)] = append(out[string(RuleQuota)], claimText(c.Key, c.Amount, c.Limit))
	}
	for _, p := range patches {
		out[string(RuleMutate)] = append(out[string(RuleMutate)], p.Path+" = "+p.Value)
	}
	return out
}

func claimText(key string, amount, limit int64) string {
	return fmt.Sprintf("%s: %d of %d", key, amount, limit)
}

// compareAll compares all that is expected with all that was said. Order plays no part.
func compareAll(want flightsv1.PolicyExpectation, got map[string][]string) error {
	expected := map[string][]string{"deny": want.Deny, "warn": want.Warn, string(RuleHold): want.Hold}
	for _, c := range want.Quota {
		expected[string(RuleQuota)] = append(expected[string(RuleQuota)], claimText(c.Key, c.Amount, c.Limit))
	}
	for _, p := range want.Mutate {
		value, err := canonicalJSON(p.Value.Raw)
		if err != nil {
			return fmt.Errorf("expect.mutate: value of %s: %w", p.Path, err)
		}
		expected[string(RuleMutate)] = append(expected[string(RuleMutate)], p.Path+" = "+string(value))
	}
	var wrong []string
	for _, rule := range contractNames() {
		w, g := distinct(expected[rule]), distinct(got[rule])
		if !slices.Equal(w, g) {
			wrong = append(wrong, fmt.Sprintf("%s: expected %s, actual %s", rule, quoted(w), quoted(g)))
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func distinct(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

// quoted is a list of texts for people: none, or each in quotes.
func quoted(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(out, ", ")
}
