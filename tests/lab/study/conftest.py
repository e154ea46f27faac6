"""Labelled arcs, a method that knows the answers and can be made to spoil them, made-up scores."""

import numpy as np
import pandas as pd
import pytest

from neoranging.core.answers import Answers
from neoranging.core.status import RangeStatus
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.lab.sets.splits import division_of, split_set
from neoranging.lab.sets.store import ArcWriter, read_manifest
from neoranging.lab.study.methods import StudyMethod
from neoranging.lab.study.run import run_study
from neoranging.lab.study.scores import DISTRIBUTIONS
from neoranging.lab.study.selection import Selection

TRUTH = {
    "geocenter": ("rho_geo_au", "rho_dot_geo_au_d"),
    "topocenter": ("rho_topo_au", "rho_dot_topo_au_d"),
}


@pytest.fixture(scope="session")
def exact_table(simulate):
    """200 arcs of two hours without noise, of 50 objects."""
    return simulate(200, 0.08, seed=31).labelled()


@pytest.fixture(scope="session")
def table(simulate):
    """200 arcs of two hours with noise, of the same objects."""
    return simulate(200, 0.08, seed=31).with_noise(np.random.default_rng(32)).labelled()


class Oracle(RangingEstimator):
    """Knows the truth of the arcs of a table, and tells what ``change`` makes of it.

    ``change(rho, rho_dot)`` is given the truth of the whole table; NaN is no answer.
    """

    name = "oracle"

    def __init__(self, table, change=None, origin="topocenter"):
        super().__init__(origin=origin)
        answers = np.array([table[name] for name in TRUTH[origin]])
        self.answers = answers if change is None else np.array(change(*answers))
        # arcs are told apart by the epoch of the first observation
        self.epochs = table["t_mjd_tdb"][table.offsets[:-1]]
        assert len(np.unique(self.epochs)) == len(table)

    def _estimate(self, arcs, attributables):
        order = np.argsort(self.epochs)
        begins = arcs.t[arcs.offsets[:-1]]
        rho, rho_dot = self.answers[:, order[np.searchsorted(self.epochs[order], begins)]]
        status = np.where(np.isfinite(rho), RangeStatus.OK.code, RangeStatus.NO_ROOT.code)
        return Answers.of(attributables, rho, rho_dot, status)


@pytest.fixture(scope="session")
def oracle():
    return Oracle


class Learnt(RangingEstimator):
    """A method with the card of a network that learnt from a stored set."""

    name = "learnt"
    is_learned = True

    def __init__(self, folder=None):
        super().__init__()
        division = {} if folder is None else division_of(read_manifest(folder))
        self.card = {"train": {"division": division, "settings": {"kind": "test"}}}

    def _estimate(self, arcs, attributables):
        return GaussEstimator()._estimate(arcs, attributables)


@pytest.fixture(scope="session")
def learnt():
    return Learnt


def made_scores(rho, rho_true, *, method="made", origin="topocenter", **columns):
    """Scores of what is given; each arc of an object of its own, all good, by default."""
    rho, rho_true = (np.asarray(x, dtype=float) for x in (rho, rho_true))
    m, answered = len(rho), np.isfinite(rho)
    with np.errstate(all="ignore"):
        dex = np.abs(np.log10(rho / rho_true))
    distance = np.where(answered, 0.1, np.nan)
    defaults = {
        "rho_dot": 0.01 * rho,
        "rho_dot_true": 0.01 * rho_true,
        **dict.fromkeys(DISTRIBUTIONS, np.where(answered, 0.5, np.nan)),
        "nodes_admissible": np.where(answered, 1.0, np.nan),
        "low": np.nan,
        "high": np.nan,
        "status": np.where(answered, RangeStatus.OK.code, RangeStatus.NO_ROOT.code).astype("i1"),
        "answered": answered,
        "ok": answered,
        "relative_error": np.abs(rho / rho_true - 1.0),
        "log10_error": dex,
        "d_sh_pseudo": distance,
        "d_sh_catalogue": distance,
        "elliptic_pseudo": answered,
        "elliptic_catalogue": answered,
        "admissible": answered,
        "pseudo_admissible": np.ones(m, dtype=bool),
        "eta": 0.01 * np.arange(1.0, m + 1.0),
        "inc": np.linspace(0.0, 1.0, m),
        "span": np.linspace(0.01, 0.3, m),
        "object": np.arange(m),
    }
    values = defaults | {name: np.asarray(column) for name, column in columns.items()}
    scores = pd.DataFrame({"rho": rho, "rho_true": rho_true} | values)
    scores.attrs = {"method": method, "origin": origin, "seconds": np.nan}
    return scores


@pytest.fixture(scope="session")
def made():
    return made_scores


@pytest.fixture(scope="session")
def folder(table, tmp_path_factory):
    """A stored, divided set, eight arcs to an object; every tenth arc is a resampled one."""
    path, number = tmp_path_factory.mktemp("set"), np.arange(len(table))
    names = np.char.add("S", (number // 8).astype(str))
    with ArcWriter(path, settings={"kind": "made", "seed": 31}) as writer:
        writer.write(table.with_columns(designation=names, is_close=number % 10 == 9))
    split_set(path, ratios=(0.2, 0.1, 0.7), seed=1, never_train=[f"S{k}" for k in range(4)])
    return path


@pytest.fixture(scope="session")
def arcs(folder):
    """All arcs of that set."""
    return Selection(split=None, close=True).read(folder)


def noisy_answers(rho, rho_dot):
    """Honest answers: a quarter off."""
    off = np.random.default_rng(5).normal(0.0, 0.25, len(rho))
    return rho * np.exp(off), rho_dot + 0.003 * off


@pytest.fixture(scope="session")
def noisy():
    return noisy_answers


@pytest.fixture(scope="session")
def study(folder, arcs, oracle):
    """Of both classical methods and an honest one on the test part of that set."""
    methods = ["gauss", "laplace", StudyMethod("honest", oracle(arcs, noisy_answers))]
    return run_study(folder, methods, n_boot=20, folds=4)
