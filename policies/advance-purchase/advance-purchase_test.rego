package flights.advance_purchase_test

import data.flights.advance_purchase

parameters := {"minDays": 14, "maxDays": 330, "requireDepartureDate": true}

leaving(date) := {
	"stage": "Admission",
	"now": "2027-03-01T23:30:00Z",
	"ticket": {"metadata": {}, "spec": {"from": "BOM", "to": "LHR", "number": 1, "departureDate": date}},
	"parameters": parameters,
}

open := json.remove(leaving(""), ["/ticket/spec/departureDate"])

updating(spec) := object.union(leaving("2027-03-04"), {
	"ticket": {"spec": spec},
	"oldTicket": {"spec": {"from": "BOM", "to": "LHR", "number": 1, "departureDate": "2027-03-04"}},
})

# booking looks at a ticket that was created on 1 March, on a day when the minimum has passed.
booking(date, now) := object.union(leaving(date), {
	"stage": "Booking",
	"now": now,
	"ticket": {"metadata": {"creationTimestamp": "2027-03-01T09:00:00Z"}},
})

test_allow_the_first_day if {
	count(advance_purchase.deny) == 0 with input as leaving("2027-03-15")
}

test_deny_the_day_before if {
	advance_purchase.deny == {"departure on 2027-03-14 is 13 days after 2027-03-01, and flights must be bought at least 14 days ahead: choose 2027-03-15 or later"} with input as leaving("2027-03-14")
}

test_deny_the_past if {
	advance_purchase.deny == {"departure on 2026-03-14 is in the past, and flights must be bought at least 14 days ahead: choose 2027-03-15 or later"} with input as leaving("2026-03-14")
}

test_deny_the_day_itself_in_the_singular if {
	advance_purchase.deny == {"departure on 2027-03-01 is 0 days after 2027-03-01, and flights must be bought at least 1 day ahead: choose 2027-03-02 or later"} with input as object.union(leaving("2027-03-01"), {"parameters": {"minDays": 1}})
}

test_deny_tomorrow_in_the_singular if {
	advance_purchase.deny == {"departure on 2027-03-02 is 1 day after 2027-03-01, and flights must be bought at least 14 days ahead: choose 2027-03-15 or later"} with input as leaving("2027-03-02")
}

test_allow_the_last_day if {
	count(advance_purchase.deny) == 0 with input as leaving("2028-01-25")
}

test_deny_the_day_after if {
	advance_purchase.deny == {"departure on 2028-01-26 is 331 days after 2027-03-01, and flights may be bought at most 330 days ahead: choose 2028-01-25 or earlier, or buy later"} with input as leaving("2028-01-26")
}

test_allow_any_day_up_to_a_maximum_alone if {
	count(advance_purchase.deny) == 0 with input as object.union(json.remove(leaving("2027-03-01"), ["/parameters/minDays"]), {})
}

test_deny_an_open_date if {
	advance_purchase.deny == {"a departure date is required, because flights must be bought some days ahead: set spec.departureDate, as in 2027-03-14"} with input as open
}

test_allow_an_open_date_where_none_is_required if {
	count(advance_purchase.deny) == 0 with input as object.union(open, {"parameters": {"requireDepartureDate": false}})
}

test_allow_an_edit_shortly_before_departure if {
	count(advance_purchase.deny) == 0 with input as updating({"costCenter": "4711"})
}

test_deny_another_date_shortly_before_departure if {
	count(advance_purchase.deny) == 1 with input as updating({"departureDate": "2027-03-05"})
}

test_deny_another_place_shortly_before_departure if {
	count(advance_purchase.deny) == 1 with input as updating({"to": "CDG"})
}

test_deny_more_seats_shortly_before_departure if {
	count(advance_purchase.deny) == 1 with input as updating({"number": 2})
}

test_allow_booking_late_what_was_admitted_in_time if {
	count(advance_purchase.deny) == 0 with input as booking("2027-03-15", "2027-03-03T09:00:00Z")
}

test_deny_booking_what_was_created_too_late if {
	count(advance_purchase.deny) == 1 with input as booking("2027-03-10", "2027-03-03T09:00:00Z")
}

test_allow_booking_what_was_moved_far_ahead_later if {
	count(advance_purchase.deny) == 0 with input as booking("2028-06-01", "2027-09-01T09:00:00Z")
}
