# Tachograph. `make help` lists the targets.

JAR_AGENT   := agent/java/target/tachograph-agent.jar
JAR_EXAMPLE := examples/bulletin-board/java/target/bulletin-board.jar
MVN         := mvn -B -q -ntp
TACHO       := target/release/tacho
# The binary with which the tests of the agents and the page start the server. It is a hard link to the result of `cargo
# test`, so that later builds do not replace it.
TEST_TACHO  := target/test/tacho
# The longest parts are first, for a short total time. Some of them use $(TEST_TACHO). It is built before all parts, so that no
# part waits for it: make would start a waiting part after all the others.
TEST_PARTS  := test-rust test-java test-fuzz test-lint test-node test-python test-page test-sbom test-bench
# Some parts wait for timeouts much of their time, so three parts at a time keep two cores busy.
TEST_JOBS   ?= 3
TEST_LOGS   := target/test/logs
# The features parquet and s3 are off by default. These packages are built and tested a second time with both.
WITH_ALL := -p tacho-ingest -p tacho-backup -p tacho-cli --features tacho-cli/parquet,tacho-cli/s3

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build $(JAR_EXAMPLE) ## record an example program for half a minute and show the results; ARGS=--exit exits afterwards
	$(TACHO) demo --agent $(JAR_AGENT) --app $(JAR_EXAMPLE) $(ARGS)

.PHONY: build
build: tacho $(JAR_AGENT) ## build the binary, target/release/tacho, and the Java agent, agent/java/target/tachograph-agent.jar

.PHONY: tacho
tacho:
	cargo build --release --locked -p tacho-cli

$(JAR_AGENT): $(shell find agent/java -name '*.java' -path '*/src/main/*' -o -name pom.xml -path 'agent/java/*')
	$(MVN) -f agent/java package -DskipTests
	@touch $@

$(JAR_EXAMPLE): $(JAR_AGENT) $(shell find examples/bulletin-board/java -name '*.java' -path '*/src/main/*' -o -name pom.xml -path 'examples/bulletin-board/java/*')
	$(MVN) -f examples/bulletin-board/java package -DskipTests
	@touch $@

.PHONY: test
test: packages $(JAR_AGENT) $(JAR_EXAMPLE) ## run all tests, three parts at a time (TEST_JOBS=3); needs no network except package registries
	@begun=$$(date +%s); $(MAKE) --no-print-directory test-tacho && echo "make test-tacho: $$(($$(date +%s) - begun)) s"
	@rm -rf $(TEST_LOGS) && mkdir -p $(TEST_LOGS)
	@$(MAKE) --no-print-directory --keep-going --jobs=$(TEST_JOBS) --output-sync=target $(TEST_PARTS:%=timed-%); code=$$?; \
		scripts/test-failures.sh $(TEST_LOGS); exit $$code

timed-%:
	@begun=$$(date +%s); log=$(TEST_LOGS)/$*.log; \
		$(MAKE) --no-print-directory --assume-old=test-tacho $* >$$log 2>&1; code=$$?; cat $$log; \
		result="make $*: $$(($$(date +%s) - begun)) s, exit $$code"; echo "$$result" | tee -a $(TEST_LOGS)/times; \
		[ $$code -eq 0 ] || mv $$log $(TEST_LOGS)/$*.failed; exit $$code

.PHONY: test-quick
test-quick: test-lint ## run the tests that need no server, no browser and no Java
	TACHO_TEST_QUICK=1 cargo test --locked --workspace

.PHONY: packages
packages: ## install the programs that the tests start (PostgreSQL, Chromium ...), or list the missing ones
	@scripts/packages.sh

.PHONY: test-lint
test-lint:
	cargo fmt --all --check
	cargo xtask tidy
	cargo xtask licences
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked $(WITH_ALL) --all-targets -- -D warnings

.PHONY: test-rust
test-rust: $(JAR_AGENT)
	cargo test --locked --workspace --no-fail-fast
	$(MAKE) --no-print-directory test-features

.PHONY: test-features
test-features: ## test the features that are off by default: parquet, and s3 with moto and S3Proxy as the services
	cargo test --locked --no-fail-fast $(WITH_ALL) --lib --bins --test it --test peak_parquet -- parquet s3

.PHONY: test-fuzz
test-fuzz:
	@# Level 1 builds faster than level 3, which `cargo xtask fuzz` alone uses, but tries fewer inputs per second. For these short
	@# runs, the time of the build matters more.
	CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo xtask fuzz --seconds 10

.PHONY: test-bench
test-bench: $(JAR_AGENT)
	python3 -m unittest discover --quiet --start-directory bench/codecs/tests --top-level-directory .
	python3 -m unittest discover --quiet --start-directory bench/store/tests --top-level-directory .
	python3 -m unittest discover --quiet --start-directory bench/scale/tests --top-level-directory .
	python3 -m unittest discover --quiet --start-directory bench/backup/tests --top-level-directory .
	python3 -m unittest discover --quiet --start-directory experiments/overhead/tests --top-level-directory .

.PHONY: test-java
test-java:
	mvn -B -ntp -f agent/java verify
	mvn -B -ntp -f experiments/overhead verify
	mvn -B -ntp -f examples/bulletin-board/java verify

.PHONY: test-tacho
test-tacho:
	cargo test --locked --workspace --no-run
	@mkdir -p $(dir $(TEST_TACHO)) && ln -f target/debug/tacho $(TEST_TACHO)

.PHONY: test-node
test-node: test-tacho
	cd agent/node && npm ci --no-audit --no-fund && TACHO=$(abspath $(TEST_TACHO)) npm test

.PHONY: test-python
test-python: test-tacho
	cd agent/python && TACHO=$(abspath $(TEST_TACHO)) \
		python3 -m unittest discover --quiet --start-directory tests --top-level-directory .

.PHONY: test-page
test-page: test-tacho $(JAR_EXAMPLE)
	cd ui && npm ci --no-audit --no-fund && npm test && npm run check-dist && TACHO_BIN=$(abspath $(TEST_TACHO)) npm run test:browser

.PHONY: sbom
sbom: $(JAR_AGENT) ## write the CycloneDX documents of binary, page and agents to target/sbom; FEATURES=s3,parquet (docs/guide/security.md)
	scripts/sbom.sh
	@ls target/sbom/*.cdx.json

.PHONY: test-sbom
test-sbom: sbom
	target/tools/cyclonedx-bom-*/bin/python -m unittest --quiet scripts/test_sbom.py

.PHONY: audit
audit: ## check licences, sources and forbidden crates with cargo-deny; CHECKS=advisories needs access to the RustSec database
	cargo install --quiet --locked --root target/tools/cargo-deny --version 0.20.2 cargo-deny
	PATH="$(CURDIR)/target/tools/cargo-deny/bin:$$PATH" cargo deny check $(or $(CHECKS),bans licenses sources)

.PHONY: bench-embedded
bench-embedded: ## compare the embedded driver with fjall: write, scan, space, open, SIGKILL (docs/adr/0001)
	cargo run --release --locked -p tacho-drivers --features fjall --example embedded_compare

.PHONY: bench-rates
bench-rates: ## measure append, recovery, flush and read, without a server
	cargo run --release --locked -p tacho-drivers --example store_rates

.PHONY: simulate
simulate: ## run the store on a simulated disk with power failures; ARGS='--seeds 10000 --first 1' (CONTRIBUTING.md)
	cargo xtask simulate $(or $(ARGS),--seconds 60)

.PHONY: simulate-mutations
simulate-mutations: ## check that the simulation finds each deliberate fault of the store
	cargo xtask simulate-mutations

.PHONY: bench-codecs
bench-codecs: ## measure what each codec saves, on published and generated data; ARGS='--p4 DIR' (docs/adr/0012)
	python3 -m bench.codecs $(ARGS)

.PHONY: bench-store
bench-store: tacho ## compare space, write cost and queries with VictoriaMetrics, InfluxDB ...; ARGS='--only tacho --work a' (bench/store/README.md)
	TACHO=$(TACHO) python3 -m bench.store $(ARGS)

.PHONY: bench-scale
bench-scale: tacho ## compare many series with VictoriaMetrics and Prometheus, many calls with ClickHouse and DuckDB; ARGS=--full (bench/scale/README.md)
	cargo build --release --locked -p tacho-lab --example calls
	TACHO=$(TACHO) python3 -m bench.scale $(ARGS)

.PHONY: bench-backup
bench-backup: tacho ## measure check, backup, verify and restore next to cp and sha256sum; ARGS='--mb 600 --rounds 5'
	TACHO=$(TACHO) python3 -m bench.backup $(ARGS)

.PHONY: bench-access
bench-access: tacho ## measure what TLS and tokens cost the server, per request and per frame; ARGS='--rounds 9'
	TACHO=$(TACHO) python3 -m bench.access $(ARGS)

.PHONY: bench-probe
bench-probe: tacho $(JAR_AGENT) ## compare the overhead of the Java agent with Kieker, OpenTelemetry ...; ARGS='--only ours,kieker-tcp' or --full (docs/guide/overhead.md)
	TACHO=$(TACHO) python3 -m experiments.overhead $(ARGS)

.PHONY: bench-agents
bench-agents: tacho ## measure the overhead of the Node.js and Python agents, with and without agent alternately, each in a new process
	cd agent/node && TACHO=$(abspath $(TACHO)) npm run bench
	cd agent/python && python3 bench/overhead.py --tacho $(abspath $(TACHO)) && python3 bench/statements.py

.PHONY: clean
clean: ## remove all build output
	cargo clean
	rm -rf fuzz/target ui/node_modules agent/node/node_modules agent/java/target agent/java/*/target examples/bulletin-board/java/target experiments/overhead/target
