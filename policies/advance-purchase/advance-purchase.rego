# METADATA
# title: Advance purchase
# description: >-
#   Refuses tickets that are bought too late or too early before departure. Days are counted from calendar day to
#   calendar day in UTC. An update passes unless it changes the departure date or a place, or adds seats. Once a ticket is
#   admitted, waiting doesn't make it too late: at booking and in the audit, the minimum is counted from the ticket's
#   creation and the maximum from the day itself, so that these never refuse what admission has allowed.
# custom:
#   parameters:
#     type: object
#     minProperties: 1
#     properties:
#       minDays:
#         title: Minimum
#         description: The fewest days between purchase and departure; 0 allows the day itself.
#         type: integer
#         minimum: 0
#         maximum: 366
#       maxDays:
#         title: Maximum
#         description: The most days between purchase and departure.
#         type: integer
#         minimum: 0
#         maximum: 366
#       requireDepartureDate:
#         title: Departure date required
#         description: Whether a ticket without a departure date is refused. Without one, nothing can be counted.
#         type: boolean
#         default: true
#     additionalProperties: false
package flights.advance_purchase

deny contains msg if {
	not untouched
	not input.ticket.spec.departureDate
	input.parameters.requireDepartureDate
	msg := "a departure date is required, because flights must be bought some days ahead: set spec.departureDate, as in 2027-03-14"
}

deny contains msg if {
	not untouched
	ahead := days(day(bought), departure)
	ahead < input.parameters.minDays
	msg := sprintf(
		"departure on %s is %s, and flights must be bought at least %s ahead: choose %s or later",
		[departure, after(ahead, day(bought)), counted(input.parameters.minDays), later(day(bought), input.parameters.minDays)],
	)
}

deny contains msg if {
	not untouched
	ahead := days(day(input.now), departure)
	ahead > input.parameters.maxDays
	msg := sprintf(
		"departure on %s is %s, and flights may be bought at most %s ahead: choose %s or earlier, or buy later",
		[departure, after(ahead, day(input.now)), counted(input.parameters.maxDays), later(day(input.now), input.parameters.maxDays)],
	)
}

departure := input.ticket.spec.departureDate

# bought is the moment that the minimum is counted from.
bought := input.now if input.stage == "Admission"

bought := object.get(input.ticket.metadata, "creationTimestamp", input.now) if input.stage != "Admission"

# untouched is an update that buys nothing new.
untouched if {
	places_and_day(input.ticket) == places_and_day(input.oldTicket)
	input.ticket.spec.number <= input.oldTicket.spec.number
}

places_and_day(ticket) := object.filter(ticket.spec, ["from", "to", "departureDate"])

day(time) := substring(time, 0, 10)

# midnight is the start of a day, in nanoseconds.
midnight(date) := time.parse_rfc3339_ns(concat("", [date, "T00:00:00Z"]))

days(first, second) := (midnight(second) - midnight(first)) / 86400000000000

# after is in words how many days lie between a date and a departure.
after(n, date) := sprintf("%s after %s", [counted(n), date]) if n >= 0

after(n, _) := "in the past" if n < 0

counted(1) := "1 day"

counted(n) := sprintf("%d days", [n]) if n != 1

later(date, n) := time.format([time.add_date(midnight(date), 0, 0, n), "UTC", "2006-01-02"])
