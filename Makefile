# speclib: every command first sets up what it needs. `make help` lists the commands.
PYTHON ?= python3
VENV   ?= .venv
PY     := $(VENV)/bin/python
PIP    := $(VENV)/bin/pip --quiet --disable-pip-version-check
UV     := $(VENV)/bin/uv
READY  := $(VENV)/.ready
QUICK  ?=
FULL   ?=
MINUTES ?=
PAPER  ?=
ONLY   ?=
OUT    ?=
export HF_HUB_DISABLE_TELEMETRY = 1

.DEFAULT_GOAL := help
.PHONY: help setup lock llamacpp cluster real reproduce publish test test-code test-notebooks test-all test-thorough test-browser test-browser-thorough lab lectures course pictures site models merge bench gpu-check lint clean

help:            ## list the commands
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16
	@echo "\nreproduce measures for up to 20 minutes; with QUICK=1 for up to 5, with FULL=1 for up to"
	@echo "60, and with MINUTES=n for up to n. With PAPER=pearl it reproduces only one paper."

# uv takes seconds, but pip takes minutes. pip installs only if uv is missing, or does not find a package.
install = { test -x $(UV) && $(UV) pip install --quiet --compile-bytecode --python $(PY) $(1); } || \
  { echo "uv cannot install this here, so pip does, which takes minutes"; $(PIP) install $(1); }

setup: $(READY)  ## install the pinned environment into .venv

# pip installs torch: pip keeps an existing torch, and may be configured with an index of small builds.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || \
	  { echo "speclib needs Python 3.11.5 or newer; $(PYTHON) is `$(PYTHON) --version`. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	-@$(PIP) install --only-binary uv -c requirements.lock uv
	$(PIP) install -c requirements.lock torch
	@$(call install,-r requirements.lock)
	@$(call install,--no-deps -e .)
	@touch $@
	@echo "Ready: make lab opens the lessons, make reproduce the tables, make help lists the rest."

llamacpp: $(READY)  ## compile llama.cpp for drafts on CPUs (only once; takes six minutes on two cores)
	$(PIP) install -c requirements.lock -r requirements-llamacpp.lock

cluster: $(READY)  ## install Ray, for devices on several machines
	@$(call install,-c requirements.lock -r requirements-cluster.lock)

real: llamacpp  ## fetch SmolLM2, a real language model (93 MB), to decode with pair="smollm2"
	$(PY) -m speclib fetch smollm2

LOCKED := timeline lab models notebooks site
# The locks omit CUDA's libraries: each build of torch requires its own.
lock: $(READY)   ## update requirements.lock: keep pins, add what is missing, drop what is unused
	$(UV) pip compile --quiet --universal --python-version 3.11.5 $(LOCKED:%=--extra %) --group dev --constraints requirements.lock \
	  --no-header --no-annotate --output-file $(VENV)/all.lock pyproject.toml
	{ grep '^#' requirements.lock; grep -vE '^(nvidia|cuda|triton)' $(VENV)/all.lock; } >$(VENV)/new.lock
	mv $(VENV)/new.lock requirements.lock

reproduce: $(READY)  ## write every table and figure to reports/local
	@$(PY) -m speclab reproduce $(if $(QUICK),--quick) $(if $(FULL),--full) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(PAPER),--paper $(PAPER))

publish: $(READY)  ## write the committed reports from the rows in data/runs
	@SPECLIB_REPORTS=reports $(PY) -m speclab reproduce --minutes 0

test: test-code test-notebooks  ## run the tests and the lessons

test-code: $(READY)  ## run all tests except the thorough ones and those in a browser
	$(PY) -m pytest -q -m "not thorough and not browser" -n auto --dist worksteal -p no:nbval

test-notebooks: $(READY)  ## run the lessons: each cell must produce its stored output
	$(PY) -m pytest -q -n auto --dist loadfile --timeout 600 --nbval-lax --nbval-current-env notebooks/learn

test-browser: $(READY)  ## test a lesson and the reports in Chromium (a few minutes)
	$(PY) -m pytest -q -m "browser and not thorough" -n auto --dist loadgroup -p no:nbval tests/reproduce/test_browser.py tests/reproduce/test_site.py

test-all: $(READY)  ## run every test, including the thorough ones
	$(MAKE) --keep-going test-thorough test-notebooks test-browser-thorough

test-thorough: $(READY)
	$(PY) -m pytest -q -m "not browser" -n auto --dist worksteal -p no:nbval

test-browser-thorough: $(READY)
	$(PY) -m pytest -q -m browser -n auto --dist loadgroup -p no:nbval tests/reproduce/test_browser.py tests/reproduce/test_site.py

lab: $(READY)    ## open the notebooks in JupyterLab
	JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(VENV)/bin/jupyter lab --notebook-dir=notebooks notebooks/learn/00_start_here.ipynb

lectures: $(READY)  ## run the lessons and store their outputs in them
	$(PY) -m speclab lessons
	$(PY) -m speclab store notebooks/learn/*.ipynb

# The copy has no tests either: they contain answers to the exercises.
course:          ## write course.zip: the last commit, for students, without the solutions
	git archive --format=zip --prefix=speclib/ -o $(or $(OUT),course.zip) HEAD . ':!notebooks/solutions' ':!tests'

pictures: $(READY)  ## write the lessons' pictures for board and slides to reports/local/pictures
	@$(PY) -m speclab pictures

site: $(READY)   ## build lessons, reports and manual in site/, as web pages that need no Python
	@$(PY) -m speclab site $(if $(OUT),--out $(OUT))

models: $(READY)  ## retrain the embedded models (two hours on two cores)
	$(PY) -m speclab.training

merge: $(READY)  ## add another machine's rows: make merge FROM=other.csv
	@test -n "$(FROM)" || { echo "name the file: make merge FROM=other.csv"; exit 1; }
	@$(PY) -m speclab merge "$(FROM)"

bench: $(READY)  ## measure rates and ratios, compare them with our aims, and write reports/local/bench.csv
	@$(PY) -m speclab.bench

gpu-check: $(READY)  ## on a machine with GPUs: check that every method is exact, and measure how fast
	$(PY) -m speclab.bench.gpu $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

# mypy checks Ray's types, so lint needs the cluster extra. All four tools run, even if one fails.
lint: $(READY) cluster  ## check format, code style, import directions and types
	@failed=0; \
	$(VENV)/bin/ruff format --check . || { failed=1; echo "to fix it: $(VENV)/bin/ruff format ."; }; \
	$(VENV)/bin/ruff check . || failed=1; \
	$(VENV)/bin/lint-imports || failed=1; \
	$(VENV)/bin/mypy || failed=1; \
	exit $$failed

clean:           ## remove the environment, caches and old builds
	rm -rf $(VENV) .cache build
	find speclib speclab -name __pycache__ -prune -exec rm -rf {} +
