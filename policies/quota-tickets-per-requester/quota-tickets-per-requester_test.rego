package flights.quota_tickets_per_requester_test

import data.flights.quota_tickets_per_requester as policy

created_by(name) := {
	"requester": name,
	"ticket": {"spec": {"number": 2}},
	"parameters": {"max": 3, "scope": "Cluster", "warnAt": 2},
}

key(asked) := claim.key if some claim in policy.quota with input as asked

test_claim_one_ticket_of_its_creator if {
	policy.quota == {{"key": "asha", "scope": "Cluster", "amount": 1, "limit": 3, "warn_at": 2}} with input as created_by("asha")
}

test_claim_of_an_unknown_creator if key(created_by("")) == "(unknown)"

test_claim_of_a_long_name if {
	name := concat("", [x | some x in split("system:serviceaccount:a-namespace-with-a-long-name:and-an-account-with-one", "")])
	key(created_by(name)) == concat("", ["sha256:", crypto.sha256(name)])
	count(key(created_by(name))) == 71
}

test_allow_a_scope_of_ones_own if {
	some claim in policy.quota with input as object.union(created_by("asha"), {"parameters": {"scope": "Namespace"}})
	claim.scope == "Namespace"
}
