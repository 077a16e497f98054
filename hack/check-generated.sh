#!/usr/bin/env bash
# Fails if a generated file isn't what the generators write now. The work tree stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
hack/generate.sh "$fresh"
stale=0
while read -r file; do
	diff -u "$file" "$fresh/$file" || stale=1
done < <(cd "$fresh" && find . -type f | sort)
if [ "$stale" != 0 ]; then
	echo "generated files are stale: run 'make generate' and commit the result" >&2
	exit 1
fi
