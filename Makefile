# make run    the cockpit          make test    the whole suite
# make check  lint, types, imports make bench   speed and memory, as a table
# make agents the coding agents that tests drive for real, from npm into .venv/agents
# make shots  the screenshots of the README, from the running program

ROOT   := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
VENV   := $(ROOT).venv
PYTHON ?= python3
BIN    := $(VENV)/bin
AGENTS := $(VENV)/agents
PINNED := $(ROOT)tests/real_agents/package.json
NPM    := npm install --prefix $(AGENTS) --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error

.PHONY: run test agents check format bench shots clean

run: $(VENV)/.run
	@$(BIN)/qd

test: $(VENV)/.test agents
	@$(BIN)/python -m compileall -q $(ROOT)src $(ROOT)tests
	cd $(ROOT) && $(BIN)/python -m pytest $(ARGS)

agents: $(AGENTS)/.done

check: $(VENV)/.check
	cd $(ROOT) && $(BIN)/ruff check . && $(BIN)/ruff format --check .
	cd $(ROOT) && $(BIN)/basedpyright
	cd $(ROOT) && $(BIN)/lint-imports --no-logo

format: $(VENV)/.check
	cd $(ROOT) && $(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(VENV)/.test
	cd $(ROOT) && $(BIN)/python -m tests.bench $(ARGS)

shots: $(VENV)/.test
	cd $(ROOT) && $(BIN)/python screenshots/make.py

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "quarterdeck needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.run: $(ROOT)pyproject.toml | $(VENV)/bin/python
	cd $(ROOT) && $(BIN)/python -m pip install --quiet --editable .
	@$(BIN)/python -m compileall -q $(ROOT)src
	@touch $@

$(VENV)/.test: $(ROOT)pyproject.toml | $(VENV)/bin/python
	cd $(ROOT) && $(BIN)/python -m pip install --quiet --editable '.[postgresql]' --group test
	@touch $@ $(VENV)/.run

$(VENV)/.check: $(ROOT)pyproject.toml | $(VENV)/bin/python
	cd $(ROOT) && $(BIN)/python -m pip install --quiet --editable '.[postgresql]' --group test --group check
	@touch $@

# The platform's own packages: no scripts, and no Node at run time. Pinned for x64, named alike elsewhere.
$(AGENTS)/.done: $(PINNED) | $(VENV)/bin/python
	@command -v npm >/dev/null || { echo 'npm is needed for the agents that tests drive; install it (Debian, Ubuntu: apt install npm)' >&2; exit 1; }
	@rm -rf $(AGENTS) && mkdir -p $(AGENTS)/bin
	@sed 's/linux-x64/linux-$(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x64)/' $(PINNED) >$(AGENTS)/package.json
	$(NPM)
	@cd $(AGENTS)/bin && ln -s ../node_modules/codex-bin/vendor/*/bin/codex ../node_modules/opencode-linux-*/bin/opencode .
	@cd $(AGENTS)/bin && HOME=$(AGENTS)/home ./codex --version && HOME=$(AGENTS)/home ./opencode --version
	@rm -rf $(AGENTS)/home
	@touch $@
