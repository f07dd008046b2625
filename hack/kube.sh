#!/usr/bin/env bash
# Builds programs of Kubernetes into bin/kube, unless they are there in the version of hack/kube/go.mod.
#
#   hack/kube.sh kube-apiserver kubectl …
#
# Nothing is downloaded but Go modules. The first build of kube-apiserver takes some ten minutes on two cores; Go's
# build cache keeps it for other checkouts of this machine.
set -euo pipefail
if [ $# -eq 0 ]; then
  echo "usage: $0 PROGRAM…" >&2
  exit 2
fi
cd "$(dirname "$0")/.."

version=$(awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2 }' hack/kube/go.mod)
ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$version"
ldflags+=" -X k8s.io/component-base/version.gitMajor=1"
ldflags+=" -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$version")"

mkdir -p bin/kube
# Two that build at once would do the work twice.
exec 9>bin/kube/.lock
flock 9
for program in "$@"; do
  target="bin/kube/$program"
  if [ -x "$target" ] && [ "$(cat "$target.version" 2>/dev/null)" = "$version" ]; then
    continue
  fi
  began=$SECONDS
  echo "kube: building $program $version (the first time: some minutes)" >&2
  CGO_ENABLED=0 go build -C hack/kube -trimpath -ldflags "$ldflags" -o "$PWD/$target.new" "k8s.io/kubernetes/cmd/$program"
  mv "$target.new" "$target"
  echo "$version" >"$target.version"
  echo "kube: $program built in $((SECONDS - began)) s" >&2
done
