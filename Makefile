# The fixed commands. Each works in a fresh clone with Go and git; `test`
# installs the C compiler that SQLite and the race detector need.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export CGO_ENABLED := 1

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Given to each fuzz target: a number of inputs, or a duration.
FUZZ_TIME ?= 20000x

# Time given to trouble by chaos, on both stores together, and its seed; 0 = a
# random one, which it prints.
CHAOS_TIME ?= 5m
CHAOS_SEED ?= 0

# Runs that compare the stores, at random operations each.
MODEL_CHECKS ?= 40

# Runs of each scenario, and processes that do nothing but take the processors
# meanwhile.
RUNS ?= 100
LOAD ?= 0

.PHONY: demo-login size pictures asan chaos model scenarios run test test-short test-whole demo bench test-oracle test-ivory ctk check fuzz build install

run: build ## serve on the embedded store with the examples and their outside world
	@trap 'kill $$world 2>/dev/null || true' EXIT; \
	bin/services -state aqueduct-data/services.jsonl -node http://127.0.0.1:8080 & world=$$!; \
	bin/engine-node serve --watch examples --steps-sql examples/stock-reservation/sql --steps-tables examples/stock-reservation/tables.sql

demo-login: build ## serve as run does, where people log in: as a clerk, an operator or an author, of whom nobody proves anything; for trying out
	@trap 'kill $$world $$people 2>/dev/null || true' EXIT; \
	bin/services -state aqueduct-data/services.jsonl & world=$$!; \
	bin/identities & people=$$!; \
	store=sqlite://aqueduct-data/demo-login.db; \
	bin/engine-node migrate --store $$store; \
	bin/engine-node publish examples/loan-approval/workflow.yaml --store $$store; \
	bin/engine-node start examples/loan-approval --id loan-1 --input @examples/loan-approval/input.json --store $$store; \
	echo "log in at http://127.0.0.1:8080/console/ as clerk, operator or author"; \
	bin/engine-node serve --store-url $$store --watch examples --steps-sql examples/stock-reservation/sql --steps-tables examples/stock-reservation/tables.sql \
		--access-oidc-issuer http://127.0.0.1:8095 --access-oidc-audience aqueduct --access-oidc-client aqueduct \
		--access-oidc-roles 'task-user=loan-officers; operator=operators; viewer=operators; admin=operators; author=authors'

test: install ## before a change is shown to others: every test but what takes long, and check
	.ci/install-postgres
	.ci/install-browser
	[ "$${CI:-}" != true ] || .ci/install-grammar # where nothing may be skipped
	[ "$${CI:-}" != true ] || .ci/install-axe
	[ "$${CI:-}" != true ] || .ci/install-promtool
	[ "$${CI:-}" != true ] || .ci/install-haproxy
	.ci/test
	$(MAKE) --no-print-directory check

test-short: install ## for the inner loop: without the race detector, Oracle's store and other processes
	.ci/test short

test-whole: install ## what the gate runs: check, every test, fuzzing
	$(MAKE) --no-print-directory check
	.ci/install-postgres
	.ci/install-grammar
	.ci/install-axe
	.ci/install-browser
	.ci/install-promtool
	.ci/install-haproxy
	.ci/test whole
	$(MAKE) --no-print-directory fuzz

demo: install ## kill a node in the middle of a loan, and see nothing lost
	go run ./examples/demo

pictures: install ## the pictures of the console in docs/pictures, as a browser sees it now
	.ci/install-browser
	AQUEDUCT_PICTURES=$(CURDIR)/docs/pictures go test -count=1 ./cmd/engine-node -run 'TestALoanIsApprovedAtABrowser|TestARunGoesOnAtABrowser'

bench: build ## measure a node beside its baseline
	bin/engine-node bench

check: ## what can be said without running it
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags ivory ./sql/oracle # which no gate runs
	go run $(STATICCHECK) ./...
	go mod tidy -diff

size: ## that the program weighs no more than it may, as the image has it
	.ci/size

fuzz: ## every fuzz target for a moment
	FUZZ_TIME=$(FUZZ_TIME) .ci/fuzz

test-oracle: install ## the Oracle store: over the stand-in, or on the database of AQUEDUCT_ORACLE_DSN; ends with a report
	.ci/install-postgres
	[ "$${CI:-}" != true ] || .ci/install-grammar # where nothing may be skipped
	[ "$${CI:-}" != true ] || .ci/install-axe
	.ci/test-oracle

test-ivory: install ## the SQL and PL/SQL of the Oracle store on IvorySQL, of IVORYSQL_HOME; ends with a report
	@if [ -z "$${IVORYSQL_HOME:-}" ]; then \
		echo "test-ivory: set IVORYSQL_HOME to the folder of an installation of IvorySQL (github.com/IvorySQL/IvorySQL), with bin/initdb in it" >&2; exit 1; \
	fi
	go test -tags ivory -count=1 -timeout 20m -v -run '^TestOnIvorySQL$$' ./sql/oracle

model: install ## random operations on every store and on a model of one: what may be seen is the same; MODEL_CHECKS
	.ci/install-postgres
	go test -count=1 -timeout 20m ./internal/model -run TestStoresAreEqual -rapid.checks=$(MODEL_CHECKS) -rapid.steps=25

chaos: install ## nodes in every trouble on both stores, judged by a stranger; CHAOS_TIME, CHAOS_SEED
	.ci/install-postgres
	go run ./internal/chaos -time $(CHAOS_TIME) -seed $(CHAOS_SEED)

scenarios: install ## every scenario on the embedded store, again and again; RUNS, LOAD
	@trap 'kill $$(jobs -p) 2>/dev/null || true' EXIT; \
	for ((i = 0; i < $(LOAD); i++)); do timeout 6h bash -c 'while :; do :; done' & done; \
	go test -count=$(RUNS) -timeout 6h ./internal/scenarios -run TestScenariosOnSQLite

asan: install ## the stand-in for Oracle's client library under AddressSanitizer
	.ci/install-postgres
	internal/ocisim/asan.sh

ctk: install ## the conformance kit of the Open Workflow DSL, of AQUEDUCT_CNCF, in four modes
	.ci/install-postgres
	go test -race -count=1 -v -run TestConformance ./internal/ctk

build: install
	@mkdir -p aqueduct-data
	go build -o bin/ ./cmd/engine-node ./examples/services ./examples/identities

install:
	@.ci/install
