# METADATA
# title: Denied routes
# description: >-
#   Refuses every ticket whose route is on a list. A city with several airports is refused if one of them is, because any
#   of them may be booked; the message names the denied ones. A code that the table of places lacks can't be told to be
#   outside a city or country, so it is refused if the list names any. An update that changes nothing of what is booked
#   passes.
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
#       allowUnknownCodes:
#         title: Allow unknown codes
#         description: Allows codes that the table of places lacks, though their city and country aren't known.
#         type: boolean
#         default: false
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
package flights.route_denylist

deny contains msg if {
	not untouched
	some leg in legs
	denied := listed(leg)
	count(denied) > 0
	msg := sprintf("%s to %s is a denied route%s", [named(leg.from), named(leg.to), advice(leg, denied)])
}

deny contains msg if {
	not untouched
	not input.parameters.allowUnknownCodes
	some place in [input.route.origin, input.route.destination]
	place.kind == "code"
	some route in input.parameters.routes
	some end in route
	some kind in ["cities", "countries"]
	end[kind]
	msg := sprintf(
		"%s isn't in the table of airports, so it can't be checked against the denied cities and countries: name a known airport, or ask a cluster admin",
		[place.iata],
	)
}

# advice names airports of the same cities that aren't denied, if there are any.
advice(leg, denied) := concat("", [": name the airports, as in ", concat(", ", array.slice(words, 0, 5))]) if {
	open := {[a, b] | some a in leg.from.airports; some b in leg.to.airports} - denied
	words := [sprintf("%s to %s", pair) | some pair in sort(open)]
	count(words) > 0
}

else := ": choose another one, or ask a cluster admin"

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
