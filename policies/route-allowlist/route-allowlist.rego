# METADATA
# title: Allowed routes
# description: >-
#   Refuses every ticket whose route isn't on a list. A city with several airports is allowed only if each of its airports
#   is, because any of them may be booked; the message names the allowed ones. An update that changes nothing of what is
#   booked passes.
# custom:
#   parameters:
#     type: object
#     required: [routes]
#     additionalProperties: false
#     properties:
#       routes:
#         title: Routes
#         description: The routes. An end that is left out stands for every place.
#         type: array
#         minItems: 1
#         maxItems: 200
#         items:
#           type: object
#           minProperties: 1
#           additionalProperties: false
#           properties:
#             from:
#               $ref: "#/$defs/end"
#             to:
#               $ref: "#/$defs/end"
#       directions:
#         title: Directions
#         description: >-
#           Both (default) reads each route there and back. One reads it as written; a ticket with a return date then flies
#           the way back too, and both ways are checked.
#         type: string
#         enum: [Both, One]
#         default: Both
#     $defs:
#       end:
#         title: End of a route
#         description: Any of the airports, cities and countries.
#         type: object
#         minProperties: 1
#         additionalProperties: false
#         properties:
#           airports:
#             title: Airports
#             description: IATA codes of airports, as in LHR. Codes of metropolitan areas such as LON belong under cities, by name.
#             type: array
#             minItems: 1
#             maxItems: 500
#             items:
#               type: string
#               pattern: "^[A-Z]{3}$"
#               format: flights-airport
#           cities:
#             title: Cities
#             description: City and country, as in "London, GB"; all airports of the city.
#             type: array
#             minItems: 1
#             maxItems: 500
#             items:
#               type: string
#               pattern: "^.{1,100}, [A-Z]{2}$"
#               format: flights-city
#           countries:
#             title: Countries
#             description: ISO 3166-1 alpha-2 codes, as in GB.
#             type: array
#             minItems: 1
#             maxItems: 250
#             items:
#               type: string
#               pattern: "^[A-Z]{2}$"
#               format: flights-country
package flights.route_allowlist

deny contains msg if {
	not untouched
	some leg in legs
	msg := refusal(leg, listed(leg))
}

refusal(leg, allowed) := sprintf(
	"%s to %s isn't on the list of allowed routes: choose an allowed route, or ask a cluster admin to allow this one",
	[named(leg.from), named(leg.to)],
) if {
	count(allowed) == 0
}

refusal(leg, allowed) := sprintf(
	"%s to %s may be booked with any of its airports, and not all are allowed: name the airports, as in %s",
	[named(leg.from), named(leg.to), examples(allowed)],
) if {
	count(allowed) > 0
	count(allowed) < count(leg.from.airports) * count(leg.to.airports)
}

# examples are the first allowed pairs.
examples(pairs) := concat(", ", array.slice(words, 0, 5)) if {
	words := [sprintf("%s to %s", pair) | some pair in sort(pairs)]
}

# legs are the flights to check: there, and back where that makes a difference.
legs contains {"from": input.route.origin, "to": input.route.destination}

legs contains {"from": input.route.destination, "to": input.route.origin} if {
	input.parameters.directions == "One"
	input.ticket.spec.returnDate
}

# listed are the pairs of airports of a leg that are on the list.
listed(leg) := {[a, b] |
	some route in input.parameters.routes
	some ends in readings
	some a in airports(leg.from, object.get(route, ends[0], {}))
	some b in airports(leg.to, object.get(route, ends[1], {}))
}

# readings are the ways to read a route: as written, and the other way round.
readings := [["from", "to"], ["to", "from"]] if input.parameters.directions == "Both"

readings := [["from", "to"]] if input.parameters.directions == "One"

# airports are those airports that a place stands for and an end of a route names.
airports(place, end) := place.airports if whole(place, end)

else := [a | some a in place.airports; a in end.airports]

whole(_, end) if end == {}

whole(place, end) if place.country in end.countries

whole(place, end) if {
	name := lower(concat(", ", [place.city, place.country]))
	some city in end.cities
	lower(city) == name
}

# untouched is an update that changes nothing of what is booked.
untouched if booked(input.ticket) == booked(input.oldTicket)

booked(ticket) := object.filter(
	ticket.spec,
	["from", "to", "number", "departureDate", "returnDate", "cabin"],
)

# named is a place as a reader knows it: "BOM", "London (LON)".
named(place) := place.iata if place.kind != "city"

named(place) := sprintf("%s (%s)", [place.city, place.iata]) if place.kind == "city"
