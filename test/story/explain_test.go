package story

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flight-operator/flight-operator/test/scene"
)

func TestKubectlExplainsEveryFieldOfEveryKind(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(s.Do("", "get", "--raw", "/openapi/v3/apis/flights.com/v1")), &document); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"FlightTicket", "FlightPolicy", "BookingProvider"} {
		schema := document.Components.Schemas["com.flights.v1."+kind]
		if schema == nil {
			t.Errorf("the API server publishes no schema of %s", kind)
			continue
		}
		fields := 0
		for _, part := range []string{"spec", "status"} {
			property := schema.Properties[part]
			fields += describedFields(t, kind+"."+part, &property)
		}
		if fields < 10 {
			t.Errorf("%s has %d fields, so they were not all looked at", kind, fields)
		}
	}
}

// describedFields fails for every field below a path that says nothing of itself, and counts the fields.
func describedFields(t *testing.T, path string, schema *spec.Schema) int {
	t.Helper()
	if strings.TrimSpace(schema.Description) == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has no description", path)
	}
	fields := 1
	for name, property := range schema.Properties {
		fields += describedFields(t, path+"."+name, &property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		fields += describedFields(t, path+"[]", schema.Items.Schema)
	}
	return fields
}

func TestKubectlExplainsTheSpecOfATicketInWords(t *testing.T) {
	t.Parallel()
	s := scene.New(t, house.stage)
	text := s.Do("", "explain", "flightticket.spec")
	s.Says(text, "GROUP:      flights.com", "KIND:       FlightTicket", "VERSION:    v1",
		"from\t<string> -required-", "Number of seats, 1 to 5; 1 if it is left out.", "a city (\"Mumbai\", \"London, CA\")")
	tree := s.Do("", "explain", "flightticket.spec", "--recursive")
	for _, field := range []string{
		"from", "to", "number", "departureDate", "returnDate", "cabin", "passengers", "givenName", "familyName", "birthDate",
		"email", "phone", "title", "gender", "maxPrice", "amount", "currency", "costCenter", "providerRef", "name",
		"deletionPolicy", "suspend",
	} {
		if !slices.ContainsFunc(rows(tree), func(row []string) bool { return len(row) > 0 && row[0] == field }) {
			t.Errorf("the tree lacks %s:\n%s", field, tree)
		}
		path := "flightticket.spec." + map[string]string{
			"givenName": "passengers.", "familyName": "passengers.", "birthDate": "passengers.", "email": "passengers.",
			"phone": "passengers.", "title": "passengers.", "gender": "passengers.", "amount": "maxPrice.",
			"currency": "maxPrice.", "name": "providerRef.",
		}[field] + field
		_, description, found := strings.Cut(s.Do("", "explain", path), "DESCRIPTION:\n")
		if !found || strings.Contains(description, "<empty>") {
			t.Errorf("kubectl explain %s says nothing: %s", path, description)
		}
	}
}
