/*
 * The quota ledger while a policy changes: two webhooks that learn of a generation when they like, two controllers (one
 * may be the old leader, with an old cache, an old policy or both), and the steps to Ready. That single writes to a
 * bucket are compare-and-swaps is proved by ledger.pml; here they are one step.
 *
 * Each of these takes a rule out: NO_OPENING, NO_STAMP, STAMP_FOR_RESERVES_ONLY; of what Ready rests on, NO_DRAIN, NO_RECOUNT,
 * NO_WAIT_ABOVE_LIMIT; and TOUCHED_IS_COUNTED.
 */
#if defined(SCENE_NEW)
/* A new policy; X may be stored before, Y comes after, Z is X raised. */
#define OPS 3
#define NB 1
#define FIRST 0
#define LAST 1
#define LIMIT(g) 3
#define KIND(op) (op == 2 -> UPDATE : CREATE)
#define TICKET(op) (op == 1 -> Y : X)
#define WANT(g, op, b) (g == 0 -> 0 : (op == 2 -> 3 : 2))
#define AFTER(op) (op != 2 || over[0])
#elif defined(SCENE_AMOUNTS)
/* The same key, but from generation 2 on a ticket costs twice as much. */
#define OPS 3
#define NB 1
#define FIRST 1
#define LAST 2
#define LIMIT(g) 3
#define KIND(op) (op == 2 -> UPDATE : CREATE)
#define TICKET(op) (op == 1 -> Y : X)
#define WANT(g, op, b) (g == 1 -> 1 : 2)
#define AFTER(op) (op != 2 || over[0])
#elif defined(SCENE_KEYS)
/* Generation 1 counts all in bucket 0; from generation 2 on a cost centre counts in bucket 1, and X moves to it. */
#define OPS 3
#define NB 2
#define FIRST 1
#define LAST 2
#define LIMIT(g) (g == 1 -> 4 : 3)
#define KIND(op) (op == 2 -> UPDATE : CREATE)
#define TICKET(op) (op == 1 -> Y : X)
#define WANT(g, op, b) (g == 1 -> (b == 0 -> 2 : 0) : (b == 0 || op == 0 -> 0 : 2))
#define AFTER(op) (op != 2 || over[0])
#endif

#define ROOM 3
#define MOVED(by) floor = (floor > by -> floor - by : 0)
byte floor; /* the newest revision once all older reviews are over: the count that Ready rests on shows it */
#define NOW policyIs
#define JUDGED (ready == policyIs)
byte policyIs = FIRST;  /* the policy's generation */
byte ready = FIRST;     /* the generation for which it said Ready */
byte counted = FIRST;   /* its countedGeneration */
#include "bucket.pml"

byte serves[2] = FIRST; /* the generation that a webhook serves: a review goes on with the one that it began with */
bool busy[2];           /* a webhook has a request */

/* Before Ready: all replicas serve the generation (1), and every review that began before has been answered (2). */
byte phase;
bool older[2];          /* a webhook's request is one of those */

#ifdef NO_STAMP
#define STAMP_ALLOWS(g, b) true
#define COUNT_ALLOWED(g, b) true
#else
#define STAMP_ALLOWS(g, b) (g >= bucket[b].generation)
#ifdef STAMP_FOR_RESERVES_ONLY
#define COUNT_ALLOWED(g, b) true
#else
#define COUNT_ALLOWED(g, b) (g >= bucket[b].generation)
#endif
#endif

#define WAS(b) (old == 0 -> 0 : WANT(by, (old - 1), b))

proctype webhook(byte w) {
	byte op, gen, uid, old, b, by;
	do
	:: atomic {
		op = 0; gen = 0; uid = 0; old = 0; b = 0; by = 0; currentTicket[w] = false; doing[w] = 0;
		if
		:: AFTER(0) && !taken[0] -> op = 0
		:: AFTER(1) && !taken[1] -> op = 1
		:: AFTER(2) && !taken[2] -> op = 2
		:: ALL(taken) -> break
		fi;
		taken[op] = true; doing[w] = op; busy[w] = true
	};
review:
	atomic { /* the API server reads the object, and the replica decides by the policy that it serves */
		b = 0; by = serves[w];
		if
		:: CREATE == KIND(op) -> uid = op + 1; gen = 1; old = 0
		:: UPDATE == KIND(op) && UID(rev, TICKET(op)) == 0 -> goto answered
		:: else -> uid = UID(rev, TICKET(op)); gen = GEN(rev, TICKET(op)) + 1; old = SPEC(rev, TICKET(op)); currentTicket[w] = true
		fi
	};
reserve:
	atomic {
		do
		:: b < NB && WAS(b) >= WANT(by, op, b) -> b++
		:: else -> break
		od;
		if :: b == NB -> goto commit :: else fi
	};
write:
	if
	:: atomic { bucket[b].generation != 0 ->
		d_step { want = WANT(by, op, b); was = WAS(b); ask(b, TICKET(op), uid, gen, op) };
		if
		:: sum > LIMIT(by) || !STAMP_ALLOWS(by, b) -> goto answered
		:: else -> d_step {
			want = WANT(by, op, b); was = WAS(b); enter(b, TICKET(op), uid, gen, op); SAY_ENTERED;
			if :: bucket[b].generation < by -> bucket[b].generation = by :: else fi }; /* highest that touched it */
			b++; goto reserve
		fi }
#ifdef NO_OPENING
	:: atomic { bucket[b].generation == 0 -> goto create }
#else
	:: atomic { bucket[b].generation == 0 && counted == by -> goto create }
	:: atomic { bucket[b].generation == 0 && counted != by -> goto answered } /* being counted, retry */
#endif
	:: goto answered /* we die */
	fi;
create: /* missing, and the live policy says that all are counted: so it is empty, unless somebody creates it before us */
	atomic {
		if
		:: bucket[b].generation != 0 -> goto write
		:: else -> d_step { want = WANT(by, op, b); was = 0; enter(b, TICKET(op), uid, gen, op); bucket[b].generation = by; SAY_ENTERED };
			b++; goto reserve
		fi
	};
commit:
	if
	:: atomic { CREATE == KIND(op) && UID(rev, TICKET(op)) == 0 -> d_step { store(TICKET(op), uid, 1, op + 1) }; goto answered }
	:: atomic { UPDATE == KIND(op) && currentTicket[w] -> d_step { store(TICKET(op), uid, gen, op + 1) }; goto answered }
	:: atomic { UPDATE == KIND(op) && !currentTicket[w] -> goto review }
	:: goto answered
	fi;
answered:
	atomic { over[op] = true; busy[w] = false; older[w] = false; assert(!over_admission) }
	od
}

#define AGED(b, k) (ENTRY(b, k, ticket) != 0 && over[ENTRY(b, k, op)] && !SHOWN(rev, b, k))
#define NEEDED(g, r, b) (CLAIM(g, r, X, b) + CLAIM(g, r, Y, b) > 0)
#define EMPTY(b) (ENTRY(b, 0, ticket) == 0)

/* open: count a bucket, and create it where a stored ticket has its key. */
inline open(bk, byGen, seen) {
	count(bk, byGen, seen, seen, seen);
	if :: bucket[bk].generation < byGen -> bucket[bk].generation = byGen :: else fi
}

#ifdef TOUCHED_IS_COUNTED
#define COUNTED_BY(b) bucket[b].generation
#else
#define COUNTED_BY(b) bucket[b].countedBy
#endif
#define OPENED(r, b) (COUNTED_BY(b) == policyIs || (bucket[b].generation == 0 && !NEEDED(policyIs, r, b)))
#ifdef NO_OPENING
#define MAY_OPEN(g, r, b) (bucket[b].generation != 0)
#define ALL_OPENED(r) true
#elif NB == 1
#define MAY_OPEN(g, r, b) (bucket[b].generation != 0 || NEEDED(g, r, b))
#define ALL_OPENED(r) OPENED(r, 0)
#else
/* The new key's bucket is opened once the old one is stamped and has no open entry. */
#ifdef OPEN_EARLY
#define OLD_CLOSED(g) true
#else
#define OLD_CLOSED(g) (bucket[0].generation == 0 || (COUNTED_BY(0) >= g && EMPTY(0)))
#endif
#define MAY_OPEN(g, r, b) (bucket[b].generation != 0 || (NEEDED(g, r, b) && (b == 0 || OLD_CLOSED(g))))
#define ALL_OPENED(r) (OPENED(r, 0) && OPENED(r, 1) && OLD_CLOSED(policyIs))
#endif

/* A cache shows any row from the last count on, and a controller may know any generation so far. */
#define ANY_ROW(from) row = from; do :: row < rev -> row++ :: break od; skip
#define ANY_POLICY if :: g = policyIs :: g = FIRST fi
#define COUNT(bk) atomic { ANY_POLICY; ANY_ROW(bucket[bk].counted); d_step { if :: g != 0 && MAY_OPEN(g, row, bk) && COUNT_ALLOWED(g, bk) -> open(bk, g, row); SAY_COUNTED(bk); forget() :: else fi }; g = 0; row = 0 }
#define DROP(bk, k) d_step { AGED(bk, k) -> SAY_DROPPED(bk, ENTRY(bk, k, op)); remove(bk, k) }

/* What Ready rests on: a count by this generation that shows the newest revision of (2). */
#ifdef NO_RECOUNT
#define RECOUNTED(b) true
#define SEEN_FROM 0
#else
#define RECOUNTED(b) (bucket[b].generation == 0 || (COUNTED_BY(b) == policyIs && bucket[b].counted >= floor))
#define SEEN_FROM floor
#endif
#ifdef NO_DRAIN
#define DRAINED true
#else
#define DRAINED (!older[0] && !older[1])
#endif
#if NB == 1
#define ALL_RECOUNTED RECOUNTED(0)
#else
#define ALL_RECOUNTED (RECOUNTED(0) && RECOUNTED(1))
#endif

/* within: n = 1 if no entry in flight can raise a bucket above its limit. */
inline within() {
	n = 1;
#ifndef NO_WAIT_ABOVE_LIMIT
	want = 0;
	do
	:: want < NB -> held(want); if :: sum > LIMIT(policyIs) && !EMPTY(want) -> n = 0 :: else fi; want++
	:: else -> break
	od;
#endif
	skip
}

/* Controllers, as many as you like; the policy that they know and the tickets that they see may both be old. */
proctype controllers() {
	byte g, row;
end:
	do
	:: COUNT(0)
	:: DROP(0, 0)
	:: DROP(0, 1)
	:: DROP(0, 2)
#if NB > 1
	:: COUNT(1)
	:: DROP(1, 0)
	:: DROP(1, 1)
	:: DROP(1, 2)
#endif
	:: atomic { counted < policyIs -> ANY_ROW(0); if :: ALL_OPENED(row) -> counted = policyIs :: else fi; row = 0 }
	:: d_step { phase == 0 && policyIs == LAST && serves[0] == LAST && serves[1] == LAST -> phase = 1; older[0] = busy[0]; older[1] = busy[1] }
	:: d_step { phase == 1 && DRAINED -> phase = 2; floor = rev }
	:: atomic { ready < policyIs && counted == policyIs && phase == 2 && ALL_RECOUNTED -> ANY_ROW(SEEN_FROM);
		d_step { within(); if :: n == 1 && ALL_OPENED(row) -> ready = policyIs; printf("the policy is Ready with generation %d\n", ready) :: else fi }; row = 0 }
	od
}

/* At rest a controller looks at every bucket until nothing changes; then the ledger must be the truth, to the unit. */
proctype rest() {
	byte b;
	atomic {
		ALL(over) && policyIs == LAST;
		do
		:: b < NB -> d_step {
			if
#ifdef NO_OPENING
			:: bucket[b].generation != 0 && bucket[b].counted <= rev && COUNT_ALLOWED(LAST, b) -> open(b, LAST, rev)
#else
			:: (bucket[b].generation != 0 || NEEDED(LAST, rev, b)) && bucket[b].counted <= rev && COUNT_ALLOWED(LAST, b) -> open(b, LAST, rev)
#endif
			:: else
			fi;
			n = 0;
			do
			:: n < ROOM && !EMPTY(b) && over[ENTRY(b, 0, op)] -> remove(b, 0); n++
			:: else -> break
			od;
			held(b);
			if
			:: sum == CLAIM(LAST, rev, X, b) + CLAIM(LAST, rev, Y, b) || bucket[b].generation == 0
			:: else -> leak = true
			fi };
			b++
		:: else -> break
		od;
		assert(!leak)
	}
}

init {
	atomic { run rest(); run controllers(); run webhook(0); run webhook(1) };
	atomic { policyIs = LAST; printf("the policy has generation %d\n", LAST) };
	do
	:: serves[0] < LAST -> serves[0] = LAST
	:: serves[1] < LAST -> serves[1] = LAST
	:: serves[0] == LAST && serves[1] == LAST -> break
	od
}
