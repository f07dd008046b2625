# down goes on whatever is gone already, and does nothing where there is nothing.
down() {
  set +e +o pipefail
  exec 9>"$lock.lock"
  flock -w 60 9 || die "another one is being started or stopped"
  if [ ! -d "$work/pids" ]; then
    [ "$(cat "$lock.owner" 2>/dev/null)" != "$work" ] || rm -f "$lock.owner"
    say "there is nothing to stop"
    return 0
  fi
  local name
  for name in kubelet scheduler controller-manager proxy; do
    stop "$name" 5 &
  done
  wait
  stop_pods
  stop apiserver 1
  stop etcd 2
  unmount
  ip link del "$bridge" 2>/dev/null
  clean_iptables
  local addresses
  for addresses in "$services" "$pods"; do
    conntrack -D -d "$addresses" >/dev/null 2>&1
    conntrack -D -s "$addresses" >/dev/null 2>&1
  done
  remove_cgroups
  remove_logs_and_leases
  restore_host
  remove_files
  rm -f "$lock.owner"
  say "down"
}

# up made sure that no other kubelet runs pods here.
stop_pods() {
  local i pids address pid
  for ((i = 0; i < 100; i++)); do
    pids=$(pod_processes)
    [ -n "$pids" ] || break
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null
    sleep 0.05
  done
  shim_sockets=$(cat "$work"/containerd/state/io.containerd.runtime.v2.task/k8s.io/*/address 2>/dev/null |
    sed 's#unix://#\n#g' | sort -u)
  sandboxes=$(ls "$work/containerd/state/io.containerd.runtime.v2.task/k8s.io" 2>/dev/null)
  stop containerd 5
  # The shims of this containerd, known by its socket.
  for pid in $(ls /proc | grep -E '^[0-9]+$'); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = containerd-shim ] || continue
    case $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in
      *"-address $socket "*) kill -KILL "$pid" 2>/dev/null ;;
    esac
  done
  for address in $shim_sockets; do
    case $address in /run/containerd/s/*) rm -f "$address" ;; esac
  done
}

# Mounts below our directory, the deepest first.
unmount() {
  local i mounts path
  for ((i = 0; i < 5; i++)); do
    mounts=$(awk -v below="$work/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
    [ -n "$mounts" ] || return 0
    while read -r path; do
      umount "$path" 2>/dev/null || umount -l "$path" 2>/dev/null
    done <<<"$mounts"
  done
  ! grep -qF " $work/" /proc/self/mountinfo || die "mounts are left below $work: nothing is removed"
}

remove_cgroups() {
  local group i
  for group in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/kubepods; do
    for ((i = 0; i < 40; i++)); do
      [ -d "$group" ] || break
      find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
      [ ! -d "$group" ] || sleep 0.05
    done
  done
}

remove_logs_and_leases() {
  local sandbox link
  rm -f /var/lib/cni/results/"$bridge"-*
  for sandbox in $sandboxes; do
    rm -f "/var/lib/cni/results/cni-loopback-$sandbox-lo"
  done
  for link in /var/log/containers/*.log; do
    case $(readlink "$link" 2>/dev/null) in "$work"/*) rm -f "$link" ;; esac
  done
}

remove_files() {
  local part
  for part in containerd cni cni-state etcd kubelet pids pki pod-logs controller-manager scheduler kubecache images \
    host; do
    rm -rf --one-file-system "${work:?}/$part"
  done
  rm -f "$work"/*.kubeconfig "$work"/*.yaml "$work/resolv.conf"
  # KEEP_LOGS=1 leaves them for a look at what went wrong.
  [ -n "${KEEP_LOGS:-}" ] || rm -rf --one-file-system "${work:?}/logs"
  rmdir "$work" 2>/dev/null
}
