package quotabucket

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/internal/quota"
)

// The cache doesn't show a ticket that is stored. Its entry must wait for the count, however old it is.
func TestAnAgedEntryStaysWhileItsTicketIsStored(t *testing.T) {
	s := newScene(t)
	behind, proxy := s.proxied()
	c := s.start(behind)
	p := s.policy("aged", centres(1, 10, ""))
	s.counted(p.Name)
	release := proxy.HoldWatches()
	defer release()
	stored := s.ticket("stored", "4711", 2)
	lost := types.NamespacedName{Namespace: s.namespace, Name: "lost"}
	for _, err := range []error{
		s.reserve(p, client.ObjectKeyFromObject(stored), stored.UID, 1, "4711", 2, 10),
		s.reserve(p, lost, "uid-lost", 1, "4711", 3, 10),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b := s.bucket(p, quota.Cluster, "4711")
	if err := c.release(t.Context(), aged{b, b.Entries}); err != nil {
		t.Fatal(err)
	}
	if left := s.bucket(p, quota.Cluster, "4711").Entries; len(left) != 1 || left[0].UID != stored.UID {
		t.Errorf("the entries that are left: %v", left)
	}
	release()
	s.says(p, "4711", "used 2, retained 0, 0 entries, by 1")
}
