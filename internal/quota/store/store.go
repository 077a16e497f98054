package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// Reader reads from the API server itself, never from a cache: a refusal, and that a bucket is missing, are believed only
// on what it says.
type Reader interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// Writer writes to the API server.
type Writer interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
	Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error
}

// Result is how a write of a bucket ended.
type Result string

// The results of a write.
const (
	// Written is a write that the API server has confirmed.
	Written Result = "written"
	// Conflict is a write that another one was ahead of. It is tried again.
	Conflict Result = "conflict"
	// Failed is a write that was refused, or whose answer was lost.
	Failed Result = "failed"
)

// Metrics is told of each write. Its methods are called by several goroutines.
type Metrics interface {
	// Wrote tells how many reservations and releases one write carried, how it ended and how long it took.
	Wrote(result Result, batch int, took time.Duration)
}

// Options make a Store.
type Options struct {
	// Reader reads live. Writer writes under resourceVersions.
	Reader Reader
	Writer Writer
	// OperatorNamespace is where the buckets of scope Cluster are.
	OperatorNamespace string
	// Metrics is told of each write; nil: nobody.
	Metrics Metrics
}

const (
	// requestTime bounds requests whose context has no earlier deadline. It is the longest that an API server waits for a
	// webhook.
	requestTime = 30 * time.Second
	// takeBackTime bounds what is taken back after a request has ended.
	takeBackTime = 10 * time.Second
)

// Store reserves quota for admission reviews. It is safe for concurrent use. One process has one.
type Store struct {
	options Options

	mu      sync.Mutex
	lanes   map[types.NamespacedName]*lane
	arrived uint64 // counts requests and reads, so that each read is known to be before or after a request
	closed  bool
	closing chan struct{} // closed with it
	workers sync.WaitGroup
}

// New returns a store; Close it.
func New(o Options) (*Store, error) {
	switch {
	case o.Reader == nil || o.Writer == nil:
		return nil, errors.New("make a quota store: a live reader and a writer are needed")
	case o.OperatorNamespace == "":
		return nil, errors.New("make a quota store: the operator's namespace is needed, for buckets of scope Cluster")
	}
	if o.Metrics == nil {
		o.Metrics = untold{}
	}
	return &Store{options: o, lanes: map[types.NamespacedName]*lane{}, closing: make(chan struct{})}, nil
}

// untold is told and says nothing.
type untold struct{}

func (untold) Wrote(Result, int, time.Duration) {}

// Close lets what waits be written or time out, and returns when no goroutine is left. Call it when no more requests are
// served: those that come later all the same are refused as busy, and what they held goes by the controller's ageing.
func (s *Store) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.workers.Wait()
}

// Hold is what a review holds, in the ledger, by entries of its own.
type Hold struct {
	// Notices are warnings for the user, ordered by policy and key.
	Notices []quota.Notice

	nonce  string
	places []types.NamespacedName
}

// Reserve holds all that a review claims above what its stored ticket does, or nothing. It is to be called last, after
// every other rule of every policy has passed, once a run of the handler, and not for a dry run (rule 6).
//
// The errors, all of which refuse the ticket: *quota.RefusedError, final, with every bucket that has no room;
// *quota.StaleError, load the policies and review again; *CountingError and *quota.BusyError, a repeat may be admitted;
// *quota.ClaimError, the policy is wrong; any other, the API server refuses our writes. What was written for the review
// is then taken back, in the background; what that misses goes by the controller's ageing.
func (s *Store) Reserve(ctx context.Context, r quota.Review) (*Hold, error) {
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	reservations, err := r.Reservations(nonce)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime) // an earlier deadline stands
	defer cancel()
	h := &Hold{nonce: nonce}
	for i, reservation := range reservations {
		a := s.reserve(ctx, reservation)
		if a.err == nil || a.uncertain {
			h.places = append(h.places, s.place(reservation))
		}
		if a.err != nil {
			s.Release(h)
			return nil, s.withOthers(ctx, a.err, reservations[i+1:])
		}
		if a.notice != nil {
			h.Notices = append(h.Notices, *a.notice)
		}
	}
	slices.SortFunc(h.Notices, quota.CompareNotices)
	return h, nil
}

// Release takes back what a review holds, and nothing of others. It doesn't wait.
func (s *Store) Release(h *Hold) {
	for _, place := range h.places {
		s.takeBack(place, h.nonce)
	}
}

// Check says what Reserve would, and writes nothing: for dry runs, and for policies that only warn.
func (s *Store) Check(ctx context.Context, r quota.Review) ([]quota.Notice, error) {
	reservations, err := r.Reservations("")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var notices []quota.Notice
	for i, reservation := range reservations {
		notice, err := s.check(ctx, reservation)
		if err != nil {
			return nil, s.withOthers(ctx, err, reservations[i+1:])
		}
		if notice != nil {
			notices = append(notices, *notice)
		}
	}
	slices.SortFunc(notices, quota.CompareNotices)
	return notices, nil
}

// withOthers adds to a refusal the refusals of the buckets that were not asked yet, so that the user learns of all at
// once. Other errors stay as they are.
func (s *Store) withOthers(ctx context.Context, err error, rest []quota.Reservation) error {
	var refused *quota.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	all := slices.Clone(refused.Refusals)
	for _, reservation := range rest {
		var also *quota.RefusedError
		if _, err := s.check(ctx, reservation); errors.As(err, &also) {
			all = append(all, also.Refusals...)
		}
	}
	return quota.NewRefusedError(all...)
}

// check reserves on a copy.
func (s *Store) check(ctx context.Context, r quota.Reservation) (*quota.Notice, error) {
	place := s.place(r)
	bucket, err := s.read(ctx, place)
	if err != nil {
		return nil, busy(r, "the API server can't be asked", err)
	}
	page := quota.Blank(r.Claim, place)
	if bucket != nil {
		page = quota.Open(bucket)
	}
	if !page.CountedBy(r.PolicyGeneration) {
		if err := s.believable(ctx, r.Claim, bucket); err != nil {
			return nil, err
		}
	}
	if err := page.Reserve(r); err != nil {
		return nil, err
	}
	return noticeOf(page, r), nil
}

func noticeOf(page *quota.Page, r quota.Reservation) *quota.Notice {
	if notice, warn := page.Notice(r.Claim); warn {
		return &notice
	}
	return nil
}

// place is where a reservation's bucket is.
func (s *Store) place(r quota.Reservation) types.NamespacedName {
	return r.Place(r.Ticket.Namespace, s.options.OperatorNamespace)
}

// newNonce makes the nonce of one run of a handler.
func newNonce() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("make a nonce: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}

func busy(r quota.Reservation, reason string, cause error) error {
	return &quota.BusyError{Policy: r.Policy, Key: r.Key, Reason: reason, Cause: cause}
}
