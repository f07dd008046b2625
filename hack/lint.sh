#!/usr/bin/env bash
# Lints the packages that are given, or all of them, as .golangci.yml says.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/tool.sh golangci-lint ./golangci-lint
if [ $# -eq 0 ]; then
  set -- ./...
fi
exec bin/golangci-lint run --allow-serial-runners "$@"
