// Package controlplane starts a real control plane as child processes: etcd, kube-apiserver and, where asked for,
// kube-controller-manager and cert-manager. Tests, `make demo` and `make dev` stand on it.
//
// It knows how to build those programs from their pinned modules (hack/cluster, hack/certmanager), how to start and
// stop them, and how to hand out identities. It knows nothing of tickets, policies or bookings: the only thing of
// ours that it touches is the directory of CRDs. It reads no KUBECONFIG, so a person's own cluster can't be hit by
// accident, and it must never be linked into a shipped program.
package controlplane
