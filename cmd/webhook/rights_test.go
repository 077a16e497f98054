package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewer plays the API server's answers to access reviews.
func reviewer(t *testing.T, answer http.HandlerFunc) rights {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	r, err := newRights(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reviewed answers a review.
func reviewed(w http.ResponseWriter, r *http.Request, allowed bool) authorizationv1.SubjectAccessReviewSpec {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return review.Spec
	}
	review.Status.Allowed = allowed
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	return review.Spec
}

func TestTheAPIServerIsAskedAboutTheWholeUserAndOneTicket(t *testing.T) {
	var got authorizationv1.SubjectAccessReviewSpec
	r := reviewer(t, func(w http.ResponseWriter, req *http.Request) { got = reviewed(w, req, true) })
	user := authenticationv1.UserInfo{
		Username: "asha", UID: "u-1", Groups: []string{"travellers"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	if may, err := r.May(t.Context(), user, "retain", "team-a", "trip"); !may || err != nil {
		t.Fatalf("may = %v, %v", may, err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "asha", UID: "u-1", Groups: []string{"travellers"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "team-a", Verb: "retain", Group: "flights.com", Version: "v1", Resource: "flighttickets", Name: "trip",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the review (-want +got):\n%s", diff)
	}
}

func TestAnAnswerIsKeptForItsUserVerbAndTicket(t *testing.T) {
	var calls atomic.Int32
	r := reviewer(t, func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		reviewed(w, req, true)
	})
	for _, c := range []struct {
		user, verb, ticket string
		want               int32
	}{
		{"asha", "adopt", "trip", 1}, {"asha", "adopt", "trip", 1}, {"ben", "adopt", "trip", 2}, {"asha", "retain", "trip", 3}, {"asha", "adopt", "tour", 4},
	} {
		if _, err := r.May(t.Context(), authenticationv1.UserInfo{Username: c.user}, c.verb, "team-a", c.ticket); err != nil || calls.Load() != c.want {
			t.Errorf("%+v: %d calls, %v", c, calls.Load(), err)
		}
	}
}

func TestAPassingFaultOfTheAPIServerIsTriedAgain(t *testing.T) {
	var calls atomic.Int32
	r := reviewer(t, func(w http.ResponseWriter, req *http.Request) {
		if calls.Add(1) < 3 {
			http.Error(w, "later", http.StatusInternalServerError)
			return
		}
		reviewed(w, req, true)
	})
	if may, err := r.May(t.Context(), authenticationv1.UserInfo{Username: "asha"}, "adopt", "team-a", "trip"); !may || err != nil {
		t.Errorf("after %d calls: %v, %v", calls.Load(), may, err)
	}
}

func TestWhoCanNotBeAskedAboutMayNothing(t *testing.T) {
	gone := make(chan struct{})
	for name, answer := range map[string]http.HandlerFunc{
		"no": func(w http.ResponseWriter, req *http.Request) { reviewed(w, req, false) },
		"an API server that always fails": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		},
		"a webhook that may not ask":                func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"an API server that never answers":          func(_ http.ResponseWriter, _ *http.Request) { <-gone },
		"an API server that breaks off":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an answer that is no review":               func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>yes</html>")) },
		"an answer that allows and denies together": contradicting,
	} {
		t.Run(name, func(t *testing.T) {
			r := reviewer(t, answer)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // what a review has
			defer cancel()
			if name == "an API server that never answers" {
				defer close(gone)
			}
			may, err := r.May(ctx, authenticationv1.UserInfo{Username: "asha"}, "adopt", "team-a", "trip")
			if may || (err == nil) != (name == "no") {
				t.Errorf("may = %v, %v", may, err)
			}
		})
	}
}

// contradicting says yes and no at once.
func contradicting(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true,"denied":true}}`))
}
