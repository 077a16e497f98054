/*
 * What both models share: the tickets as the API server stores them, one row a revision, and the arithmetic of a bucket.
 * The including file says OPS, NB, WANT(generation, op, bucket), TICKET(op), LIMIT(generation), NOW (the generation in
 * force) and JUDGED (from Ready on).
 */
#define CREATE 1
#define UPDATE 2
#define DELETE 3 /* the API server marks the object; its generation rises and nothing is reviewed */
#define GONE   4 /* the finalizer goes, and with it the object; what must outlive it is retained first */

#define X 0
#define Y 1
#define NT 2
#define NONE 255

#if OPS == 3
#define ALL(what) (what[0] && what[1] && what[2])
#elif OPS == 4
#define ALL(what) (what[0] && what[1] && what[2] && what[3])
#elif OPS == 5
#define ALL(what) (what[0] && what[1] && what[2] && what[3] && what[4])
#else
#define ALL(what) (what[0] && what[1] && what[2] && what[3] && what[4] && what[5])
#endif

typedef Bucket {
	byte used;
	byte counted;      /* the countedRevision of used */
	byte kept;         /* retained claims */
#ifdef RETAIN
	byte leaves;       /* the uid of the ticket whose claim is among them while it may still be there; 0: none */
	byte goneBy;       /* the newest row of the first count that lacked it, + 1; 0: none has */
#endif
	byte generation;   /* the policy's highest that touched it; 0: there is no such bucket */
	byte countedBy;    /* the policy's generation by which used was summed */
	byte ticket[ROOM]; /* ticket + 1; 0 is a free place; entries stand in the order in which they came */
	byte uid[ROOM];
	byte gen[ROOM];
	byte op[ROOM];     /* with gen the nonce: a request is reviewed again only for another generation */
	byte amount[ROOM];
	byte settled[ROOM]
};
Bucket bucket[NB];

byte rev;                        /* the last row is the present; caches show older ones */
byte uidAt[(OPS + 1) * NT];      /* 0: no such object */
byte genAt[(OPS + 1) * NT];
byte specAt[(OPS + 1) * NT];     /* the request whose spec it has, + 1 */
bool deleting[NT];
byte outlived[NB];               /* claims of tickets that are gone and must count on */

bool taken[OPS];        /* a webhook has the request */
bool over[OPS];         /* the API server has answered it, and will never store it any more */
byte doing[2];          /* the request that a webhook reviews */
bool currentTicket[2];  /* nobody has stored its ticket since the API server read it for this review */

bool over_admission;
bool leak;

#define UID(r, t) uidAt[(r) * NT + t]
#define GEN(r, t) genAt[(r) * NT + t]
#define SPEC(r, t) specAt[(r) * NT + t]
#define CLAIM(g, r, t, b) (SPEC(r, t) == 0 -> 0 : WANT(g, (SPEC(r, t) - 1), b))
#define ENTRY(b, k, field) bucket[b].field[k]
#define SHOWN(r, b, k) (UID(r, ENTRY(b, k, ticket) - 1) == ENTRY(b, k, uid) && GEN(r, ENTRY(b, k, ticket) - 1) >= ENTRY(b, k, gen))

/* What a counter-example says when it is played back (run.sh NAME). */
#define SAY_ENTERED printf("webhook %d writes an entry into bucket %d: request %d, ticket %d as generation %d claims %d, settled %d; used is %d\n", w, b, op, TICKET(op), gen, want, ENTRY(b, n, settled), bucket[b].used)
#define SAY_COUNTED(b) printf("a controller counts bucket %d from revision %d (the newest is %d): used is %d\n", b, row, rev, bucket[b].used)
#define SAY_DROPPED(b, o) printf("a controller drops an aged entry of request %d from bucket %d\n", o, b)

hidden byte i, j, k, n, low, top, sum, want, was;

/* remove: the entry goes and the later ones move up. */
inline remove(bk, place) {
	i = place;
	do
	:: i < ROOM - 1 ->
		ENTRY(bk, i, ticket) = ENTRY(bk, i+1, ticket); ENTRY(bk, i, uid) = ENTRY(bk, i+1, uid);
		ENTRY(bk, i, gen) = ENTRY(bk, i+1, gen); ENTRY(bk, i, op) = ENTRY(bk, i+1, op);
		ENTRY(bk, i, amount) = ENTRY(bk, i+1, amount); ENTRY(bk, i, settled) = ENTRY(bk, i+1, settled); i++
	:: else -> break
	od;
	ENTRY(bk, ROOM-1, ticket) = 0; ENTRY(bk, ROOM-1, uid) = 0; ENTRY(bk, ROOM-1, gen) = 0;
	ENTRY(bk, ROOM-1, op) = 0; ENTRY(bk, ROOM-1, amount) = 0; ENTRY(bk, ROOM-1, settled) = 0
}

/* find: n = the place of the entry with this nonce, or NONE. */
inline find(bk, req, ofGen) {
	n = NONE; k = 0;
	do
	:: k < ROOM && ENTRY(bk, k, ticket) != 0 ->
		if :: ENTRY(bk, k, op) == req && ENTRY(bk, k, gen) == ofGen -> n = k :: else fi; k++
	:: else -> break
	od;
	skip
}

/* settledOf: low = how much of the ticket's claim used holds already, by its open entries; NONE without any. */
inline settledOf(bk, tk) {
	low = NONE; top = 0; i = 0;
	do
	:: i < ROOM && ENTRY(bk, i, ticket) != 0 ->
		if
		:: ENTRY(bk, i, ticket) == tk + 1 ->
#ifdef NO_MIN_RULE
			low = ENTRY(bk, i, settled); /* the newest review's old claim is believed */
#else
			if :: ENTRY(bk, i, settled) < low -> low = ENTRY(bk, i, settled) :: else fi;
#endif
			if :: ENTRY(bk, i, amount) > top -> top = ENTRY(bk, i, amount) :: else fi
		:: else
		fi;
		i++
	:: else -> break
	od;
	skip
}

/* held: sum = used + what open entries hold above it + retained. */
inline held(bk) {
	sum = bucket[bk].used + bucket[bk].kept; j = 0;
	do
	:: j < NT -> settledOf(bk, j); if :: low != NONE && top > low -> sum = sum + top - low :: else fi; j++
	:: else -> break
	od;
	skip
}

/* enter: an entry of want for the ticket is appended, whose claim was. The caller knows that there is a free place. */
inline enter(bk, tk, ofUid, ofGen, req) {
	settledOf(bk, tk);
#ifdef NO_MIN_RULE
	low = was;
#else
	if :: low > was -> low = was :: else fi;
#endif
	n = 0;
	do :: ENTRY(bk, n, ticket) != 0 -> n++ :: else -> break od;
	ENTRY(bk, n, ticket) = tk + 1; ENTRY(bk, n, uid) = ofUid; ENTRY(bk, n, gen) = ofGen; ENTRY(bk, n, op) = req;
	ENTRY(bk, n, amount) = want; ENTRY(bk, n, settled) = low
}

/* ask: sum = what would be held with such an entry; above every limit when no place is free ("busy, retry"). */
inline ask(bk, tk, ofUid, ofGen, req) {
	n = 0; do :: n < ROOM && ENTRY(bk, n, ticket) != 0 -> n++ :: else -> break od;
	if
	:: n == ROOM -> sum = NONE
	:: else -> k = n; enter(bk, tk, ofUid, ofGen, req); held(bk); remove(bk, k)
	fi
}

#ifdef RETAIN
/* What X claims outlives it. Marked for deletion it is leaving, since the revision leftAt; what it claims is final then. */
byte leaving, leftAt;

/*
 * Entries of one name share what they hold, since only one of them can be stored. What is retained breaks that: the old
 * ticket counts on beside a new one of its name. So it is retained only while no entry of a namesake is open.
 */
#ifdef RETAIN_BESIDE_NAMESAKE
#define NO_NAMESAKE true
#else
#define OTHER(k) (ENTRY(0, k, ticket) == X + 1 && ENTRY(0, k, uid) != leaving)
#define NO_NAMESAKE !(OTHER(0) || OTHER(1) || OTHER(2) || OTHER(3))
#endif
#ifdef RETAIN_UNSEEN
#define SEEN_LEAVING(shows, before) (leftAt <= shows)
#else
#define SEEN_LEAVING(shows, before) (leftAt <= before)
#endif
#ifdef FORGET_DEPARTURE
#define GONE_FOR_ALL(before) true
#else
#define GONE_FOR_ALL(before) (bucket[0].goneBy - 1 <= before)
#endif
#define LEFT(b, r, t) (bucket[b].leaves != 0 && bucket[b].leaves == UID(r, t))

/* depart: a count moves what is leaving to the retained claims, once, and forgets a departure whom no later count can show. */
inline depart(g, x, y, before) {
	if
	:: leaving != 0 && bucket[0].leaves == 0 && UID(x, X) == leaving && SEEN_LEAVING(x, before) && NO_NAMESAKE ->
		bucket[0].leaves = leaving; bucket[0].kept = (bucket[0].kept > 6 -> 6 : bucket[0].kept) + CLAIM(g, x, X, 0)
	:: else
	fi;
	if :: bucket[0].leaves != 0 && bucket[0].goneBy == 0 && UID(x, X) != bucket[0].leaves -> bucket[0].goneBy = (x > y -> x : y) + 1 :: else fi;
	if :: bucket[0].goneBy != 0 && GONE_FOR_ALL(before) -> bucket[0].leaves = 0; bucket[0].goneBy = 0 :: else fi
}
#define DEPART(g, x, y, before) depart(g, x, y, before);
#else
#define LEFT(b, r, t) false
#define DEPART(g, x, y, before)
#endif

/*
 * count: the whole count in one write: used, the entries that the rows show, settled of the others. The cache may move on
 * while it is summed: before is its row when that began, x and y are those at which it read X and Y. An entry goes only if
 * its ticket was so before already.
 */
#ifdef LOOSE_SNAPSHOT
#define UNCHANGED(before, after, t) true
#else
#define UNCHANGED(before, after, t) (UID(before, t) == UID(after, t) && GEN(before, t) == GEN(after, t))
#endif
#define AT(x, y, t) (t == X -> x : y)
#define COUNTS(g, r, t, b) (LEFT(b, r, t) -> 0 : CLAIM(g, r, t, b))
inline count(bk, g, x, y, before) {
	DEPART(g, x, y, before)
	bucket[bk].used = 0; j = 0;
	do :: j < NT -> bucket[bk].used = bucket[bk].used + COUNTS(g, AT(x, y, j), j, bk); j++ :: else -> break od;
	k = 0;
	do
	:: k < ROOM && ENTRY(bk, k, ticket) != 0 ->
		j = ENTRY(bk, k, ticket) - 1;
		if
		:: SHOWN(AT(x, y, j), bk, k) && UNCHANGED(before, AT(x, y, j), j) -> remove(bk, k)
		:: else -> ENTRY(bk, k, settled) = COUNTS(g, AT(x, y, j), j, bk); k++
		fi
	:: else -> break
	od;
	bucket[bk].counted = before; bucket[bk].countedBy = g
}

/* store: a new row in which the ticket is so. A commit that raises a bucket above its limit is judged here. */
inline store(tk, ofUid, ofGen, ofSpec) {
	i = 0;
	do
	:: i < NT -> UID(rev+1, i) = UID(rev, i); GEN(rev+1, i) = GEN(rev, i); SPEC(rev+1, i) = SPEC(rev, i); i++
	:: else -> break
	od;
	rev++;
	UID(rev, tk) = ofUid; GEN(rev, tk) = ofGen; SPEC(rev, tk) = ofSpec; k = 0;
	printf("the API server stores ticket %d (uid %d, generation %d) as request %d wants it: revision %d\n", tk, UID(rev, tk), GEN(rev, tk), SPEC(rev, tk) - 1, rev);
	do
	:: k < NB ->
		sum = outlived[k] + CLAIM(NOW, rev, X, k) + CLAIM(NOW, rev, Y, k);
		if
		:: JUDGED && sum > LIMIT(NOW) && CLAIM(NOW, rev, tk, k) > CLAIM(NOW, rev-1, tk, k) -> over_admission = true;
			printf("OVER-ADMISSION: the tickets claim %d of bucket %d, whose limit is %d\n", sum, k, LIMIT(NOW))
		:: else
		fi;
		k++
	:: else -> break
	od;
	i = 0;
	do :: i < 2 -> if :: tk == TICKET(doing[i]) -> currentTicket[i] = false :: else fi; i++ :: else -> break od;
	skip
}

/*
 * forget: a count from a row older than all counts that stand is void, so no cache can use such a row any more. It goes
 * and the others move up, so that states that differ in the past alone are seen to be equal.
 */
inline forget() {
#ifndef REMEMBER
	low = bucket[0].counted;
#if NB > 1
	if :: bucket[1].counted < low -> low = bucket[1].counted :: else fi;
#endif
	if
	:: low > 0 ->
		i = 0;
		do
		:: i <= rev * NT + 1 ->
			if
			:: i + low * NT <= rev * NT + 1 -> uidAt[i] = uidAt[i + low * NT]; genAt[i] = genAt[i + low * NT]; specAt[i] = specAt[i + low * NT]
			:: else -> uidAt[i] = 0; genAt[i] = 0; specAt[i] = 0
			fi;
			i++
		:: else -> break
		od;
		rev = rev - low; bucket[0].counted = bucket[0].counted - low;
#if NB > 1
		bucket[1].counted = bucket[1].counted - low;
#endif
		MOVED(low)
	:: else
	fi;
#endif
	skip
}
