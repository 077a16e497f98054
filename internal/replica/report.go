// Package replica is how the replicas of the webhook tell which policies they serve: each keeps a Lease of its own with
// a report in an annotation, and whoever wants to know reads the live ones. One writer a Lease, so no two contend, and
// it works where there are no pods.
//
// It knows Leases and generations. It doesn't know what a policy means, nor who reads the reports.
package replica

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

// What a replica's Lease looks like.
const (
	// LeasePrefix and the replica's name make the Lease's name.
	LeasePrefix = "flight-webhook-"
	// Label marks the Leases of replicas; its value is LabelValue.
	Label = "flights.com/replica-of"
	// LabelValue is the Deployment that the replicas belong to.
	LabelValue = "flight-webhook"
	// PoliciesAnnotation holds the report, as Encode writes it.
	PoliciesAnnotation = "flights.com/policies"
)

// The bounds of a report. All annotations of an object together may have 256 KiB.
const (
	maxReport    = 240 << 10
	maxErrors    = 64 << 10 // of all policies together
	maxError     = 1 << 10  // of one policy
	digestLength = 12
	keyLength    = 13 // 48 random bits and a dash
)

// Policy is what a replica holds of one policy.
type Policy struct {
	// Generation is the generation that serves; 0 when none does.
	Generation int64 `json:"g,omitempty"`
	// Digest is the beginning of the digest of what serves: replicas with equal digests decide alike.
	Digest string `json:"d,omitempty"`
	// FailedGeneration is the newest generation when it could not be compiled; Error then says why.
	FailedGeneration int64 `json:"f,omitempty"`
	// Error may be cut, or empty where there was no room for it.
	Error string `json:"e,omitempty"`
}

// Key stands for a policy in a report: the beginning of its UID. Not its name, since a policy that is deleted and
// created again starts anew at generation 1; and not the whole UID, so that ten thousand policies fit.
type Key string

// KeyOf returns the key of the policy with a UID.
func KeyOf(uid types.UID) Key { return Key(uid[:min(len(uid), keyLength)]) }

// Report is what a replica holds of all policies.
type Report map[Key]Policy

// Encode writes a report as compact JSON, equal reports alike. Digests and long error texts are cut, and left out where
// there are too many. It fails when there are more policies than an annotation can tell of.
func Encode(r Report) (string, error) {
	capped := make(Report, len(r))
	room := maxErrors
	for _, key := range slices.Sorted(maps.Keys(r)) {
		p := r[key]
		p.Digest = p.Digest[:min(len(p.Digest), digestLength)]
		p.Error = capText(p.Error, maxError)
		if room -= len(strconv.Quote(p.Error)); room < 0 {
			p.Error = ""
		}
		capped[key] = p
	}
	text, err := json.Marshal(capped)
	if err == nil && len(text) > maxReport {
		text, err = json.Marshal(withoutTexts(capped))
	}
	if err != nil {
		return "", fmt.Errorf("encode the report of %d policies: %w", len(r), err)
	}
	if len(text) > maxReport {
		return "", fmt.Errorf("the report of %d policies needs %d bytes and may have %d: delete policies, or merge some into one", len(r), len(text), maxReport)
	}
	return string(text), nil
}

// withoutTexts keeps the generations alone.
func withoutTexts(r Report) Report {
	bare := make(Report, len(r))
	for key, p := range r {
		bare[key] = Policy{Generation: p.Generation, FailedGeneration: p.FailedGeneration}
	}
	return bare
}

// Decode reads what Encode wrote.
func Decode(text string) (Report, error) {
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, fmt.Errorf("decode a replica's report: %w", err)
	}
	return r, nil
}

// Replica is one live replica of the webhook.
type Replica struct {
	Name string
	// Expires is when the replica counts as gone unless it renews its Lease.
	Expires time.Time
	// Report is what it holds; empty when its Lease has none that can be read, so that it counts as serving nothing.
	Report Report
}

// capText cuts a text at a number of bytes, between two characters.
func capText(text string, limit int) string {
	const mark = " ..."
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
