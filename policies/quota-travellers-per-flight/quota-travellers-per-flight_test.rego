package flights.quota_travellers_per_flight_test

import data.flights.quota_travellers_per_flight as policy

segment(number, departs) := {"marketingCarrier": "BA", "flightNumber": number, "departsAt": departs}

offering(segments) := {
	"ticket": {"spec": {"number": 2}},
	"offer": {"segments": segments},
	"parameters": {"max": 3, "scope": "Cluster"},
}

direct := offering([segment("BA138", "2027-12-31T23:00:00+05:30")])

test_claim_the_travellers_of_a_flight if {
	policy.quota == {{
		"key": "BA BA138 2027-12-31", "scope": "Cluster", "amount": 2, "limit": 3,
		"resets": "2028-01-02T00:00:00Z",
	}} with input as direct
}

test_claim_each_flight_of_a_journey if {
	count(policy.quota) == 2 with input as offering([segment("BA138", "2027-12-31T08:00:00Z"), segment("BA177", "2027-12-31T20:00:00Z")])
}

test_allow_flights_that_have_a_number if count(policy.deny) == 0 with input as direct

test_allow_what_has_no_offer_yet if {
	asked := json.remove(direct, ["offer"])
	count(policy.deny) == 0 with input as asked
	count(policy.quota) == 0 with input as asked
}

test_deny_an_offer_without_flights if {
	policy.deny == {"the offer doesn't tell its flights, so travellers can't be counted: ask for another provider or date"} with input as offering([])
}

test_deny_a_flight_without_a_number if {
	count(policy.deny) == 1 with input as offering([segment("BA138", "2027-12-31T08:00:00Z"), segment("", "2027-12-31T20:00:00Z")])
}
