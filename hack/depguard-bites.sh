#!/usr/bin/env bash
# Shows that the linter refuses each forbidden direction: adds an import to a copy of the tree, one for each line
# below, and expects depguard to report every one of them, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/tool.sh golangci-lint ./golangci-lint

us=github.com/relayops/relayops
forbidden="
api/event            $us/internal/engine
api/event            k8s.io/apimachinery/pkg/types
api/outbox           $us/api/v1alpha1
api/v1alpha1         $us/internal/runspec
api/prepipeline      github.com/nats-io/nats.go
internal/engine      github.com/jackc/pgx/v5
internal/engine      github.com/nats-io/nats.go
internal/engine      k8s.io/apimachinery/pkg/types
internal/engine      $us/internal/node
internal/expression  database/sql
internal/placeholder $us/api/v1alpha1
internal/node/start  github.com/jackc/pgx/v5
internal/node/start  k8s.io/api/core/v1
internal/node/start  $us/internal/execution
internal/runspec     $us/api/v1alpha1
internal/runspec     $us/internal/worker
internal/outbox      github.com/nats-io/nats.go
internal/outbox      $us/api/v1alpha1
internal/execution   k8s.io/client-go/kubernetes
internal/execution   $us/internal/daemon/worker
internal/deadletter  $us/internal/stream
controllers/pipeline github.com/jackc/pgx/v5
internal/apply       github.com/nats-io/nats.go
internal/desired     k8s.io/client-go/kubernetes
internal/relay       $us/api/v1alpha1
internal/relay       sigs.k8s.io/controller-runtime
internal/stream      github.com/jackc/pgx/v5
internal/stream      k8s.io/client-go/kubernetes
internal/worker      $us/internal/resolve
internal/worker      $us/internal/cli/lint
internal/daemon/relay   $us/api/v1alpha1
internal/daemon/worker  $us/internal/manifest
cmd/relay            $us/api/v1alpha1
cmd/worker           k8s.io/client-go/kubernetes
internal/resolve     k8s.io/client-go/kubernetes
internal/resolve     github.com/jackc/pgx/v5/pgxpool
internal/manifest    net/http
internal/desired     sigs.k8s.io/controller-runtime
internal/resolve     $us/internal/daemon/relay
internal/relay       math/rand
internal/relay       log
"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
linter="$PWD/bin/golangci-lint"
config="$PWD/.golangci.yml"

# A module with one package that imports another, which is empty: depguard reads no more than that.
build() { # DIRECTORY PACKAGE IMPORT
  local file="$1/$2/file.go"
  mkdir -p "$1/$2"
  printf '// Package p is an example.\npackage p\n\nimport _ "%s"\n' "$3" >"$file"
  printf 'module %s\n\ngo 1.26.0\n' "$us" >"$1/go.mod"
  case "$3" in
  "$us"/*) write_empty "$1/${3#"$us"/}" ;;
  *.*/*)
    local module="${3%/v[0-9]*}" # v1 and v5 cannot end the path of a module of version 1
    write_empty "$1/stub${3#"$module"}"
    printf 'module %s\n\ngo 1.26.0\n' "$module" >"$1/stub/go.mod"
    printf '\nrequire %s v1.0.0\n\nreplace %s => ./stub\n' "$module" "$module" >>"$1/go.mod"
    ;;
  esac
}

write_empty() {
  mkdir -p "$1"
  printf '// Package q is an example.\npackage q\n' >"$1/q.go"
}

number=0
missed=0
while read -r package import; do
  [ -n "$package" ] || continue
  number=$((number + 1))
  build "$work/$number" "$package" "$import"
  report=$(cd "$work/$number" && GOFLAGS=-mod=mod "$linter" run --allow-parallel-runners --config "$config" --enable-only depguard \
    --output.text.print-issued-lines=false --issues-exit-code 0 "./$package" 2>&1) || true
  if ! grep -q "$package/file.go:.*'$import'.*(depguard)" <<<"$report"; then
    printf 'depguard does not refuse %s in %s:\n%s\n' "$import" "$package" "$report" >&2
    missed=$((missed + 1))
  fi
done <<<"$forbidden"
[ "$missed" -eq 0 ] || exit 1
echo "depguard refuses all $number forbidden imports"
