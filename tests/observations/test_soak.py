"""Damaged files of every format: no untyped error, no lost record; a short run of the soak."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak_readers.py"


@pytest.fixture(scope="module")
def soak():
    if not SOAK.exists():
        pytest.skip("the benchmarks are not here")
    spec = importlib.util.spec_from_file_location(SOAK.stem, SOAK)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[SOAK.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("form", ["mpc.obs80", "ades.psv", "ades.xml", "orbfit.rwo"])
def test_mutated_records(soak, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a batch that fails is kept there
    account = soak.soak(form, records=2000, seed=11)
    assert "no untyped error" in account
    assert " 0 used" not in account
