package story

import (
	"strings"
	"testing"

	"github.com/flight-operator/flight-operator/test/scene"
)

// What each program may do, asked as an auditor would.
func TestEachProgramMayDoWhatItNeedsAndNoMore(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	for _, c := range []struct {
		account, may string
		want         bool
	}{
		{"flight-webhook", "get flightpolicies", true},
		{"flight-webhook", "get secrets -n flight-operator-system", false},
		{"flight-webhook", "get secrets/flight-operator-credentials -n flight-operator-system", false},
		{"flight-webhook", "list secrets -A", false},
		{"flight-webhook", "get flighttickets -A", false},
		{"flight-webhook", "update flighttickets --subresource=status -A", false},
		{"flight-webhook", "patch flighttickets -A", false},
		{"flight-webhook", "update flightpolicies", false},
		{"flight-webhook", "get quotabuckets -A", true},
		{"flight-webhook", "create quotabuckets -A", true},
		{"flight-webhook", "update quotabuckets -A", true},
		{"flight-webhook", "list quotabuckets -A", false},
		{"flight-webhook", "patch quotabuckets -A", false},
		{"flight-webhook", "delete quotabuckets -A", false},
		{"flight-webhook", "patch validatingwebhookconfigurations", false},
		{"flight-webhook", "create pods -A", false},
		{"flight-webhook", "create serviceaccounts --subresource=token -A", false},

		{"flight-controller", "get secrets/flight-operator-credentials -n flight-operator-system", true},
		{"flight-controller", "update flighttickets --subresource=status -A", true},
		{"flight-controller", "get secrets -n flight-operator-system", false},
		{"flight-controller", "list secrets -n flight-operator-system", false},
		{"flight-controller", "get secrets/flight-operator-credentials -n default", false},
		{"flight-controller", "get secrets/flight-webhook-tls -n flight-operator-system", false},
		{"flight-controller", "list secrets -A", false},
		{"flight-controller", "update secrets/flight-operator-credentials -n flight-operator-system", false},
		{"flight-controller", "create flighttickets -A", false},
		{"flight-controller", "update flighttickets -A", false},
		{"flight-controller", "delete flighttickets -A", false},
		{"flight-controller", "create flightpolicies", false},
		{"flight-controller", "update flightpolicies", false},
		{"flight-controller", "patch flightpolicies", false},
		{"flight-controller", "update bookingproviders", false},
		{"flight-controller", "patch validatingwebhookconfigurations", false},
		{"flight-controller", "update mutatingwebhookconfigurations", false},
		{"flight-controller", "patch validatingadmissionpolicies", false},
		{"flight-controller", "create pods -A", false},
		{"flight-controller", "create rolebindings -n flight-operator-system", false},
		{"flight-controller", "escalate clusterroles", false},
		{"flight-controller", "impersonate users", false},
		{"flight-controller", "update leases/another -n flight-operator-system", false},
	} {
		t.Run(c.account+" "+c.may, func(t *testing.T) {
			s := s.In(t)
			args := append([]string{"auth", "can-i"}, strings.Fields(c.may)...)
			a := s.Run("", append(args, "--as=system:serviceaccount:flight-operator-system:"+c.account)...)
			want := map[bool]string{true: "yes", false: "no"}[c.want]
			if got := strings.TrimSpace(a.Out); got != want && !strings.HasPrefix(got, want+" ") {
				t.Errorf("kubectl says %q (%s), want %s", got, a.Err, want)
			}
		})
	}
}

// People get their rights on tickets with the roles that every cluster has.
func TestTheBuiltInRolesCoverTickets(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	for _, role := range []string{"view", "edit", "admin"} {
		s.Do("", "create", "rolebinding", role, "--clusterrole="+role, "--user="+role+"er")
	}
	reader := "reads-policies-" + s.Namespace
	s.Do("", "create", "clusterrolebinding", reader, "--clusterrole=flights-policy-view", "--user="+reader)
	t.Cleanup(func() {
		if out, err := house.kubectl("delete", "clusterrolebinding", reader); err != nil {
			t.Errorf("clean up: %v: %s", err, out)
		}
	})
	for _, c := range []struct {
		user, may string
		want      bool
	}{
		{"viewer", "list flighttickets", true},
		{"viewer", "create flighttickets", false},
		{"viewer", "list quotabuckets", true},
		{"viewer", "list quotabuckets -n flight-operator-system", false},
		{"viewer", "list flightpolicies", false},
		{reader, "list flightpolicies", true},
		{reader, "create flightpolicies", false},
		{reader, "list quotabuckets", false},
		{"editer", "create flighttickets", true},
		{"editer", "delete flighttickets", true},
		{"editer", "update flighttickets --subresource=status", false},
		{"editer", "create flightpolicies", false},
		{"adminer", "patch flighttickets", true},
		{"adminer", "update flighttickets --subresource=status", false},
		{"adminer", "update quotabuckets", false},
		{"adminer", "create bookingproviders", false},
	} {
		t.Run(c.user+" "+c.may, func(t *testing.T) {
			s := s.In(t)
			a := s.Run("", append(append([]string{"auth", "can-i"}, strings.Fields(c.may)...), "--as="+c.user)...)
			if got := strings.HasPrefix(a.Out, "yes"); got != c.want {
				t.Errorf("kubectl says %q (%s)", a.Out, a.Err)
			}
		})
	}
}
