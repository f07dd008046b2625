# Images come from archives: there is no registry.

containerd_client() { ctr -a "$socket" -n k8s.io "$@"; }

# load TAG TAR: pods that ask for TAG, with pull policy Never or IfNotPresent, get the archive's image.
load() {
  local wanted=$1 found
  found=$(containerd_client images import --all-platforms=false "$2" | sed -n 's/^unpacking \([^ ]*\).*/\1/p' |
    tail -n 1) || die "$2 cannot be imported"
  [ -n "$found" ] || die "$2 holds no image"
  if [ "$found" != "$wanted" ]; then
    containerd_client images tag --force "$found" "$wanted" >/dev/null
  fi
}

# system_images builds those of the pod sandbox and of CoreDNS.
system_images() {
  "$root/hack/tool.sh" image . hack/image
  CGO_ENABLED=0 "$root/hack/tool.sh" pause . hack/cluster/pause
  CGO_ENABLED=0 "$root/hack/tool.sh" coredns github.com/coredns/coredns hack/cluster/coredns
  mkdir -p "$work/images"
  "$root/bin/image" -certificates= -out "$work/images/pause.tar" -tag localhost/pause:dev "$root/bin/pause"
  "$root/bin/image" -certificates= -out "$work/images/coredns.tar" -tag localhost/coredns:dev "$root/bin/coredns"
}
