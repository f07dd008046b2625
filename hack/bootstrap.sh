#!/usr/bin/env bash
# Installs what `make demo` and `make test` need beside Go and says what and why. A second run does nothing.
#
#   hack/bootstrap.sh            PostgreSQL's server programs (demo)
#   hack/bootstrap.sh cluster    what a Kubernetes of hack/cluster needs beside
#   hack/bootstrap.sh test       the same, a C compiler for Go's race detector, and etcd for a Kubernetes API server
#
# Only the programs of PostgreSQL are used: RelayOps runs private servers of its own in its own directories, and
# leaves a server that the package starts alone.
set -euo pipefail

readonly min_postgres=13
for_what=${1:-demo}

say() { printf 'bootstrap: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# has_server DIR: DIR holds the programs of a PostgreSQL server.
has_server() { [[ -x $1/initdb && -x $1/postgres ]]; }

# The same places in the same order as internal/localpostgres looks in.
find_postgres() {
  if [[ -n ${RELAYOPS_PG_BIN:-} ]]; then
    has_server "$RELAYOPS_PG_BIN" || die "RELAYOPS_PG_BIN is $RELAYOPS_PG_BIN: no initdb and postgres there"
    return 0
  fi
  local initdb dir major
  if initdb=$(command -v initdb) && has_server "$(dirname "$(readlink -f "$initdb")")"; then
    return 0
  fi
  for dir in /usr/lib/postgresql/*/bin; do
    major=$(basename "$(dirname "$dir")")
    if [[ $major =~ ^[0-9]+$ ]] && ((major >= min_postgres)) && has_server "$dir"; then
      return 0
    fi
  done
  return 1
}

has_c_compiler() { command -v "$(go env CC)" >/dev/null; }

check_go() {
  command -v go >/dev/null || die "Go is missing: install Go 1.26 or later from https://go.dev/dl and put it on the PATH"
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing needs root, and sudo is missing: run as root: apt-get install ${packages[*]}"
  fi
}

install_packages() {
  command -v apt-get >/dev/null ||
    die "this machine has no apt-get: install by hand what these Debian packages hold: ${packages[*]}"
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}")
  # The lists may be missing or old: they are fetched only if installing fails without.
  if ! as_root "${install[@]}" >&2; then
    say "fetching apt's package lists"
    as_root apt-get update -q >&2
    as_root "${install[@]}" >&2
  fi
}

check_go
packages=()
if ! find_postgres; then
  say "installing postgresql: relayops dev and the tests run private PostgreSQL servers"
  packages+=(postgresql)
fi
if [[ $for_what == test ]] && ! has_c_compiler; then
  say "installing gcc and libc6-dev: Go's race detector is linked with a C compiler"
  packages+=(gcc libc6-dev)
fi
if [[ $for_what == test && -z ${KUBEBUILDER_ASSETS:-} ]] && ! command -v etcd >/dev/null; then
  say "installing etcd-server: the operator is tested on a real Kubernetes API server, which stores its objects there"
  packages+=(etcd-server)
fi
if [[ $for_what == cluster ]]; then
  # program or path, and the Debian package that has it
  for need in etcd:etcd-server containerd:containerd runc:runc iptables:iptables conntrack:conntrack openssl:openssl \
    ip:iproute2 /usr/lib/cni/bridge:containernetworking-plugins; do
    if ! PATH=/usr/sbin:/sbin:$PATH command -v "${need%%:*}" >/dev/null; then
      say "installing ${need##*:}: the Kubernetes of hack/cluster runs it"
      packages+=("${need##*:}")
    fi
  done
fi
if ((${#packages[@]} > 0)); then
  install_packages
  find_postgres || die "PostgreSQL $min_postgres or later is still missing: see the messages above"
fi
