package flightticket

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	flightsv1 "github.com/flight-operator/flight-operator/api/v1"
	"github.com/flight-operator/flight-operator/controllers/flightticket/lifecycle"
	"github.com/flight-operator/flight-operator/internal/policy"
)

// gate asks the policies, with the offer and as the user whom admission saw. What can't be asked is an error of the
// gate, and nothing is bought then.
func (p *pass) gate(ctx context.Context, operation flightsv1.Operation) lifecycle.Verdict {
	request, err := p.request(ctx, operation)
	if err != nil {
		return lifecycle.Verdict{Kind: lifecycle.VerdictError, Messages: []string{err.Error()}}
	}
	decision, err := p.r.Policies.Decide(ctx, request)
	if err != nil {
		return lifecycle.Verdict{
			Kind: lifecycle.VerdictError, Messages: []string{fmt.Sprintf("the policies could not be asked: %s", err)},
		}
	}
	return verdict(decision)
}

func verdict(d policy.Decision) lifecycle.Verdict {
	if d.Allowed() {
		return lifecycle.Verdict{Kind: lifecycle.VerdictAllowed}
	}
	v := lifecycle.Verdict{Kind: lifecycle.VerdictError}
	for _, denial := range d.Denials {
		if denial.Code != policy.CodePolicyError {
			v.Kind = lifecycle.VerdictRefused
		}
		v.Messages = append(v.Messages, fmt.Sprintf("policy %s: %s", denial.Policy, denial.Message))
	}
	return v
}

func (p *pass) request(ctx context.Context, operation flightsv1.Operation) (policy.Request, error) {
	var namespace corev1.Namespace
	if err := p.r.Client.Get(ctx, client.ObjectKey{Name: p.ticket.Namespace}, &namespace); err != nil {
		return policy.Request{}, fmt.Errorf("read namespace %s: %w", p.ticket.Namespace, err)
	}
	groups, err := groups(p.ticket)
	if err != nil {
		return policy.Request{}, err
	}
	request := policy.Request{
		Stage: policy.StageBooking, Operation: operation,
		User:      policy.User{Username: p.ticket.Annotations[flightsv1.RequestedByAnnotation], Groups: groups},
		Namespace: policy.Namespace{Name: namespace.Name, Labels: namespace.Labels, Annotations: namespace.Annotations},
		Ticket:    p.ticket.DeepCopy(), Route: p.route, Offer: &p.o.Heard.Offer.Offer, Now: p.o.Now,
	}
	if operation == flightsv1.OperationUpdate {
		request.OldTicket = p.booked()
	}
	return request, nil
}

func groups(t *flightsv1.FlightTicket) ([]string, error) {
	text := t.Annotations[flightsv1.RequestedByGroupsAnnotation]
	if text == "" {
		return nil, nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("annotation %s is not a JSON list of strings", flightsv1.RequestedByGroupsAnnotation)
	}
	return list, nil
}

// booked is the ticket as it is booked now: what a change changes.
func (p *pass) booked() *flightsv1.FlightTicket {
	old, order := p.ticket.DeepCopy(), p.ticket.Status.Booking.Order
	old.Spec.From, old.Spec.To, old.Spec.Number = order.Origin, order.Destination, order.Seats
	old.Spec.DepartureDate, old.Spec.ReturnDate = order.DepartureDate, order.ReturnDate
	old.Spec.Cabin, old.Spec.Passengers = order.Cabin, order.Passengers
	return old
}
