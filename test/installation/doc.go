// Package installation starts the whole operator on a real control plane as local processes, for stories, crash tests,
// `make demo` and `make dev`: what `kubectl apply -k config/default` gives a cluster, without a node.
//
// It plays the parts that a cluster would: it applies config/dev, copies the Secrets of the certificates into folders
// as a kubelet mounts them, and starts the webhook and the controller under the tokens of their own ServiceAccounts, so
// that a right that they lack is missing here too. It knows the manifests and the flags of the programs; it must not
// know what a ticket or a policy means, and nothing that is shipped may import it.
package installation
