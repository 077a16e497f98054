package flights.seats_per_ticket_test

import data.flights.seats_per_ticket

asking(seats) := {"ticket": {"spec": {"number": seats}}, "parameters": {"max": 2}}

updating(from, to) := object.union(asking(to), {"oldTicket": {"spec": {"number": from}}})

test_allow_the_maximum if {
	count(seats_per_ticket.deny) == 0 with input as asking(2)
}

test_deny_more if {
	seats_per_ticket.deny == {"3 seats are more than the 2 that one ticket may have: lower spec.number to 2 or less"} with input as asking(3)
}

test_allow_an_older_ticket_that_stays_as_it_is if {
	count(seats_per_ticket.deny) == 0 with input as updating(4, 4)
}

test_allow_an_older_ticket_that_shrinks if {
	count(seats_per_ticket.deny) == 0 with input as updating(5, 4)
}

test_deny_a_raise if {
	count(seats_per_ticket.deny) == 1 with input as updating(1, 3)
}
