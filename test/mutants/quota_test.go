package mutants

const (
	ledgerCode = "internal/quota"
	storeCode  = "internal/quota/store"
	counter    = "controllers/quotabucket"
)

// ledger are the guards of the quota protocol (docs/quota-protocol.md), by its rules.
func ledger() []mutant {
	var all []mutant
	for _, part := range [][]mutant{reserving(), counting(), storing(), rounds(), booking()} {
		all = append(all, part...)
	}
	return all
}

func reserving() []mutant {
	return []mutant{
		{
			name: "held", without: "of two updates of one ticket the smaller one counts, and the larger one may be stored",
			in: ledgerCode, old: "max(h.largest, e.Amount)\n\tp.tickets", new: "e.Amount\n\tp.tickets",
			pkg: ledgerCode, test: "TestReserving/a_smaller_update_beside_a_larger_one",
		},
		{
			name: "own entry a review", without: "a review is answered because of another one's entry, which may go",
			in: ledgerCode, old: "return e.Nonce == nonce })", new: "return e.Nonce != \"\" || nonce == \"\" })",
			pkg: ledgerCode, test: "TestReserving/the_same_again",
		},
		{
			name: "min rule for settled", without: "a raise of a ticket that isn't counted yet is taken for counted in part",
			in: ledgerCode, old: "settled = min(settled, h.settled)", new: "settled = max(settled, h.settled)",
			pkg: ledgerCode, test: "TestReserving/a_raise_of_a_ticket_that_isn't_counted_yet",
		},
		{
			name: "raises only", without: "a bucket above its limit can never shrink",
			in: ledgerCode, old: "c.Amount > old {", new: "c.Amount > 0 {",
			pkg: ledgerCode, test: "TestOnlyRaisesAreReserved/less",
		},
		{
			name: "raises only, in a bucket", without: "a ticket that takes no more is refused by a bucket above its limit",
			in: ledgerCode, old: "if r.Amount <= r.Old || p.holds", new: "if p.holds",
			pkg: ledgerCode, test: "TestReserving/no_raise_in_a_bucket_above_its_limit",
		},
		{
			name: "generation stamp", without: "a claim that an earlier generation of the policy measured is admitted",
			in: ledgerCode, old: "r.PolicyGeneration < newest {", new: "r.PolicyGeneration < newest && false {",
			pkg: ledgerCode, test: "TestGenerationsOfThePolicy",
		},
		{
			name: "retained counts", without: "what departed tickets keep is given away again",
			in: ledgerCode, old: "plus(plus(p.bucket.Used, p.beyond), p.bucket.Retained) }", new: "plus(p.bucket.Used, p.beyond) }",
			pkg: ledgerCode, test: "TestReserving/seats_that_are_retained",
		},
		{
			name: "cap of entries in bytes", without: "a bucket grows until the API server refuses it",
			in: ledgerCode, old: " || p.bytes+size(entry) > MaxEntryBytes", new: "",
			pkg: ledgerCode, test: "TestEntriesAreCappedInNumberAndBytes",
		},
	}
}

func counting() []mutant {
	return []mutant{
		{
			name: "countedRevision", without: "an old leader's count overwrites a later one",
			in: ledgerCode, old: "if later(b.CountedRevision, s.From) {", new: "if later(b.CountedRevision, s.From) && false {",
			pkg: ledgerCode, test: "TestACountIsVoidAfterALaterOne",
		},
		{
			name: "generation of a count", without: "a count by an earlier generation of the policy overwrites a later one's",
			in: ledgerCode, old: "if s.PolicyGeneration < b.PolicyGeneration {", new: "if s.PolicyGeneration < b.PolicyGeneration && false {",
			pkg: ledgerCode, test: "TestGenerationsOfThePolicy",
		},
		{
			name: "generation that counted", without: "what an earlier generation measured is believed under a later one",
			in: ledgerCode, old: "p.bucket.CountedRevision, p.bucket.CountedGeneration = s.From, s.PolicyGeneration",
			new: "p.bucket.CountedRevision = s.From",
			pkg: ledgerCode, test: "TestABucketSaysByWhichGenerationItWasCounted",
		},
		{
			name: "entries of tickets newer than the count", without: "a later count of a revision in between finds neither ticket nor entry",
			in: ledgerCode, old: "return Stored(e, t.UID, t.Generation) && !later(t.Revision, s.From)", new: "return Stored(e, t.UID, t.Generation)",
			pkg: ledgerCode, test: "TestTheLedgerKeepsItsPromisesOnEveryWalk",
		},
		{
			name: "namesake", without: "something is retained beside a ticket of the same name, and nobody asked whether both fit",
			in: ledgerCode, old: " && !p.namesake(t)", new: "",
			pkg: ledgerCode, test: "TestNothingIsRetainedBesideAnEntryOfANamesake",
		},
		{
			name: "age of an entry", without: "an entry is dropped while its request may still be stored",
			in: ledgerCode, old: "known && now.Sub(seen) > patience {", new: "known && now.Sub(seen) > min(patience, 0) {",
			pkg: ledgerCode, test: "TestAges",
		},
		{
			name: "what an open bucket holds", without: "a bucket goes with what its entries hold",
			in: ledgerCode, old: "b.Used > 0 || len(b.Entries) > 0 ||", new: "b.Used > 0 ||",
			pkg: ledgerCode, test: "TestWhenABucketMayGo",
		},
	}
}

func storing() []mutant {
	return []mutant{
		{
			name: "resourceVersion of a reservation", without: "two replicas overwrite each other's entries",
			in:  storeCode,
			old: "bucket, asOf, start := p.page.Bucket(), w.store.now(), time.Now()\n",
			new: "bucket, asOf, start := p.page.Bucket(), w.store.now(), time.Now()\n" +
				"\tif latest, _ := w.store.read(ctx, w.place); latest != nil {\n\t\tbucket.ResourceVersion = latest.ResourceVersion\n\t}\n",
			pkg: storeCode, test: "TestScenario3EverybodyAtOnce",
		},
		{
			name: "resourceVersion of a count", without: "a count overwrites what was reserved meanwhile",
			in:  storeCode,
			old: "written := page.Bucket()\n",
			new: "written := page.Bucket()\n\tif latest, _ := readBucket(ctx, e.Reader, place); latest != nil {\n" +
				"\t\twritten.ResourceVersion = latest.ResourceVersion\n\t}\n",
			pkg: storeCode, test: "TestAnEditBeginsAnewWhenSomebodyElseWrote",
		},
		{
			name: "opening of buckets", without: "a bucket that is missing is taken for an empty one",
			in: storeCode, old: "case policy.Status.CountedGeneration != c.PolicyGeneration:", new: "case false:",
			pkg: storeCode, test: "TestAMissingBucketIsNotAnEmptyOneUntilThePolicyIsCounted",
		},
		{
			name: "the policy asked again after the first write", without: "a bucket is made under a generation whose buckets were stamped before",
			in: storeCode, old: "w.confirm(ctx, p)\n", new: "_ = w.confirm\n",
			pkg: storeCode, test: "TestAPolicyThatChangesDuringTheFirstWriteRefuses",
		},
		{
			name: "live read before a refusal", without: "somebody is refused by what the bucket said before they asked",
			in: storeCode, old: "if p.refusedBefore(w.asOf) {", new: "if p.refusedBefore(w.asOf) && false {",
			pkg: storeCode, test: "TestARefusalRestsOnWhatTheAPIServerSaysNow",
		},
		{
			name: "taking back", without: "a ticket that a later bucket refuses stays charged to the earlier ones",
			in: storeCode, old: "\t\t\ts.Release(h)\n\t\t\treturn nil, s.withOthers", new: "\t\t\treturn nil, s.withOthers",
			pkg: storeCode, test: "TestWhatALostWriteStoredIsTakenBackWhenALaterBucketRefuses",
		},
		{
			name: "removal of what is empty at that moment", without: "a bucket goes with an entry that came while it was being removed",
			in: storeCode, old: "case !allowed(quota.Open(bucket)), letGo(bucket):", new: "case try == 0 && !allowed(quota.Open(bucket)), letGo(bucket):",
			pkg: storeCode, test: "TestABucketIsRemovedOnlyWhileNothingIsInIt",
		},
	}
}

func rounds() []mutant {
	return []mutant{
		{
			name: "live GET before an entry is dropped", without: "an entry goes whose ticket is stored and not counted yet",
			in:  counter,
			old: "case !quota.Stored(e, t.UID, t.Generation):\n\t\treturn true, nil", new: "case e.Name != \"\":\n\t\treturn true, nil",
			pkg: counter, test: "TestAnAgedEntryStaysWhileItsTicketIsStored",
		},
		{
			name: "opening of missing buckets", without: "a policy is called counted while a key that tickets have lacks its bucket",
			in: counter, old: "if !there[at] && !o.absent(at) {\n\t\t\tp.missing(", new: "if false {\n\t\t\tp.missing(",
			pkg: counter, test: "TestWhatARoundDecides/a_bucket_that_is_missing",
		},
		{
			name: "drained old buckets", without: "new keys open while something admitted under the old ones may still be stored",
			in: counter, old: "quota.CountedBy(b, generation) && quota.Open(b).Drained(generation)", new: "quota.CountedBy(b, generation)",
			pkg: counter, test: "TestWhatARoundDecides/an_old_entry",
		},
		{
			name: "a request's life before a quota is in force", without: "a policy is ready while something reviewed before it may still be stored",
			in: counter, old: "return left <= 0, max(left, 0)", new: "return true, max(left, 0)",
			pkg: counter, test: "TestAPolicyComesIntoForceStepByStep",
		},
		{
			name: "a count of what was stored by then", without: "a policy is ready by counts that lack what was stored last",
			in: counter, old: " && page.CountedSince(f.floor)", new: "",
			pkg: counter, test: "TestAPolicyComesIntoForceStepByStep",
		},
	}
}

func booking() []mutant {
	return []mutant{
		{
			name: "second gate by the limit", without: "a ticket is booked though those before it leave no room",
			in: ledgerCode, old: "if plus(before, max(c.Amount, this.Amount)) > c.Limit {", new: "if plus(before, max(c.Amount, this.Amount)) > c.Limit && false {",
			pkg: ledgerCode, test: "TestTheSecondGate/older_tickets_that_leave_none",
		},
		{
			name: "second gate by a fresh cache", without: "an old leader books by what it knew long ago",
			in: ledgerCode, old: "if later(p.bucket.CountedRevision, s.From) {\n\t\treturn wait", new: "if later(p.bucket.CountedRevision, s.From) && false {\n\t\treturn wait",
			pkg: ledgerCode, test: "TestTheSecondGate/a_cache_behind_the_count",
		},
		{
			name: "second gate by a count that has the ticket", without: "a ticket is booked that no count has seen",
			in: ledgerCode, old: "if Stored(e, this.UID, this.Generation) {", new: "if Stored(e, this.UID, this.Generation) && false {",
			pkg: ledgerCode, test: "TestTheSecondGate/an_entry_of_its_own_is_open",
		},
		{
			name: "second gate before the operation", without: "an order is written down that the quotas were not asked about with its offer",
			in: core, old: "afford(o, kind, HoldQuotas, o.Heard.Hold); held {", new: "afford(o, kind, HoldQuotas, o.Heard.Hold); held && false {",
			pkg: core, test: "TestQuotasAreAskedBeforeAnythingIsBought/with_the_offer_before_the_order_is_written_down",
		},
	}
}
