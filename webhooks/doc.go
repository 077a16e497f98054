// Package webhooks answers admission reviews: it normalises tickets, and accepts or refuses tickets, policies and
// booking providers before they are stored.
//
// It knows admission and what must hold under any policy, and asks the ledger for room last. It knows no booking protocol,
// no Secret and no controller, and not how the ledger counts. A question that it can't answer is refused, never let through.
package webhooks

// What the webhook program may do. It has no right on Secrets, and writes nothing but the Lease that tells what it
// serves and the entries in quota buckets, which are in the tickets' namespaces. It reads buckets one by one and never
// from a cache.
//
// +kubebuilder:rbac:groups=flights.com,resources=flightpolicies;bookingproviders,verbs=get;list;watch
// +kubebuilder:rbac:groups=flights.com,resources=quotabuckets,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update;delete,namespace=flight-operator-system

// How the API server calls. A condition skips an object that is being deleted and whose spec is unchanged, so that
// finalizers go while no replica answers. It asks the stored object: what a request says of its own deletion is no
// proof. A ticket's annotations that only some may set, or nobody, must be unchanged too: a decision about a ticket that is
// being deleted (retain-booking, resolve-operation) never passes unchecked.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=flight-operator
// +kubebuilder:webhookconfiguration:mutating=false,name=flight-operator
// +kubebuilder:webhook:path=/mutate-flights-com-v1-flightticket,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=5,groups=flights.com,resources=flighttickets,verbs=create;update,versions=v1,name=mutate.flighttickets.flights.com,admissionReviewVersions=v1,serviceName=flight-webhook,serviceNamespace=flight-operator-system,reinvocationPolicy=IfNeeded,patch=`{"matchConditions":[{"name":"not-just-finalizing","expression":"!(request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec && ['flights.com/adopt-booking', 'flights.com/resolve-operation', 'flights.com/retain-booking', 'flights.com/decided-by', 'flights.com/requested-by', 'flights.com/requested-by-groups'].all(key, object.metadata.?annotations[?key] == oldObject.metadata.?annotations[?key]))"}]}`
// +kubebuilder:webhook:path=/validate-flights-com-v1-flightticket,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=NoneOnDryRun,timeoutSeconds=5,groups=flights.com,resources=flighttickets,verbs=create;update,versions=v1,name=validate.flighttickets.flights.com,admissionReviewVersions=v1,serviceName=flight-webhook,serviceNamespace=flight-operator-system,patch=`{"matchConditions":[{"name":"not-just-finalizing","expression":"!(request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec && ['flights.com/adopt-booking', 'flights.com/resolve-operation', 'flights.com/retain-booking', 'flights.com/decided-by', 'flights.com/requested-by', 'flights.com/requested-by-groups'].all(key, object.metadata.?annotations[?key] == oldObject.metadata.?annotations[?key]))"}]}`
// +kubebuilder:webhook:path=/validate-flights-com-v1-flightpolicy,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=5,groups=flights.com,resources=flightpolicies,verbs=create;update,versions=v1,name=validate.flightpolicies.flights.com,admissionReviewVersions=v1,serviceName=flight-webhook,serviceNamespace=flight-operator-system,patch=`{"matchConditions":[{"name":"not-just-finalizing","expression":"!(request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)"}]}`
// +kubebuilder:webhook:path=/validate-flights-com-v1-bookingprovider,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=5,groups=flights.com,resources=bookingproviders,verbs=create;update,versions=v1,name=validate.bookingproviders.flights.com,admissionReviewVersions=v1,serviceName=flight-webhook,serviceNamespace=flight-operator-system,patch=`{"matchConditions":[{"name":"not-just-finalizing","expression":"!(request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp) && has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)"}]}`
