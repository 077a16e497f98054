package stress

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// otherRefused is what somebody reads whom the other webhook refuses.
	otherRefused = "refused by the other webhook"
	// refusedName is the annotation by which a ticket asks for that refusal.
	refusedName = "test/refuse"
	// afterOurs is how long the other webhook thinks, so that ours has answered before.
	afterOurs = 20 * time.Millisecond
)

// addRefuser puts a second validating webhook into force until the test ends: it refuses tickets that ask for it, and in
// namespaces of the race one request in three.
func addRefuser(t *testing.T, admin client.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	configuration := refuserConfiguration(server)
	if err := admin.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), configuration); err != nil {
			t.Error(err)
		}
	})
}

func refuserConfiguration(server *httptest.Server) *registrationv1.ValidatingWebhookConfiguration {
	address := server.URL + "/"
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "stress-refuser"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "refuser.stress.test",
			ClientConfig: registrationv1.WebhookClientConfig{
				URL: &address, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create, registrationv1.Update},
				Rule: registrationv1.Rule{
					APIGroups: []string{"flights.com"}, APIVersions: []string{"v1"}, Resources: []string{"flighttickets"},
				},
			}},
			// The operator's own writes pass: they reserve nothing.
			MatchConditions: []registrationv1.MatchCondition{{
				Name: "people", Expression: "!request.userInfo.username.startsWith('system:serviceaccount:')",
			}},
			SideEffects: ptr.To(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: ptr.To(registrationv1.Ignore), TimeoutSeconds: ptr.To[int32](5),
		}},
	}
}

// refuse answers one review.
func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var ticket metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &ticket); err != nil {
		http.Error(w, "no object", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(afterOurs): // validating webhooks are asked side by side
	case <-r.Context().Done():
		return
	}
	_, asked := ticket.Annotations[refusedName]
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if asked || ticket.Labels[raceLabel] != "" && third(string(review.Request.UID)) {
		review.Response.Allowed, review.Response.Result = false, &metav1.Status{Message: otherRefused, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server may be gone
}

// third picks one in three.
func third(text string) bool {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text)) // a hash never fails
	return hash.Sum32()%3 == 0
}
