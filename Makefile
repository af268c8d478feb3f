# Everything one does with this repository. "make" lists it.

.DEFAULT_GOAL := help
.PHONY: help run build release image web modules test main libraries dashboard driven others packages lint bench curves profile chaos fuzz generate

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME ?= 20s
BIN ?= bin
DURATION ?= 20m
SEED ?= 0

# Modules of their own: what only they need, nobody else downloads.
OTHERS := store/redis/goredis test/conformance/envoy test/llm test/resp examples/middleware/gin examples/middleware/echo

# Those whose tests drive programs that run by themselves, or measure: the race detector would see only
# the driver. They are tested as weir is built, for which most of them is compiled anyway.
DRIVERS := test/e2e deploy/package test/bench

# These take minutes to compile, and staticcheck as long again.
LARGE := deploy/helm

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build $(BIN)/rules.yaml ## start weir with some rules, in memory, and show what to try
	@sed "s|127\.0\.0\.1:8080|$${WEIR_HTTP:-127.0.0.1:8080}|g" examples/try.txt
	@$(BIN)/weir serve --rules $(BIN)/rules.yaml --data $(BIN)/data

# A copy, so that what is changed in the dashboard changes nothing that belongs to git. A
# newer example replaces it; the history in the dashboard still has what was there.
$(BIN)/rules.yaml: examples/rules/quickstart.yaml
	@mkdir -p $(BIN)
	@cp examples/rules/quickstart.yaml $(BIN)/rules.yaml

# As releases are built; internal/build says why.
AS_BUILT := -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false -pgo=$(CURDIR)/cmd/weir/weir.pgo
build: ## build bin/weir
	@CGO_ENABLED=0 go build $(AS_BUILT) '-ldflags=-s -w' -o $(BIN)/weir ./cmd/weir

release: ## build the archives, checksums and SBOM of a tag, VERSION, into bin/release
	@go run ./scripts/release --version "$(VERSION)"

image: ## build a container image with buildah, podman or docker
	@scripts/image.sh

web: modules ## build the dashboard into web/dist, which is in the repository
	@cd web && npm run --silent build

# By content: the times of files say nothing after a checkout.
modules: # what the dashboard is built and tested with
	@command -v npm >/dev/null || { echo "The dashboard is built and tested with Node 20.19 or later; please install it."; exit 1; }
	@cd web && { cmp -s package-lock.json node_modules/.installed || { npm ci --silent --no-audit --no-fund && cp package-lock.json node_modules/.installed; }; }

# Those that take longest begin first; as the last ones, they would leave a core idle.
SLOWEST := ./store/redis ./internal/server/httpapi

# The compiler collects garbage only if it has much: a fifth of its time. What it writes is the same.
TOOLS := -toolexec='env GOGC=off GOMEMLIMIT=2GiB'

# "make lint" runs all of vet. A program with the race detector would wait for a second before it ends,
# for goroutines that are left; testkit.Run finds these itself.
TEST := GORACE=atexit_sleep_ms=0 go test $(TOOLS) -vet=off -timeout 30m

# The linker leaves out of tests what debuggers read, so the compiler need not write it. Functions of
# libraries are not inlined (-l), and Gin has no MessagePack: clients of Redis and of language models are
# generated, and took minutes to compile.
RACE := -race -tags=nomsgpack '-gcflags=all=-dwarf=false -l' -gcflags=std=-dwarf=false -gcflags=github.com/weirhq/weir/...=-dwarf=false

# What finds its faults only without the race detector: tests of allocations, and those that compute for
# long in one goroutine, of which only a part runs with it. A test compares this with testkit.Race.
UNRACED := ^Test(Aims|Allocations|CheckAllocations|DeniedRequests|DenialsOfALoudClient|DenialsOfManyClients|HostileBodies|HostileDocuments|InFlightAllocations|InventedKeys|LeaseHistories|LeaseModel|LongDocument|LongRunIsExact|ManyDocumentsAtOnce|MillionKeys|NobodyInventsKeys|OnePriority|Priorities|ProxyMemory|RareSamplesAreFair|SamplesAreFair|Suggest|SuggestNeedsData|SuggestedLimitIsEnough|ValuesAreBounded|WarnMany)$$
UNRACED_IN := . ./engine ./metrics ./middleware/httplimit ./rule ./rule/rulefile ./stats ./internal/alert ./internal/overload ./internal/server/envoyrls ./internal/server/httpapi

# Many tests wait more than they compute, so three parts run side by side.
test: packages modules ## run all tests, with the race detector
	@scripts/memory.sh $(MAKE) --no-print-directory --jobs=3 main driven others dashboard

# The second time as weir is built, for which everything is compiled anyway. With cmd/weir, because Go
# compiles again, in a test with a profile, what only tests import and no package that is named.
main: # the tests of this module
	$(TEST) $(RACE) $(SLOWEST) ./...
	CGO_ENABLED=0 $(TEST) -short $(AS_BUILT) -run '$(UNRACED)' ./cmd/weir $(UNRACED_IN)

# In GOFLAGS, so that what these tests build is compiled with the same flags.
DRIVE := CGO_ENABLED=0 GOFLAGS='$(AS_BUILT)' $(TEST)
driven: libraries # the tests of programs that run by themselves
	for module in $(DRIVERS); do (cd $$module && $(DRIVE) ./...) || exit 1; done

# Side by side, each part would compile what all of them share.
libraries: # what weir is built from, compiled once
	CGO_ENABLED=0 go build $(TOOLS) $(AS_BUILT) -o /dev/null ./cmd/weir

dashboard: modules # the tests of the dashboard
	cd web && npm test --silent

others: libraries # the tests of the other modules
	for module in $(LARGE); do (cd $$module && $(DRIVE) ./...) || exit 1; done
	for module in $(OTHERS); do (cd $$module && $(TEST) $(RACE) ./...) || exit 1; done

packages: # what the tests need
	@scripts/packages.sh gcc:gcc,libc6-dev redis-server:redis-server curl:curl openssl:openssl promtool:prometheus nginx:nginx caddy:caddy haproxy:haproxy prometheus-alertmanager:prometheus-alertmanager chromium-headless-shell:chromium-headless-shell buildah:buildah rpm:rpm busybox:busybox-static systemd-analyze:systemd python3:python3 pip3:python3-pip uvicorn:uvicorn,python3-fastapi,python3-starlette,python3-websockets django-admin:python3-django mypy:mypy valgrind:valgrind

# With the flags of the tests that run weir, so that what these have compiled is not compiled again.
lint: export CGO_ENABLED := 0
lint: export GOFLAGS := $(AS_BUILT)
lint: modules ## check format, vet, 32 bits, staticcheck, workflows, the OpenAPI file, and the rules of the repository
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "These files need gofmt -w:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go vet -tags=measure,grpcnotrace ./cmd/weir
	go vet -C test/e2e -tags=measure,grpcnotrace .
	GOARCH=386 go build '-gcflags=all=-dwarf=false -l' ./...
	go run $(STATICCHECK) ./...
	go run $(ACTIONLINT) -shellcheck= -pyflakes=
	go mod tidy -diff
	cd web && npm run --silent check && npm run --silent lint:api
	for module in $(OTHERS) $(DRIVERS); do (cd $$module && go vet ./... && go run $(STATICCHECK) ./... && go mod tidy -diff) || exit 1; done
	for module in $(LARGE); do (cd $$module && go vet ./... && go mod tidy -diff) || exit 1; done
	go test -count=1 ./internal/lint

bench: ## measure weir beside its peers, and how wrong estimates are (55 minutes)
	@scripts/packages.sh redis-server:redis-server valgrind:valgrind
	cd test/bench && for suite in peers redis rules engine levels http gateway envoy resp start accuracy overrun holds instructions adaptive leases; do \
		go run . $$suite || exit 1; done

curves: ## measure how the cost of a check grows, and draw it (5 minutes)
	@scripts/packages.sh redis-server:redis-server
	cd test/bench && go run . curves

profile: ## measure where weir spends its time, for the compiler; run nothing else on the machine
	@scripts/packages.sh redis-server:redis-server
	go test -count=1 -tags measure -run '^TestProfile$$' ./cmd/weir

chaos: build ## run three weirs through random faults and check every answer, DURATION, by SEED
	@scripts/packages.sh redis-server:redis-server
	@go build -o bin/chaos ./test/chaos
	@bin/chaos --duration $(DURATION) --seed $(SEED)

fuzz: ## fuzz every parser and the arithmetic, FUZZTIME each
	go test -run '^$$' -fuzz '^FuzzParseLimit$$' -fuzztime $(FUZZTIME) .
	go test -run '^$$' -fuzz '^FuzzDecide$$' -fuzztime $(FUZZTIME) .
	go test -run '^$$' -fuzz '^FuzzScenario$$' -fuzztime $(FUZZTIME) ./internal/traffic/scenario
	go test -run '^$$' -fuzz '^FuzzParseTraffic$$' -fuzztime $(FUZZTIME) ./internal/traffic/simulate
	go test -run '^$$' -fuzz '^FuzzParseLog$$' -fuzztime $(FUZZTIME) ./internal/traffic/simulate
	go test -run '^$$' -fuzz '^FuzzCombined$$' -fuzztime $(FUZZTIME) ./internal/traffic/replay
	go test -run '^$$' -fuzz '^FuzzEnvoy$$' -fuzztime $(FUZZTIME) ./internal/traffic/replay
	go test -run '^$$' -fuzz '^FuzzJSON$$' -fuzztime $(FUZZTIME) ./internal/traffic/replay
	go test -run '^$$' -fuzz '^FuzzJSONAgreesWithTheLibrary$$' -fuzztime $(FUZZTIME) ./internal/traffic/replay
	go test -run '^$$' -fuzz '^FuzzSpoof$$' -fuzztime $(FUZZTIME) ./internal/clientip
	go test -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME) ./internal/gateway/llm
	go test -run '^$$' -fuzz '^FuzzPass$$' -fuzztime $(FUZZTIME) ./internal/gateway/llm
	go test -run '^$$' -fuzz '^FuzzScan$$' -fuzztime $(FUZZTIME) ./internal/gateway/llm
	go test -run '^$$' -fuzz '^FuzzValues$$' -fuzztime $(FUZZTIME) ./middleware/httplimit
	go test -run '^$$' -fuzz '^FuzzProblem$$' -fuzztime $(FUZZTIME) ./middleware/httplimit
	go test -run '^$$' -fuzz '^FuzzCheckBody$$' -fuzztime $(FUZZTIME) ./internal/server/httpapi
	go test -run '^$$' -fuzz '^FuzzCheck$$' -fuzztime $(FUZZTIME) ./internal/server/grpcapi
	go test -run '^$$' -fuzz '^FuzzQuick$$' -fuzztime $(FUZZTIME) ./internal/server/httpapi
	go test -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $(FUZZTIME) ./internal/server/respapi
	go test -run '^$$' -fuzz '^FuzzRead$$' -fuzztime $(FUZZTIME) ./internal/envoy/envoyconfig
	go test -run '^$$' -fuzz '^FuzzFind$$' -fuzztime $(FUZZTIME) ./internal/envoy/envoyconfig
	go test -run '^$$' -fuzz '^FuzzEdit$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 5x ./internal/rules/ruleedit
	go test -run '^$$' -fuzz '^FuzzCanonicalPath$$' -fuzztime $(FUZZTIME) ./internal/match
	go test -run '^$$' -fuzz '^FuzzIdentity$$' -fuzztime $(FUZZTIME) ./rule
	go test -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./rule
	go test -run '^$$' -fuzz '^FuzzParseURL$$' -fuzztime $(FUZZTIME) ./store/redis
	go test -run '^$$' -fuzz '^FuzzRestore$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./store/memory

generate: ## regenerate code, golden files, and what the docs quote
	@scripts/packages.sh protoc:protobuf-compiler,libprotobuf-dev
	scripts/proto.sh
	go test ./internal/lint -update
	go test ./internal/traffic/simulate -update
	go test ./rule -update
	go test ./internal/rules/ruleedit -update
	go test ./internal/traffic/replay -update
	go test ./queue -update
	go test ./client -update
	go test ./counter -update
	go test ./stats -update
	go test ./internal/envoy/envoyconfig -update
	go test ./middleware/httplimit -update
	go test ./middleware/grpclimit -update
	go test ./internal/server/httpapi -run Docs -update
	go test ./internal/server/respapi -run Docs -update
	go test ./cmd/weir -run Docs -update
	cd deploy/helm && go test -update
	go test ./test/sdk -run TestTypes -update
	go test -C test/e2e -run TestDashboardPictures -update
	go test -C test/e2e -run TestDocs -update
	go test ./internal/lint -run TestZh -update
