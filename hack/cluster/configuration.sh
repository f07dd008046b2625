# The configuration of everything that runs. Why a setting is as it is stands beside it.

configuration() {
  mkdir -p "$work"/{logs,pids,cni,cni-state,kubelet,etcd,pod-logs,containerd,host}
  containerd_configuration
  cni_configuration
  kubelet_configuration
  proxy_configuration
  # The resolver of pods with the node's DNS: there is no name server outside.
  echo "nameserver $gateway" >"$work/resolv.conf"
}

containerd_configuration() {
  # restrict_oom_score_adj: a machine may forbid to lower it, and runc would fail with "can't get final child's PID".
  # The plug-in "opt" makes /opt/containerd, which is not ours.
  cat >"$work/containerd/config.toml" <<TOML
version = 2
root = "$work/containerd/root"
state = "$work/containerd/state"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:dev"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$work/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "runc"
        Root = "$work/containerd/runc"
        SystemdCgroup = false
TOML
}

cni_configuration() {
  # hairpinMode: a pod reaches itself through its own Service.
  cat >"$work/cni/10-bridge.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "$bridge", "plugins": [
  {"type": "bridge", "bridge": "$bridge", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$work/cni-state",
     "ranges": [[{"subnet": "$pods", "rangeStart": "$net.1.1", "rangeEnd": "$net.250.250", "gateway": "$gateway"}]],
     "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}]}
JSON
}

kubelet_configuration() {
  # An image that is collected cannot be pulled again: nothing is collected, and nothing evicted.
  cat >"$work/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
failSwapOn: false
containerRuntimeEndpoint: unix://$socket
podLogsDir: $work/pod-logs
address: $gateway
healthzBindAddress: 127.0.0.1
tlsCertFile: $pki/kubelet-serving.crt
tlsPrivateKeyFile: $pki/kubelet-serving.key
readOnlyPort: 0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true, cacheTTL: 10s}
  x509: {clientCAFile: $pki/ca.crt}
authorization: {mode: Webhook}
clusterDNS: ["$dns_ip"]
clusterDomain: $domain
resolvConf: $work/resolv.conf
oomScoreAdj: 0
enforceNodeAllocatable: []
evictionHard:
  memory.available: "0%"
  nodefs.available: "0%"
  nodefs.inodesFree: "0%"
  imagefs.available: "0%"
  imagefs.inodesFree: "0%"
imageGCHighThresholdPercent: 100
makeIPTablesUtilChains: false
nodeStatusUpdateFrequency: 5s
configMapAndSecretChangeDetectionStrategy: Watch
crashLoopBackOff: {maxContainerRestartPeriod: 30s}
YAML
}

proxy_configuration() {
  cat >"$work/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $work/proxy.kubeconfig}
hostnameOverride: $node
bindAddress: 0.0.0.0
detectLocalMode: ClusterCIDR
clusterCIDR: $pods
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
nodePortAddresses: ["$gateway/32"]
oomScoreAdj: 0
iptables: {localhostNodePorts: false}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
YAML
}
