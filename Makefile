# Set-up and run of everything, on a fresh machine too:
#
#   make demo    install, then what follows from real tracklets, beside the truth
#   make test    install with the test tools, then the tests; PYTEST_ARGS="-k gauss" for some
#   make check   all that has to pass: lint types contracts coverage docs
#   make dist    source release and wheel, checked, installed elsewhere and tested there
#
# All goes into .venv, made at the first call with PYTHON (3.11 or newer). Stamps in it remember what
# is installed, so that a second call starts at once; editing pyproject.toml installs anew.

PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check --compile -c constraints-cpu.txt
DECLARED := pyproject.toml constraints-cpu.txt

# The tests begin many processes; without bytecode each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# One process per core, each with one thread.
PYTEST := OMP_NUM_THREADS=1 $(RUN) pytest -n auto --dist worksteal

# Results must not hang on the processor: numeric tests once more without vector instructions in
# numpy, torch and the C library.
NUMERIC := tests/core tests/nn tests/estimators tests/authorities tests/contract tests/orbits \
	tests/ephemeris tests/lab/study tests/test_admissible_region.py tests/test_attributable.py \
	tests/test_calibration.py tests/test_estimate.py
FEATURES := import numpy; \
	print(*numpy.show_config("dicts").get("SIMD Extensions", {}).get("found", ()))

.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-plain-cpu lint types contracts docs changelog check dist \
	clean

help:
	@sed -n '3,9s/^#  *//p' Makefile

demo: $(VENV)/base.stamp
	@$(RUN) neoranging demo

test: $(VENV)/test.stamp
	$(PYTEST) $(PYTEST_ARGS)

# All tests, with the share of lines that they run and its floor (fail_under in pyproject.toml).
coverage: $(VENV)/test.stamp
	$(PYTEST) --cov

test-plain-cpu: $(VENV)/test.stamp
	NPY_DISABLE_CPU_FEATURES="$$($(VENV)/bin/python -c '$(FEATURES)')" \
	ATEN_CPU_CAPABILITY=default GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4 \
	$(PYTEST) $(NUMERIC) $(PYTEST_ARGS)

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

# The section that the fragments in changes/ would make.
changelog: $(VENV)/dev.stamp
	$(RUN) towncrier build --draft

check: lint types contracts coverage docs

dist: $(VENV)/dev.stamp
	$(RUN) nox -s dist

clean:
	rm -rf $(VENV) .nox build dist docs/_build docs/gallery .coverage*

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
