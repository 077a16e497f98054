# METADATA
# title: Budget per cost centre
# description: >-
#   Holds what the tickets of a cost centre may cost to its budget, by the month or year of departure. A ticket holds its
#   maxPrice until it is booked, and then what was paid. So a ticket without maxPrice, without a cost centre, with one that
#   has no budget, or in another currency is refused; so is one without a departure date, unless the budgets have no end.
#   Tickets from before the policy hold what is known of them, and can be edited in everything that costs nothing more.
# custom:
#   parameters:
#     type: object
#     required: [budgets, currency]
#     properties:
#       budgets:
#         title: Budgets
#         description: The budget of each cost centre, in minor units of the currency, as in 500000 for 5000.00.
#         type: object
#         minProperties: 1
#         maxProperties: 1000
#         additionalProperties:
#           type: integer
#           minimum: 0
#           maximum: 9007199254740992
#       currency:
#         title: Currency
#         description: The ISO 4217 code of the currency of all budgets, as in EUR.
#         type: string
#         pattern: "^[A-Z]{3}$"
#       period:
#         title: Period
#         description: What a budget is for, by the date of departure. Year (default), Month, or Total for one without end.
#         type: string
#         enum: [Year, Month, Total]
#         default: Year
#       retain:
#         title: Retain
#         description: >-
#           Whether what a ticket held stays spent when the ticket is deleted, if it had a booking. By default it stays only if
#           the booking stays with the provider, as when deletionPolicy is Retain.
#         type: boolean
#         default: false
#       warnPercent:
#         title: Warn at
#         description: The per cent of a budget from which tickets are admitted with a warning; 0 for never.
#         type: integer
#         minimum: 0
#         maximum: 100
#         default: 0
package flights.quota_budget_per_cost_center

quota contains object.union(claim, window) if {
	some claim in claims
	some window in windows
}

claims contains {
	"key": concat(" ", array.concat([cost_center], period)),
	"scope": "Cluster",
	"amount": input.ticket.spec.maxPrice.minor,
	"limit": budget,
	"retain": input.parameters.retain,
	"warn_at": floor((budget * input.parameters.warnPercent) / 100),
} if {
	cost_center := input.ticket.spec.costCenter
	budget := input.parameters.budgets[cost_center]
	input.ticket.spec.maxPrice.currency == input.parameters.currency
}

period := [] if input.parameters.period == "Total"

period := [substring(input.ticket.spec.departureDate, 0, 4)] if input.parameters.period == "Year"

period := [substring(input.ticket.spec.departureDate, 0, 7)] if input.parameters.period == "Month"

windows contains {} if input.parameters.period == "Total"

windows contains {"resets": later("2006", period[0], 1, 0)} if input.parameters.period == "Year"

windows contains {"resets": later("2006-01", period[0], 0, 1)} if input.parameters.period == "Month"

later(layout, start, years, months) := time.format([time.add_date(time.parse_ns(layout, start), years, months, 0), "UTC", "RFC3339"])

deny contains msg if {
	not untouched
	some msg in reasons
}

reasons contains "the budget needs to know what the ticket may cost: set spec.maxPrice" if not input.ticket.spec.maxPrice

reasons contains "the budget needs to know who pays: set spec.costCenter" if not input.ticket.spec.costCenter

reasons contains "the budget is for a time, and the ticket has no departure date: set spec.departureDate" if {
	input.parameters.period != "Total"
	not input.ticket.spec.departureDate
}

reasons contains msg if {
	input.ticket.spec.costCenter != ""
	cost_center := input.ticket.spec.costCenter
	not input.parameters.budgets[cost_center]
	msg := sprintf("cost centre %q has no budget: name one that has, such as %s", [cost_center, concat(", ", array.slice(known, 0, 10))])
}

reasons contains msg if {
	currency := input.ticket.spec.maxPrice.currency
	currency != input.parameters.currency
	msg := sprintf("the budgets are in %s, and spec.maxPrice is in %s: give it in %s", [input.parameters.currency, currency, input.parameters.currency])
}

known := sort(object.keys(input.parameters.budgets))

# untouched is an update that changes nothing of what is paid for.
untouched if paid(input.ticket) == paid(input.oldTicket)

paid(ticket) := object.filter(
	ticket.spec,
	["from", "to", "number", "departureDate", "returnDate", "cabin", "maxPrice", "costCenter"],
)
