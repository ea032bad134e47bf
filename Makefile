# make run    the cockpit
# make test   the suite in under ten minutes on two cores; make test-all also the long tests, as CI does
# make check  lint, types, imports
# make bench  speed and memory, as a table
# make agents the coding agents that tests drive for real, from npm into .venv/agents
# make shots  the screenshots of the README, from the running program
# make fuzz   damaged input for every parser, an hour long, or ARGS=seconds
# make storm  1,000 random kills while messages run, or ARGS=kills
# make soak   replicas that come and go for six hours, or ARGS=minutes; the service must not grow
# make dist   the packages of a release with a list of their parts; the wheel is installed and run once
# make lock   write requirements.lock for the ranges of pyproject.toml

# All paths are relative: make splits absolute ones at the blanks of a directory's name.
ifneq ($(lastword $(MAKEFILE_LIST)),Makefile)
$(error Use make -C DIRECTORY instead of make -f)
endif

PYTHON ?= python3
BIN    := .venv/bin
AGENTS := .venv/agents
LOCK   := requirements.lock
PINNED := tests/real_agents/package.json
NPM    := npm install --prefix $(AGENTS) --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error

# The directory in which the cockpit is opened: where the user stands, which make -C does not change.
run: export QD_FROM = $(value PWD)

.PHONY: run test test-all agents check format bench shots fuzz storm soak dist lock clean

run: .venv/.run
	@qd="$$PWD/$(BIN)/qd"; [ ! -d "$$QD_FROM" ] || cd "$$QD_FROM"; \
	unset QD_FROM MAKEFLAGS MFLAGS MAKELEVEL MAKE_TERMOUT MAKE_TERMERR; exec "$$qd"

test test-all: .venv/.test
	@if command -v npm >/dev/null || [ "$$CI" = true ]; then $(MAKE) --no-print-directory agents; fi
	@$(BIN)/python -m compileall -q -x /test_ src tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(if $(filter test-all,$@),--long) $(ARGS)

agents: $(AGENTS)/.done

check: .venv/.check
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo

format: .venv/.check
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: .venv/.test
	$(BIN)/python -m tests.bench $(ARGS)

shots: .venv/.test
	$(BIN)/python screenshots/make.py

fuzz: .venv/.test
	QUARTERDECK_FUZZ_SECONDS=$(or $(ARGS),3600) $(BIN)/python -m pytest -n 0 -p no:randomly --reruns 0 -rP tests/security/test_fuzz.py

storm: .venv/.test
	$(BIN)/python -m tests.security.storm $(ARGS)

soak: .venv/.test
	$(BIN)/python -m tests.security.soak $(ARGS)

# Built by the packages of the lock, not by what an index has at that moment.
dist: .venv/.release
	rm -f dist/quarterdeck-*
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/quarterdeck-*.whl dist/quarterdeck-*.tar.gz
	$(BIN)/python .ci/sbom.py $(LOCK) dist
	.ci/wheel dist/quarterdeck-*.whl

# Nothing but a virtual environment is removed.
clean:
	@if [ -f .venv/pyvenv.cfg ]; then rm -rf .venv; \
	elif [ -e .venv ]; then echo '.venv holds no pyvenv.cfg, so it is not removed' >&2; exit 1; fi

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "quarterdeck needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --upgrade 'pip>=25.1'

.venv/.run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

.venv/.test .venv/.check .venv/.release: .venv/.locked
	@touch $@

# For development and CI exactly the packages of the lock, by their hashes.
.venv/.locked: pyproject.toml $(LOCK) | $(BIN)/python
	$(BIN)/python -m pip install --require-hashes --requirement $(LOCK)
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	@touch $@ .venv/.run

# The index that pip uses answers; its address does not get into the file.
lock: | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'uv>=0.9,<1'
	@{ echo '# Every package of a development environment and of CI, with hashes. Written by make lock; users install by the'; \
	echo '# ranges of pyproject.toml.'; } >$(LOCK).new
	index=$$($(BIN)/python -m pip config get global.index-url 2>/dev/null || true); \
	$(BIN)/uv pip compile pyproject.toml --extra postgresql --extra docker --extra kubernetes --extra ssh --extra engine --group test --group check --group build --group release \
	--universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet \
	$${index:+--default-index "$$index"} >>$(LOCK).new
	@if grep -q '://' $(LOCK).new; then echo 'the lock names an index' >&2; exit 1; fi
	mv $(LOCK).new $(LOCK)

# The platform's own packages: no scripts, and no Node at run time. Pinned for x64, named alike elsewhere.
$(AGENTS)/.done: $(PINNED) | $(BIN)/python
	@command -v npm >/dev/null || { echo 'npm is needed for the agents that tests drive; install it (Debian, Ubuntu: apt install npm)' >&2; exit 1; }
	@rm -rf $(AGENTS) && mkdir -p $(AGENTS)/bin
	@sed 's/linux-x64/linux-$(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x64)/' $(PINNED) >$(AGENTS)/package.json
	$(NPM)
	@cd $(AGENTS)/bin && ln -s ../node_modules/codex-bin/vendor/*/bin/codex ../node_modules/opencode-linux-*/bin/opencode \
	  ../node_modules/@kilocode/cli-linux-*/bin/kilo ../node_modules/@zed-industries/codex-acp-linux-*/bin/codex-acp .
	@home="$$PWD/$(AGENTS)/home"; cd $(AGENTS)/bin && HOME="$$home" ./codex --version && HOME="$$home" ./opencode --version
	@rm -rf $(AGENTS)/home
	@touch $@
