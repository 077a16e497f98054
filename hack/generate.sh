#!/usr/bin/env bash
# Writes everything that is generated. Usage: hack/generate.sh [DEST]
# DEST is the root to write below: the work tree, or for `make check` an empty folder to compare with it.
# Tools are built from their pinned modules by the Go tool, which keeps them in its own cache.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-.}"
dest=$(cd "${1:-.}" && pwd)

controller_gen() { go tool -modfile=hack/tools/controller-gen/go.mod controller-gen "$@"; }

mkdir -p "$dest"/docs "$dest"/api/v1 "$dest"/config/{crd,rbac/webhook,rbac/controller,webhook} "$dest"/internal/booking/{rest,simulator}
controller_gen object paths=./api/v1/... output:object:dir="$dest/api/v1"
controller_gen crd paths=./api/v1/... output:crd:dir="$dest/config/crd"
controller_gen rbac:roleName=flight-webhook paths=./webhooks/... output:rbac:dir="$dest/config/rbac/webhook"
controller_gen rbac:roleName=flight-controller paths=./controllers/... output:rbac:dir="$dest/config/rbac/controller"
controller_gen webhook paths=./webhooks/... output:webhook:dir="$dest/config/webhook"

go run ./hack/states "$dest"

cd hack/tools/oapi-codegen
go tool oapi-codegen -config client.yaml -o "$dest/internal/booking/rest/rest.gen.go" ../../../api/booking/openapi.yaml
go tool oapi-codegen -config simulator.yaml -o "$dest/internal/booking/simulator/server.gen.go" ../../../api/booking/openapi.yaml
