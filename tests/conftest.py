"""Shared fixtures: where the optional outside data lie, and astropy kept offline."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import simulated_arcs
from astropy.utils import iers

# Examples take as long as the machine is busy, and only a person at work profits from new ones.
hypothesis.settings.register_profile("person", deadline=None)
hypothesis.settings.register_profile("machine", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("machine" if os.environ.get("CI") else "person")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real observations and golden numbers that is no part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the outside data folder ../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Any]:
    """Simulated arcs of near-Earth objects; see ``simulated_arcs.simulate``."""
    return simulated_arcs.simulate


@pytest.fixture(autouse=True, scope="session")
def _offline_iers():
    with iers.conf.set_temp("auto_download", False), iers.conf.set_temp("auto_max_age", None):
        yield


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def drawn(tmp_path):
    """Draw a figure in full, as PDF of some size in kB at most, and give its texts."""

    def draw(fig, most=300):
        path = tmp_path / "figure.pdf"
        fig.savefig(path, dpi=150)
        assert path.stat().st_size < 1024 * most
        found = fig.findobj(lambda artist: hasattr(artist, "get_text") and artist.get_visible())
        return [artist.get_text() for artist in found if artist.get_text()]

    return draw
