package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderType is the protocol that a booking API speaks.
// +kubebuilder:validation:Enum=REST
type ProviderType string

// ProviderTypeREST is the REST contract in api/booking/openapi.yaml.
const ProviderTypeREST ProviderType = "REST"

// SecretKeyReference names one key of a Secret in the operator's namespace.
type SecretKeyReference struct {
	// Name of the Secret. The controller may read flight-operator-credentials; another name needs a Role of its own,
	// which the provider's condition prints.
	// +optional
	// +kubebuilder:default=flight-operator-credentials
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// Key in the Secret's data whose value is the bearer token.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// RateLimit bounds the calls to a provider, over all tickets of one credential.
type RateLimit struct {
	// RequestsPerMinute is the sustained rate.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	RequestsPerMinute int32 `json:"requestsPerMinute,omitempty"`

	// Burst is how many calls may be made at once after a pause.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Burst int32 `json:"burst,omitempty"`
}

// Capabilities are what the provider declares about itself. What it doesn't declare is not relied on.
type Capabilities struct {
	// IdempotencyKeyTTL is how long the provider remembers an Idempotency-Key. Zero: it takes none, none is sent.
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('10s')",message="must be 0s (no keys) or at least 10s"
	IdempotencyKeyTTL metav1.Duration `json:"idempotencyKeyTTL,omitempty"`

	// Lookup says that bookings can be listed by clientReference and owner.
	// +optional
	// +kubebuilder:default=true
	Lookup *bool `json:"lookup,omitempty"`

	// ReadLag is how long a committed booking may be missing from reads.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be between 0s and 24h"
	ReadLag metav1.Duration `json:"readLag,omitempty"`

	// MaxProcessing is how long the provider may work on an order after it was sent.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="must be between 0s and 720h"
	MaxProcessing metav1.Duration `json:"maxProcessing,omitempty"`
}

// BookingProviderSpec says how to reach a booking API.
//
// +kubebuilder:validation:XValidation:rule="self.endpoint == oldSelf.endpoint",message="endpoint is immutable: a new host is a new provider, create another BookingProvider",fieldPath=".endpoint"
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="type is immutable: create another BookingProvider",fieldPath=".type"
type BookingProviderSpec struct {
	// Type is the protocol: REST, the contract in api/booking/openapi.yaml.
	// +optional
	// +kubebuilder:default=REST
	Type ProviderType `json:"type,omitempty"`

	// Endpoint is the base URL of the booking API, https only. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() != ''",message="must be an https URL such as https://flights.example.com/v1"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || (!self.contains('@') && !self.contains('?') && !self.contains('#'))",message="must hold no user, query or fragment: the credential belongs in the Secret"
	Endpoint string `json:"endpoint"`

	// CABundle is the PEM of the authorities that sign the endpoint's certificate; none means the system's.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CABundle []byte `json:"caBundle,omitempty"`

	// AllowPrivate permits an endpoint that resolves to a loopback, link-local or private address. Cloud metadata
	// addresses stay forbidden.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`

	// CredentialsSecretRef names the Secret key that holds the bearer token, in the operator's namespace.
	// +required
	CredentialsSecretRef SecretKeyReference `json:"credentialsSecretRef"`

	// Timeout of one call.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('130s')",message="must be between 1s and 130s"
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// RateLimit bounds the calls to this provider.
	// +optional
	// +kubebuilder:default={requestsPerMinute: 60, burst: 10}
	RateLimit RateLimit `json:"rateLimit,omitempty"`

	// Capabilities are what the provider declares about itself.
	// +optional
	// +kubebuilder:default={lookup: true}
	Capabilities Capabilities `json:"capabilities,omitempty"`

	// Default makes this the provider of tickets that name none. Only one provider may be the default.
	// +optional
	Default bool `json:"default,omitempty"`
}

// BookingProviderStatus is what the controller observed. Only the controller writes it.
type BookingProviderStatus struct {
	// ObservedGeneration is the generation that the conditions speak of; -1 until the controller has seen the provider.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, CredentialsAccepted, Reachable.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Account is the provider's own name for the account that the credential belongs to.
	// +optional
	Account string `json:"account,omitempty"`

	// CredentialsRotatedAt is when the controller last took up a changed credential.
	// +optional
	CredentialsRotatedAt *metav1.Time `json:"credentialsRotatedAt,omitempty"`
}

// BookingProvider is a booking API and the Secret key that holds its credential.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bookingproviders,scope=Cluster,shortName=bp,categories=flights
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.account`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BookingProvider struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how to reach the booking API.
	// +required
	Spec BookingProviderSpec `json:"spec"`

	// Status is what the controller observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status BookingProviderStatus `json:"status,omitempty"`
}

// BookingProviderList is a list of BookingProviders.
//
// +kubebuilder:object:root=true
type BookingProviderList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BookingProvider `json:"items"`
}
