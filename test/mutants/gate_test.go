package mutants

const (
	gated = "TestQuotasAreAskedBeforeAnythingIsBought/"
	stays = "TestATicketStaysUntilWhatOutlivesItIsKept/"
	edge  = "controllers/flightticket"
)

// gate lists the guards of the second gate of quotas, as far as it is the ticket controller's.
func gate() []mutant {
	return append(gateOfTheCore(), []mutant{
		{
			name: "a gate in every controller", without: "a controller whose quotas were forgotten books whatever it finds",
			in: edge, old: "if o.Quotas == nil {", new: "if false {",
			pkg: edge, test: "TestAReconcilerWithoutQuotasIsNotMade",
		},
		{
			name: "news of room while a ticket is asked about", without: "a ticket waits on though room came about between question and rest",
			in: edge, old: "r.rest.quotas && r.rest.woken != r.wakes", new: "false",
			pkg: edge, test: "TestOnlyATicketThatWaitsForItsQuotasIsWoken",
		},
	}...)
}

func gateOfTheCore() []mutant {
	return []mutant{
		{
			name: "quotas before an offer", without: "a ticket without room costs a quote at each look",
			in: core, old: "CheckQuotas, o.Heard.Quotas); held {", new: "CheckQuotas, o.Heard.Quotas); held && false {",
			pkg: core, test: gated + "before_an_offer_is_asked_for",
		},
		{
			name: "quotas with the offer", without: "an order is sent that no quota was asked about",
			in: core, old: "HoldQuotas, o.Heard.Hold); held {", new: "HoldQuotas, o.Heard.Hold); held && false {",
			pkg: core, test: gated + "with_the_offer_before_the_order_is_written_down",
		},
		{
			name: "quotas before the record", without: "the quotas are asked when the operation is written down already",
			in:  core,
			old: "if kind != flightsv1.OperationCancel {\n\t\tif step, held", new: "if o.Ticket.Status.Operation != nil {\n\t\tif step, held",
			pkg: core, test: "TestWhateverPeopleAndProvidersDo",
		},
		{
			name: "no quotas for a cancellation", without: "a ticket beyond its quota can't be cancelled, and makes no room",
			in:  core,
			old: "if kind != flightsv1.OperationCancel {\n\t\tif step, held", new: "if kind != \"\" {\n\t\tif step, held",
			pkg: core, test: gated + "a_cancellation_asks_none,_since_it_makes_room",
		},
		{
			name: "quotas that can't tell", without: "an answer that is none is taken for room",
			in: core, old: "case QuotaRoom:\n\t\treturn Step{}, false", new: "case QuotaRoom, QuotaError:\n\t\treturn Step{}, false",
			pkg: core, test: "TestATicketWithoutRoomWaits/with_the_offer,_for_an_answer",
		},
		{
			name: "departure before the finalizer", without: "a ticket goes whose retained amount nobody has counted",
			in: core, old: "return Step{Action: Depart}", new: "return Step{Action: RemoveFinalizer, Event: event}",
			pkg: core, test: stays + "its_quotas_are_asked",
		},
		{
			name: "a departure that is not in place", without: "a ticket goes before its quotas have kept what outlives it",
			in: core, old: "case gone.Missing != \"\":", new: "case false:",
			pkg: core, test: stays + "it_waits_for_them_when_its_booking_stays",
		},
		{
			name: "flights of the offer", without: "a booked ticket no longer counts on the flight that it was let on to",
			in: core, old: "booking.WrittenPrice(taken.Price), booking.Written(taken.Segments)", new: "booking.WrittenPrice(taken.Price), nil",
			pkg: core, test: "TestAnOperationKeepsTheFlightsOfItsOffer",
		},
		{
			name: "flights that the provider doesn't tell again", without: "a booking whose provider tells no flights counts on none",
			in: core, old: "if len(s.Segments) == 0 || len(s.Segments) > booking.MaxSegments {", new: "if false {",
			pkg: core, test: "TestABookingKeepsItsFlightsAndItsPrice/as_they_were_offered,_where_the_provider_tells_none",
		},
		{
			name: "answers that have grown old", without: "a ticket that waited for room is bought though it was created again meanwhile",
			in: core, old: "return now.Sub(askedAt) <= keepTime", new: "return true",
			pkg: core, test: "TestWhatWasHeardIsUsedAgainWhileItHoldsGood",
		},
	}
}
