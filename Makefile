# Set-up and run of everything, on a fresh machine too:
#
#   make demo    install, then what follows from real tracklets, beside the truth
#   make test    install with the test tools, then the tests; PYTEST_ARGS="-k gauss" for some
#   make base    see that all methods answer without any extra, in an environment of its own
#   make check   all that has to pass: lint types contracts coverage docs
#   make dist    source release and wheel, checked, installed elsewhere and tested there
#
#   make networks      simulate, train and ship the networks of the package (a day of a core)
#   make calibrations  count the intervals of all methods of the package anew
#   make studies       judge all methods, and write the tables of the guide
#
# All goes into .venv, made at the first call with PYTHON (3.11 or newer). Stamps in it remember what
# is installed, so that a second call starts at once; editing pyproject.toml installs anew.

PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
BASE := $(VENV)/base
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
.PHONY: help demo test base coverage test-plain-cpu lint types contracts docs changelog check dist \
	networks calibrations studies clean

help:
	@sed -n '3,14s/^#  *//p' Makefile

demo: $(VENV)/base.stamp
	@$(RUN) neoranging demo

# Every method answers where nothing is installed but what the package needs.
base: $(BASE)/stamp
	$(BASE)/bin/python tests/base_install.py

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

# What the package ships and the guide prints, made anew. WORK holds sets, trainings and studies;
# what is there already is not made again. REAL names folders of real arcs (neoranging dataset real),
# that of whole nights first; without it nothing is made of real arcs.
WORK ?= work
TWIN ?= $(WORK)/twin
CLAIMED ?= $(WORK)/claimed
RUNS ?= $(WORK)/runs
REAL ?=
SEEDS ?= 0 1 2
NETWORKS ?= mlp-paper pinn-paper mlp-invariant pinn-invariant
# Networks of one form have equal budgets, whatever their loss.
EPOCHS = $(if $(findstring posterior,$*),15,$(if $(findstring paper,$*),50,40))
TWIN_OPTIONS ?= --seed 0 --close-fraction 0.06
NEORANGING := OMP_NUM_THREADS=1 $(RUN) neoranging
SHIP := OMP_NUM_THREADS=1 $(VENV)/bin/python docs/tools/ship_networks.py
TRAININGS := $(foreach network,$(NETWORKS),$(SEEDS:%=$(RUNS)/$(network)-%)) \
	$(RUNS)/posterior-invariant-0
METHODS := gauss,laplace,mlp,pinn,mlp-paper=mlp@paper,pinn-paper=pinn@paper
SYSTEMATIC := systematic-near-earth=systematic@near-earth,systematic-population=systematic
CATALOGUE := systematic-catalogue=systematic@catalogue,posterior-catalogue=posterior@catalogue

networks: $(TRAININGS:%=%/done) $(CLAIMED)/divided
	$(SHIP) $(TRAININGS) --twin $(TWIN) --claimed $(CLAIMED) --real $(REAL)

calibrations: $(TWIN)/divided $(CLAIMED)/divided
	$(SHIP) --twin $(TWIN) --claimed $(CLAIMED)

studies: $(TWIN)/divided $(VENV)/lab.stamp
	$(if $(REAL),,$(error the studies of the guide need REAL=<folder of a set of real arcs>))
	$(NEORANGING) study --data $(TWIN) --methods $(METHODS) --split test \
		--out $(WORK)/study-twin --resume
	$(NEORANGING) study --data $(TWIN) --methods gauss,laplace,mlp,pinn,$(CATALOGUE) \
		--split test,unseen --cap 2 --out $(WORK)/posteriors-twin --resume
	$(NEORANGING) study --data $(firstword $(REAL)) --methods $(METHODS),$(SYSTEMATIC) \
		--split all --cap 20 --out $(WORK)/study-real --resume
	$(NEORANGING) study --data $(firstword $(REAL)) \
		--methods gauss,laplace,mlp,pinn,$(SYSTEMATIC),$(CATALOGUE) \
		--split all --cap 4 --out $(WORK)/posteriors-real --resume
	$(VENV)/bin/python docs/tools/study_tables.py $(WORK)/study-twin $(WORK)/study-real \
		--posteriors $(WORK)/posteriors-twin $(WORK)/posteriors-real

# A killed training goes on from its last whole epoch.
$(RUNS)/%/done: $(TWIN)/divided
	$(NEORANGING) train --model $(word 1,$(subst -, ,$*)) \
		--representation $(word 2,$(subst -, ,$*)) --seed $(word 3,$(subst -, ,$*)) \
		--epochs $(EPOCHS) --threads 1 \
		--data $(TWIN) --out $(RUNS)/$* --resume
	@touch $@

%/divided: | $(VENV)/lab.stamp
	$(NEORANGING) dataset twin $(TWIN_OPTIONS) $(if $(filter $(CLAIMED),$*),--errors claimed) \
		--out $*
	$(NEORANGING) dataset split $* --seed 0 \
		--never-train neoranging/data/weights/never_learnt.csv
	@touch $@

clean:
	rm -rf $(VENV) .nox build dist docs/_build docs/gallery .coverage*

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is \
	needed, this is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: $(DECLARED) | $(VENV)/bin/python
	$(INSTALL) -e .
	@touch $@

$(BASE)/stamp: $(DECLARED) | $(VENV)/bin/python
	$(VENV)/bin/python -m venv $(BASE)
	$(BASE)/bin/python -m $(subst $(RUN) ,,$(INSTALL)) -e .
	@touch $@

# An extra of pyproject.toml by its name. Editable: what runs is always the working tree.
$(VENV)/%.stamp: $(DECLARED) | $(VENV)/bin/python
	$(INSTALL) -e ".[$*]"
	@touch $@ $(VENV)/base.stamp
