package policy

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
)

// matcher is a compiled PolicyMatch. Its zero value matches everything.
type matcher struct {
	namespaces, excluded namePatterns
	limited              bool // namespaces is set
	selector, tickets    labels.Selector
	operations           []flightsv1.Operation
}

// newMatcher compiles a match. It tells every problem that it finds.
func newMatcher(m flightsv1.PolicyMatch) (matcher, []Problem) {
	var problems []Problem
	c := matcher{
		namespaces: newNamePatterns(m.Namespaces),
		excluded:   newNamePatterns(m.ExcludedNamespaces),
		limited:    len(m.Namespaces) > 0,
		operations: m.Operations,
	}
	problems = append(problems, checkPatterns("spec.match.namespaces", m.Namespaces)...)
	problems = append(problems, checkPatterns("spec.match.excludedNamespaces", m.ExcludedNamespaces)...)
	if len(problems) > 0 {
		// Who is meant is unknown, so it concerns everybody. A pattern that matches nothing would switch the policy off.
		c.namespaces, c.excluded, c.limited = namePatterns{}, namePatterns{}, false
	}
	if m.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector)
		if err != nil {
			problems = append(problems, Problem{Field: "spec.match.namespaceSelector", Message: err.Error()})
		}
		c.selector = selector
	}
	if m.TicketSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(m.TicketSelector)
		if err != nil {
			problems = append(problems, Problem{Field: "spec.match.ticketSelector", Message: err.Error()})
		}
		c.tickets = selector
	}
	return c, problems
}

func checkPatterns(path string, patterns []string) []Problem {
	var problems []Problem
	for i, p := range patterns {
		if strings.Contains(strings.TrimSuffix(p, "*"), "*") {
			problems = append(problems, Problem{
				Field:   fmt.Sprintf("%s[%d]", path, i),
				Message: fmt.Sprintf("%q: a * may only stand at the end, as in \"team-*\"", p),
			})
		}
	}
	return problems
}

// matches says whether the policy concerns the request. It must stay cheap: it runs for every policy there is.
func (m *matcher) matches(r *Request) bool {
	if len(m.operations) > 0 && !slices.Contains(m.operations, r.Operation) {
		return false
	}
	if m.limited && !m.namespaces.match(r.Namespace.Name) {
		return false
	}
	if m.excluded.match(r.Namespace.Name) {
		return false
	}
	if m.selector != nil && !m.selector.Matches(labels.Set(r.Namespace.Labels)) {
		return false
	}
	return m.tickets == nil || m.selects(r.Ticket) || m.selects(r.OldTicket)
}

// selects says whether the ticket's labels are selected. The labels of the old ticket count too: who may edit a ticket
// chooses its labels, and would otherwise take one away in the same edit that a policy is against.
func (m *matcher) selects(t *flightsv1.FlightTicket) bool {
	return t != nil && m.tickets.Matches(labels.Set(t.Labels))
}

// namePatterns are names and prefixes.
type namePatterns struct {
	names    map[string]struct{}
	prefixes []string
}

func newNamePatterns(patterns []string) namePatterns {
	n := namePatterns{names: make(map[string]struct{}, len(patterns))}
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			n.prefixes = append(n.prefixes, prefix)
			continue
		}
		n.names[p] = struct{}{}
	}
	return n
}

func (n *namePatterns) match(name string) bool {
	if _, ok := n.names[name]; ok {
		return true
	}
	return slices.ContainsFunc(n.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
