package controlplane_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/flight-operator/flight-operator/api/v1"
)

func quotaBucket(namespace string) *v1.QuotaBucket {
	return &v1.QuotaBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "bucket-", Finalizers: []string{v1.QuotaFinalizer}},
		Policy:     "seats-per-month", PolicyUID: "4a3c", PolicyGeneration: 1, Scope: v1.QuotaScopeNamespace, Key: "2027-03", Limit: 10,
		Reserved: 2, Available: 8,
		Entries: []v1.QuotaEntry{{
			Nonce: strings.Repeat("0a", 16), Namespace: namespace, Name: "trip", UID: "9b1d", Generation: 1, PolicyGeneration: 1, Amount: 2,
		}},
	}
}

// bindBuckets gives an account all rights on buckets, as a wildcard role does.
func bindBuckets(t *testing.T, admin client.Client, subjects ...rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "buckets-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"flights.com"}, Resources: []string{"quotabuckets"}, Verbs: []string{"*"}}},
	}
	if err := admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "buckets-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   subjects,
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(admin.Delete(context.Background(), binding), admin.Delete(context.Background(), role)); err != nil {
			t.Error(err)
		}
	})
}

func account(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: name}
}

func TestOnlyOurAccountsWriteQuotaBuckets(t *testing.T) {
	admin := newClient(t, plane.Config)
	namespace := newNamespace(t, admin)
	mallory := newClient(t, tenant(t, admin, namespace))
	applyGuard(t, "guard/quota.yaml")
	bindBuckets(t, admin, account("flight-webhook"), account("flight-controller"))
	webhook, controller := as(t, "flight-webhook"), as(t, "flight-controller")
	const text = "quota buckets are written by the flight operator alone"
	refused(t, text, func(ctx context.Context) error { return mallory.Create(ctx, quotaBucket(namespace), client.DryRunAll) })
	refused(t, text, func(ctx context.Context) error { return admin.Create(ctx, quotaBucket(namespace), client.DryRunAll) })

	bucket := quotaBucket(namespace)
	eventually(t, "the webhook's rights", func(ctx context.Context) (bool, error) {
		err := webhook.Create(ctx, bucket)
		return err == nil, ignoreForbidden(err)
	})
	refused(t, text, patched(mallory, bucket, `{"used":0,"limit":1000}`))
	refused(t, text, patched(mallory, bucket, `{"metadata":{"finalizers":null}}`))
	for what, try := range map[string]struct {
		by    client.Client
		patch string
		text  string
	}{
		"the webhook adds an entry's worth":     {webhook, `{"reserved":3,"available":7,"limit":11,"policyGeneration":2}`, ""},
		"the webhook counts":                    {webhook, `{"used":1}`, "must not change what is counted"},
		"the webhook retains":                   {webhook, `{"retained":1}`, "must not change what is counted"},
		"the webhook sets a counted revision":   {webhook, `{"countedRevision":"7"}`, "must not change what is counted"},
		"the webhook sets a counted generation": {webhook, `{"countedGeneration":1}`, "must not change what is counted"},
		"the webhook adds a departure":          {webhook, `{"departures":[{"uid":"c"}]}`, "must not change what is counted"},
		"the webhook lets the bucket go":        {webhook, `{"metadata":{"finalizers":null}}`, "must not change what keeps a quota bucket"},
		"the webhook keeps it for good":         {webhook, `{"metadata":{"finalizers":["flights.com/quota","example.com/mine"]}}`, "must not change what keeps a quota bucket"},
		"the webhook gives it an owner":         {webhook, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, "must not change what keeps a quota bucket"},
		"the webhook labels it":                 {webhook, `{"metadata":{"labels":{"a":"b"}}}`, "labels and annotations"},
		"the webhook annotates it":              {webhook, `{"metadata":{"annotations":{"a":"b"}}}`, "labels and annotations"},
		"the controller counts":                 {controller, `{"used":1,"retained":1,"countedRevision":"7","countedGeneration":1,"entries":null}`, ""},
		"the controller lets the bucket go":     {controller, `{"metadata":{"finalizers":null}}`, ""},
		"another key":                           {controller, `{"key":"2027-04"}`, "another key is another bucket"},
		"an entry that is an object":            {controller, `{"entries":[{"nonce":"x","namespace":"a","name":"b"}]}`, "entries[0]"},
		"an entry with a nonce that is none":    {controller, `{"entries":["a/b uid=c generation=1 policyGeneration=1 amount=1 settled=0 nonce=x"]}`, "entries[0]"},
		"an amount beyond 2^53":                 {controller, `{"used":9007199254740994}`, "less than or equal to 9007199254740992"},
		"an amount below 0":                     {controller, `{"used":-1}`, "greater than or equal to 0"},
	} {
		if err := patched(try.by, bucket, try.patch)(t.Context()); (err == nil) != (try.text == "") || err != nil && !strings.Contains(err.Error(), try.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, edit := range map[string]func(*v1.QuotaBucket){
		"with something used":         func(b *v1.QuotaBucket) { b.Used = 1 },
		"with something retained":     func(b *v1.QuotaBucket) { b.Retained = 1 },
		"that is counted":             func(b *v1.QuotaBucket) { b.CountedRevision = "7" },
		"counted by a generation":     func(b *v1.QuotaBucket) { b.CountedGeneration = 1 },
		"with a departure":            func(b *v1.QuotaBucket) { b.Departures = []v1.QuotaDeparture{{UID: "c"}} },
		"that nothing keeps":          func(b *v1.QuotaBucket) { b.Finalizers = nil },
		"that somebody else may keep": func(b *v1.QuotaBucket) { b.Finalizers = append(b.Finalizers, "example.com/mine") },
	} {
		made := quotaBucket(namespace)
		edit(made)
		if err := webhook.Create(t.Context(), made, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "the flight-webhook must not change") {
			t.Errorf("the webhook makes a bucket %s: %v", what, err)
		}
	}
	letGo(t, controller, bucket)
}

// letGo deletes a bucket as the controller does.
func letGo(t *testing.T, c client.Client, bucket *v1.QuotaBucket) {
	t.Helper()
	if err := c.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), bucket, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

func TestAQuotaBucketIsReadableAndReadyForTools(t *testing.T) {
	admin := newClient(t, plane.Config)
	bucket := quotaBucket(newNamespace(t, admin))
	// The guard of an earlier test is in force for a moment after it is deleted.
	eventually(t, "a bucket", func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, bucket)
		return err == nil, ignoreForbidden(err)
	})
	defer letGo(t, admin, bucket)
	out, err := plane.Kubectl(t.Context(), "get", "qb", "-n", bucket.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME POLICY KEY LIMIT USED RESERVED AVAILABLE RESETS" {
		t.Errorf("the columns are %s", got)
	}
	if got := strings.Join(strings.Fields(lines[1])[1:], " "); got != "seats-per-month 2027-03 10 0 2 8" {
		t.Errorf("the line is %s", got)
	}
	if out, err := plane.Kubectl(t.Context(), "explain", "quotabucket.available"); err != nil || !strings.Contains(out, "limit less used") {
		t.Errorf("kubectl explain says %s: %v", out, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bucket)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil || result.Status != status.CurrentStatus {
		t.Errorf("tools call a bucket %v: %v", result, err)
	}
}

// Roles for people give the right to read buckets and none to write them.
func TestNoRoleForPeopleWritesQuotaBuckets(t *testing.T) {
	admin := newClient(t, plane.Config)
	for _, name := range []string{"flights-view", "flights-edit", "flights-admin"} {
		out, err := plane.Kubectl(t.Context(), "apply", "-f", filepath.Join(plane.Root(), "config/rbac/users", strings.TrimPrefix(name, "flights-")+".yaml"))
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		role := &rbacv1.ClusterRole{}
		if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if sets.New(rule.Resources...).Has("quotabuckets") && !sets.New("get", "list", "watch").HasAll(rule.Verbs...) {
				t.Errorf("%s may %v buckets", name, rule.Verbs)
			}
		}
	}
}
