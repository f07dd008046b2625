#!/usr/bin/env bash
# Builds bin/NAME from PACKAGE in the module hack/tools, unless it is there and as new as that module.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: $0 NAME PACKAGE" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
target="$PWD/bin/$1"
if [ -x "$target" ] && [ -z "$(find hack/tools -newer "$target" -type f -print -quit)" ]; then
  exit 0
fi
echo "building bin/$1 (once; some minutes for golangci-lint)" >&2
mkdir -p bin
go build -C hack/tools -o "$target" "$2"
touch "$target"
