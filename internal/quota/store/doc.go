// Package store writes the quota ledger: it reads buckets live, lets internal/quota decide on the copy, and writes back
// under the resourceVersion that was read, so that no two writers overwrite each other.
//
// A Store is for admission: it merges the claims of requests that wait for the same bucket into one write. An Editor is
// for the controller: one change, tried again on a conflict. Neither knows Rego, tickets beyond their names, or what a
// claim means; the arithmetic is that of internal/quota. It must never answer that something is held unless the API
// server has said that the write is stored.
package store
