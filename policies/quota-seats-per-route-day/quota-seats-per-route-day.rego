# METADATA
# title: Seats per route and day
# description: >-
#   Holds the seats from one city to another on one day to a maximum, over all tickets. A return flight counts as a route
#   of its own, on its own day. A ticket without a departure date is refused, since its day isn't known. All airports of a
#   city count together; a code that the table of places lacks counts by itself.
# custom:
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max:
#         title: Maximum
#         description: The most seats on one route on one day.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#       scope:
#         title: Scope
#         description: Cluster (default) counts all tickets together, Namespace those of each namespace apart.
#         type: string
#         enum: [Cluster, Namespace]
#         default: Cluster
#       warnAt:
#         title: Warn at
#         description: The number of seats from which tickets are admitted with a warning; 0 for never.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#         default: 0
package flights.quota_seats_per_route_day

quota contains {
	"key": sprintf("%s %s to %s", [leg.day, leg.from, leg.to]),
	"scope": input.parameters.scope,
	"amount": input.ticket.spec.number,
	"limit": input.parameters.max,
	"resets": next_day(leg.day),
	"warn_at": input.parameters.warnAt,
} if {
	some leg in legs
}

deny contains "seats are counted by day, and the ticket has no departure date: set spec.departureDate" if {
	not input.ticket.spec.departureDate
	not undated_before
}

# undated_before is an update of a ticket that had no date before: one from before the policy.
undated_before if {
	input.oldTicket
	not input.oldTicket.spec.departureDate
}

legs contains {"day": input.ticket.spec.departureDate, "from": city(input.route.origin), "to": city(input.route.destination)}

legs contains {"day": input.ticket.spec.returnDate, "from": city(input.route.destination), "to": city(input.route.origin)}

city(place) := place.iata if place.kind == "code"

else := sprintf("%s, %s", [place.city, place.country])

next_day(day) := time.format([time.add_date(time.parse_ns("2006-01-02", day), 0, 0, 1), "UTC", "RFC3339"])
