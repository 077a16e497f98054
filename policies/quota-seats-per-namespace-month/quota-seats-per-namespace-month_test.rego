package flights.quota_seats_per_namespace_month_test

import data.flights.quota_seats_per_namespace_month as policy

departing(day) := {
	"ticket": {
		"metadata": {"creationTimestamp": "2027-03-01T09:00:00Z"},
		"spec": {"number": 2, "departureDate": day},
	},
	"parameters": {"max": 20, "warnAt": 16},
}

undated := json.remove(departing(""), ["ticket/spec/departureDate"])

test_claim_by_the_month_of_departure if {
	policy.quota == {{
		"key": "2027-12", "scope": "Namespace", "amount": 2, "limit": 20,
		"resets": "2028-01-01T00:00:00Z", "warn_at": 16,
	}} with input as departing("2027-12-31")
}

test_claim_without_a_departure_by_the_month_of_creation if {
	some claim in policy.quota with input as undated
	claim.key == "2027-03"
	claim.resets == "2027-04-01T00:00:00Z"
}

test_allow_what_has_a_month if {
	count(policy.deny) == 0 with input as departing("2027-12-31")
	count(policy.deny) == 0 with input as undated
}

test_deny_what_has_no_date_at_all if {
	asked := json.remove(undated, ["ticket/metadata/creationTimestamp"])
	policy.deny == {"the month isn't known before the ticket is stored: set spec.departureDate"} with input as asked
	count(policy.quota) == 0 with input as asked
}
