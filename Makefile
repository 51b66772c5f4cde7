# The project's commands. Needs make and Python 3.11 or newer, nothing else: what a target uses is
# installed into .venv beside this file, once, and again when pyproject.toml changes.
#
#   make PYTHON=/path/to/python3 test        use this interpreter
#   make test ARGS="-k hausdorff"            pass arguments on to pytest (or to the demo)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint format docs bench fuzz mutants coverage clean distclean

ARGS ?=
JOBS ?= auto
BAGWISE_FUZZ ?= 100000

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python

# An editable install and the scripts of a virtual environment hold absolute paths. The stamps
# carry the folder's checksum, so that a moved or copied tree installs itself anew.
STAMP := $(VENV)/.stamp-$(shell pwd -P | cksum | cut -d ' ' -f 1)

help: ## show this list
	@echo "Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name what; \
	  do printf '%-16s %s\n' "$$name" "$$what"; done

demo: $(STAMP)-core ## learn from embedded data and write the report bagwise-demo.html
	@$(BIN)/bagwise demo --output bagwise-demo.html $(ARGS)

test: $(STAMP)-test ## run the test suite on all cores
	@$(RUN) -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal $(ARGS)

lint: $(STAMP)-lint ## check style and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

format: $(STAMP)-lint ## rewrite the code in the project's style
	@$(RUN) -m ruff check --fix-only .
	@$(RUN) -m ruff format .

docs: $(STAMP)-docs ## build the documentation into docs/_build/html; a warning is an error
	@$(RUN) docs/estimators_table.py
	@$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(STAMP)-test ## run every script of benchmarks/, one after another
	@set -e; for script in benchmarks/[a-z]*.py; do \
	  test -e "$$script" || { echo "There are no scripts in benchmarks/." >&2; exit 1; }; \
	  echo "== $$script"; $(RUN) "$$script"; done

fuzz: $(STAMP)-test ## mutate model files, BAGWISE_FUZZ times (100000)
	@BAGWISE_FUZZ=$(BAGWISE_FUZZ) $(RUN) -m pytest -m fuzz -n $(JOBS) --maxprocesses 8 \
	  --timeout 0 -o faulthandler_timeout=0 $(ARGS)

mutants: $(STAMP)-test ## put faults into a copy of the library and count those that tests notice
	@$(RUN) tests/mutants/run.py --record $(ARGS)

coverage: $(STAMP)-coverage ## run the suite and report the lines and branches not reached
	@$(RUN) -m pytest -n $(JOBS) --maxprocesses 8 \
	  --cov --cov-report=term-missing:skip-covered $(ARGS)

clean: ## remove what was built and cached, but keep .venv
	@rm -rf build dist docs/_build docs/gallery docs/reference/generated bagwise-demo.html .coverage \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	@rm -rf $(VENV)

# --- the virtual environment -------------------------------------------------------------------

# A stamp is written after its installation succeeded, and removed before the next one starts.
INSTALL = rm -f $@; echo "Installing bagwise$(1) into $(VENV): minutes the first time." >&2; \
  $(RUN) -m pip install --quiet --disable-pip-version-check --editable ".$(1)"

$(STAMP)-core: pyproject.toml | $(STAMP)-venv
	@$(call INSTALL,) && touch $@

# The other installations include the core one.
$(STAMP)-test $(STAMP)-lint $(STAMP)-docs $(STAMP)-coverage: $(STAMP)-%: pyproject.toml | $(STAMP)-venv
	@$(call INSTALL,[$*]) && touch $(STAMP)-core $@

PROBE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# An environment that works is kept, one that lacks pip is given it, a broken one is made again.
$(STAMP)-venv:
	@if ! $(RUN) -m pip --version >/dev/null 2>&1 && ! $(RUN) -m ensurepip >/dev/null 2>&1; then \
	  python="$(PYTHON)"; \
	  if [ -z "$$python" ]; then \
	    for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	      "$$python" -c '$(PROBE)' >/dev/null 2>&1 && break; \
	    done; \
	  fi; \
	  if ! "$$python" -c '$(PROBE)' >/dev/null 2>&1; then \
	    echo "bagwise needs Python 3.11 or newer with its venv module, and$(if $(PYTHON), '$(PYTHON)' is not that, none was found): install one, or name it with 'make PYTHON=/path/to/python3'." >&2; \
	    exit 1; \
	  fi; \
	  rm -rf $(VENV) && "$$python" -m venv $(VENV); \
	fi
	@touch $@
