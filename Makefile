# make demo · make test · make test-all · make bench — each sets up .venv by itself, from nothing but Python 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-all lint types bench format clean
demo: .venv/demo-installed
	$(BIN)/airchoir demo

test: .venv/test-installed
	$(BIN)/pytest -n auto -rs -m "not slow"
	@echo "Left to make test-all: tests marked slow, and those above that need torch or Ray."

test-all: .venv/test,train,cluster-installed
	$(BIN)/pytest -n auto -rs

lint: .venv/test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/test-installed
	$(BIN)/mypy

bench: .venv/test-installed
	$(BIN)/python -m benchmarks

format: .venv/test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist

.venv/%-installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "airchoir needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@
