# METADATA
# title: Seats per ticket
# description: Refuses a ticket for more seats than the maximum.
# custom:
#   parameters:
#     type: object
#     required: [max]
#     properties:
#       max:
#         title: Maximum
#         description: The most seats that one ticket may ask for.
#         type: integer
#         minimum: 1
package flights.seats_per_ticket

deny contains msg if {
	input.ticket.spec.number > input.parameters.max
	msg := sprintf(
		"%d seats are more than the %d that one ticket may have: lower spec.number, or split the ticket",
		[input.ticket.spec.number, input.parameters.max],
	)
}
