#!/usr/bin/env bash
# Prints the coverage of the packages whose logic everything rests on, and fails where it is under the floor.
# Usage: hack/cover.sh FLOOR FOLDER...
set -euo pipefail
cd "$(dirname "$0")/.."
floor=$1
shift
failed=0
printf '%-40s %8s   floor %s%%\n' package covered "$floor"
for folder in "$@"; do
	# A package without tests prints no coverage, which counts as none.
	if ! said=$(go test -vet=off -count=1 -cover "./$folder"); then
		printf '%s\n' "$said"
		failed=1
	fi
	covered=$(sed -n 's/.*coverage: \([0-9.]*\)% of statements.*/\1/p' <<<"$said")
	printf '%-40s %7s%%\n' "$folder" "${covered:-0}"
	awk -v have="${covered:-0}" -v want="$floor" 'BEGIN { exit !(have + 0 >= want + 0) }' || failed=1
done
[ "$failed" = 0 ] || { echo "a package is under the floor or its tests fail" >&2; exit 1; }
