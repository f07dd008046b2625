# RelayOps. `make` lists what there is.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

GO ?= go
# How many orders the demo commits, and how many in a second.
ORDERS ?= 300
RATE ?= 30
# The image that `make image` makes and `make deploy` runs, and the kubectl that is used.
TAG ?= localhost/relayops:dev
ARCH ?=
IMG ?= ghcr.io/relayops/relayops:0.1.0
KUBECTL ?= kubectl
# What `make test` tests, and for how long a package may take.
PKG ?= ./...
TEST_TIMEOUT ?= 15m
# How long each fuzz target of `make fuzz` runs.
FUZZTIME ?= 10s

PROGRAMS := $(notdir $(wildcard cmd/*))

##@ Try it

.PHONY: demo
demo: bootstrap ## Orders through a pipeline on this machine, from commit to ERP (ORDERS, RATE; ONESHOT=1 ends by itself)
	@mkdir -p bin/demo
	@$(GO) build -o bin/relayops ./cmd/relayops
	@$(GO) build -o bin/demo/ ./hack/demo/driver ./hack/demo/erpstub ./hack/demo/orderservice
	@exec bin/demo/driver -orders $(ORDERS) -rate $(RATE) $(if $(filter-out 0,$(ONESHOT)),-oneshot)

.PHONY: bootstrap
bootstrap: ## Install what the demo needs beside Go (PostgreSQL's programs), if it is missing
	@hack/bootstrap.sh

##@ Develop

.PHONY: build
build: ## Build the programs into bin/
	@for program in $(PROGRAMS); do $(GO) build -o bin/$$program ./cmd/$$program; done

.PHONY: test
test: ## All tests but the process tests, with the race detector, on a real PostgreSQL, NATS and Kubernetes API server (PKG, TEST_TIMEOUT)
	@hack/bootstrap.sh test
	@assets=$$(hack/envtest.sh) && KUBEBUILDER_ASSETS=$$assets \
	  hack/test.sh -race -timeout $(TEST_TIMEOUT) $$($(GO) list $(PKG) | grep -v /test/process)

.PHONY: test-process
test-process: ## Kill, freeze and cut off the real programs, and account for every event
	@hack/bootstrap.sh test
	@hack/test.sh -count 1 -timeout $(TEST_TIMEOUT) ./test/process/...

.PHONY: e2e
e2e: test-process ## The process tests, then the demo to its end
	@$(MAKE) demo ONESHOT=1

.PHONY: e2e-cluster
e2e-cluster: ## The operator on a real Kubernetes: that of KUBECONFIG, or one of hack/cluster (root)
	@hack/e2e-cluster.sh

.PHONY: cluster-up cluster-load cluster-status cluster-down cluster-test
cluster-up: ## A Kubernetes of one node on this machine, built from source (root)
	@hack/bootstrap.sh cluster
	@hack/cluster/cluster.sh up

cluster-load: image ## Build the image and have that cluster know it as TAG
	@hack/cluster/cluster.sh load $(TAG) dist/image/relayops-$$($(GO) env GOARCH).tar

cluster-status: ## Its processes and their memory
	@hack/cluster/cluster.sh status

cluster-down: ## Stop it and remove everything of it
	@hack/cluster/cluster.sh down

cluster-test: ## That cluster itself: up, a pod, down and nothing left, twice (root)
	@hack/bootstrap.sh cluster
	@hack/cluster/prove.sh

.PHONY: bench
bench: ## Throughput, latency, idle cost and memory, against hand-written loops in the same run
	@hack/bootstrap.sh
	@$(GO) run ./hack/bench

.PHONY: fuzz
fuzz: ## Each fuzz target for a short while (FUZZTIME)
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: ## golangci-lint, with the layout's import rules
	@hack/lint.sh

.PHONY: fmt
fmt: ## Format the Go files
	@gofmt -l -w $$(git ls-files -co --exclude-standard '*.go')

.PHONY: tidy
tidy: ## Tidy the modules
	@$(GO) mod tidy
	@$(GO) mod tidy -C hack/tools

##@ Generated files

.PHONY: generate
generate: ## Deep copies and CustomResourceDefinitions, from the types in api/v1alpha1
	@hack/generate.sh

.PHONY: verify-generated
verify-generated: ## Fail if a generated file is not what the types give
	@hack/verify-generated.sh

.PHONY: chart
chart: ## Lint and render the Helm chart and config/default, with the choices that they have
	@hack/chart.sh

##@ Ship it

.PHONY: image
image: ## The image of all programs, without a container engine (TAG, ARCH)
	@hack/image.sh $(TAG) $(ARCH)

.PHONY: install
install: ## The CustomResourceDefinitions, into the cluster of your kubeconfig
	@$(KUBECTL) apply --server-side -k config/crd

.PHONY: deploy
deploy: ## The operator as well (IMG)
	@$(KUBECTL) kustomize config/default | sed 's#ghcr.io/relayops/relayops:0.1.0#$(IMG)#' \
	  | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: ## The operator goes; CustomResourceDefinitions stay, and with them every OutboxRelay and Pipeline
	@for part in manager webhook rbac; do $(KUBECTL) delete --ignore-not-found -n relayops-system -k config/$$part; done

##@ Clean up

.PHONY: clean
clean: ## Remove what was built, and the data of demo and dev mode in this directory
	@rm -rf bin dist .relayops

##@ Help

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
