package mutants

// mutant is one guard taken out.
type mutant struct {
	// name is the guard; without it, what is so that no test may let pass.
	name, without string
	// in is the folder of the package that holds the guard, from the root of the work tree. In one of its files old, which
	// must be there exactly once, becomes new.
	in, old, new string
	// pkg is the package whose test misses the guard, test the name of that test as go test prints it: with subtests
	// behind slashes, and underscores for blanks.
	pkg, test string
	// quick ones run in every `make test`: few, and of one package, since each package costs one more build.
	quick bool
}

// table lists the guards in the order of the booking protocol. A new guard gets a line here in the commit that brings
// it; the fastest test that can miss it is the best one.
func table() []mutant {
	var all []mutant
	for _, part := range [][]mutant{
		beforeTheRecord(), record(), send(), outcome(), end(), person(), client(), ledger(), gate(),
	} {
		all = append(all, part...)
	}
	return all
}

const (
	core       = "controllers/flightticket/lifecycle"
	leads      = "TestNextLeadsATicketToItsBooking/"
	findsOut   = "TestNextFindsOutWhatBecameOfAnOperation/"
	keeps      = "TestNextKeepsABookingAsTheSpecAsksOrLetsItGo/"
	changeable = "TestKeysAndClocksThatChangeMeanwhileBuyNothingTwice/"
	slowly     = "TestWhatIsSentWhileTheProviderIsSlowIsWaitedForAsLong/"
)

func beforeTheRecord() []mutant {
	return []mutant{
		{
			name: "owner look-up", without: "a ticket that was created again is bought again", quick: true,
			in: core, old: "if !o.Provider.Lookup {\n\t\treturn obtain(", new: "if true {\n\t\treturn obtain(",
			pkg: core, test: leads + "the_owner_is_looked_up_before_the_first_book",
		},
		{
			name: "second gate", without: "an order is sent that the policies were not asked about",
			in:  core,
			old: "switch o.Heard.Verdict.Kind {\n\tcase VerdictAllowed:\n\t\treturn start(",
			new: "switch VerdictAllowed {\n\tcase VerdictAllowed:\n\t\treturn start(",
			pkg: core, test: leads + "the_policies_are_asked_with_an_offer",
		},
		{
			name: "price ceiling", without: "an offer is bought that costs more than spec.maxPrice",
			in: core, old: "case price.Minor > ceiling.Minor:", new: "case false:",
			pkg: core, test: leads + "an_offer_above_the_ceiling_is_not_bought",
		},
		{
			name: "limiter before the record", without: "an operation waits for its turn while its time to be sent runs out",
			in:  core,
			old: "case room == nil:\n\t\treturn Step{Action: Admit}", new: "case room == nil:",
			pkg: core, test: keeps + "room_is_asked_for_before_an_operation_is_written_down",
		},
	}
}

func record() []mutant {
	return []mutant{
		{
			name: "operation record", without: "an order is sent that a process which dies leaves no trace of",
			in:  "controllers/flightticket",
			old: "at := p.o.Now\n\tif err := p.write(ctx, step); err != nil {\n\t\treturn err\n\t}\n",
			new: "at := p.o.Now\n\tp.ticket.Status, p.o.Ticket.Status = step.Status, *step.Status.DeepCopy()\n",
			pkg: "cmd/controller", test: "TestAnOperationIsWrittenDownBeforeItIsSent",
		},
		{
			name: "conflict check", without: "an order is sent though the spec was edited since it was quoted",
			in:  "controllers/flightticket",
			old: "next.Status = step.Status\n",
			new: "latest := &flightsv1.FlightTicket{}\n\tif err := p.r.Live.Get(ctx, client.ObjectKeyFromObject(p.ticket), latest); err != nil {\n" +
				"\t\treturn err\n\t}\n\tnext.Status, next.ResourceVersion = step.Status, latest.ResourceVersion\n",
			pkg: "cmd/controller", test: "TestAnEditThatOvertakesAQuoteIsWhatIsBooked",
		},
		{
			name: "attempts counted on from the provider's", without: "an old booking passes for the outcome of a new operation",
			in: core, old: "mine && attempt > last {", new: "mine && attempt < last {",
			pkg: core, test: "TestAnAttemptIsNeverNumberedTwice",
		},
	}
}

func send() []mutant {
	return []mutant{
		{
			name: "send-by", without: "a process that was frozen sends an order long after it was given up", quick: true,
			in:  core,
			old: "return !now.Before(op.StartedAt.Time) && now.Before(op.SendBy.Time) && knownFor < window(op)", new: "return true",
			pkg: core, test: findsOut + "a_fresh_operation_past_its_send-by_is_closed,_certainly_unsent",
		},
		{
			name: "send-by on the process's own clock", without: "a wall clock that stands still extends the time to send",
			in: core, old: " && knownFor < window(op)", new: "",
			pkg: core, test: changeable + "nor_does_one_that_stands_still",
		},
		{
			name: "key reuse", without: "a repeated order is a new one to a provider that remembers keys",
			in: "controllers/flightticket", old: "key = op.ID", new: "key = p.r.NewID()",
			pkg: "cmd/controller", test: "TestATicketIsBookedOnceThoughTheAnswerWasLost/by_a_provider_that_remembers_keys,_drop-after",
		},
		{
			name: "key only where every send had it", without: "what was sent without a key is sent again with one",
			in: core, old: "remembered := op.Keyed && ", new: "remembered := ",
			pkg: core, test: changeable + "what_was_sent_without_a_key_is_not_sent_again_with_one",
		},
		{
			name: "lifetime of the key", without: "an order is repeated under a key that the provider has forgotten",
			in: core, old: " && window(op)+maxSkew <= o.Provider.KeyTTL", new: "",
			pkg: core, test: changeable + "a_key_that_the_provider_now_forgets_earlier_is_not_relied_on",
		},
		{
			name: "word before a repeat", without: "one process closes on a refusal what another one still sends",
			in:  core,
			old: "if longer || op.Outcome == \"\" {", new: "if longer {",
			pkg: core, test: changeable + "another_process_says_so_before_it_sends_an_operation_again",
		},
		{
			name: "times of a repeat", without: "what was sent while the provider was slow is called absent too early",
			in: core, old: "if longer || op.Outcome == \"\" {", new: "if op.Outcome == \"\" {",
			pkg: core, test: slowly + "a_repeat_is_written_down_before_it_is_sent",
		},
		{
			name: "times of a first send", without: "an operation is sent that can take longer than it says",
			in: core, old: " || outgrown(op, o.Provider))", new: ")",
			pkg: core, test: slowly + "a_fresh_operation_is_written_anew",
		},
		{
			name: "same account", without: "another account's answers are believed about an open operation", quick: true,
			in: core, old: "case pinned != nil && !p.heldBy(*pinned):", new: "case false:",
			pkg: core, test: findsOut + "another_account_proves_nothing_about_an_open_operation",
		},
	}
}

func outcome() []mutant {
	return []mutant{
		{
			name: "own operation", without: "an answer to one operation closes another one",
			in: "controllers/flightticket", old: "latest.Status.Operation == nil || latest.Status.Operation.ID != id", new: "false",
			pkg: "cmd/controller", test: "TestAnAnswerClosesNoOtherOperation",
		},
		{
			name: "own reference in an answer", without: "an answer about another booking is taken for this order's",
			in: core, old: "if b.Names.ClientReference == reference {", new: "if true {",
			pkg: core, test: "TestWhatAProviderShowsUnaskedIsNotTaken/a_list_that_holds_another_ticket's_booking_alone",
		},
		{
			name: "refusal of the first send or a replay", without: "a refusal closes an operation that an earlier send had carried out",
			in: core, old: "certain := o.alone(op) || out.Replayed", new: "certain := true",
			pkg: core, test: findsOut + "a_refusal_after_an_unknown_answer_closes_nothing",
		},
		{
			name: "absence only after everything settled", without: "an order is given up that the provider still works on",
			in:  core,
			old: "if settled(op, o.Provider, look.AskedAt, look.KnownFor) {", new: "if true {",
			pkg: core, test: findsOut + "an_early_look_that_finds_nothing_proves_nothing",
		},
		{
			name: "absence by the process's own clock", without: "a wall clock that was set forward proves absence",
			in: core, old: " && knownFor > window(op)+rest", new: "",
			pkg: core, test: changeable + "a_wall_clock_that_was_set_forward_proves_no_absence",
		},
		{
			name: "operation before all else", without: "a deleted ticket goes while its order may still be carried out",
			in:  core,
			old: "case t.Status.Operation != nil:", new: "case t.Status.Operation != nil && !t.Deleting:",
			pkg: core, test: changeable + "nor_because_its_ticket_is_deleted",
		},
	}
}

func end() []mutant {
	return []mutant{
		{
			name: "own reference before a cancellation", without: "another ticket's booking is cancelled",
			in: core, old: "case !o.mine(read.Booking):\n\t\treturn o.warn(", new: "case false:\n\t\treturn o.warn(",
			pkg: core, test: keeps + "a_booking_with_the_reference_of_another_ticket_is_not_cancelled",
		},
		{
			name: "own reference before a change", without: "another ticket's booking is changed",
			in: core, old: "case !o.mine(read.Booking):\n\t\treturn drifted(", new: "case false:\n\t\treturn drifted(",
			pkg: core, test: keeps + "a_booking_with_the_reference_of_another_ticket_is_not_changed",
		},
		{
			name: "404 from another account", without: "a ticket goes because a stranger does not see its booking",
			in:  core,
			old: "reach(o, &was.Provider, report{state: flightsv1.StateCancelling})",
			new: "reach(o, nil, report{state: flightsv1.StateCancelling})",
			pkg: core, test: "TestStories/deleted_with_the_credential_of_another_account",
		},
		{
			name: "look before a refused cancellation is believed", without: "a booking that is gone keeps its ticket for ever",
			in:  core,
			old: "case op.Kind == flightsv1.OperationCancel:\n\t\treturn cancelRejected(o, failure, certain)\n", new: "",
			pkg: core, test: keeps + "a_refused_cancellation_is_looked_into_first",
		},
		{
			name: "read lag", without: "a booking that is not shown yet is taken for cancelled",
			in: core, old: "if was != nil && was.BookedAt != nil && !r.AskedAt.After(was.BookedAt.Add(lag+time.Second)) {\n\t\treturn false\n\t}\n\treturn r.KnownFor > lag ",
			new: "_, _ = was, lag\n\treturn true ",
			pkg: core, test: keeps + "a_404_while_reads_may_lag_leaves_the_finalizer_on",
		},
	}
}

func person() []mutant {
	return []mutant{
		{
			name: "verb of a decision", without: "whoever may edit a ticket may take over bookings",
			in: "webhooks", old: "case may:\n\t\tr.rights", new: "case may || true:\n\t\tr.rights",
			pkg: "webhooks", test: "TestADecisionTakesItsOwnVerb/adopt",
		},
		{
			name: "verb that nobody can tell about", without: "a decision passes while the API server can't be asked",
			in: "webhooks", old: "may, err := v.rights.May(ctx, user, d.verb, r.req.Namespace, name)\n",
			new: "may, err := v.rights.May(ctx, user, d.verb, r.req.Namespace, name)\n\tmay, err = may || err != nil, nil\n",
			pkg: "webhooks", test: "TestADecisionTakesItsOwnVerb/adopt_that_nobody_can_tell_about",
		},
		{
			name: "adoption within one namespace", without: "a ticket takes over the booking of another team",
			in: core, old: "case !neighbour:", new: "case !neighbour && false:",
			pkg: core, test: "TestStories/adoption_refused,_then_booked",
		},
		{
			name: "adoption of what no other ticket holds", without: "two tickets hold one booking, and the first that goes cancels it",
			in: core, old: `case holder.Ticket != "":`, new: "case false:",
			pkg: core, test: "TestStories/adoption_refused_until_the_other_ticket_has_let_go",
		},
		{
			name: "drift is told and not mended", without: "a booking that the airline cancelled is bought again",
			in: core, old: "case o.gone(*read):\n\t\treturn drifted(o, isCancelled)", new: "case o.gone(*read):\n\t\treturn obtain(o, nil)",
			pkg: core, test: "TestStories/cancelled_at_the_provider,_edited_afterwards",
		},
	}
}

func client() []mutant {
	return []mutant{
		{
			name: "GetBody = nil", without: "the transport sends an order again by itself",
			in: "internal/booking/rest", old: "r.GetBody = nil", new: "_ = r.GetBody",
			pkg: "internal/booking/rest", test: "TestScenario21TheTransportThatRepeatsByItself/book_even_on_a_reused_connection",
		},
		{
			name: "key only where declared", without: "a key is sent to a provider that may take it for another one",
			in: "internal/booking/rest", old: "if !p.sendKeys || key", new: "if key",
			pkg: "internal/booking/rest", test: "TestARequestHasTheHeadersOfTheContract",
		},
		{
			name: "address check", without: "an endpoint that resolves inward is called with the token",
			in: "internal/booking/rest", old: "return checkAddress(address, allowPrivate)", new: "return nil",
			pkg: "internal/booking/rest", test: "TestScenario16AnEndpointThatResolvesInwardIsNotCalled",
		},
		{
			name: "pause that a provider asks for", without: "a provider is called while its Retry-After runs",
			in: "internal/booking/guard", old: "until.After(g.pausedUntil) {", new: "until.Before(g.pausedUntil) {",
			pkg: "internal/booking/guard", test: "TestScenario14RetryAfterPausesEveryCallOfTheCredential",
		},
	}
}
