#!/usr/bin/env bash
# A real Kubernetes of one node for tests, as processes of this machine: no registry, no systemd, no kubeadm.
#
#   hack/cluster/cluster.sh up              start it, and wait until the node and CoreDNS are ready
#   hack/cluster/cluster.sh load TAG TAR    have its pods run the image of this archive as TAG
#   hack/cluster/cluster.sh kubeconfig      print the administrator's kubeconfig
#   hack/cluster/cluster.sh status          what runs
#   hack/cluster/cluster.sh down            stop and remove everything that up made
#
# The programs of Kubernetes are built from Go modules (hack/kube.sh), the rest is Debian's (hack/bootstrap.sh cluster).
# It needs root, and is one on a machine: iptables chains and the cgroup kubepods are shared. Pods are in 10.88.0.0/16,
# where the machine is 10.88.0.1; a pod reaches it as host.internal too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

# Everything lives here. Unix sockets below it may have paths of 107 bytes at most.
readonly work=${CLUSTER_DIR:-/var/lib/relayops-cluster}
readonly kube=$root/bin/kube
readonly node=node1 bridge=relayops0 domain=cluster.local
readonly net=10.88 gateway=10.88.0.1 pods=10.88.0.0/16
readonly services=10.96.0.0/16 service_ip=10.96.0.1 dns_ip=10.96.0.10
readonly api_port=6443 etcd_port=12379
readonly lock=/run/lock/relayops-cluster
readonly socket=$work/containerd/s.sock pki=$work/pki
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

say() { printf 'cluster: %4d s  %s\n' "$SECONDS" "$*" >&2; }

die() {
  printf 'cluster: %s\n' "$*" >&2
  exit 1
}

k() { KUBECACHEDIR=$work/kubecache "$kube/kubectl" --kubeconfig "$work/admin.kubeconfig" "$@"; }

for part in processes certificates images configuration host up down; do
  # shellcheck source=/dev/null
  source "$here/$part.sh"
done

case ${1:-} in
  up) up ;;
  down) down ;;
  load)
    [ $# = 3 ] || die "usage: load TAG TAR"
    [ -d "$work/pids" ] || die "no cluster of hack/cluster runs; another one loads $3 in its own way (docs/testing.md)"
    load "$2" "$3"
    ;;
  kubeconfig) cat "$work/admin.kubeconfig" ;;
  status) status ;;
  *)
    sed -n '2,12p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
