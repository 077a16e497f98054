// Package census knows what the stored tickets claim, bucket by bucket: it looks at a cache of tickets, asks the quota
// policies about those that have changed, and hands out snapshots for the ledger's counts and for the second gate.
//
// It knows the engine's claims and the cache's revision. It must not know a client or a bucket as it is stored: who counts
// reads and writes those.
package census
