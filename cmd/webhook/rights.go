package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/webhooks"
)

// How long an answer about a right is kept. A right that was taken away lasts ten seconds more, as with the API server's own
// delegated checks; one that was just given must not be refused to somebody who follows the refusal's advice.
const (
	allowedFor = 10 * time.Second
	deniedFor  = time.Second
)

// rights asks the API server what users may do, and keeps its answers for a moment.
type rights struct{ authorizer authorizer.Authorizer }

var _ webhooks.Rights = rights{}

// newRights makes the authorizer. Its tries end well inside the deadline of a review.
func newRights(config *rest.Config, http *http.Client) (rights, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return rights{}, fmt.Errorf("make a client of access reviews: %w", err)
	}
	delegated := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: reviews,
		AllowCacheTTL:             allowedFor,
		DenyCacheTTL:              deniedFor,
		WebhookRetryBackoff:       &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4},
	}
	delegating, err := delegated.New()
	if err != nil {
		return rights{}, fmt.Errorf("make the authorizer: %w", err)
	}
	return rights{delegating}, nil
}

// May asks whether a user has a verb on a ticket. No opinion is a no.
func (r rights) May(ctx context.Context, who authenticationv1.UserInfo, verb, namespace, name string) (bool, error) {
	extra := make(map[string][]string, len(who.Extra))
	for key, values := range who.Extra {
		extra[key] = values
	}
	decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra},
		Verb:            verb,
		Namespace:       namespace,
		APIGroup:        flightsv1.GroupVersion.Group,
		APIVersion:      flightsv1.GroupVersion.Version,
		Resource:        "flighttickets",
		Name:            name,
		ResourceRequest: true,
	})
	if err != nil {
		return false, fmt.Errorf("access review: %w", err)
	}
	return decision == authorizer.DecisionAllow, nil
}
