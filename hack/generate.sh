#!/usr/bin/env bash
# Makes what is generated from the markers in api/v1alpha1: deep copies, and the CustomResourceDefinitions.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/tool.sh controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
bin/controller-gen object paths=./api/v1alpha1
bin/controller-gen crd paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
