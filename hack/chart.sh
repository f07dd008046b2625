#!/usr/bin/env bash
# Lints the Helm chart and renders it with the choices that it has; then the kustomize tree. What both install has to be
# readable YAML of the kinds that are expected, and values that make no sense have to be refused.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/tool.sh helm helm.sh/helm/v4/cmd/helm hack/helm
hack/kube.sh kubectl
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

fail() {
  echo "chart: $*" >&2
  exit 1
}

# renders NAME KIND… -- ARGUMENT…: the chart with these arguments has each of the kinds.
renders() {
  local name=$1 kinds=()
  shift
  while [ "$1" != -- ]; do
    kinds+=("$1")
    shift
  done
  shift
  bin/helm template relayops charts/relayops --namespace relayops-system "$@" >"$out/$name.yaml"
  local kind
  for kind in "${kinds[@]}"; do
    grep -qx "kind: $kind" "$out/$name.yaml" || fail "$name: there is no $kind"
  done
}

# refuses WORD ARGUMENT…: the chart says no to these arguments, and the word is in what it says.
refuses() {
  local word=$1
  shift
  if bin/helm template relayops charts/relayops "$@" >"$out/refused" 2>&1; then
    fail "$* was accepted"
  fi
  grep -q -- "$word" "$out/refused" || fail "$* was refused without a word of $word: $(cat "$out/refused")"
}

bin/helm lint --strict --quiet charts/relayops
renders defaults Deployment ClusterRole ClusterRoleBinding Role ValidatingWebhookConfiguration Service \
  CustomResourceDefinition PodDisruptionBudget --
renders namespaced Role RoleBinding -- --set 'watchNamespaces={a,b}'
renders cert-manager Certificate Issuer -- --set webhook.certificates=cert-manager
renders policies NetworkPolicy -- --set networkPolicies=true
renders monitors PodMonitor -- --api-versions monitoring.coreos.com/v1/PodMonitor
renders no-webhook Deployment -- --set webhook.enabled=false --set crds.install=false --set replicas=1
! grep -qx 'kind: ValidatingWebhookConfiguration' "$out/no-webhook.yaml" || fail "the webhook is off, and rendered"
! grep -qx 'kind: CustomResourceDefinition' "$out/no-webhook.yaml" || fail "crds.install is false, and they are rendered"
[ "$(grep -cx 'kind: Role' "$out/namespaced.yaml")" = 3 ] || fail "namespaced: want a Role for each namespace, and one own"
refuses replicas --set replicas=-1
refuses certificates --set webhook.certificates=magic
refuses webhok --set webhok.enabled=false

bin/kube/kubectl kustomize config/default >"$out/kustomize.yaml"
for kind in Deployment ClusterRole ValidatingWebhookConfiguration Service CustomResourceDefinition Namespace; do
  grep -qx "kind: $kind" "$out/kustomize.yaml" || fail "config/default: there is no $kind"
done
image=$(awk '/- name: RELAYOPS_IMAGE/ { getline; print $2 }' "$out/kustomize.yaml")
grep -qx " *image: $image" "$out/kustomize.yaml" || fail "config/default: relays would run another image than the operator"
echo "chart and config/default: rendered and as expected" >&2
