#!/usr/bin/env bash
# Shows that the cluster works twice in a row and leaves nothing behind: up, a loaded image runs in a pod, a second up
# is refused, down, and all that again.
set -euo pipefail
cd "$(dirname "$0")/../.."
cluster=hack/cluster/cluster.sh
work=${CLUSTER_DIR:-/var/lib/relayops-cluster}
readonly image=localhost/prove:dev
scratch=$(mktemp -d)
export KUBECONFIG=$scratch/kubeconfig

die() {
  printf 'prove: %s\n' "$*" >&2
  exit 1
}

# What a cluster changes outside of its own directory.
traces() {
  local rules
  rules=$(iptables-save)
  grep -E 'KUBE-|CNI-' <<<"$rules" || true
  ip -o link show relayops0 2>/dev/null || true
  find /sys/fs/cgroup -maxdepth 2 -name kubepods 2>/dev/null
  awk -v below="$work/" 'index($5, below) == 1 { print "mount " $5 }' /proc/self/mountinfo
  [ ! -e "$work" ] || echo "directory $work"
  [ ! -e /run/lock/relayops-cluster.owner ] || echo "the lock's owner"
  sysctl net.ipv4.ip_forward
}

run_a_pod() {
  "$cluster" load "$image" "$scratch/prove.tar"
  bin/kube/kubectl run prove --image "$image" --image-pull-policy Never
  bin/kube/kubectl wait --for=condition=Ready pod/prove --timeout=60s
}

before=$(traces)
[ ! -e "$work" ] || die "there is a cluster in $work already: $cluster down removes it"
trap '"$cluster" down; rm -rf --one-file-system "$scratch"' EXIT
for round in 1 2; do
  "$cluster" up
  "$cluster" kubeconfig >"$KUBECONFIG"
  bin/image -certificates= -out "$scratch/prove.tar" -tag "$image" bin/pause
  run_a_pod
  if refusal=$("$cluster" up 2>&1); then
    die "a second cluster came up beside the first"
  fi
  [[ $refusal == *"a cluster is up in"* ]] || die "a second up was refused for another reason: $refusal"
  "$cluster" down
  diff <(echo "$before") <(traces) >&2 || die "round $round left something behind, see above"
done
echo "the cluster came up twice, ran a pod, refused a second one, and left nothing behind"
