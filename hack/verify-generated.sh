#!/usr/bin/env bash
# Fails if a generated file is not what the types give: it generates anew and compares with what was there.
set -euo pipefail
cd "$(dirname "$0")/.."

checksums() {
  find api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac config/webhook docs/api.md \
    charts/relayops/files -type f -exec sha256sum {} + | sort -k 2
}

before=$(checksums)
hack/generate.sh
if ! changed=$(diff <(echo "$before") <(checksums)); then
  printf 'generated files were out of date, and are not now; commit them:\n%s\n' "$changed" >&2
  exit 1
fi
