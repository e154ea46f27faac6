"""Shared fixtures: where the optional outside data lie, and astropy kept offline."""

from __future__ import annotations

from pathlib import Path

import pytest
from astropy.utils import iers

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real observations and golden numbers that is no part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the outside data folder ../shared is not here")
    return SHARED


@pytest.fixture(autouse=True, scope="session")
def _offline_iers():
    with iers.conf.set_temp("auto_download", False), iers.conf.set_temp("auto_max_age", None):
        yield
