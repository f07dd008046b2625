#!/usr/bin/env bash
# Runs go test with the arguments that are given and sums up: packages as they end, the output of what failed, and how
# many tests passed.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o bin/testsummary ./hack/testsummary
go test -json "$@" | bin/testsummary
