package flights.route_denylist_test

import data.flights.route_denylist

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

test_deny_by_airport if {
	route_denylist.deny == {"BOM to LHR is a denied route: choose another one, or ask a cluster admin"} with input as flying(bom, lhr, by_airport)
}

test_deny_by_city if {
	count(route_denylist.deny) == 1 with input as flying(bom, lhr, by_city)
}

test_deny_by_country if {
	count(route_denylist.deny) == 1 with input as flying(bom, london, by_country)
}

test_deny_from_anywhere if {
	count(route_denylist.deny) == 1 with input as flying(bom, lhr, from_anywhere)
}

test_deny_the_way_back if {
	route_denylist.deny == {"LHR to BOM is a denied route: choose another one, or ask a cluster admin"} with input as flying(lhr, bom, by_airport)
}

test_deny_a_city_of_which_one_airport_is_denied if {
	route_denylist.deny == {"BOM to London (LON) is a denied route: name the airports, as in BOM to LGW"} with input as flying(bom, london, by_airport)
}

test_allow_what_is_not_listed if {
	count(route_denylist.deny) == 0 with input as flying(bom, unknown, by_airport)
}

test_allow_the_way_back_of_one_direction if {
	count(route_denylist.deny) == 0 with input as one_way(flying(lhr, bom, by_airport))
}

test_deny_a_return_flight_that_flies_a_denied_way_back if {
	route_denylist.deny == {"BOM to LHR is a denied route: choose another one, or ask a cluster admin"} with input as returning(one_way(flying(lhr, bom, by_airport)))
}

test_deny_an_unknown_code_that_may_lie_in_a_denied_country if {
	route_denylist.deny == {"XXX isn't in the table of airports, so it can't be checked against the denied cities and countries: name a known airport, or ask a cluster admin"} with input as flying(bom, unknown, by_country)
}

test_allow_an_unknown_code_where_that_is_wanted if {
	count(route_denylist.deny) == 0 with input as object.union(flying(bom, unknown, by_country), {"parameters": {"allowUnknownCodes": true}})
}

test_allow_an_update_of_something_else if {
	count(route_denylist.deny) == 0 with input as updating(flying(bom, lhr, by_airport), {"costCenter": "4711"})
}

test_deny_an_update_that_books_more if {
	count(route_denylist.deny) == 1 with input as updating(flying(bom, lhr, by_airport), {"number": 2})
}
