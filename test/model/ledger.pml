/*
 * The quota ledger under one generation of a policy: two webhooks review requests, two controllers count and age.
 * Either controller may be the old leader: each has a cache that lags as far as it likes, stops and wakes anywhere.
 *
 * A scene names the requests; either webhook may take any of them, in any order. Each of these takes a rule out:
 * NO_VERSION_CHECK, NO_LIVE_GET, NO_COUNTED_REVISION, NO_OWN_ENTRY, NO_MIN_RULE; LOOSE_SNAPSHOT, RETAIN_BESIDE_NAMESAKE,
 * RETAIN_UNSEEN, FORGET_DEPARTURE.
 * KIND and TICKET of a request, the claim it WANTs on a bucket, and AFTER: what must be over before a user can ask.
 */
#if defined(SCENE_WRITES)
/* Reads and writes of buckets are steps of their own here: X is created and raised, Y is its rival; replies are lost. */
#define IN_STEPS
#define OPS 3
#define NB 1
#define LIMIT(g) 3
#define KIND(op) (op == 2 -> UPDATE : CREATE)
#define TICKET(op) (op == 1 -> Y : X)
#define WANT(g, op, b) (op == 2 -> 3 : 2)
#define AFTER(op) (op != 2 || over[0])
#elif defined(SCENE_EDITS)
/* X is created, raised by two requests at once, shrunk, deleted; Y is its rival for the last seat. */
#define OPS 6
#define NB 1
#define LIMIT(g) 3
#define KIND(op) (op == 0 || op == 4 -> CREATE : (op == 5 -> DELETE : UPDATE))
#define TICKET(op) (op == 4 -> Y : X)
#define WANT(g, op, b) (op == 1 -> 2 : (op == 2 -> 3 : 1))
#define AFTER(op) (op == 0 || op == 4 || over[0])
#elif defined(SCENE_AGAIN)
/* The same raise is asked for twice, then X goes. */
#define OPS 6
#define NB 1
#define MIXED
#define LIMIT(g) 3
#define KIND(op) (op == 0 || op == 3 -> CREATE : (op == 4 -> DELETE : (op == 5 -> GONE : UPDATE)))
#define TICKET(op) (op == 3 -> Y : X)
#define WANT(g, op, b) (op == 1 || op == 2 -> 3 : 1)
#define AFTER(op) (op == 0 || op == 3 || (over[0] && op < 5) || over[4])
#elif defined(SCENE_NAMES)
/* Two creates of one name, a raise, deletion, and Y; X is retained when it goes. */
#define OPS 6
#define NB 1
#define LIMIT(g) 3
#define RETAIN
#define MIXED
#define KIND(op) (op == 2 -> UPDATE : (op == 3 -> DELETE : (op == 4 -> GONE : CREATE)))
#define TICKET(op) (op == 5 -> Y : X)
#define WANT(g, op, b) (op == 2 -> 2 : (op == 1 -> 2 : 1))
#define AFTER(op) (op == 0 || op == 1 || op == 5 || (op < 4 && (over[0] || over[1])) || over[3])
#elif defined(SCENE_BUCKETS)
/* X moves from bucket 0 to bucket 1, and to both, while Y wants both; refusals take back. */
#define OPS 4
#define NB 2
#define MIXED
#define LIMIT(g) 2
#define KIND(op) (op == 0 || op == 3 -> CREATE : UPDATE)
#define TICKET(op) (op == 3 -> Y : X)
#define WANT(g, op, b) (op == 0 -> (b == 0 -> 2 : 0) : (op == 1 -> (b == 0 -> 0 : 2) : 1))
#define AFTER(op) (op == 0 || op == 3 || over[0])
#endif

#if defined(IN_STEPS) || defined(NO_COUNTED_REVISION) || defined(NO_LIVE_GET)
#define REMEMBER /* rows that a cache may still show */
#endif
#define ROOM 4
#ifdef RETAIN
#define MOVED(by) leftAt = (leftAt > by -> leftAt - by : 0); if :: bucket[0].goneBy != 0 -> bucket[0].goneBy = bucket[0].goneBy - by :: else fi
#else
#define MOVED(by) skip
#endif
#define NOW 1
#define JUDGED true
#include "bucket.pml"

/*
 * resourceVersions: a reader's copy is current while nobody has written since it read. 0: it is not; else bucket + 1.
 * A write from a current copy is a write to the bucket as it stands at that moment: where reading and writing are steps
 * of their own (IN_STEPS), that is shown; elsewhere a read and its write are one step.
 */
#define READERS 4 /* webhooks 0 and 1, controllers 2 and 3 */
byte current[READERS];

#ifdef NO_VERSION_CHECK
Bucket copy[READERS];
inline copyOf(to, from) {
	to.used = from.used; to.counted = from.counted; to.kept = from.kept; to.countedBy = from.countedBy;
	i = 0;
	do
	:: i < ROOM -> to.ticket[i] = from.ticket[i]; to.uid[i] = from.uid[i]; to.gen[i] = from.gen[i];
		to.op[i] = from.op[i]; to.amount[i] = from.amount[i]; to.settled[i] = from.settled[i]; i++
	:: else -> break
	od;
	skip
}
inline wipe(old_) {
	old_.used = 0; old_.counted = 0; old_.countedBy = 0; i = 0;
	do
	:: i < ROOM -> old_.ticket[i] = 0; old_.uid[i] = 0; old_.gen[i] = 0; old_.op[i] = 0; old_.amount[i] = 0; old_.settled[i] = 0; i++
	:: else -> break
	od;
	skip
}
#define IS_CURRENT(p, b) true
#define UNREAD(p) current[p] = 0; wipe(copy[p])
#define READ(p, b) current[p] = b + 1; copyOf(copy[p], bucket[b])
#define OVERWRITE(p, b) copyOf(bucket[b], copy[p])
#else
#define IS_CURRENT(p, b) (current[p] == b + 1)
#define UNREAD(p) current[p] = 0
#define READ(p, b) current[p] = b + 1
#define OVERWRITE(p, b) skip
#endif

#ifdef NO_COUNTED_REVISION
#define NOT_OVERTAKEN(stands, tag) true
#else
#define NOT_OVERTAKEN(stands, tag) (stands <= tag)
#endif

/* written: whoever had read the bucket has an old resourceVersion now. */
inline written(bk) {
	i = 0;
	do
	:: i < READERS -> if :: current[i] == bk + 1 -> current[i] = 0 :: else fi; i++
	:: else -> break
	od;
	skip
}

/* takeBack: the entry with this nonce goes, if it is there: read, remove and write, again until nobody comes between. */
inline takeBack(bk, req, ofGen) {
	find(bk, req, ofGen);
	if :: n != NONE -> remove(bk, n); written(bk) :: else fi
}

#ifdef RETAIN
#define MARKED(t) leaving = UID(rev, t); leftAt = rev
#else
#define MARKED(t) skip
#endif
#define WAS(b) (old == 0 -> 0 : WANT(1, (old - 1), b))

/* A webhook, and the API server's handling of the request that it reviews. It may die, or be refused elsewhere, anywhere. */
proctype webhook(byte w) {
	byte op, gen, uid, old, b;
	do
	:: atomic {
		op = 0; gen = 0; uid = 0; b = 0; old = 0; currentTicket[w] = false; doing[w] = 0; d_step { UNREAD(w) };
		if
		:: AFTER(0) && !taken[0] -> op = 0
		:: AFTER(1) && !taken[1] -> op = 1
		:: AFTER(2) && !taken[2] -> op = 2
#if OPS > 3
		:: AFTER(3) && !taken[3] -> op = 3
#endif
#if OPS > 4
		:: AFTER(4) && !taken[4] -> op = 4
#endif
#if OPS > 5
		:: AFTER(5) && !taken[5] -> op = 5
#endif
		:: ALL(taken) -> break
		fi;
		taken[op] = true; doing[w] = op;
		if
		:: DELETE == KIND(op) ->
			if
			:: UID(rev, TICKET(op)) != 0 && !deleting[TICKET(op)] ->
				d_step { deleting[TICKET(op)] = true; top = GEN(rev, TICKET(op)) + 1; want = SPEC(rev, TICKET(op)); store(TICKET(op), UID(rev, TICKET(op)), top, want); MARKED(TICKET(op)) }
			:: else
			fi;
			goto answered
		:: GONE == KIND(op) -> if :: deleting[TICKET(op)] -> goto gone :: else -> goto answered fi
		:: else
		fi
	};
review:
	atomic { /* the API server reads the object that the request is against */
		b = 0;
		if
		:: CREATE == KIND(op) -> uid = op + 1; gen = 1; old = 0
		:: UPDATE == KIND(op) && (UID(rev, TICKET(op)) == 0 || deleting[TICKET(op)]) -> goto answered
		:: else -> uid = UID(rev, TICKET(op)); gen = GEN(rev, TICKET(op)) + 1; old = SPEC(rev, TICKET(op)); currentTicket[w] = true
		fi
	};
reserve:
	atomic {
		do
		:: b < NB && WAS(b) >= WANT(1, op, b) -> b++ /* not a raise: fits, and writes nothing */
		:: else -> break
		od;
		if :: b == NB -> goto commit :: else fi
	};
read:
	if
	:: atomic { true -> d_step { READ(w, b); want = WANT(1, op, b); was = WAS(b); ask(b, TICKET(op), uid, gen, op) };
#ifdef NO_OWN_ENTRY
		d_step {
			n = NONE; k = 0;
			do
			:: k < ROOM && ENTRY(b, k, ticket) != 0 ->
				if :: ENTRY(b, k, uid) == uid && ENTRY(b, k, gen) == gen && ENTRY(b, k, amount) >= want -> n = k :: else fi; k++
			:: else -> break
			od;
			skip
		};
		if :: n != NONE -> current[w] = 0; b++; goto reserve :: else fi;
#endif
		if :: sum > LIMIT(1) -> d_step { UNREAD(w) }; goto refused :: else fi;
#ifndef IN_STEPS
		d_step { want = WANT(1, op, b); was = WAS(b); enter(b, TICKET(op), uid, gen, op); written(b); SAY_ENTERED };
		current[w] = 0; b++; goto reserve
#endif
		}
	:: goto answered
	fi;
#ifdef IN_STEPS
	atomic {
		if
		:: IS_CURRENT(w, b) -> d_step { OVERWRITE(w, b); want = WANT(1, op, b); was = WAS(b); enter(b, TICKET(op), uid, gen, op); written(b); SAY_ENTERED; UNREAD(w) };
			if
			:: b++; goto reserve
			:: skip /* the reply is lost */
			fi
		:: else -> goto read
		fi
	};
	if /* read again: is there an entry with my nonce? */
	:: atomic { true -> d_step { find(b, op, gen) }; if :: n != NONE -> b++; goto reserve :: else -> goto read fi }
	:: goto answered
	fi;
#endif
commit:
	if
	:: atomic { CREATE == KIND(op) && UID(rev, TICKET(op)) == 0 -> d_step { store(TICKET(op), uid, 1, op + 1) }; goto answered }
	:: atomic { UPDATE == KIND(op) && currentTicket[w] -> d_step { store(TICKET(op), uid, gen, op + 1) }; goto answered }
	:: atomic { UPDATE == KIND(op) && !currentTicket[w] -> goto review } /* a conflict: the API server reviews again */
	:: goto answered /* refused by somebody after us, or we died */
	fi;
refused: /* take back what this review wrote, unless we die before */
	if
	:: atomic { b > 0 -> b--; d_step { takeBack(b, op, gen) }; goto refused }
	:: goto answered
	fi;
gone: /* the controller that works on the deletion: what must outlive the ticket is retained, says a live read, then it goes */
#ifdef RETAIN
	atomic { bucket[0].leaves == UID(rev, TICKET(op)) -> skip };
#endif
	atomic { d_step {
#ifdef RETAIN
		outlived[0] = CLAIM(1, rev, TICKET(op), 0);
#endif
		deleting[TICKET(op)] = false; store(TICKET(op), 0, 0, 0)
	} };
answered:
	atomic { over[op] = true; assert(!over_admission) }
	od
}

/* An entry has aged: its request is over. Then, and not before, it is looked up whether the ticket was stored. */
#ifdef NO_LIVE_GET
#define SEEN row /* by a cache */
#else
#define SEEN rev
#endif
#define AGED(b, k) (ENTRY(b, k, ticket) != 0 && over[ENTRY(b, k, op)] && !SHOWN(SEEN, b, k))

/* A cache shows any row from the last count on: from an older one the count would be void. */
#ifdef REMEMBER
#define OLDEST(b) 0
#else
#define OLDEST(b) bucket[b].counted
#endif
#define ANY_ROW(b) row = OLDEST(b); do :: row < rev -> row++ :: break od; skip

/* The cache moves on while it is summed: each ticket is read at a row of its own, or both at the same (all but MIXED scenes). */
#define CONTENT content = row; do :: content < rev -> content++ :: break od; SECOND
#ifdef MIXED
#define SECOND second = row; do :: second < rev -> second++ :: break od; skip
#else
#define SECOND second = content
#endif
#define COUNT(bk) atomic { ANY_ROW(bk); CONTENT; d_step { if :: NOT_OVERTAKEN(bucket[bk].counted, row) -> count(bk, 1, content, second, row); SAY_COUNTED(bk); forget() :: else fi }; row = 0; content = 0; second = 0 }
#ifdef NO_LIVE_GET
#define DROP(bk, k) atomic { ENTRY(bk, k, ticket) != 0 && over[ENTRY(bk, k, op)] -> ANY_ROW(bk); d_step { if :: AGED(bk, k) -> SAY_DROPPED(bk, ENTRY(bk, k, op)); remove(bk, k) :: else fi }; row = 0 }
#else
#define DROP(bk, k) d_step { AGED(bk, k) -> SAY_DROPPED(bk, ENTRY(bk, k, op)); remove(bk, k) }
#endif

#define LOOK_UP(k) atomic { AGED(0, k) -> op = ENTRY(0, k, op); gen = ENTRY(0, k, gen) }

/* Controllers, as many as you like, each with a cache as old as you like: the thawed leader is one of them. */
proctype controllers(byte c) {
	byte row, content, second, op, gen;
end:
	do
#ifdef IN_STEPS
	:: atomic { ANY_ROW(0); d_step { READ(2 + c, 0) } };
		atomic {
			if
			:: IS_CURRENT(2 + c, 0) && NOT_OVERTAKEN(bucket[0].counted, row) -> d_step { OVERWRITE(2 + c, 0); count(0, 1, row, row, row); written(0); SAY_COUNTED(0) }
			:: true /* dies before it writes */
			fi;
			row = 0; d_step { UNREAD(2 + c) }
		}
	:: LOOK_UP(0) -> atomic { d_step { takeBack(0, op, gen) }; op = 0; gen = 0 }
	:: LOOK_UP(1) -> atomic { d_step { takeBack(0, op, gen) }; op = 0; gen = 0 }
	:: LOOK_UP(2) -> atomic { d_step { takeBack(0, op, gen) }; op = 0; gen = 0 }
#else
	:: COUNT(0)
	:: DROP(0, 0)
	:: DROP(0, 1)
	:: DROP(0, 2)
	:: DROP(0, 3)
#if NB > 1
	:: COUNT(1)
	:: DROP(1, 0)
	:: DROP(1, 1)
	:: DROP(1, 2)
	:: DROP(1, 3)
#endif
#endif
	od
}

/* At rest a controller looks at every bucket until nothing changes; then the ledger must be the truth, to the unit. */
proctype rest() {
	byte b;
	atomic {
		ALL(over);
		do
		:: b < NB -> d_step {
			if :: bucket[b].counted <= rev -> count(b, 1, rev, rev, rev) :: else fi;
			n = 0;
			do /* what is left was never stored, and its request is over: the live GET says so */
			:: n < ROOM && ENTRY(b, 0, ticket) != 0 && over[ENTRY(b, 0, op)] -> remove(b, 0); n++
			:: else -> break
			od;
			held(b);
			if
			:: sum == CLAIM(1, rev, X, b) + CLAIM(1, rev, Y, b) + bucket[b].kept && bucket[b].kept == outlived[b]
			:: else -> leak = true; printf("LEAK: bucket %d holds %d at rest\n", b, sum)
			fi };
			b++
		:: else -> break
		od;
		assert(!leak)
	}
}

init { atomic { run rest(); run controllers(0);
#ifdef IN_STEPS
	run controllers(1);
#endif
	 run webhook(0); run webhook(1) } }
