// Package quota is the arithmetic of the quota ledger on plain values: what a ticket claims, whether a bucket has room,
// and how a bucket looks after a reserve, a release or a count. The rules are those of docs/quota-protocol.md, which the
// comments name by their numbers.
//
// It knows buckets, entries and tickets as values. It must not know a client, a clock, a logger or Rego: who calls it
// reads the bucket, hands in the time, and writes the result back under the resourceVersion that it read. Every function
// leaves its arguments as they are.
package quota
