package crash

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking/simulator"
	"github.com/flight-operator/flight-operator/test/scene"
)

// A namespace with tickets in every state is deleted, and what they depend on goes before it, after it or comes back. It
// always ends, and nothing stays booked.
func TestANamespaceEndsInAnyOrder(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]func(*leaving){
		"with all there":                                     {(*leaving).deleteNamespace, (*leaving).release},
		"the key gone before it, and restored":               {(*leaving).takeKey, (*leaving).deleteNamespace, (*leaving).release, (*leaving).restoreKey},
		"the key gone after it, and restored":                {(*leaving).deleteNamespace, (*leaving).takeKey, (*leaving).release, (*leaving).restoreKey},
		"the provider deleted before it":                     {(*leaving).deleteProvider, (*leaving).deleteNamespace, (*leaving).release},
		"the provider deleted after it":                      {(*leaving).deleteNamespace, (*leaving).deleteProvider, (*leaving).release},
		"the policy gone before it":                          {(*leaving).deletePolicy, (*leaving).deleteNamespace, (*leaving).release},
		"the policy refusing everything before it":           {(*leaving).forbid, (*leaving).deleteNamespace, (*leaving).release},
		"the controller dead, and all gone before it starts": {(*leaving).die, (*leaving).deleteNamespace, (*leaving).deleteProvider, (*leaving).deletePolicy, (*leaving).release, (*leaving).live},
	} {
		t.Run(name, func(t *testing.T) {
			l := &leaving{story: newStory(t, simulator.Settings{})}
			l.fill()
			for _, step := range order {
				step(l)
			}
			scene.AwaitGone(l.Scene, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace}})
			l.Live(0)
		})
	}
}

// leaving is a story whose namespace is about to go.
type leaving struct{ *story }

// fill makes tickets in every state.
func (l *leaving) fill() {
	l.Helper()
	l.Cleanup(func() {
		policy := &flightsv1.FlightPolicy{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace}}
		if err := client.IgnoreNotFound(l.Client.Delete(context.Background(), policy)); err != nil {
			l.Error(err)
		}
	})
	l.Apply(l.policy(`deny contains "not to Paris" if { input.stage == "Booking"; input.ticket.spec.costCenter == "refused" }`))
	l.start()
	l.Apply(l.TicketManifest("booked"))
	l.Booked("booked", 2)
	l.Apply(l.TicketManifest("retained", "deletionPolicy: Retain"))
	l.Booked("retained", 2)
	l.retained()
	l.Apply(l.TicketManifest("suspended", "suspend: true"))
	l.Waiting("suspended", flightsv1.ReasonSuspended)
	l.Apply(l.TicketManifest("elsewhere", "providerRef: {name: none-"+l.Namespace+"}"))
	l.Waiting("elsewhere", flightsv1.ReasonProviderNotFound)
	l.Apply(l.TicketManifest("denied", "costCenter: refused"))
	l.Waiting("denied", flightsv1.ReasonPolicyRefused)
	l.Inject(simulator.Fault{Operation: simulator.OpBook, Effect: simulator.EffectRefuse, Times: 1})
	l.Apply(l.TicketManifest("refused"))
	l.Waiting("refused", flightsv1.ReasonBookingRefused)
	l.Apply(l.TicketManifest("changing"))
	l.Booked("changing", 2)
	l.hold(simulator.EffectDelayAfter, simulator.OpChange, simulator.OpBook)
	l.Apply(l.TicketManifest("changing", "number: 3"))
	l.held(simulator.OpChange)
	l.Apply(l.TicketManifest("booking"))
	l.held(simulator.OpBook)
}

// retained takes the booking out of the ledger that its ticket leaves behind on purpose, so that none is left to explain.
func (l *leaving) retained() {
	l.Helper()
	ticket := l.Ticket("retained")
	l.Read(ticket)
	if err := l.Simulator.CancelOutside(ticket.Status.Booking.ID); err != nil {
		l.Fatal(err)
	}
}

// policy is a manifest of a policy for this namespace alone.
func (l *leaving) policy(rule string) string {
	return "apiVersion: flights.com/v1\nkind: FlightPolicy\nmetadata: {name: " + l.Namespace + "}\nspec:\n" +
		"  match: {namespaces: [" + l.Namespace + "]}\n  rego: |\n    package test\n    " + rule + "\n"
}

func (l *leaving) deleteNamespace() {
	l.Helper()
	l.Do("", "delete", "namespace", l.Namespace, "--wait=false")
}

func (l *leaving) deleteProvider() {
	l.Helper()
	l.Do("", "delete", "bookingprovider", l.Provider.Name, "--wait=false")
}

func (l *leaving) deletePolicy() {
	l.Helper()
	l.Do("", "delete", "flightpolicy", l.Namespace, "--wait=false")
}

// forbid has the policy refuse every booking and change.
func (l *leaving) forbid() {
	l.Helper()
	l.Apply(l.policy(`deny contains "nobody flies"`))
}

// release lets the calls go on that hang since fill.
func (l *leaving) release() { l.settle() }

func (l *leaving) takeKey() {
	l.Helper()
	l.StoreToken("")
	l.ProviderIs(flightsv1.ReasonSecretKeyNotFound)
}

func (l *leaving) restoreKey() { l.StoreToken(l.Token()) }

func (l *leaving) die() { l.kill() }

func (l *leaving) live() { l.start() }
