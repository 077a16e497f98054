# One gate, few words. `make` lists them. Times are for 2 cores.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo dev test crash mutants model soak stress bench-quota check cover generate programs

# Only the race detector needs a C compiler; it turns cgo on for itself.
export CGO_ENABLED := 0

# Walks at random are the same ones each time, so that a change is judged by what it does and not by luck. To look for
# others, give another seed, and more of them.
export RAPID_SEED ?= 1
export RAPID_CHECKS ?= 3000

GO_FILES = git ls-files --cached --others --exclude-standard '*.go'
GOLANGCI_LINT = go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint
# Modules of their own that hold Go code of ours, as against those that only pin a tool.
NESTED = $(sort $(dir $(foreach mod,$(wildcard hack/*/go.mod),$(wildcard $(dir $(mod))*.go))))

help: ## list what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Not `go run`: it turns every Ctrl-C into a failure.
demo: ## play the whole story on a real control plane, then clean up. Needs Go. First time about 15 min, then under 1 min
	@go build -buildvcs=false -o bin/dev ./cmd/dev && exec bin/dev demo

dev: ## the same set-up, and it stays until Ctrl-C: .dev/kubeconfig and .dev/env. Needs Go. ARGS=--help lists its flags
	@go build -buildvcs=false -o bin/dev ./cmd/dev && exec bin/dev up $(ARGS)

test: programs ## all tests, with the race detector. Needs Go, gcc and git. First time about 30 min, then 14
	@echo "== go test -race ./..., three packages at a time, since most of them wait for a control plane (vet is part of make check, where it doesn't look at every dependency anew)"
	CGO_ENABLED=1 go test -race -vet=off -count=1 -timeout 20m -p 3 ./...
	@for module in $(NESTED); do \
		ls $$module*_test.go >/dev/null 2>&1 || continue; \
		echo "== go test in $$module"; (cd $$module && go test -vet=off -count=1 ./...); \
	done

crash: programs ## kill the controller at every point of its life; the booking API's ledger is the judge. Needs Go. 20 min, idle machine. RUN=NAME repeats one run
	@CRASH='$(or $(RUN),all)' go test -vet=off -count=1 -timeout 90m -v -run '$(if $(RUN),TestKilledAtEveryPoint,TestKilledAtEveryPoint|TestScenario11|TestReplicas)' \
		./test/crash 2>&1 | grep --line-buffered -Ev '^ *(=== |--- PASS)'

mutants: programs ## take each guard out; exits 0 only if a named test fails for each. Needs Go. 7 min
	@MUTANTS=all go test -vet=off -count=1 -timeout 30m ./test/mutants -v -run 'TestATestMissesEachGuardThatIsTakenOut' 2>&1 | grep --line-buffered -Ev '^ *(=== |--- PASS)'

model: ## check the quota protocol with spin, as designed and with each rule taken out. Needs spin and gcc. 2 min
	@test/model/run.sh

soak: programs ## tickets under random faults (SOAK_DURATION, SOAK_TICKETS, SOAK_SEED), then a queue that drains (SOAK_WAITING, SOAK_RATE). Needs Go. 20 min
	@SOAK_SEED=$${SOAK_SEED:-$$((RANDOM + 1))} SOAK_DURATION=$${SOAK_DURATION:-10m} SOAK_TICKETS=$${SOAK_TICKETS:-500} SOAK_WAITING=$${SOAK_WAITING:-2000} SOAK_RATE=$${SOAK_RATE:-30} SOAK_POLL=$${SOAK_POLL:-2m} \
		go test -vet=off -count=1 -timeout 60m ./test/soak -v 2>&1 | grep --line-buffered -Ev '^ *(=== |--- PASS)'

stress: programs ## 200 clients race for quotas while processes die (STRESS_DURATION, STRESS_SEED); SEEDS=n plays the scenarios instead, n times each. Needs Go. 20 min
	@STRESS_SEED=$${STRESS_SEED:-$$((RANDOM + 1))} STRESS_DURATION=$${STRESS_DURATION:-10m} STRESS_PAUSE=$${STRESS_PAUSE:-1s} STRESS_REQUEST_LIFE=$${STRESS_REQUEST_LIFE:-90s} SEEDS='$(SEEDS)' \
		go test -vet=off -count=1 -timeout 180m ./test/stress -v -run '$(if $(SEEDS),TestScenarios,TestQuotas)' 2>&1 | grep --line-buffered -Ev '^ *(=== |--- PASS)'

bench-quota: programs ## creates a second with one hot bucket, against none and against a write a request; figures go to docs/bench.md. Needs Go, idle machine. 15 min
	@BENCH_DOCS=$(CURDIR)/docs/bench.md go test -vet=off -count=1 -timeout 60m ./test/stress -run '^$$' -bench HotBucket -benchtime 1x

check: ## formatting, conventions, fresh generated files, linters. Needs Go and git. First time about 6 min, then 1
	@echo "== gofmt"
	@stale=$$($(GO_FILES) | xargs gofmt -l); [ -z "$$stale" ] || { echo "run gofmt -w on:" $$stale >&2; exit 1; }
	@echo "== layout and conventions"
	@go test -vet=off -count=1 -v . | grep -v '^=== '
	@echo "== generated files"
	@hack/check-generated.sh
	@echo "== golangci-lint, vet included, which as a command would look at every dependency anew (its first build takes about 4 min)"
	@for module in . $(NESTED); do echo "in $$module"; (cd $$module && $(GOLANGCI_LINT) run ./...); done

cover: ## coverage of the packages that everything rests on; fails under 85 %. Needs Go
	@hack/cover.sh 85 internal/policy internal/places controllers/flightticket/lifecycle

generate: ## write CRDs, RBAC, webhook configuration, deep copies, booking client and server. Needs Go. First time 2 min
	hack/generate.sh

programs: # what tests and demo start: built here, since `go test` keeps the progress of a build to itself
	@echo "== programs of the control plane"
	@go run ./cmd/dev programs
