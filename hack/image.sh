#!/usr/bin/env bash
# Builds the one image of all programs, without a container engine: dist/image/relayops-ARCH.tar.
#
#   hack/image.sh [TAG] [ARCH]      localhost/relayops:dev and this machine's, if they are left out
#
# The same source gives the same bytes. `docker load -i` and `ctr -n k8s.io images import` read it.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-localhost/relayops:dev}
arch=${2:-$(go env GOARCH)}
if [ ! -s /etc/ssl/certs/ca-certificates.crt ]; then
  echo "image: no authorities in /etc/ssl/certs: install the package ca-certificates" >&2
  exit 1
fi
hack/tool.sh image . hack/image
mkdir -p "dist/image/$arch"
programs=()
for main in cmd/*/main.go; do
  program=$(basename "$(dirname "$main")")
  # No version control stamp: a commit that changes no program changes no image.
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags '-s -w' \
    -o "dist/image/$arch/$program" "./cmd/$program"
  programs+=("dist/image/$arch/$program")
done
bin/image -out "dist/image/relayops-$arch.tar" -tag "$tag" -arch "$arch" "${programs[@]}"
echo "image: $tag for $arch in dist/image/relayops-$arch.tar" >&2
