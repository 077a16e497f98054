#!/usr/bin/env bash
# Checks the quota protocol with spin: as designed in every scene, then with one rule taken out at a time.
# Usage: run.sh          everything; fails unless the design holds and every mutant is refuted
#        run.sh MUTANT   plays a counter-example of a mutant (or of an addition) in words
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# scene, model, rules of the protocol that it covers
scenes='
WRITES  ledger 1,2,3,9
EDITS   ledger 1,2,3,4,5,9
AGAIN   ledger 1,2,3,9
NAMES   ledger 1,2,4,12
BUCKETS ledger 1,2,5,6
NEW     policy 7
AMOUNTS policy 7,8
KEYS    policy 7,8'

# what is taken out, the scene that misses it, the property that fails
mutants='
NO_VERSION_CHECK    WRITES  over_admission
NO_LIVE_GET         EDITS   over_admission
NO_COUNTED_REVISION EDITS   over_admission
NO_OWN_ENTRY        AGAIN   over_admission
NO_MIN_RULE         EDITS   over_admission
NO_OPENING          NEW     over_admission
NO_STAMP            AMOUNTS over_admission'

# Rules that the protocol needs besides: README.md says which.
additions='
LOOSE_SNAPSHOT          EDITS   over_admission
RETAIN_BESIDE_NAMESAKE  NAMES   over_admission
RETAIN_UNSEEN           NAMES   leak
FORGET_DEPARTURE        NAMES   leak
STAMP_FOR_RESERVES_ONLY AMOUNTS over_admission
TOUCHED_IS_COUNTED      AMOUNTS over_admission
NO_DRAIN                KEYS    over_admission
NO_RECOUNT              NEW     over_admission
NO_WAIT_ABOVE_LIMIT     AMOUNTS over_admission'

missing=()
for program in spin gcc; do command -v "$program" >/dev/null || missing+=("$program"); done
if [ ${#missing[@]} -gt 0 ]; then
	echo "make model needs ${missing[*]}: on Debian and Ubuntu, apt-get install ${missing[*]}; elsewhere see https://spinroot.com" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

model() { awk -v scene="$1" '$1 == scene { print $2 }' <<<"$scenes"; }

# What bounds a search is its scene. Seconds and memory are stops for a machine or a model that went wrong.
limit=900

# search FOLDER SCENE FLAGS...: builds a verifier and runs it there; its words go to FOLDER/said.
search() {
	local folder=$1 scene=$2
	shift 2
	mkdir -p "$folder"
	(
		cd "$folder"
		spin -a "-DSCENE_$scene" "${@/#/-D}" "$here/$(model "$scene").pml"
		gcc -O2 -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=1900 -o pan pan.c
		timeout "$limit" ./pan -m20000 || { [ $? != 124 ] || echo "stopped after $limit s"; }
	) >"$folder/said" 2>&1
}

# why FILE: what kept a search from an end, as one word.
why() {
	case $(cat "$1") in
	*"stopped after"*) echo time-limit ;;
	*"out of memory"* | *"memory limit"* | *"reached -DMEMLIM"*) echo memory-limit ;;
	*"search depth too small"*) echo depth-limit ;;
	*"not completed"*) echo interrupted ;;
	*) echo spin-or-gcc-failed ;;
	esac
}

# result FOLDER: "held", "refuted PROPERTY", or "undecided", then states and seconds.
result() {
	local verdict=undecided said="$1/said" property
	property=$(sed -nE 's/.*assertion violated *!\(?([a-z_]+)\)?.*/\1/p' "$said" | head -n 1)
	if [ -n "$property" ]; then
		verdict="refuted $property"
	elif grep -q 'errors: 0$' "$said" && ! grep -qE 'not completed|too small|out of memory|error:|stopped after' "$said"; then
		verdict='held -'
	else
		verdict="undecided $(why "$said")"
	fi
	awk -v verdict="$verdict" '/states, stored/ { states = $1 } /elapsed time/ { seconds = $4 } END { printf "%s %d %s\n", verdict, states, seconds + 0 }' "$said"
}

play() {
	local scene
	scene=$(awk -v name="$1" '$1 == name { print $2 }' <<<"$mutants$additions")
	[ -n "$scene" ] || { echo "$1 is none of these:$(awk '{ printf " %s", $1 }' <<<"$mutants$additions")" >&2; exit 2; }
	search "$work/play" "$scene" "$1" || true
	cd "$work/play"
	spin -t -k "$(model "$scene").pml.trail" "-DSCENE_$scene" "-D$1" "$here/$(model "$scene").pml" | sed -nE 's/^ *(webhook|a controller|the API server|the policy|OVER-ADMISSION|LEAK)/\1/p'
}
if [ $# -gt 0 ]; then
	play "$1"
	exit
fi

# All searches, two at a time.
pids=()
for list in scenes mutants additions; do
	while read -r name scene _; do
		[ -n "$name" ] || continue
		flags=("$name")
		[ $list != scenes ] || { scene=$name flags=(); }
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
		search "$work/$name" "$scene" "${flags[@]}" &
		pids+=($!)
	done <<<"${!list}"
done
wait || true

failed=0 refuted=0
fail() { failed=1; echo "  $1" >&2; sed 's/^/    /' "$2/said" | grep -vE '^ *$' | tail -n 20 >&2; }
printf '%-24s %-8s %-14s %10s %8s   %s\n' 'as designed' model result states seconds 'rules'
while read -r name file rules; do
	[ -n "$name" ] || continue
	read -r verdict property states seconds < <(result "$work/$name")
	printf '%-24s %-8s %-14s %10d %8.1f   %s\n' "$name" "$file" "$verdict" "$states" "$seconds" "$rules"
	[ "$verdict" = held ] || fail "scene $name: $verdict $property" "$work/$name"
done <<<"$scenes"

# refutations LIST TITLE: every search of the list must end with its property violated.
refutations() {
	printf '\n%-24s %-8s %-14s %10s %8s   %s\n' "$2" scene result states seconds 'property that fails'
	local name scene wanted verdict property states seconds
	while read -r name scene wanted; do
		[ -n "$name" ] || continue
		read -r verdict property states seconds < <(result "$work/$name")
		printf '%-24s %-8s %-14s %10d %8.1f   %s\n' "$name" "$scene" "$verdict" "$states" "$seconds" "$property"
		if [ "$verdict $property" = "refuted $wanted" ]; then
			[ "$1" != mutants ] || refuted=$((refuted + 1))
		else
			fail "$name: expected $wanted to be violated, but: $verdict $property" "$work/$name"
		fi
	done <<<"${!1}"
}
refutations mutants 'taken out'
refutations additions 'added, taken out'
echo
[ "$failed" = 0 ] || { echo 'the protocol does not hold as it should: see above' >&2; exit 1; }
echo "design holds, $refuted mutants refuted"
