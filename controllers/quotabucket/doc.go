// Package quotabucket counts: it keeps the QuotaBuckets equal to what stored tickets claim, opens the buckets that a policy
// needs, lets entries age, removes what is over, and says when a quota is in force. It is the second gate as well, before
// money is spent. The rules are those of docs/quota-protocol.md, which the comments name by their numbers.
//
// Each round observes everything, decides by a pure function, and acts; the next round begins from what is stored. So it
// may be killed between any two writes, and two of them may run at the same time.
//
// It knows the ledger, the census and the cluster. It must not know how tickets are booked, or Rego.
package quotabucket
