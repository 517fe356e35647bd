# What can be made here. "make" alone prints this list.
.DEFAULT_GOAL := help

BIN := build/bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Not on the way of a record: compiled without inlining, which makes the shared object 1 MB smaller.
COLD := net/... crypto/... encoding/json encoding/gob encoding/asn1 text/... html/... math/big golang.org/x/... gopkg.in/... \
	google.golang.org/protobuf/internal/... github.com/prometheus/... github.com/ugorji/...
GO_FILES := $(shell git ls-files --cached --others --exclude-standard '*.go' 'plugin/*.c' go.mod go.sum)
EMBEDDED := $(wildcard rules/templates/*.yaml rules/ruletest/*.yaml) rules/alertmanager.yaml
TOOL = go tool -modfile=build/tools/$(1)/go.mod $(1)

help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: $(BIN)/out_flink_loki.so $(BIN)/flink-loki ## Build the plug-in and the command-line tool into build/bin

demo: build host loki ## Replay a real log through the plug-in into a real Loki, and see the alert (KEEP=1 leaves Loki up, with Grafana where Docker is)
	@go run ./test/demo $(if $(KEEP),-keep)

smoke: ## Test what needs no server: under a minute
	go vet ./...
	go test -short ./...

test: build host loki ## Test everything, with the race detector, the C host and a real Loki 2.2.1
	go vet ./...
	go test -race -timeout 20m ./...
	go test -run State_bounded ./plugin/enrich
	cd test/push && go test ./...
	cd build/dashboards && go test ./...

rules: $(BIN)/flink-loki $(if $(LOKI_URL)$(LOKI_BIN),,$(BIN)/loki) ## Test the alert rules on raw logs; LOKI_URL= or LOKI_BIN= for another Loki than 2.2.1, METADATA=1 for structured metadata
	@$(BIN)/flink-loki rules test $(if $(METADATA),--structured-metadata) $(if $(LOKI_URL),--loki-url $(LOKI_URL),--loki-bin $(or $(LOKI_BIN),$(BIN)/loki)) rules/tests/*.yaml

golden: ## Rewrite the golden files and the generated documentation
	go test ./parsers -run 'TestGolden' -update
	go test ./rules -run TestRendered -update
	go test ./plugin/enrich -run TestLegs -update
	go run ./build/generate
	cd build/dashboards && go run .

bench: build ## Measure: ratios against a baseline of the same run
	go test ./parsers ./plugin/record ./plugin/enrich -run '^$$' -bench . -benchtime 1s
	go run ./test/bench
	go run ./test/querycost

fuzz: ## Fuzz each target for FUZZTIME (default 1m)
	@for target in parsers:FuzzSource parsers:FuzzTemplate parsers:FuzzMetricLine parsers/layout:FuzzLine plugin/record:FuzzDecode; do \
		go test ./$${target%%:*} -run '^$$' -fuzz "^$${target##*:}$$" -fuzztime $(or $(FUZZTIME),1m) || exit 1; \
	done

faults: build host ## Break everything around the plug-in, and count: LONG=1 for outages of a minute and 20 kills (FLUENT_BIT= as for e2e)
	go test -count=1 -timeout 60m -v -run TestFaults ./test/faults $(if $(LONG),-long)

soak: build ## Run a real Fluent Bit for SOAK (default 1h) at 5,000 lines a second with faults: FLUENT_BIT=/path
	go run ./test/soak -duration $(or $(SOAK),1h)

lint: ## Check formatting and run staticcheck (offline once the tools are downloaded)
	@unformatted=$$($(call TOOL,goimports) -local flink-loki -l $(filter %.go,$(GO_FILES))); \
		test -z "$$unformatted" || { echo "run 'make format' for:"; echo "$$unformatted"; exit 1; }
	$(call TOOL,staticcheck) ./...

format: ## Format the Go files
	$(call TOOL,goimports) -local flink-loki -w $(filter %.go,$(GO_FILES))

vuln: ## Look for known vulnerabilities (needs the network)
	$(call TOOL,govulncheck) ./...

check: lint test golden ## All that CI checks: what is generated must be committed
	git diff --exit-code

e2e: build host loki ## Run the plug-in in a real Fluent Bit: FLUENT_BIT=/path, and LOKI_URL= or LOKI_BIN= for a Loki of your own
	@test -n "$(FLUENT_BIT)" || { echo 'set FLUENT_BIT to the path of a fluent-bit'; exit 1; }
	go test -count=1 -timeout 30m ./test/...

clean: ## Remove what was built
	rm -rf $(BIN)

host: $(BIN)/host
loki: $(BIN)/loki

$(BIN)/out_flink_loki.so: $(GO_FILES)
	CGO_ENABLED=1 go build -buildmode=c-shared -trimpath -ldflags '$(LDFLAGS)' $(COLD:%=-gcflags='%=-l') -o $@ ./plugin
	@rm -f $(BIN)/out_flink_loki.h

$(BIN)/flink-loki: $(GO_FILES) $(EMBEDDED)
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./plugin/cmd/flink-loki

$(BIN)/host: test/host/host.c
	@mkdir -p $(BIN)
	$(CC) -O1 -g -Wall -Wextra -Werror -o $@ $< -ldl -lpthread

# Loki 2.2.1, the last under the Apache licence, takes two minutes to build: once.
$(BIN)/loki: test/loki221/go.mod test/loki221/go.sum
	@echo 'building Loki 2.2.1 for tests and demo, which takes about two minutes the first time …'
	cd test/loki221 && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X github.com/grafana/loki/pkg/build.Version=2.2.1' -o ../../$@ github.com/grafana/loki/cmd/loki

.PHONY: help build demo smoke test rules golden bench fuzz faults soak lint vuln check e2e clean format host loki
