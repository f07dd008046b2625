#!/usr/bin/env bash
# Runs every fuzz target for the time that is given, such as 10s: one after the other, as go test can do only one.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-10s}
while IFS=: read -r file line; do
  target=$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/' <<<"$line")
  echo "fuzz: $target in $(dirname "$file") for $fuzztime"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "./$(dirname "$file")"
done < <(git grep -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go')
