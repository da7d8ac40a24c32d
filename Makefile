# speclib: every target sets up what it needs first. `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
QUICK  ?=
FULL   ?=
MINUTES ?=
PAPER  ?=
WORLD  ?=
ONLY   ?=
OUT    ?=
export HF_HUB_DISABLE_TELEMETRY = 1

.DEFAULT_GOAL := help
.PHONY: help setup llamacpp cluster reproduce test test-code test-notebooks test-all test-thorough test-browser test-browser-thorough lab lectures pictures models merge bench gpu-check lint clean

help:            ## list the targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14
	@echo "\nreproduce takes 25 minutes at most; QUICK=1: five, FULL=1: as long as it takes,"
	@echo "MINUTES=60: any other time. PAPER=pearl: one paper only;"
	@echo "WORLD=cluster: measured on the nodes of the Ray cluster that is running."

setup: $(READY)  ## install the pinned environment into .venv

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "speclib needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version`. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

llamacpp: $(READY)  ## compile llama.cpp for drafts on CPUs (once, six minutes on two cores)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -c requirements.lock -r requirements-llamacpp.lock

cluster: $(READY)  ## install Ray, for devices on several machines
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -c requirements.lock -r requirements-cluster.lock

reproduce: $(READY)  ## regenerate every table and figure into reports/
	@$(PY) -m speclab reproduce $(if $(QUICK),--quick) $(if $(FULL),--full) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(PAPER),--paper $(PAPER)) $(if $(WORLD),--world $(WORLD))

test: test-code test-notebooks  ## the tests, and the learn notebooks

test-code: $(READY)  ## the tests, without those of minutes
	$(PY) -m pytest -q -m "not thorough and not browser" -n auto --dist worksteal -p no:nbval

test-notebooks: $(READY)  ## the learn notebooks: each cell gives what is stored
	$(PY) -m pytest -q -n auto --dist loadfile --timeout 600 --nbval-lax --nbval-current-env notebooks/learn

test-browser: $(READY)  ## a lecture and the reports in Chromium (a few minutes)
	$(PY) -m pytest -q -m "browser and not thorough" -n auto --dist loadgroup -p no:nbval tests/reproduce/test_browser.py

test-all: $(READY)  ## every test, those of minutes too
	$(MAKE) --keep-going test-thorough test-notebooks test-browser-thorough

test-thorough: $(READY)
	$(PY) -m pytest -q -m "not browser" -n auto --dist worksteal -p no:nbval

test-browser-thorough: $(READY)
	$(PY) -m pytest -q -m browser -n auto --dist loadgroup -p no:nbval tests/reproduce/test_browser.py

lab: $(READY)    ## open the notebooks in JupyterLab
	$(VENV)/bin/jupyter lab --notebook-dir=notebooks notebooks/learn/00_start_here.ipynb

lectures: $(READY)  ## run the learn notebooks and store their outputs, for committing
	$(PY) -m speclab lessons
	$(PY) -m speclab store notebooks/learn/*.ipynb

pictures: $(READY)  ## the lessons' pictures for board and slides, into reports/pictures
	@$(PY) -m speclab pictures

models: $(READY)  ## retrain the embedded models (two hours on two cores)
	$(PY) -m speclab.training

merge: $(READY)  ## merge another machine's ledger: make merge FROM=other/ledger.csv
	@test -n "$(FROM)" || { echo "say which: make merge FROM=other/ledger.csv"; exit 1; }
	@$(PY) -m speclab merge "$(FROM)"

bench: $(READY)  ## measure rates and ratios against their aims, into reports/bench.csv
	@$(PY) -m speclab.bench

gpu-check: $(READY)  ## on a machine with GPUs: is every method exact there, and how fast
	$(PY) -m speclab.bench.gpu $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

lint: $(READY)   ## format, habits, import directions, types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/lint-imports
	$(VENV)/bin/mypy

clean:           ## remove the environment, the cache of cells, and what was built of older code
	rm -rf $(VENV) .cache build
	find speclib speclab -name __pycache__ -prune -exec rm -rf {} +
