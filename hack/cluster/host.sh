# What the cluster changes on this machine, and how that is undone.

readonly sysctls="net.ipv4.ip_forward net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables
  net.ipv4.conf.all.route_localnet vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.netfilter.nf_conntrack_max"
# Paths that no setting moves. They are removed when the cluster goes if they were not there before, and are empty.
readonly fixed_paths="/var/lib/kubelet /var/lib/cni /var/log/containers /var/log/pods /run/containerd /run/containerd/s"

remember_host() {
  local name value path
  for name in $sysctls; do
    if value=$(sysctl -n "$name" 2>/dev/null); then
      echo "$name=$value" >>"$work/host/sysctls"
    fi
  done
  for path in $fixed_paths; do
    [ -e "$path" ] || echo "$path" >>"$work/host/absent"
  done
}

restore_host() {
  local name value path
  while IFS== read -r name value; do
    [ "$(sysctl -n "$name" 2>/dev/null)" = "$value" ] || sysctl -qw "$name=$value" 2>/dev/null
  done <"$work/host/sysctls"
  [ -f "$work/host/absent" ] || return 0
  while read -r path; do
    [ "$path" != /var/lib/kubelet ] || rm -f "$path/device-plugins/kubelet.sock"
    [ ! -d "$path" ] || find "$path" -depth -type d -empty -delete 2>/dev/null
  done <"$work/host/absent"
}

# The bridge comes first: its address is what the API server advertises, the node's own, and the machine for pods.
make_bridge() {
  # shellcheck disable=SC2086,SC2183
  ip link add "$bridge" address "0a:58:$(printf '%02x:%02x' ${net/./ }):00:01" type bridge
  ip addr add "$gateway/16" dev "$bridge"
  ip link set "$bridge" up
  sysctl -qw net.ipv4.ip_forward=1
  modprobe br_netfilter 2>/dev/null || true
  sysctl -qw net.bridge.bridge-nf-call-iptables=1 ||
    die "the kernel has no br_netfilter: a pod could not reach another one on the bridge through a Service"
}

# One atomic restore for each table: the rules that lead to our chains, then the chains.
clean_iptables() {
  local command table undo
  for command in iptables ip6tables; do
    for table in filter nat mangle raw; do
      undo=$("$command-save" -t "$table" 2>/dev/null | awk '
        /^:(KUBE-|CNI-)/ { chain = substr($1, 2); flush = flush ":" chain " - [0:0]\n"; drop = drop "-X " chain "\n" }
        /^-A / { if ($2 !~ /^(KUBE-|CNI-)/ && $0 ~ /-j (KUBE-|CNI-)/) { sub(/^-A/, "-D"); rules = rules $0 "\n" } }
        END { printf "%s%s%s", flush, rules, drop }')
      [ -z "$undo" ] || printf '*%s\n%s\nCOMMIT\n' "$table" "$undo" | "$command-restore" --noflush
    done
  done
}

# pids of everything that a kubelet runs.
pod_processes() {
  find /sys/fs/cgroup/pids/kubepods /sys/fs/cgroup/kubepods -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}
