# METADATA
# title: Travellers on one flight
# description: >-
#   Holds the travellers on one flight to a maximum, over all tickets. The flight is known when there is an offer, so this
#   counts at booking: a ticket that is one too many is admitted and not booked. A flight is a carrier, a number and the
#   day of departure as the provider tells them; one that is sold under several numbers counts under each by itself. An
#   offer that doesn't tell them is refused.
# custom:
#   stage: Booking
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max:
#         title: Maximum
#         description: The most travellers on one flight.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#       scope:
#         title: Scope
#         description: Cluster (default) counts all tickets together, Namespace those of each namespace apart.
#         type: string
#         enum: [Cluster, Namespace]
#         default: Cluster
package flights.quota_travellers_per_flight

quota contains {
	"key": concat(" ", [segment.marketingCarrier, segment.flightNumber, day]),
	"scope": input.parameters.scope,
	"amount": input.ticket.spec.number,
	"limit": input.parameters.max,
	"resets": resets,
} if {
	some segment in input.offer.segments
	named(segment)
	day := substring(segment.departsAt, 0, 10)

	# A day lasts until noon of the next one, UTC, where it ends last.
	resets := time.format([time.add_date(time.parse_ns("2006-01-02", day), 0, 0, 2), "UTC", "RFC3339"])
}

deny contains "the offer doesn't tell its flights, so travellers can't be counted: ask for another provider or date" if {
	input.offer
	count([segment | some segment in input.offer.segments; named(segment)]) != max([1, count(input.offer.segments)])
}

named(segment) if {
	segment.marketingCarrier != ""
	segment.flightNumber != ""
}
