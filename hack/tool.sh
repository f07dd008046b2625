#!/usr/bin/env bash
# Builds bin/NAME from PACKAGE in a module under hack (hack/tools if none is given), unless it is there and as new as
# that module.
set -euo pipefail
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 NAME PACKAGE [MODULE]" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
module=${3:-hack/tools}
target="$PWD/bin/$1"
if [ -x "$target" ] && [ -z "$(find "$module" -newer "$target" -type f -print -quit)" ]; then
  exit 0
fi
echo "building bin/$1 (once; some minutes for golangci-lint and helm)" >&2
mkdir -p bin
go build -C "$module" -o "$target" "$2"
touch "$target"
