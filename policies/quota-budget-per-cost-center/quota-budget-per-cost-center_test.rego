package flights.quota_budget_per_cost_center_test

import data.flights.quota_budget_per_cost_center as policy

asked := {
	"ticket": {"spec": {
		"from": "BOM", "to": "London", "number": 2, "departureDate": "2027-12-31", "costCenter": "research",
		"maxPrice": {"minor": 120000, "currency": "EUR"},
	}},
	"parameters": {
		"budgets": {"research": 1000001, "sales": 0}, "currency": "EUR",
		"period": "Year", "retain": false, "warnPercent": 80,
	},
}

spending(period) := object.union(asked, {"parameters": {"period": period}})

without(field) := json.remove(asked, [concat("/", ["ticket/spec", field])])

test_claim_the_highest_price_for_a_year if {
	policy.quota == {{
		"key": "research 2027", "scope": "Cluster", "amount": 120000, "limit": 1000001,
		"resets": "2028-01-01T00:00:00Z", "retain": false, "warn_at": 800000,
	}} with input as asked
}

test_claim_for_a_month if {
	some claim in policy.quota with input as spending("Month")
	claim.key == "research 2027-12"
	claim.resets == "2028-01-01T00:00:00Z"
}

test_claim_for_all_time if {
	some claim in policy.quota with input as spending("Total")
	claim.key == "research"
	not claim.resets
}

test_allow_a_ticket_that_says_what_it_costs_whom if count(policy.deny) == 0 with input as asked

test_deny_a_ticket_without_a_highest_price if {
	policy.deny == {"the budget needs to know what the ticket may cost: set spec.maxPrice"} with input as without("maxPrice")
	count(policy.quota) == 0 with input as without("maxPrice")
}

test_deny_a_ticket_without_a_cost_centre if {
	policy.deny == {"the budget needs to know who pays: set spec.costCenter"} with input as without("costCenter")
	count(policy.quota) == 0 with input as without("costCenter")
}

test_deny_a_ticket_without_a_date if {
	policy.deny == {"the budget is for a time, and the ticket has no departure date: set spec.departureDate"} with input as without("departureDate")
	count(policy.quota) == 0 with input as without("departureDate")
}

test_allow_a_ticket_without_a_date_where_a_budget_has_no_end if {
	undated := json.remove(spending("Total"), ["ticket/spec/departureDate"])
	count(policy.deny) == 0 with input as undated
	count(policy.quota) == 1 with input as undated
}

test_deny_a_cost_centre_without_a_budget if {
	other := object.union(asked, {"ticket": {"spec": {"costCenter": "nobody"}}})
	policy.deny == {"cost centre \"nobody\" has no budget: name one that has, such as research, sales"} with input as other
	count(policy.quota) == 0 with input as other
}

test_claim_of_a_budget_of_nothing if {
	nothing := object.union(asked, {"ticket": {"spec": {"costCenter": "sales"}}})
	count(policy.deny) == 0 with input as nothing
	{claim.limit | some claim in policy.quota} == {0} with input as nothing
}

test_deny_another_currency if {
	other := object.union(asked, {"ticket": {"spec": {"maxPrice": {"currency": "USD"}}}})
	policy.deny == {"the budgets are in EUR, and spec.maxPrice is in USD: give it in EUR"} with input as other
	count(policy.quota) == 0 with input as other
}

test_allow_to_edit_an_older_ticket if {
	count(policy.deny) == 0 with input as object.union(without("maxPrice"), {"oldTicket": without("maxPrice").ticket})
}

test_deny_an_older_ticket_that_buys_more if {
	count(policy.deny) == 1 with input as object.union(without("maxPrice"), {"oldTicket": {"spec": {"number": 1}}})
}
