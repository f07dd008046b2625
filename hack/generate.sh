#!/usr/bin/env bash
# Makes what is generated: from the markers in api/v1alpha1 deep copies, CustomResourceDefinitions and docs/api.md;
# from those of the operator its rights and its webhook configurations; and copies of the manifests in the chart.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/tool.sh controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
hack/tool.sh crd-ref-docs github.com/elastic/crd-ref-docs hack/apidocs

bin/controller-gen object paths=./api/v1alpha1
bin/controller-gen crd paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
if [ -d controllers ]; then
  bin/controller-gen rbac:roleName=relayops paths=./controllers/... output:rbac:artifacts:config=config/rbac
fi
if [ -d internal/webhook ]; then
  bin/controller-gen webhook paths=./internal/webhook/... output:webhook:artifacts:config=config/webhook
fi
bin/crd-ref-docs --source-path=api/v1alpha1 --config=hack/apidocs/config.yaml --renderer=markdown \
  --output-path=docs/api.md --log-level=ERROR >&2

# A chart holds all that it installs.
mkdir -p charts/relayops/files/{crds,rbac,webhook}
cp config/crd/bases/*.yaml charts/relayops/files/crds/
for generated in rbac/role.yaml webhook/manifests.yaml; do
  if [ -f "config/$generated" ]; then
    cp "config/$generated" "charts/relayops/files/$generated"
  fi
done
