package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// QuotaScope says how far the buckets of a quota reach.
// +kubebuilder:validation:Enum=Namespace;Cluster
type QuotaScope string

const (
	// QuotaScopeNamespace is one bucket a key and namespace, in the namespace of the tickets.
	QuotaScopeNamespace QuotaScope = "Namespace"
	// QuotaScopeCluster is one bucket a key for the whole cluster, in the operator's namespace.
	QuotaScopeCluster QuotaScope = "Cluster"
)

// QuotaDeparture is a ticket that is leaving, and whose claim was moved to retained.
type QuotaDeparture struct {
	// UID of the ticket.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Type=string
	UID types.UID `json:"uid"`

	// GoneBy is a revision by which the ticket no longer existed; empty while it may exist.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,38}$`
	GoneBy string `json:"goneBy,omitempty"`
}

// QuotaBucket is the ledger page of one quota: what one key of one quota policy may take, and what it has taken. The
// webhook and the controller write it; people only read it.
//
// It has neither spec nor status, like other records that programs write for people to read: nobody states a wish here.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=quotabuckets,scope=Namespaced,shortName=qb,categories=flights
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.policy`
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.key`
// +kubebuilder:printcolumn:name="Limit",type=integer,JSONPath=`.limit`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.used`
// +kubebuilder:printcolumn:name="Reserved",type=integer,JSONPath=`.reserved`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.available`
// +kubebuilder:printcolumn:name="Resets",type=string,JSONPath=`.resets`
// +kubebuilder:printcolumn:name="Retained",type=integer,priority=1,JSONPath=`.retained`
// +kubebuilder:printcolumn:name="Generation",type=integer,priority=1,JSONPath=`.policyGeneration`
// +kubebuilder:printcolumn:name="Age",type=date,priority=1,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.policyUID == oldSelf.policyUID && self.scope == oldSelf.scope && self.key == oldSelf.key",message="policyUID, scope and key are immutable: another key is another bucket"
// +kubebuilder:validation:XValidation:rule="self.policyGeneration >= oldSelf.policyGeneration",message="policyGeneration never goes down"
type QuotaBucket struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Policy is the name of the FlightPolicy whose quota this is.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy"`

	// PolicyUID is the UID of that policy: a policy that is deleted and made anew starts with new buckets.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Type=string
	PolicyUID types.UID `json:"policyUID"`

	// PolicyGeneration is the highest generation of the policy that touched the bucket. Claims of a lower one are
	// refused, since the policy may count differently by now.
	// +required
	// +kubebuilder:validation:Minimum=1
	PolicyGeneration int64 `json:"policyGeneration"`

	// Scope says whether the bucket is for tickets of this namespace or of the whole cluster.
	// +required
	Scope QuotaScope `json:"scope"`

	// Key is the policy's name for what is counted, as in "2027-03".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// Limit is what all tickets together may take. A lower limit evicts nobody; it stops every raise.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740992
	Limit int64 `json:"limit"`

	// Used is the sum of the claims of the tickets that the controller counted. It can be above the limit, when the
	// limit was lowered or a ticket was stored without a review.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740992
	Used int64 `json:"used"`

	// Reserved is what admitted tickets take that are not counted yet, beyond their part of used.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740992
	Reserved int64 `json:"reserved"`

	// Available is what is left: limit less used, reserved and retained, and never below 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740992
	Available int64 `json:"available"`

	// Retained is what tickets took that are gone, and that stays taken.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740992
	Retained int64 `json:"retained,omitempty"`

	// Resets is when the quota's window ends; empty if the quota has none.
	// +optional
	Resets *metav1.Time `json:"resets,omitempty"`

	// CountedRevision is a revision of the cluster's tickets that used contains; empty until the controller has counted
	// the bucket. A count of an earlier revision is void.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,38}$`
	CountedRevision string `json:"countedRevision,omitempty"`

	// CountedGeneration is the generation of the policy that used was summed with; 0 until the controller has counted the
	// bucket. A claim of a later one is refused for as long: the policy may measure tickets in another way by now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CountedGeneration int64 `json:"countedGeneration,omitempty"`

	// Entries are the claims of admission reviews whose tickets are not counted yet, each on one line: the ticket, its UID
	// and the generation that it has once what was reviewed is stored, the generation of the policy, the amount that it
	// claims in all, the part of that which used contains already, and the nonce of the review.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Entries []QuotaEntry `json:"entries,omitempty"`

	// Departures are tickets that are leaving and whose claims are in retained, so that no claim is counted twice.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Departures []QuotaDeparture `json:"departures,omitempty"`
}

// QuotaBucketList is a list of QuotaBuckets.
//
// +kubebuilder:object:root=true
type QuotaBucketList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []QuotaBucket `json:"items"`
}
