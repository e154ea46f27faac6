# Set-up and run of everything, on a fresh machine too:
#
#   make demo    install, then ranges of real tracklets
#   make test    install with the test tools, then the tests; PYTEST_ARGS="-k gauss" for some
#   make check   all that has to pass: lint types contracts test docs
#
# All goes into .venv, made at the first call with PYTHON (3.11 or newer). Stamps in it remember what
# is installed, so that a second call starts at once; editing pyproject.toml installs anew.

PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check --no-compile -c constraints-cpu.txt
DECLARED := pyproject.toml constraints-cpu.txt

.DEFAULT_GOAL := help
.PHONY: help demo test lint types contracts docs check clean

help:
	@sed -n '3,8s/^#  *//p' Makefile

demo: $(VENV)/base.stamp
	@$(RUN) neoranging demo

test: $(VENV)/test.stamp
	$(RUN) pytest $(PYTEST_ARGS)

lint: $(VENV)/lint.stamp
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(VENV)/bin/codespell

types: $(VENV)/lint.stamp
	$(RUN) mypy

contracts: $(VENV)/lint.stamp
	$(VENV)/bin/lint-imports

docs: $(VENV)/docs.stamp
	$(RUN) sphinx -W --keep-going -b html docs docs/_build/html

check: lint types contracts test docs

clean:
	rm -rf $(VENV) build docs/_build docs/gallery docs/api/generated

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is \
	needed, this is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: $(DECLARED) | $(VENV)/bin/python
	$(INSTALL) -e .
	@touch $@

# An extra of pyproject.toml by its name. Editable: what runs is always the working tree.
$(VENV)/%.stamp: $(DECLARED) | $(VENV)/bin/python
	$(INSTALL) -e ".[$*]"
	@touch $@ $(VENV)/base.stamp
