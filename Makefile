# Two commands: `make run` starts the gateway, `make test` runs the suite. Both install what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq
ARGS ?=

.PHONY: help install dev run test check format demo bench bench-peers bench-gate conformance clients decisions schema items figures lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Usher needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …")'
	$(PYTHON) -m venv $(VENV)

# A stamp per lock file: nothing is installed again until the lock or the project's metadata changes.
$(VENV)/.run: requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing Usher into $(VENV) (once; a minute or two)"
	$(PIP) --require-hashes -r requirements.lock -r requirements-build.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

install: $(VENV)/.run ## create .venv from the hash-pinned lock
dev: $(VENV)/.dev ## the same, with the tools that test and check need

run: install ## start the gateway on 127.0.0.1:8787 (ARGS="--port 9000")
	@$(BIN)/usher serve $(ARGS)

test: dev ## run the whole suite with branch coverage (ARGS="tests/stream -k crlf")
	@$(BIN)/pytest --cov --cov-report=term $(ARGS)

check: dev ## lint, format, types, layers, sizes, test mirror, docs parity
	@$(BIN)/python -m checks

format: dev ## let ruff fix what it can
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

demo: install ## the main job in one picture, offline (ARGS=--json)
	@$(BIN)/usher demo $(ARGS)

bench: dev ## CPU per request, latency, start-up and memory beside the installed peers (ARGS=--json)
	@$(BIN)/python -m bench $(ARGS)

bench-peers: dev ## install nginx, vllm-router, Portkey and LiteLLM below .cache/bench
	@$(BIN)/python -m bench.peers

bench-gate: dev ## fail when CPU per request grew, told by ratios to an echo server, or memory grows
	@$(BIN)/python -m bench.gate
	@$(BIN)/python -m bench.soak 1.5

conformance: dev ## the official openai-python tests through the gateway (needs Node)
	@if [ -x tests/conformance/run ]; then tests/conformance/run; else echo "tests/conformance/run: not there"; fi

clients: dev ## real client libraries, Python and JavaScript, through the gateway (needs Node)
	@if [ -x tests/clients/run ]; then tests/clients/run; else echo "tests/clients/run: not there"; fi

decisions: dev ## official decision clients and the public conformance suite, through the gateway
	@tests/clients/decisions/run

schema: dev ## write config/usher.yaml and config/usher.schema.json from the settings
	@$(BIN)/python -m checks.reference

items: dev ## write docs/edge-cases.md from the tests that claim edge cases
	@$(BIN)/python -m checks.items

figures: dev ## write the README's numbers from a run of the demo
	@$(BIN)/python -m checks.figures

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

$(BIN)/uv: | $(BIN)/python
	$(PIP) uv

lock: $(BIN)/uv ## resolve the dependencies anew (UPGRADE=1 takes newer releases)
	@$(LOCK) $(if $(UPGRADE),--upgrade) --extra semantic pyproject.toml -o requirements.lock
	@$(LOCK) $(if $(UPGRADE),--upgrade) -c requirements.lock --all-extras pyproject.toml -o requirements-extras.lock
	@$(LOCK) $(if $(UPGRADE),--upgrade) -c requirements.lock --group build -o requirements-build.lock
	@$(LOCK) $(if $(UPGRADE),--upgrade) -c requirements-extras.lock -c requirements-build.lock --all-extras \
		--group dev pyproject.toml -o requirements-dev.lock

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
