# METADATA
# title: Seats per namespace and month
# description: >-
#   Holds the seats of all tickets of a namespace to a maximum a month. The month is that of the outward flight, as
#   written; a ticket without a departure date counts for the month in which it was created, in UTC.
# custom:
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max:
#         title: Maximum
#         description: The most seats that the tickets of one namespace may have in one month.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#       warnAt:
#         title: Warn at
#         description: The number of seats from which tickets are admitted with a warning; 0 for never.
#         type: integer
#         minimum: 0
#         maximum: 9007199254740992
#         default: 0
package flights.quota_seats_per_namespace_month

quota contains {
	"key": month,
	"scope": "Namespace",
	"amount": input.ticket.spec.number,
	"limit": input.parameters.max,
	"resets": next_month,
	"warn_at": input.parameters.warnAt,
}

# A ticket that isn't stored has no date of its own. Without this rule it would claim nothing.
deny contains "the month isn't known before the ticket is stored: set spec.departureDate" if not month

month := substring(input.ticket.spec.departureDate, 0, 7) if input.ticket.spec.departureDate

else := substring(input.ticket.metadata.creationTimestamp, 0, 7)

next_month := time.format([time.add_date(time.parse_ns("2006-01", month), 0, 1, 0), "UTC", "RFC3339"])
