package bookingprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/internal/booking"
	"github.com/flight-operator/flight-operator/internal/booking/guard"
	"github.com/flight-operator/flight-operator/internal/booking/rest"
)

// finding is what one look at a provider brought: one of the reasons, and a sentence that says what to do.
type finding struct {
	reason  string
	message string
	// limited says that our own limiter let no call through: nothing was found out.
	limited bool
}

func (f finding) good() bool { return f.reason == flightsv1.ReasonProviderReady }

// token reads the credential of a provider. The finding is that of a Secret that can't be used.
func (r *Reconciler) token(ctx context.Context, p *flightsv1.BookingProvider) (string, finding, error) {
	ref := p.Spec.CredentialsSecretRef
	where := r.Namespace + "/" + ref.Name
	secret, err := r.Secrets.read(ctx, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "", finding{reason: flightsv1.ReasonSecretNotFound, message: fmt.Sprintf(
			"Secret %s does not exist: create it with the booking API's token under the key %s", where, ref.Key)}, nil
	case apierrors.IsForbidden(err):
		return "", finding{reason: flightsv1.ReasonSecretForbidden, message: forbidden(r.Namespace, ref.Name)}, nil
	case err != nil:
		return "", finding{}, fmt.Errorf("read Secret %s: %w", where, err)
	}
	token := strings.TrimSpace(string(secret.Data[ref.Key]))
	if token == "" {
		return "", finding{reason: flightsv1.ReasonSecretKeyNotFound, message: fmt.Sprintf(
			"Secret %s has nothing under the key %s: store the booking API's token there", where, ref.Key)}, nil
	}
	if err := rest.CheckToken(token); err != nil {
		return "", finding{reason: flightsv1.ReasonSecretInvalid, message: fmt.Sprintf(
			"Secret %s, key %s: %s", where, ref.Key, err)}, nil
	}
	return token, finding{}, nil
}

// forbidden prints the Role that lets the controller read another Secret than its own.
func forbidden(namespace, name string) string {
	return fmt.Sprintf(`the controller may not read Secret %[1]s/%[2]s; put the token into Secret flight-operator-credentials, or apply:
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: flight-controller-%[2]s, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [%[2]s], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: flight-controller-%[2]s, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: flight-controller-%[2]s}
subjects:
- {kind: ServiceAccount, name: flight-controller, namespace: %[1]s}`, namespace, name)
}

// connect returns the connection for a provider and token: the one that is held if nothing changed, else a new one.
func (r *Reconciler) connect(p *flightsv1.BookingProvider, token string) (connection, finding) {
	held, ok := r.Registry.get(p.Name)
	same := ok && held.uid == p.UID
	if same && held.generation == p.Generation && held.token == token {
		return held, finding{}
	}
	api, err := rest.New(rest.Options{
		Endpoint: p.Spec.Endpoint, CABundle: p.Spec.CABundle, Token: token, Timeout: p.Spec.Timeout.Duration,
		AllowPrivate: p.Spec.AllowPrivate, SendKeys: p.Spec.Capabilities.IdempotencyKeyTTL.Duration > 0,
		UserAgent: r.UserAgent,
	})
	if err != nil {
		return connection{}, finding{reason: flightsv1.ReasonUnreachable, message: err.Error()}
	}
	c := connection{
		uid: p.UID, generation: p.Generation, token: token,
		guard: guard.New(api, guard.Options{
			Rate: float64(p.Spec.RateLimit.RequestsPerMinute) / 60, Burst: int(p.Spec.RateLimit.Burst), OnWait: r.Metrics.waited,
		}),
		rotated: p.Status.CredentialsRotatedAt,
	}
	if same && held.token == token {
		c.rotated = held.rotated
	} else if same || c.rotated == nil {
		now := metav1.NewTime(r.Clock().UTC().Truncate(1e9))
		c.rotated = &now
	}
	r.Registry.put(p.Name, c)
	return c, finding{}
}

// ask asks a provider whose account the credential belongs to.
func (r *Reconciler) ask(ctx context.Context, p *flightsv1.BookingProvider, c connection) (connection, finding) {
	account, err := c.guard.Account(ctx)
	if err == nil {
		c.accepted, c.usable, c.answered, c.account = true, true, true, account.ID
		return c, finding{
			reason: flightsv1.ReasonProviderReady, message: "books with account " + account.ID,
		}
	}
	var failure *booking.CallError
	if !errors.As(err, &failure) {
		failure = &booking.CallError{Class: booking.ClassUnavailable, Code: booking.CodeConnectionFailed}
	}
	f := explain(p, failure)
	if f.limited {
		return c, f
	}
	c.usable, c.answered = false, f.reason == flightsv1.ReasonCredentialsRefused
	if c.answered {
		c.accepted = false
	}
	return c, f
}

func explain(p *flightsv1.BookingProvider, e *booking.CallError) finding {
	ref := p.Spec.CredentialsSecretRef
	what := e.Code
	if e.Detail != "" {
		what = fmt.Sprintf("%s (%s)", e.Detail, e.Code)
	}
	switch {
	case e.Class == booking.ClassUnavailable && e.Code == booking.CodeRateLimited, e.Class == booking.ClassThrottled,
		e.Code == booking.CodeProviderPaused, e.Code == booking.CodeBreakerOpen, e.Code == booking.CodeCancelled:
		return finding{limited: true, message: what}
	case e.Class == booking.ClassCredential:
		return finding{reason: flightsv1.ReasonCredentialsRefused, message: fmt.Sprintf(
			"the booking API refuses the token in Secret %s, key %s: put a valid one there, it is taken up at once: %s",
			ref.Name, ref.Key, what)}
	case e.Code == booking.CodeEndpointForbidden:
		return finding{reason: flightsv1.ReasonEndpointForbidden, message: fmt.Sprintf(
			"endpoint %s leads to an address that is not allowed: use a public one, or set spec.allowPrivate: %s",
			p.Spec.Endpoint, what)}
	default:
		return finding{reason: flightsv1.ReasonUnreachable, message: fmt.Sprintf(
			"the booking API at %s does not answer as it should: check the endpoint, its certificate (spec.caBundle) and "+
				"network policies: %s", p.Spec.Endpoint, what)}
	}
}
