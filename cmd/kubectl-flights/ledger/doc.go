// Package ledger tells people about quota buckets: how full each is, whether it can be believed, and which tickets hold it.
//
// It works on values that somebody else has read, and must know no client: what a person may read is package cluster's to
// find out, and what can't be read is left open here and never guessed. Of tickets it tells names and amounts, and nothing
// of their passengers.
package ledger
