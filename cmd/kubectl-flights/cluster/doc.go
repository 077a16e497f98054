// Package cluster holds the commands of kubectl flights that talk to an API server. It alone of the program imports
// client-go; commands that work offline must never import it.
//
// A command reads, and writes one annotation at most, with the rights of the person who runs it. What a person may decide is
// the webhook's to say; a command repeats none of its rules but those without which it would not know what to write. It
// must not know the booking protocol: what comes of a decision is the controller's.
package cluster
