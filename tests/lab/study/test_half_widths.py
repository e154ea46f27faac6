"""Half widths of intervals by tercile of motion, by both constructions, and the published ones."""

from dataclasses import replace

import numpy as np
import pytest

from neoranging.core import conformal as core
from neoranging.exceptions import ConformalError
from neoranging.lab.study.calibration import CalibrationSample
from neoranging.lab.study.half_widths import (
    MOTIONS,
    half_widths,
    published_half_widths,
    side_by_side,
)
from neoranging.lab.study.published import SOURCE
from neoranging.lab.study.report import render
from neoranging.lab.study.scores import ArcTruth

N = 6_000


@pytest.fixture(scope="module")
def sample(made_answers):
    """Answers off by ten times the motion in range and by a hundredth of that in range-rate."""
    rng = np.random.default_rng(1)
    eta, off = rng.uniform(0.001, 0.05, N), rng.standard_normal((2, N))
    truth, rate = rng.uniform(3.0, 4.0, N), rng.normal(0.0, 0.01, N)
    answers = made_answers(truth + 10.0 * eta * off[0], np.nan, True, eta)
    answers = replace(answers, rho_dot=rate + 0.1 * eta * off[1])
    limits, nothing = np.broadcast_to([1e-5, 1e5], (N, 2)), np.full((N, 5), np.nan)
    names, span = np.arange(N).astype(str), np.full(N, 0.05)
    a = answers.attributables
    made = ArcTruth("topocenter", a, limits, truth, rate, nothing, span, names)
    return CalibrationSample({"method": "made up"}, answers, made)


@pytest.fixture(scope="module")
def rows(sample):
    return half_widths(sample, folds=5)


def test_those_of_the_paper_are_of_the_deciles_of_the_very_arcs(sample, rows):
    """Means over the arcs of a tercile, each with the quantile of the residuals of its decile."""
    table = rows.set_index(["construction", "of", "level", "motion"])["half_width"]
    eta = sample.answers.eta
    decile, tercile = (core.bin_of(core.quantile_edges(eta, n), eta) for n in (10, 3))
    for of, off in (
        ("range", sample.answers.rho - sample.truth.rho),
        ("range_rate", sample.answers.rho_dot - sample.truth.rho_dot),
    ):
        residuals = np.abs(off)
        for level in (0.68, 0.95):
            k = core.rank(N // 10, level) - 1
            width = np.array([np.sort(residuals[decile == j])[k] for j in range(10)])[decile]
            expected = [width.mean(), *(width[tercile == j].mean() for j in range(3))]
            found = [table["paper", of, level, name] for name in MOTIONS]
            np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("construction", ["package", "paper"])
def test_they_hold_in_every_tercile(rows, construction):
    mine = rows[rows["construction"] == construction]
    assert len(mine) == 2 * 2 * len(MOTIONS)
    for row in mine.itertuples():
        assert row.n_arcs == (N if row.motion == "all" else N / 3)
        bound = 5.0 * np.sqrt(2.0 * row.level * (1.0 - row.level) / row.n_arcs)
        assert abs(row.per_arc - row.level) < bound


def test_without_true_range_rates_there_are_none_of_them(sample):
    bare = replace(sample, truth=replace(sample.truth, rho_dot=np.full(N, np.nan)))
    assert set(half_widths(bare, folds=2)["of"]) == {"range"}


def test_too_few_arcs(sample):
    """Ten to a decile do for one level, and two for none; bins of the package are as large."""
    some = half_widths(sample.take(np.arange(100)), constructions=["paper"], folds=2)
    assert set(some["level"]) == {0.68}
    with pytest.raises(ConformalError, match="needs 19 calibration arcs"):
        half_widths(sample.take(np.arange(20)), levels=[0.95], folds=2)


def test_published_ones():
    """The text: sections on new arcs, 68 % half widths by tercile, and of a generic NEO."""
    table = published_half_widths().set_index(["method", "of", "motion"])["half_width"]
    assert table["PINN"]["range"].to_dict() == {"slow": 0.56, "mid": 0.33, "fast": 0.20}
    assert table["MLP"]["range"].to_dict() == {"slow": 0.49, "mid": 0.26, "fast": 0.29}
    assert table["a network"].to_dict() == {("range", "all"): 0.31, ("range_rate", "all"): 6.1e-3}


class TestInAStudy:
    def test_both_constructions_stand_beside_the_published_ones(self, study):
        table = study.tables["half_widths"]
        assert set(table["method"]) == {"honest"}
        # of a hundred arcs, too few of which classical methods answer
        remarks = [remark for remark in study.remarks if "half widths by motion" in remark.text]
        assert {remark.subject for remark in remarks} == {"gauss", "laplace"}
        assert set(table["construction"]) == {"package", "paper"}
        assert set(table["of"]) == {"range", "range_rate"}
        text = side_by_side(table)
        lines = text[["method", "construction"]].to_numpy().tolist()
        assert ["honest", "paper"] in lines
        assert [f"PINN, {SOURCE}", "paper"] in lines
        pinn = text[text["method"] == f"PINN, {SOURCE}"].iloc[0]
        assert pinn["range, slow [au]"] == "0.560"
        assert pinn["range-rate, all [au/d]"] == ""
        assert set(side_by_side(table, published=False)["construction"]) == {"package"}
        assert side_by_side(table.take([])).empty

    def test_they_are_in_the_report(self, study):
        assert "range-rate, slow [au/d]" in render(study)
        assert f"PINN, {SOURCE}" not in render(study, published=False)
