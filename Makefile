# make run    the cockpit          make test    the whole suite
# make check  lint, types, imports make bench   speed and memory, as a table
# make shots  the screenshots of the README, from the running program

ROOT   := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
VENV   := $(ROOT).venv
PYTHON ?= python3
BIN    := $(VENV)/bin

.PHONY: run test check format bench shots clean

run: $(VENV)/.run
	@$(BIN)/qd

test: $(VENV)/.test
	@$(BIN)/python -m compileall -q $(ROOT)src $(ROOT)tests
	cd $(ROOT) && $(BIN)/python -m pytest $(ARGS)

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
