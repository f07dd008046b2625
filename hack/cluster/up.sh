up() {
  check_machine
  exec 9>"$lock.lock"
  flock -n 9 || die "another one is being started or stopped"
  [ ! -s "$lock.owner" ] || die "a cluster is up in $(cat "$lock.owner"): down stops it"
  [ ! -e "$work/pids" ] || die "$work holds an old cluster: down removes it"
  [ -z "$(pod_processes)" ] || die "another kubelet runs pods on this machine"
  ! ip link show "$bridge" >/dev/null 2>&1 || die "there is an interface $bridge already"
  system_images
  mkdir -p "$work"
  echo "$work" >"$lock.owner"
  trap '[ $? = 0 ] || echo "cluster: not up; logs are in $work/logs, and down removes it" >&2' EXIT
  configuration
  remember_host
  make_bridge
  start_storage
  certificates
  start_apiserver
  wait_for "containerd" 30 containerd containerd_client version
  load localhost/pause:dev "$work/images/pause.tar"
  load localhost/coredns:dev "$work/images/coredns.tar"
  wait_for "the API server" 90 "etcd apiserver" k get --raw /readyz
  say "API server is ready"
  start_node
  sed -e "s#GATEWAY#$gateway#; s#DNS_IP#$dns_ip#" "$here/manifests/system.yaml" | k apply -f - >/dev/null
  wait_for "node $node" 120 "containerd etcd apiserver controller-manager scheduler kubelet proxy" node_ready
  wait_for "the ServiceAccount default" 60 controller-manager k -n default get serviceaccount default
  k -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
  say "up: KUBECONFIG=$work/admin.kubeconfig"
}

check_machine() {
  [ "$(id -u)" = 0 ] || die "it needs root"
  [ ${#work} -le 60 ] || die "CLUSTER_DIR: found a path of ${#work} characters, allowed: 60, for sockets below it"
  local program
  for program in etcd containerd runc ctr iptables openssl setsid flock conntrack; do
    command -v "$program" >/dev/null || die "there is no $program: hack/bootstrap.sh cluster installs it"
  done
  [ -x /usr/lib/cni/bridge ] || die "there is no /usr/lib/cni/bridge: hack/bootstrap.sh cluster installs it"
  "$root/hack/kube.sh" kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl
}

node_ready() {
  local state
  state=$(k get node "$node" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')
  [ "$state" = True ]
}

start_storage() {
  start containerd containerd -c "$work/containerd/config.toml"
  local client=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$((etcd_port + 1))
  # Its data end with the cluster: nothing is gained by syncing them.
  start etcd etcd --name m --data-dir "$work/etcd" --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "m=$peer" \
    --unsafe-no-fsync --auto-compaction-mode=periodic --auto-compaction-retention=10m
}

start_apiserver() {
  start apiserver "$kube/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" \
    --bind-address="$gateway" --advertise-address="$gateway" --secure-port="$api_port" \
    --service-cluster-ip-range="$services" --client-ca-file="$pki/ca.crt" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --service-account-issuer="https://kubernetes.default.svc.$domain" \
    --service-account-key-file="$pki/service-accounts.key" \
    --service-account-signing-key-file="$pki/service-accounts.key" \
    --kubelet-certificate-authority="$pki/ca.crt" \
    --kubelet-client-certificate="$pki/apiserver-kubelet.crt" --kubelet-client-key="$pki/apiserver-kubelet.key" \
    --kubelet-preferred-address-types=InternalIP \
    --requestheader-client-ca-file="$pki/front.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$pki/front-client.crt" --proxy-client-key-file="$pki/front-client.key"
}

start_node() {
  local config=$work/controller-manager.kubeconfig
  start controller-manager "$kube/kube-controller-manager" --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --kube-api-qps=300 --kube-api-burst=600 --bind-address=127.0.0.1 --leader-elect=false \
    --use-service-account-credentials=true --service-account-private-key-file="$pki/service-accounts.key" \
    --root-ca-file="$pki/ca.crt" --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
    --cluster-cidr="$pods" --allocate-node-cidrs=false --cert-dir="$work/controller-manager"
  config=$work/scheduler.kubeconfig
  start scheduler "$kube/kube-scheduler" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --kube-api-qps=300 --kube-api-burst=600 --bind-address=127.0.0.1 \
    --leader-elect=false --cert-dir="$work/scheduler"
  start kubelet "$kube/kubelet" --config="$work/kubelet.yaml" --kubeconfig="$work/kubelet.kubeconfig" \
    --hostname-override="$node" --node-ip="$gateway" --root-dir="$work/kubelet" --cert-dir="$work/kubelet/pki"
  start proxy "$kube/kube-proxy" --config="$work/proxy.yaml"
}
