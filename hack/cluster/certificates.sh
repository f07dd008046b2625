# The cluster's own authorities and certificates.

# authority NAME SUBJECT
authority() {
  openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$pki/$1.key" \
    -out "$pki/$1.crt" -days 3650 -subj "/CN=$2" \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature 2>/dev/null
}

# certificate NAME AUTHORITY SUBJECT client|server [NAMES]
certificate() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$pki/$1.key" -out "$pki/$1.csr" \
    -subj "$3" 2>/dev/null
  openssl x509 -req -in "$pki/$1.csr" -CA "$pki/$2.crt" -CAkey "$pki/$2.key" -set_serial "0x$(openssl rand -hex 8)" \
    -days 3650 -out "$pki/$1.crt" -extfile <(
      echo "keyUsage=critical,digitalSignature"
      echo "extendedKeyUsage=$4Auth"
      echo "basicConstraints=critical,CA:FALSE"
      [ -z "${5:-}" ] || echo "subjectAltName=$5"
    ) 2>/dev/null
  rm -f "$pki/$1.csr"
}

# kubeconfig NAME: of the certificate of that name.
kubeconfig() {
  cat >"$work/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: relayops
  cluster:
    server: https://$gateway:$api_port
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$pki/$1.crt")
    client-key-data: $(base64 -w0 "$pki/$1.key")
contexts:
- name: relayops
  context: {cluster: relayops, user: $1}
current-context: relayops
YAML
  chmod 600 "$work/$1.kubeconfig"
}

# In a subshell: its wait is for its own jobs, and not for the cluster's processes.
certificates() (
  mkdir -p "$pki"
  chmod 700 "$pki"
  authority ca kubernetes-ca
  authority front front-proxy-ca
  local names="DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.$domain"
  certificate apiserver ca /CN=kube-apiserver server \
    "$names,DNS:localhost,DNS:$node,IP:$service_ip,IP:$gateway,IP:127.0.0.1" &
  certificate kubelet-serving ca "/O=system:nodes/CN=system:node:$node" server "DNS:$node,IP:$gateway,IP:127.0.0.1" &
  certificate apiserver-kubelet ca /CN=apiserver-kubelet-client client &
  certificate front-client front /CN=front-proxy-client client &
  certificate admin ca /O=system:masters/CN=admin client &
  certificate controller-manager ca /CN=system:kube-controller-manager client &
  certificate scheduler ca /CN=system:kube-scheduler client &
  certificate proxy ca /CN=system:kube-proxy client &
  certificate kubelet ca "/O=system:nodes/CN=system:node:$node" client &
  wait
  openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$pki/service-accounts.key" 2>/dev/null
  local name
  for name in admin controller-manager scheduler proxy kubelet; do
    kubeconfig "$name"
  done
)
