package flights.route_allowlist_test

import data.flights.route_allowlist

bom := {"kind": "airport", "iata": "BOM", "airports": ["BOM"], "city": "Mumbai", "country": "IN"}

lhr := {"kind": "airport", "iata": "LHR", "airports": ["LHR"], "city": "London", "country": "GB"}

london := {"kind": "city", "iata": "LON", "airports": ["LGW", "LHR"], "city": "London", "country": "GB"}

unknown := {"kind": "code", "iata": "XXX", "airports": ["XXX"], "city": "", "country": ""}

flying(from, to, routes) := {
	"ticket": {"spec": {"from": from.iata, "to": to.iata, "number": 1}},
	"route": {"origin": from, "destination": to},
	"parameters": {"routes": routes, "directions": "Both"},
}

one_way(asked) := object.union(asked, {"parameters": {"directions": "One"}})

returning(asked) := object.union(asked, {"ticket": {"spec": {"returnDate": "2027-06-01"}}})

updating(asked, spec) := object.union(asked, {"oldTicket": {"spec": object.union(asked.ticket.spec, spec)}})

by_airport := [{"from": {"airports": ["BOM"]}, "to": {"airports": ["LHR"]}}]

by_city := [{"from": {"cities": ["mumbai, IN"]}, "to": {"cities": ["London, GB"]}}]

by_country := [{"from": {"countries": ["IN"]}, "to": {"countries": ["GB"]}}]

from_anywhere := [{"to": {"countries": ["GB"]}}]

test_allow_by_airport if {
	count(route_allowlist.deny) == 0 with input as flying(bom, lhr, by_airport)
}

test_allow_by_city if {
	count(route_allowlist.deny) == 0 with input as flying(bom, london, by_city)
}

test_allow_by_country if {
	count(route_allowlist.deny) == 0 with input as flying(bom, london, by_country)
}

test_allow_from_anywhere if {
	count(route_allowlist.deny) == 0 with input as flying(unknown, lhr, from_anywhere)
}

test_allow_the_way_back if {
	count(route_allowlist.deny) == 0 with input as flying(lhr, bom, by_airport)
}

test_allow_a_city_whose_airports_are_on_several_routes if {
	count(route_allowlist.deny) == 0 with input as flying(bom, london, array.concat(by_airport, [{"to": {"airports": ["LGW"]}}]))
}

test_deny_what_is_not_listed if {
	route_allowlist.deny == {"BOM to XXX isn't on the list of allowed routes: choose an allowed route, or ask a cluster admin to allow this one"} with input as flying(bom, unknown, by_country)
}

test_deny_a_city_of_which_one_airport_is_listed if {
	route_allowlist.deny == {"BOM to London (LON) may be booked with any of its airports, and not all are allowed: name the airports, as in BOM to LHR"} with input as flying(bom, london, by_airport)
}

test_deny_the_way_back_of_one_direction if {
	count(route_allowlist.deny) == 1 with input as one_way(flying(lhr, bom, by_airport))
}

test_allow_one_way_in_one_direction if {
	count(route_allowlist.deny) == 0 with input as one_way(flying(bom, lhr, by_airport))
}

test_deny_a_return_flight_in_one_direction if {
	route_allowlist.deny == {"LHR to BOM isn't on the list of allowed routes: choose an allowed route, or ask a cluster admin to allow this one"} with input as returning(one_way(flying(bom, lhr, by_airport)))
}

test_allow_an_update_of_something_else if {
	count(route_allowlist.deny) == 0 with input as updating(flying(bom, unknown, by_airport), {"costCenter": "4711"})
}

test_deny_an_update_that_books_more if {
	count(route_allowlist.deny) == 1 with input as updating(flying(bom, unknown, by_airport), {"number": 2})
}
