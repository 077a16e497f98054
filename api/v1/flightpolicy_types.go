package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Enforcement says what a policy's denials do.
// +kubebuilder:validation:Enum=Enforce;Warn;Shadow
type Enforcement string

const (
	// EnforcementEnforce refuses the ticket. A policy that can't be evaluated refuses it too.
	EnforcementEnforce Enforcement = "Enforce"
	// EnforcementWarn admits the ticket with a warning. A policy that can't be evaluated refuses nobody.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementShadow tries the policy out: what it would have done is recorded, and no user sees anything of it.
	EnforcementShadow Enforcement = "Shadow"
)

// Operation is an admission operation that a policy can be limited to.
// +kubebuilder:validation:Enum=CREATE;UPDATE
type Operation string

// The operations that policies are evaluated for, in the words of admission.k8s.io/v1.
const (
	OperationCreate Operation = "CREATE"
	OperationUpdate Operation = "UPDATE"
)

// PolicyMatch limits a policy to some tickets. What is empty doesn't limit. All that is set must match.
type PolicyMatch struct {
	// Namespaces are the namespaces whose tickets the policy concerns. A trailing * matches any ending, as in "team-*".
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9]*[a-z0-9*])?$`
	Namespaces []string `json:"namespaces,omitempty"`

	// ExcludedNamespaces are namespaces that the policy doesn't concern, in the same form; they win over namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([-a-z0-9]*[a-z0-9*])?$`
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`

	// NamespaceSelector selects namespaces by their labels.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// TicketSelector selects tickets by their labels, which whoever may edit a ticket chooses. An update is concerned if the
	// ticket is selected before or after it. A policy with a quota can't have one.
	// +optional
	TicketSelector *metav1.LabelSelector `json:"ticketSelector,omitempty"`

	// Operations are the admission operations that the policy concerns: CREATE, UPDATE, or both when empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Operations []Operation `json:"operations,omitempty"`
}

// PolicyTest is an example that the policy must decide on as expected.
type PolicyTest struct {
	// Name says what the example shows, as in "three seats are too many".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Name string `json:"name"`

	// Input is the example: ticket and oldTicket as in a manifest (metadata and spec), user (username, groups), namespace
	// (name, labels, annotations), offer, operation, dryRun, stage, now. Only ticket must be given.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Input apiextensionsv1.JSON `json:"input"`

	// Expect is all that the policy must say. What is left out must be empty.
	// +optional
	Expect PolicyExpectation `json:"expect,omitempty"`
}

// PolicyExpectation is what a policy says of a ticket.
type PolicyExpectation struct {
	// Deny are the messages of denials.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=21
	// +kubebuilder:validation:items:MaxLength=1024
	Deny []string `json:"deny,omitempty"`

	// Warn are the warnings.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=21
	// +kubebuilder:validation:items:MaxLength=1024
	Warn []string `json:"warn,omitempty"`

	// Hold are the reasons to wait for an approval.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=21
	// +kubebuilder:validation:items:MaxLength=1024
	Hold []string `json:"hold,omitempty"`

	// Quota are the claims, one a key.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Quota []ExpectedClaim `json:"quota,omitempty"`

	// Mutate are the fields that are set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Mutate []ExpectedPatch `json:"mutate,omitempty"`
}

// ExpectedClaim is what a ticket must claim.
type ExpectedClaim struct {
	// Key of the bucket.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// Amount that is claimed.
	// +required
	Amount int64 `json:"amount"`

	// Limit of the bucket.
	// +required
	Limit int64 `json:"limit"`
}

// ExpectedPatch is a field that must be set.
type ExpectedPatch struct {
	// Path of the field, as in /spec/cabin.
	// +required
	// +kubebuilder:validation:MaxLength=400
	Path string `json:"path"`

	// Value that it is given.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Value apiextensionsv1.JSON `json:"value"`
}

// FlightPolicySpec is a rule over tickets.
//
// +kubebuilder:validation:XValidation:rule="has(self.library) != has(self.rego)",message="set exactly one of library (a shipped policy's name) and rego (a Rego module)"
type FlightPolicySpec struct {
	// Library names a shipped policy, as in "route-denylist". Exactly one of library and rego is set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Library string `json:"library,omitempty"`

	// Rego is one Rego v1 module with any package name. Of its rules, those of the policy contract are read, such as deny
	// and warn: partial sets of messages. Everything that is neither one of these nor used by one is refused as a likely
	// typing error.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Rego string `json:"rego,omitempty"`

	// Parameters are the policy's settings, read in Rego as input.parameters. They are checked against the JSON
	// schema in the policy's METADATA (custom.parameters).
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`

	// Match limits the policy to some tickets; without it the policy concerns all.
	// +optional
	Match PolicyMatch `json:"match,omitempty"`

	// Enforcement says what a denial does: Enforce refuses the ticket, Warn admits it with a warning, Shadow only records
	// it.
	// +optional
	// +kubebuilder:default=Enforce
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// Tests are examples that are decided on when the policy is applied. One that doesn't come out as expected refuses it.
	// They see the rule and its parameters; match and enforcement play no part.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Tests []PolicyTest `json:"tests,omitempty"`
}

// FlightPolicyStatus is what the controller observed. Only the controller writes it.
type FlightPolicyStatus struct {
	// ObservedGeneration is the generation that the conditions speak of; -1 until the controller has seen the policy.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready is true once every live webhook replica serves this generation.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// CountedGeneration is the generation whose quotas are counted: every key that a stored ticket has under it has its
	// bucket. Until then a missing bucket can't be told from an empty one, and tickets that need it are refused.
	// +optional
	CountedGeneration int64 `json:"countedGeneration,omitempty"`

	// Replicas is the number of live webhook replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReplicasServing is how many live webhook replicas serve this generation.
	// +optional
	ReplicasServing int32 `json:"replicasServing,omitempty"`
}

// FlightPolicy is a rule, written in Rego, that decides which tickets may be stored and booked.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=flightpolicies,scope=Cluster,shortName=fp,categories=flights
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Library",type=string,JSONPath=`.spec.library`
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FlightPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the rule.
	// +required
	Spec FlightPolicySpec `json:"spec"`

	// Status is what the controller observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status FlightPolicyStatus `json:"status,omitempty"`
}

// FlightPolicyList is a list of FlightPolicies.
//
// +kubebuilder:object:root=true
type FlightPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FlightPolicy `json:"items"`
}
