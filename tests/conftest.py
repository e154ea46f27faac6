"""Shared fixtures: where the optional outside data lie, and astropy kept offline."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import simulated_arcs
from astropy.utils import iers

from neoranging.core.answers import Answers
from neoranging.core.attributable import Attributables
from neoranging.core.status import RangeStatus

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


@pytest.fixture(scope="session")
def made_answers() -> Callable[..., Any]:
    """`Answers` of ranges, standard errors [au], verdicts and proper motions [rad/d]."""

    def make(rho: Any, error: Any = np.nan, usable: Any = True, eta: Any = 0.01) -> Answers:
        columns = np.broadcast_arrays(*(np.atleast_1d(x) for x in (rho, error, usable, eta)))
        rho, error, usable, eta = (column.copy() for column in columns)
        shapes = (column.shape[1:] for column in Attributables.none())
        zeros = Attributables._make(np.zeros((len(rho), *shape)) for shape in shapes)
        status = np.where(usable, RangeStatus.OK.code, RangeStatus.UNDETERMINED.code)
        answers = Answers.unsolved(zeros._replace(ra_rate=eta), status)
        answers.covariance[:, 0, 0] = error**2
        return replace(answers, rho=rho)

    return make


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
