# kinegrad: two commands do everything on a machine with Python (3.11 or newer) and make.
#   make demo    set up, run the main job, say where its results are
#   make test    set up, run the tests (make test-slow: the slow ones, which CI runs too)
# Also: make warm (compile everything beforehand), make docs, make dist, make lint, make bench, make fuzz, make clean.

PYTHON ?= python3
VENV   := .venv
ifeq ($(OS),Windows_NT)
BIN    := $(VENV)/Scripts
else
BIN    := $(VENV)/bin
endif
READY  := $(VENV)/.ready
TOOLS  := $(VENV)/.tools
MODELS := $(VENV)/.models

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow warm docs dist lint bench fuzz clean

demo: $(READY)
	$(BIN)/kinegrad reproduce zhakatayev2023 --quick --out out/zhakatayev2023
	$(BIN)/kinegrad predict human43-lift --out out/human43-lift

test: $(TOOLS)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: $(TOOLS) $(MODELS)
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow
	KINEGRAD_PEER=opensim $(BIN)/python -m pytest tests/peers/test_opensim*.py || [ $$? = 5 ] # 5: no OpenSim here

warm: $(READY)
	$(BIN)/kinegrad compile

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# the site, out/site/index.html; needs no network, and warnings are errors
docs: $(TOOLS)
	$(BIN)/python -m sphinx -q -W --keep-going docs out/site

# wheel and source archive, and the wheel tried in an environment of its own, away from the source
dist: $(TOOLS)
	rm -rf out/dist
	$(BIN)/python -m build --outdir out/dist .
	$(PYTHON) -m venv out/dist/env
	$(subst $(VENV),out/dist/env,$(BIN))/python -m pip install --quiet out/dist/*.whl
	cd out/dist && $(subst $(VENV),env,$(BIN))/python ../../tests/installed.py

# the fuzzers of tests/fuzz, which make test-slow runs with few cases
fuzz: export KINEGRAD_FUZZ_CASES ?= 20000
fuzz: $(TOOLS)
	$(BIN)/python -m pytest -n auto --dist worksteal tests/fuzz

bench: $(TOOLS)
	$(BIN)/python -m benchmarks --markdown docs/benchmarks.md

# kinegrad itself, and then what tests, linters and benchmarks need
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kinegrad needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $(READY)

$(TOOLS): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(TOOLS)

# models of packages that are too heavy to install; without a network their tests are skipped, and say so
$(MODELS): $(TOOLS) tests/published.txt
	$(BIN)/python -m tests.published && touch $(MODELS) || true # it says what is missing

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
