# METADATA
# title: Seats per ticket
# description: >-
#   Refuses a ticket for more seats than the maximum. An update that doesn't raise the number of seats passes, so that a
#   ticket from before the policy can still be edited and made smaller.
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
#         maximum: 5
package flights.seats_per_ticket

deny contains msg if {
	seats := input.ticket.spec.number
	seats > input.parameters.max
	not no_raise
	msg := sprintf(
		"%d seats are more than the %d that one ticket may have: lower spec.number to %d or less",
		[seats, input.parameters.max, input.parameters.max],
	)
}

no_raise if input.ticket.spec.number <= input.oldTicket.spec.number
