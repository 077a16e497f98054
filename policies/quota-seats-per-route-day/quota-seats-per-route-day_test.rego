package flights.quota_seats_per_route_day_test

import data.flights.quota_seats_per_route_day as policy

asked := {
	"ticket": {"spec": {"number": 2, "departureDate": "2027-12-31"}},
	"route": {
		"origin": {"kind": "airport", "iata": "LHR", "city": "London", "country": "GB"},
		"destination": {"kind": "city", "iata": "NYC", "city": "New York", "country": "US"},
	},
	"parameters": {"max": 9, "scope": "Cluster", "warnAt": 0},
}

undated := json.remove(asked, ["ticket/spec/departureDate"])

test_claim_the_way_there if {
	policy.quota == {{
		"key": "2027-12-31 London, GB to New York, US", "scope": "Cluster", "amount": 2, "limit": 9,
		"resets": "2028-01-01T00:00:00Z", "warn_at": 0,
	}} with input as asked
}

test_claim_the_way_back_on_its_own_day if {
	keys := {claim.key | some claim in policy.quota} with input as object.union(asked, {"ticket": {"spec": {"returnDate": "2028-01-05"}}})
	keys == {"2027-12-31 London, GB to New York, US", "2028-01-05 New York, US to London, GB"}
}

test_claim_an_unknown_code_by_itself if {
	keys := {claim.key | some claim in policy.quota} with input as object.union(asked, {"route": {"destination": {"kind": "code", "iata": "XXX"}}})
	keys == {"2027-12-31 London, GB to XXX"}
}

test_allow_a_ticket_with_a_date if count(policy.deny) == 0 with input as asked

test_deny_a_ticket_without_a_date if {
	policy.deny == {"seats are counted by day, and the ticket has no departure date: set spec.departureDate"} with input as undated
	count(policy.quota) == 0 with input as undated
}

test_deny_to_take_the_date_away if {
	count(policy.deny) == 1 with input as object.union(undated, {"oldTicket": asked.ticket})
}

test_allow_to_edit_an_older_ticket_without_a_date if {
	count(policy.deny) == 0 with input as object.union(undated, {"oldTicket": undated.ticket})
}
