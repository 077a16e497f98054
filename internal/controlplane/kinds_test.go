package controlplane_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The API server itself, with no webhook, refuses what has the wrong shape, and says what is wrong.
func TestTheAPIServerRefusesAWrongShape(t *testing.T) {
	c := newClient(t, plane.Config)
	namespace := newNamespace(t, c)
	for _, test := range []struct{ name, kind, spec, message string }{
		{"no seats", "FlightTicket", "{from: Mumbai, to: London, number: 0}", "spec.number: Invalid value: 0"},
		{"six seats", "FlightTicket", "{from: Mumbai, to: London, number: 6}", "should be less than or equal to 5"},
		{"an empty spec", "FlightTicket", "{}", "spec.from: Required value, spec.to: Required value"},
		{"no spec", "FlightTicket", "", "spec: Required value"},
		{"an empty place", "FlightTicket", `{from: "", to: London}`, "spec.from: Invalid value"},
		{"an endless place", "FlightTicket", "{to: London, from: " + strings.Repeat("x", 101) + "}", "Too long: may not be more than 100"},
		{"a misspelt field", "FlightTicket", "{fom: Mumbai, from: Mumbai, to: London}", `unknown field "spec.fom"`},
		{"a year that no calendar of a policy reaches", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2999-12-31\"}", "must be a date from 1900 to 2199"},
		{"a cost centre of two lines", "FlightTicket", "{from: Mumbai, to: London, costCenter: \"a\\nb\"}", "must hold no control characters"},
		{"a day that doesn't exist", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2027-02-30\"}", "must be a day that exists in the calendar"},
		{"a leap day of a common year", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2100-02-29\"}", "must be a day that exists in the calendar"},
		{"a 31st of June", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2027-06-31\"}", "must be a day that exists in the calendar"},
		{"a date that is none", "FlightTicket", "{from: Mumbai, to: London, departureDate: tomorrow}", "must be a date from 1900 to 2199 as in 2027-03-14"},
		{"a place that turns a terminal's text around", "FlightTicket", "{from: \"Mumbai\\u202e\", to: London}", "spec.from: Invalid value: \"Mumbai\\u202e\": must hold no control"},
		{"a place of two lines", "FlightTicket", "{from: Mumbai, to: \"London\\n\"}", "must hold no control characters, line breaks"},
		{"a price in words", "FlightTicket", "{from: Mumbai, to: London, maxPrice: {amount: ten, currency: EUR}}", "must be a decimal number as in \"120\""},
		{"a price below nothing", "FlightTicket", "{from: Mumbai, to: London, maxPrice: {amount: \"-1\", currency: EUR}}", "must be a decimal number as in \"120\""},
		{"a currency in words", "FlightTicket", "{from: Mumbai, to: London, maxPrice: {amount: \"1\", currency: eur}}", "must be an ISO 4217 code as in EUR"},
		{"a passenger with half an address", "FlightTicket", "{from: Mumbai, to: London, passengers: [{givenName: A, familyName: B, email: a}]}", "must be an email address as in"},
		{"a passenger with half a number", "FlightTicket", "{from: Mumbai, to: London, passengers: [{givenName: A, familyName: B, phone: \"12\"}]}", "must be a number in E.164 form"},
		{"passengers of null", "FlightTicket", "{from: Mumbai, to: London, passengers: null, number: 0}", "spec.number: Invalid value: 0"},
		{"a return alone", "FlightTicket", "{from: Mumbai, to: London, returnDate: \"2027-02-20\"}", "a returnDate needs a departureDate"},
		{
			"a return before the departure", "FlightTicket",
			"{from: Mumbai, to: London, departureDate: \"2027-02-20\", returnDate: \"2027-02-19\"}", "returnDate must not be before departureDate",
		},
		{
			"more passengers than seats", "FlightTicket",
			"{from: Mumbai, to: London, passengers: [{givenName: A, familyName: B}, {givenName: C, familyName: D}]}", "more passengers than seats",
		},
		{"an http endpoint", "BookingProvider", "{endpoint: \"http://flights.example.com\", credentialsSecretRef: {key: token}}", "must be an https URL such as"},
		{"an endpoint that is no URL", "BookingProvider", "{endpoint: flights, credentialsSecretRef: {key: token}}", "must be an https URL such as"},
		{
			"a credential in the endpoint", "BookingProvider",
			"{endpoint: \"https://me:secret@flights.example.com\", credentialsSecretRef: {key: token}}", "must hold no user, query or fragment",
		},
		{
			"an endless timeout", "BookingProvider",
			"{endpoint: \"https://flights.example.com\", timeout: 1h, credentialsSecretRef: {key: token}}", "must be between 1s and 130s",
		},
		{
			"a duration in words", "BookingProvider",
			"{endpoint: \"https://flights.example.com\", capabilities: {readLag: soon}, credentialsSecretRef: {key: token}}", "must be between 0s and 24h",
		},
		{"no credential", "BookingProvider", "{endpoint: \"https://flights.example.com\"}", "spec.credentialsSecretRef: Required value"},
		{"neither library nor rego", "FlightPolicy", "{}", "set exactly one of library"},
		{"library and rego", "FlightPolicy", "{library: route-denylist, rego: package x}", "set exactly one of library"},
		{"an enforcement that is none", "FlightPolicy", "{library: route-denylist, enforcement: Maybe}", "supported values: \"Enforce\", \"Warn\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.Create(t.Context(), object(t, test.kind, namespace, test.spec), client.FieldValidation("Strict"))
			if err == nil {
				t.Fatal("was accepted")
			}
			if !strings.Contains(err.Error(), test.message) {
				t.Errorf("was refused with\n%v\nwhich lacks\n%s", err, test.message)
			}
		})
	}
}

// The counterparts of the cases above: each is as near to a refused one as can be.
func TestTheAPIServerAcceptsTheRightShape(t *testing.T) {
	c := newClient(t, plane.Config)
	namespace := newNamespace(t, c)
	for _, test := range []struct{ name, kind, spec string }{
		{"five seats", "FlightTicket", "{from: Mumbai, to: London, number: 5}"},
		{"a number of null, which is the default", "FlightTicket", "{from: Mumbai, to: London, number: null}"},
		{"a place with accents and marks", "FlightTicket", "{from: \"São Paulo\", to: \"Zürich, CH\"}"},
		{"a passenger who can be reached", "FlightTicket", "{from: Mumbai, to: London, maxPrice: {amount: \"99.50\", currency: EUR}, passengers: [{givenName: A, familyName: B, email: a@example.com, phone: \"+442071838750\"}]}"},
		{"a leap day", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2028-02-29\"}"},
		{"a return on the same day", "FlightTicket", "{from: Mumbai, to: London, departureDate: \"2027-02-20\", returnDate: \"2027-02-20\"}"},
		{"an https endpoint", "BookingProvider", "{endpoint: \"https://flights.example.com/v1\", credentialsSecretRef: {key: token}}"},
		{"a library policy", "FlightPolicy", "{library: route-denylist, parameters: {anything: [goes, here]}}"},
		{"a policy in Rego", "FlightPolicy", "{rego: package x}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			made := object(t, test.kind, namespace, test.spec)
			if err := c.Create(t.Context(), made, client.FieldValidation("Strict")); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), made); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestAProvidersEndpointIsImmutable(t *testing.T) {
	c := newClient(t, plane.Config)
	provider := object(t, "BookingProvider", "", "{endpoint: \"https://one.example.com\", credentialsSecretRef: {key: token}}")
	if err := c.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(provider.Object, "https://two.example.com", "spec", "endpoint"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), provider); err == nil || !strings.Contains(err.Error(), "a new host is a new provider") {
		t.Errorf("another endpoint gave: %v", err)
	}
}

func object(t *testing.T, kind, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	text := "{apiVersion: flights.com/v1, kind: " + kind + ", metadata: {generateName: shape-}"
	if spec != "" {
		text += ", spec: " + spec
	}
	if err := yaml.Unmarshal([]byte(text+"}"), &made.Object); err != nil {
		t.Fatal(err)
	}
	if kind == "FlightTicket" { // the only kind here that lives in a namespace
		made.SetNamespace(namespace)
	}
	return made
}
