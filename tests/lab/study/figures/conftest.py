"""Made-up scores and coverages, a small labelled table, and figures closed after each test."""

import numpy as np
import pandas as pd
import pytest

from neoranging.core.status import RangeStatus
from neoranging.lab.study.scores import DISTRIBUTIONS

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def made():
    """Scores of a method whose ranges are off by some dex, and that fails now and then."""

    def make(method="mlp", *, m=400, dex=0.1, failing=0, origin="topocenter", seed=1, **columns):
        rng = np.random.default_rng(7)  # the same arcs whatever the method
        rho_true = 10.0 ** rng.uniform(-2.5, 0.5, m)
        rho_dot_true = 0.005 * rng.standard_normal(m)
        eta, inc, span = 0.01 / rho_true, rng.uniform(0.0, 0.6, m), rng.uniform(0.01, 0.3, m)
        own = np.random.default_rng(seed)
        rho = rho_true * 10.0 ** (dex * own.standard_normal(m))
        rho[:failing] = np.nan
        answered = np.isfinite(rho)
        distance = np.where(answered, own.uniform(0.0, 1.0, m), np.nan)
        status = np.where(answered, RangeStatus.OK.code, RangeStatus.NO_ROOT.code)
        values = {
            "rho": rho,
            "rho_dot": np.where(answered, rho_dot_true + 0.001 * own.standard_normal(m), np.nan),
            "rho_true": rho_true,
            "rho_dot_true": rho_dot_true,
            "status": status.astype(np.int8),
            "answered": answered,
            "ok": answered,
            **dict.fromkeys(DISTRIBUTIONS, np.nan),
            "relative_error": np.abs(rho / rho_true - 1.0),
            "log10_error": np.abs(np.log10(rho / rho_true)),
            "d_sh_pseudo": distance,
            "d_sh_catalogue": distance,
            "elliptic_pseudo": answered,
            "elliptic_catalogue": answered,
            "admissible": answered,
            "pseudo_admissible": np.ones(m, dtype=bool),
            "eta": eta,
            "inc": inc,
            "span": span,
            "object": np.arange(m) // 4,
        }
        scores = pd.DataFrame(values | columns)
        scores.attrs = {"method": method, "origin": origin, "seconds": np.nan}
        return scores

    return make


@pytest.fixture(scope="session")
def table(simulate):
    """60 labelled arcs of two hours, five to an object."""
    return simulate(60, 0.08, seed=31).labelled(arcs_of_object=5)


@pytest.fixture
def coverage():
    """Rows of ``CrossConformal.coverage`` of intervals that hold, wider by a factor."""

    def make(factor=1.0, levels=(0.5, 0.68, 0.95)):
        told = {"n_arcs": 1000, "n_objects": 100}
        rows = []
        for level in levels:
            held = {"per_arc": level, "per_object": level - 0.02, **told}
            bins = [("answered", "answered"), *(("eta decile", k) for k in range(1, 11))]
            rows += [
                {"level": level, "stratum": stratum, "bin": label}
                | held
                | {"median_width_au": 0.2 * factor, "median_ratio": 4.0 * factor}
                for stratum, label in bins
            ]
        return pd.DataFrame(rows)

    return make
