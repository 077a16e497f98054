package history

import (
	"cmp"
	"regexp"
	"strconv"
	"time"
)

// Refusals are the quotas that an answer names, in the words of the webhook, about a ticket of a namespace. A policy's UID
// is not among them, and every place has the namespace.
func Refusals(text, namespace string, asked, answered time.Time) []Refusal {
	// Not compiled once: a package variable would be the price.
	pattern := regexp.MustCompile(`([a-z0-9.-]+): quota "([^"]+)" has no room: requested (\d+)(?: in place of (\d+))?, limit (\d+), ` +
		`used (\d+), reserved (\d+)(?:, kept for tickets that are gone (\d+))?`)
	var found []Refusal
	for _, parts := range pattern.FindAllStringSubmatch(text, -1) {
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(cmp.Or(parts[i], "0"), 10, 64) // digits, and far below 2^63
			return n
		}
		found = append(found, Refusal{
			Place: Place{Policy: parts[1], Key: parts[2], Namespace: namespace}, Asked: asked, Answered: answered,
			Requested: number(3), Old: number(4), Limit: number(5), Used: number(6), Reserved: number(7), Retained: number(8),
		})
	}
	return found
}
