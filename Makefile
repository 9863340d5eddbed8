# Everything that people do with a checkout. `make help` lists it.
# Each target sets up first what it needs; when nothing has changed that takes a moment.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# The Python that sets up; with it the environment in .venv is made.
PYTHON ?= $(shell scripts/find-python)
# More arguments for the program that a target runs: make test ARGS='-k tenants'
ARGS ?=
# Processes that tests run in.
WORKERS ?= 2

cache := $(or $(RILLBASE_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rillbase)
setup_dev = @$(PYTHON) scripts/setup.py
setup_runtime = @$(PYTHON) scripts/setup.py --profile runtime
bin := .venv/bin
python := $(bin)/python
cargo = CARGO_TARGET_DIR='$(cache)/target' cargo
manifest := --manifest-path native/Cargo.toml --locked
# Looking at the code loads the settings, which name servers; none is contacted.
settings := RILLBASE_ENV=test DATABASE_URL=postgresql://unused.invalid/unused

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: ## Set up, start all of Rillbase and print URL, login and key; Ctrl-C stops it
	$(setup_runtime)
	@# Ctrl-C reaches make as well; it is a good end, so make is not given an error to report.
	@trap : INT; $(python) manage.py up $(ARGS); status=$$?; [ $$status -eq 130 ] || exit $$status

.PHONY: stop
stop: ## Stop the Rillbase that runs from this checkout
	$(setup_runtime)
	@$(python) manage.py stop $(ARGS)

.PHONY: status
status: ## Show each service's state, pid, uptime and memory
	$(setup_runtime)
	@$(python) manage.py status $(ARGS)

.PHONY: test
test: ## Set up and run the tests that every change has to pass
	$(setup_dev)
	$(cargo) test $(manifest) --workspace --quiet
	$(bin)/pytest --numprocesses $(WORKERS) --dist worksteal $(ARGS)

.PHONY: test-long
test-long: ## Run the soak and chaos suites, which take longer
	$(setup_dev)
	$(cargo) test $(manifest) --workspace --quiet -- --ignored
	$(bin)/pytest -m long $(ARGS)

.PHONY: lint
lint: ## Check style, types, layers, stubs, Rust, TypeScript and the repository's own promises
	$(setup_dev)
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(MAKE) --no-print-directory types layers
	$(python) -m mypy.stubtest rillbase_native --allowlist native/python/stubtest-allowlist.txt
	cargo fmt $(filter-out --locked,$(manifest)) --all --check
	$(cargo) clippy $(manifest) --workspace --all-targets --quiet -- -D warnings
	cd sdk/js && npm run --silent check
	cd console && npm run --silent check
	$(python) -m scripts.write_console_types --check
	$(python) -m scripts.check_readme
	$(python) -m scripts.check_names
	$(python) -m scripts.check_locks
	$(python) -m scripts.check_licences

.PHONY: types
types: ## Check types alone
	$(setup_dev)
	$(settings) $(bin)/mypy

.PHONY: layers
layers: ## Check that imports point one way
	$(setup_dev)
	PYTHONPATH=.:platform $(bin)/lint-imports --no-logo

.PHONY: format
format: ## Put Python, Rust and TypeScript into the one format
	$(setup_dev)
	$(bin)/ruff check --fix-only --quiet .
	$(bin)/ruff format .
	cargo fmt $(filter-out --locked,$(manifest)) --all
	cd sdk/js && npm run --silent format
	cd console && npm run --silent format

.PHONY: bench
bench: ## Run every benchmark, quick
	$(setup_dev)
	@for file in benchmarks/[a-z]*.py; do \
		name=$$(basename "$$file" .py); echo "== $$name"; \
		$(python) -m benchmarks.$$name --quick $(ARGS) || exit 1; \
	done

.PHONY: docs
docs: ## Build the documentation into site/ and check its links
	$(setup_dev)
	$(bin)/zensical build --strict
	$(python) -m scripts.check_site

.PHONY: kube-tools
kube-tools: ## Build helm, Kubernetes and its schemas for their tests, once (about ten minutes)
	$(setup_dev)
	$(python) -m scripts.kube_tools

.PHONY: images
images: ## Build the images where there is an engine (podman, docker, buildah), and check their layout
	$(setup_dev)
	$(python) -m scripts.check_images
	@scripts/build-images

.PHONY: doctor
doctor: ## Say what this machine has and lacks for Rillbase
	@$(PYTHON) scripts/setup.py --doctor

.PHONY: setup
setup: ## Only set up
	$(setup_dev)

.PHONY: clean
clean: ## Remove what was built; data and the shared cache stay
	rm -rf .venv site native/target sdk/js/dist sdk/js/.build sdk/js/node_modules console/dist console/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@if [ -d .rillbase ]; then echo "Data stays in .rillbase: stop Rillbase and delete the folder if you mean to."; fi
