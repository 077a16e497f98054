package controlplane

// auditPolicy records who did what to which object and whether RBAC allowed it, for every request and once a
// request. Bodies stay out: they hold Secrets and passengers.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`
