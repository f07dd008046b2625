#!/usr/bin/env bash
# Runs test/cluster on a real Kubernetes: the one that KUBECONFIG names, where the image has to be there already
# (RELAYOPS_E2E_IMAGE) and pods reach this machine by RELAYOPS_E2E_HOST; or one of hack/cluster, which it starts, loads
# and removes.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/bootstrap.sh test
hack/kube.sh kubectl
hack/tool.sh helm helm.sh/helm/v4/cmd/helm hack/helm
export RELAYOPS_E2E_KUBECTL=$PWD/bin/kube/kubectl RELAYOPS_E2E_HELM=$PWD/bin/helm
if [ -z "${KUBECONFIG:-}" ]; then
  export RELAYOPS_E2E_IMAGE=localhost/relayops:dev RELAYOPS_E2E_HOST=10.88.0.1
  hack/bootstrap.sh cluster
  hack/image.sh "$RELAYOPS_E2E_IMAGE"
  scratch=$(mktemp -d)
  trap 'hack/cluster/cluster.sh down; rm -rf --one-file-system "$scratch"' EXIT
  hack/cluster/cluster.sh up
  hack/cluster/cluster.sh load "$RELAYOPS_E2E_IMAGE" "dist/image/relayops-$(go env GOARCH).tar"
  export KUBECONFIG=$scratch/kubeconfig
  hack/cluster/cluster.sh kubeconfig >"$KUBECONFIG"
fi
go test -tags e2e -count 1 -timeout 20m -v ./test/cluster
