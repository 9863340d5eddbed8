# The tasks of a checkout. `make help` lists them.
# Each target first installs what it needs, which is quick if nothing has changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# The Python that runs the setup and creates the environment in .venv.
PYTHON ?= $(shell scripts/find-python)
# Additional arguments for the program that a target runs: make test ARGS='-k tenants'
ARGS ?=
# The number of test processes: one more than the cores of a small machine, because tests wait for
# other processes during a third of their time.
WORKERS ?= 3

cache := $(or $(RILLBASE_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rillbase)
setup_dev = @$(PYTHON) scripts/setup.py
setup_runtime = @$(PYTHON) scripts/setup.py --profile runtime
bin := .venv/bin
python := $(bin)/python
cargo = CARGO_TARGET_DIR='$(cache)/target' cargo
manifest := --manifest-path native/Cargo.toml --locked
# Checking the code loads the settings, which require a database URL; no server is contacted.
settings := RILLBASE_ENV=test DATABASE_URL=postgresql://unused.invalid/unused

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: ## Set up, start Rillbase, and print the URL, login and key; Ctrl-C stops it
	$(setup_runtime)
		@# Ctrl-C also interrupts make; it is a normal end, so make must not report an error.
	@trap : INT; $(python) manage.py up $(ARGS); status=$$?; [ $$status -eq 130 ] || exit $$status

.PHONY: stop
stop: ## Stop Rillbase if it runs from this checkout
	$(setup_runtime)
	@$(python) manage.py stop $(ARGS)

.PHONY: status
status: ## Show each service's state, pid, uptime and memory
	$(setup_runtime)
	@$(python) manage.py status $(ARGS)

.PHONY: test
test: ## Run the tests that every change has to pass
	$(setup_dev)
	$(forget_flaky)
	$(rust_tests) --workspace $(rust_targets)
	$(bin)/pytest --retry --numprocesses $(WORKERS) --dist worksteal $(ARGS)

# All but the examples in comments: there are none, and looking for them takes a second per crate.
rust_targets := --lib --bins --tests
rust_tests = CARGO_TARGET_DIR='$(cache)/target' $(python) -m scripts.cargo_tests
# Each run starts an empty list of flaky tests.
forget_flaky = @rm -f test-results/flaky.txt

.PHONY: test-py
test-py: ## Run tests in Python: make test-py ARGS=tests/tenants
	$(setup_dev)
	@# One process is the quickest for a few files, and has the clearest output.
	$(bin)/pytest $(ARGS)

.PHONY: test-rs
test-rs: ## Run tests in Rust: make test-rs CRATE=engine ARGS='--test suite wal::'
	$(setup_dev)
	$(cargo) test $(manifest) $(if $(CRATE),--package rillbase-$(CRATE),--workspace) $(or $(ARGS),$(rust_targets)) --quiet

.PHONY: test-js
test-js: ## Run the JavaScript SDK's own tests
	$(setup_dev)
	cd sdk/js && npm run --silent test

# The long suite's parts, each with the Rust crates and the folders of tests that it consists of.
long_engine_crates := collections engine
long_engine_tests := tests/native tests/storage_engine
long_queries_crates := aggregates documents live matching query
long_queries_tests := tests/documents tests/sources
long_servers_tests := tests/analytics tests/connections tests/contract tests/foundation tests/rillbase_server
long_chaos_tests := tests/chaos
long_launcher_tests := tests/e2e tests/kube
long_browser_tests := tests/console tests/documentation
long_parts := engine queries servers chaos launcher browser

.PHONY: test-long
test-long: $(long_parts:%=test-long-%) ## Run the soak and chaos suites, or one part of them: make test-long-engine

.PHONY: $(long_parts:%=test-long-%)
$(long_parts:%=test-long-%): test-long-%:
	$(setup_dev)
	$(if $(long_$*_crates),$(cargo) test $(manifest) $(long_$*_crates:%=--package rillbase-%) --quiet -- --ignored)
	$(bin)/pytest -m long $(long_$*_tests) $(ARGS)

.PHONY: test-examples
test-examples: ## Build and run the quick starts, and run the recipes and migration guides
	$(setup_dev)
	$(forget_flaky)
	$(bin)/pytest --retry -m examples tests/examples $(ARGS)

.PHONY: test-kube
# Each of these processes starts a control plane.
test-kube: WORKERS = 2
test-kube: ## Test the chart and tenants' clusters against a real Kubernetes, which is built once
	$(setup_dev)
	$(python) -m scripts.kube_tools
	$(forget_flaky)
	$(bin)/pytest --retry -m kube --numprocesses $(WORKERS) --dist loadfile tests/kube tests/realtime/clusters $(ARGS)

.PHONY: lint
lint: lint-py lint-rs lint-js ## Check style, types, layers, stubs, Rust, TypeScript, names, lock files and licences
	$(python) -m scripts.check_readme
	$(python) -m scripts.check_names
	$(python) -m scripts.check_locks
	$(python) -m scripts.check_licences

.PHONY: lint-py
lint-py: ## Check only Python
	$(setup_dev)
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(MAKE) --no-print-directory types layers
	$(python) -m mypy.stubtest rillbase_native --allowlist native/python/stubtest-allowlist.txt

.PHONY: lint-rs
lint-rs: ## Check only Rust
	$(setup_dev)
	cargo fmt $(filter-out --locked,$(manifest)) --all --check
	$(cargo) clippy $(manifest) --workspace --all-targets --quiet -- -D warnings

.PHONY: lint-js
lint-js: ## Check only TypeScript
	$(setup_dev)
	cd sdk/js && npm run --silent check
	cd console && npm run --silent check
	$(python) -m scripts.write_console_types --check

.PHONY: audit
audit: ## Look up the shipped dependencies in a database of advisories, if there is one
	$(setup_dev)
	$(python) -m scripts.audit $(ARGS)

.PHONY: types
types: ## Check only types
	$(setup_dev)
	$(settings) $(bin)/mypy

.PHONY: layers
layers: ## Check only the direction of imports
	$(setup_dev)
	PYTHONPATH=.:platform $(bin)/lint-imports --no-logo

.PHONY: format
format: ## Format Python, Rust and TypeScript
	$(setup_dev)
	$(bin)/ruff check --fix-only --quiet .
	$(bin)/ruff format .
	cargo fmt $(filter-out --locked,$(manifest)) --all
	cd sdk/js && npm run --silent format
	cd console && npm run --silent format

.PHONY: bench
bench: ## Run every benchmark in its quick form
	$(setup_dev)
	@for file in benchmarks/[a-z]*.py; do \
		name=$$(basename "$$file" .py); echo "== $$name"; \
		$(python) -m benchmarks.$$name --quick $(ARGS) || exit 1; \
	done

.PHONY: docs
docs: ## Build the documentation into site/, as HTML and Markdown, and check its links
	$(setup_dev)
	$(bin)/zensical build --strict
	$(python) -m scripts.write_site_markdown
	$(python) -m scripts.check_site

.PHONY: pictures
pictures: ## Record the README's animation, and take pictures of all pages of the console
	$(setup_dev)
	$(python) -m scripts.record_shop --file docs/figures/shop.svg
	$(python) -m scripts.take_pictures --folder pictures $(ARGS)

.PHONY: kube-tools
kube-tools: ## Build Helm, Kubernetes and its schemas for `make test-kube`, once (about ten minutes)
	$(setup_dev)
	$(python) -m scripts.kube_tools

.PHONY: release
release: ## Build a release into dist/, install its packages and try them; upload nothing
	$(setup_dev)
	$(python) -m scripts.release $(ARGS)

.PHONY: images
images: ## Build the container images from the release in dist/, start them without an engine and try them
	$(setup_dev)
	$(python) -m scripts.images $(ARGS)

.PHONY: doctor
doctor: ## List which of Rillbase's prerequisites this machine has
	@$(PYTHON) scripts/setup.py --doctor

.PHONY: setup
setup: ## Install everything for development
	$(setup_dev)

.PHONY: clean
clean: ## Remove build products; data and the shared cache are kept
	rm -rf .venv site native/target sdk/js/dist sdk/js/.build sdk/js/node_modules console/dist console/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@if [ -d .rillbase ]; then echo "Data is kept in .rillbase. To delete it, stop Rillbase and remove the folder."; fi
