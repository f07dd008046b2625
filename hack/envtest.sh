#!/usr/bin/env bash
# Prints the directory that KUBEBUILDER_ASSETS has to name: kube-apiserver, kubectl and etcd. One that is set already is
# kept; otherwise kube-apiserver and kubectl are built, and etcd is Debian's (hack/bootstrap.sh test installs it).
#
#   KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./controllers/...
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
  for program in kube-apiserver etcd; do
    if [ ! -x "$KUBEBUILDER_ASSETS/$program" ]; then
      echo "envtest: KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS: there is no $program" >&2
      exit 1
    fi
  done
  echo "$KUBEBUILDER_ASSETS"
  exit 0
fi
hack/kube.sh kube-apiserver kubectl
if ! etcd=$(command -v etcd); then
  echo "envtest: etcd is missing: hack/bootstrap.sh test installs it" >&2
  exit 1
fi
ln -sf "$etcd" bin/kube/etcd
echo "$PWD/bin/kube"
