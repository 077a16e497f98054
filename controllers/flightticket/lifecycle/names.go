package lifecycle

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Names are what a ticket's bookings are called at a provider.
type Names struct {
	// Installation outlives the cluster and is the same after a restore.
	Installation string
	// Namespace and Name are the ticket's; UID is this incarnation of it.
	Namespace, Name string
	UID             types.UID
}

// Owner is the name that all bookings of a ticket carry, however often the ticket is re-created.
func (n Names) Owner() string {
	return n.Installation + "/" + n.Namespace + "/" + n.Name
}

// Neighbour returns the name of the ticket that an owner's name speaks of, if it is one of the same installation and
// namespace.
func (n Names) Neighbour(owner string) (name string, ok bool) {
	name, ok = strings.CutPrefix(owner, n.Installation+"/"+n.Namespace+"/")
	return name, ok && name != "" && !strings.Contains(name, "/")
}

// command is what a person types to tell the ticket something.
func (n Names) command(verb, rest string) string {
	return strings.TrimSpace("kubectl flights " + verb + " " + n.Name + " -n " + n.Namespace + " " + rest)
}

// ClientReference is the name of one attempt of this incarnation of a ticket.
func (n Names) ClientReference(attempt int64) string {
	return n.prefix() + strconv.FormatInt(attempt, 10)
}

// Attempt returns which attempt of this incarnation a client reference names; false if it is none of ours.
func (n Names) Attempt(clientReference string) (int64, bool) {
	rest, ours := strings.CutPrefix(clientReference, n.prefix())
	if !ours {
		return 0, false
	}
	attempt, err := strconv.ParseInt(rest, 10, 64)
	if err != nil || attempt < 1 || attempt > maxAttempt || strconv.FormatInt(attempt, 10) != rest {
		return 0, false
	}
	return attempt, true
}

// maxAttempt is far above what any ticket needs, and far below what can't be counted on from: a provider that makes
// references up must not bring the count to its end.
const maxAttempt = 1 << 31

func (n Names) prefix() string {
	return n.Installation + "/" + string(n.UID) + "/"
}
