package flightticket

import (
	"hash/maphash"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// ours begins the names of the annotations that speak to this controller. Others are other people's.
const ours = "flights.com/"

// annotationsOf are our annotations of an object, in one text.
func annotationsOf(o client.Object) string {
	var all []string
	for name, value := range o.GetAnnotations() {
		if strings.HasPrefix(name, ours) {
			all = append(all, name+"="+value)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// wish is what people want of a ticket and its provider. As long as it stays, a pause that grows goes on growing.
type wish struct {
	uid                  types.UID
	generation           int64
	deleting             bool
	annotations          string
	provider             flightsv1.ProviderIdentity
	providerGeneration   int64
	credentialsRotatedAt int64
}

// facts are what a pass rests on besides the time and what a provider answers. As long as they stay, a ticket that waits
// is not asked about before its time, whatever else is edited.
type facts struct {
	wish
	finalizer             bool
	found, leaving, ready bool
	connecting, loaded    bool
	trouble               string
	policies              int64
	operation, outcome    string
	booking, version      string
	observed              int64
	handled, adopted      string
}

func (p *pass) wish() wish {
	t, provider := p.ticket, p.o.Provider
	return wish{
		uid: t.UID, generation: t.Generation, deleting: !t.DeletionTimestamp.IsZero(), annotations: annotationsOf(t),
		provider: provider.Identity, providerGeneration: provider.Generation,
		credentialsRotatedAt: nanoseconds(provider.CredentialsRotatedAt),
	}
}

func nanoseconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixNano()
}

func (p *pass) facts() facts {
	s, provider := p.ticket.Status, p.o.Provider
	f := facts{
		wish: p.wish(), finalizer: controllerutil.ContainsFinalizer(p.ticket, flightsv1.BookingFinalizer),
		found: provider.Found, leaving: provider.Leaving, ready: provider.Ready, connecting: provider.Connecting,
		loaded: p.o.PoliciesLoaded, trouble: provider.Trouble, policies: p.r.policies.Load(),
		observed: s.ObservedGeneration, handled: s.LastHandledReconcileAt,
	}
	if s.Operation != nil {
		f.operation, f.outcome = s.Operation.ID, s.Operation.Outcome
	}
	if s.Booking != nil {
		f.booking, f.version, f.adopted = s.Booking.ID, s.Booking.Version, s.Booking.AdoptedBy
	}
	return f
}

// digest makes facts small enough to be remembered for every ticket.
func digest[T comparable](seed maphash.Seed, f T) uint64 { return maphash.Comparable(seed, f) }
