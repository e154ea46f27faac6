"""Sets of shifted populations, errors and cadences, as docs/tools/shift_study.py makes them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from documentation_tools import load

from neoranging.constants import ARCSEC
from neoranging.core.answers import Answers
from neoranging.core.geometry import line_of_sight, norm
from neoranging.core.status import RangeStatus
from neoranging.estimators.learned import default_weights
from neoranging.lab.sets import to_core
from neoranging.lab.sets.splits import divide, read_designations
from neoranging.lab.study import StudyMethod
from neoranging.lab.study.scores import ArcTruth

SEED = 3


@pytest.fixture(scope="module")
def maker():
    module = load("shifted_sets")
    module.OBJECTS_PER_BLOCK = 6
    return module


@pytest.fixture(scope="module")
def tool(maker):
    module = load("shift_study")
    module.stored = maker.stored
    return module


@pytest.fixture(scope="module")
def sets(maker):
    """Sets by name, each made once."""
    made = {}

    def of(name, n=40):
        if name not in made:
            made[name] = maker.simulate(maker.SHIFTS[name], n, SEED)
        return made[name]

    return of


class TestSets:
    def test_are_of_objects_that_nothing_was_learnt_from(self, maker, sets):
        never = read_designations(default_weights("mlp", "invariant").with_name("never_learnt.csv"))
        names = np.unique(sets("reference")["designation"])
        part = divide(names, never_train=never).of(names)
        assert set(part.tolist()) <= {"test", "unseen"}

    def test_are_the_same_again(self, maker, sets):
        again = maker.simulate(maker.SHIFTS["reference"], 40, SEED)
        np.testing.assert_array_equal(again["ra_rad"], sets("reference")["ra_rad"])
        assert len(again) == 40
        assert np.unique(again["designation"], return_counts=True)[1].max() <= maker.CAP

    def test_of_populations_have_orbits_of_their_kind(self, sets):
        inner = sets("inner orbits")
        assert (inner["q_au"] / (1.0 - inner["ecc"]) < 1.0).all()
        assert (sets("steep orbits")["inc_rad"] > np.radians(39.9)).all()
        belt = sets("main belt")
        a = belt["q_au"] / (1.0 - belt["ecc"])
        assert ((a > 2.09) & (a < 3.31)).all()
        assert (belt["rho_topo_au"] > 0.3).all()
        close = sets("close and small")
        assert close["rho_geo_au"].max() < 0.11
        assert (close["H_mag"] > 25.0).all()

    @pytest.mark.parametrize("name", ["errors 0.3", "errors 3"])
    def test_of_errors_scatter_by_their_size(self, maker, sets, name):
        table, like = sets(name), sets("reference")
        assert set(table["designation"].tolist()) == set(like["designation"].tolist())
        # the label misses an observation by its error alone
        sigma = np.maximum.reduceat(table["sigma_ra_rad"], table.offsets[:-1]) / ARCSEC
        size = np.median(table["truth_residual_arcsec"] / sigma)
        factor = float(name.split()[1])
        assert 1.2 * factor < size < 3.0 * factor

    def test_of_offsets_are_those_of_the_reference_two_arcseconds_off(self, maker, sets):
        like = sets("reference")
        table = maker.with_offsets(like)
        moved, before = (line_of_sight(part["ra_rad"], part["dec_rad"]) for part in (table, like))
        np.testing.assert_allclose(norm(moved - before) / ARCSEC, 2.0, atol=1e-6)
        # all observations of a station by the same amount
        code = like["stations"][0]
        rows = like["stations"] == code
        north = (table["dec_rad"] - like["dec_rad"])[rows]
        np.testing.assert_allclose(north, north[0], atol=1e-3 * ARCSEC)
        assert np.isfinite(sets("offsets")["rho_topo_au"]).all()

    def test_of_wrong_clocks_keep_the_order_of_time(self, maker, sets):
        like = sets("reference")
        table = maker.with_wrong_clocks(like)
        shift = np.sort(table["t_mjd_tdb"]) - np.sort(like["t_mjd_tdb"])
        assert 1.0 < np.abs(shift).max() * 86_400.0 < 60.0
        inside = np.repeat(np.arange(len(table)), table.counts)
        steps = np.diff(table["t_mjd_tdb"])[np.diff(inside) == 0]
        assert (steps >= 0.0).all()

    def test_of_two_observations_have_the_truth_at_their_own_epoch(self, sets):
        table = sets("two observations")
        arcs = to_core(table)
        assert set(table["n_obs"].tolist()) == {2}
        assert np.median(table["truth_residual_arcsec"]) < 2.0
        # range and range-rate of the label go along with the epoch
        like = sets("one station")
        t2 = arcs.t[arcs.triplet[:, 1]]
        known = dict(zip(like["t_mjd_tdb"][like.offsets[:-1]], range(len(like)), strict=True))
        for k, start in enumerate(table["t_mjd_tdb"][::2].tolist()):
            row = known[start]
            drift = (t2[k] - like["t2_mjd_tdb"][row]) * like["rho_dot_topo_au_d"][row]
            # beside the rotation of the Earth, which moves the station by 3e-5 au in hours
            off = table["rho_topo_au"][k] - like["rho_topo_au"][row] - drift
            assert abs(off) < 1e-4

    @pytest.mark.parametrize(
        ("name", "span", "n"),
        [("ten minutes", 10.0, 3), ("eight hours", 480.0, 5), ("two nights", 1455.0, 4)],
    )
    def test_of_cadences_have_it(self, sets, name, span, n):
        table = sets(name)
        assert set(table["n_obs"].tolist()) == {n}
        np.testing.assert_allclose(1440.0 * to_core(table).span, span, atol=0.1)
        assert (table["station"] != "").all() if "station" in table else True

    def test_are_taken_from_their_file(self, maker, tmp_path, monkeypatch):
        path = tmp_path / "sets" / "reference.npz"
        made = maker.stored(path, "reference", 20, SEED)
        monkeypatch.setattr(maker, "simulate", None)  # not to be called again
        taken = maker.stored(path, "reference", 20, SEED)
        assert taken.columns.keys() == made.columns.keys()
        for name, column in made.columns.items():
            np.testing.assert_array_equal(taken[name], column)
        with pytest.raises(TypeError):
            maker.stored(path, "reference", 21, SEED)


class TestShares:
    def test_count_objects_not_arcs(self, tool):
        flags = np.repeat([1.0, 0.0, 1.0, 1.0], 10)
        alike = tool.Share.of(flags, np.repeat(np.array(list("abcd")), 10))
        apart = tool.Share.of(flags, np.arange(40).astype(str))
        assert alike.value == apart.value == 0.75
        # four independent objects: sqrt(0.75 * 0.25 / 4)
        assert alike.error == pytest.approx(0.2165, abs=1e-4)
        assert apart.error == pytest.approx(0.0685, abs=1e-3)
        assert str(alike) == "75 ± 22"

    def test_of_none_are_uncertain_too(self, tool):
        none = tool.Share.of(np.zeros(100), np.arange(100).astype(str))
        assert none.value == 0.0
        assert none.error == pytest.approx(0.007, abs=1e-3)
        assert str(none) == "0.00 ± 0.70"

    def test_of_few_arcs_are_not_told(self, tool):
        few = tool.Share.of(np.ones(50), np.arange(50).astype(str), np.arange(50) < 19)
        assert (few.n, str(few)) == (19, "")
        assert str(tool.Share.of(np.ones(0), np.array([], dtype=str))) == ""


@pytest.fixture(scope="module")
def truth(sets):
    return ArcTruth.of(sets("reference"))


class TestJudgement:
    def test_of_the_own_scale_is_by_laplaces_law(self, tool, truth):
        rng = np.random.default_rng(0)
        off = rng.laplace(scale=0.1, size=len(truth))
        rho = truth.rho * np.exp(off)
        answers = Answers.of(truth.attributables, rho, truth.rho_dot, RangeStatus.POPULATION)
        covariance = np.full((len(truth), 2, 2), np.nan)
        covariance[:, 0, 0] = 2.0 * (0.1 * rho) ** 2
        answers = replace(answers, covariance=covariance)
        row = tool.judged(
            "reference", StudyMethod.of("mlp"), answers, None, truth, None, np.zeros(0)
        )
        for level in (0.68, 0.95):
            inside = np.abs(off) <= 0.1 * np.log(1.0 / (1.0 - level))
            assert row.own[level].value == pytest.approx(inside.mean())
        assert row.error == pytest.approx(np.median(np.abs(np.expm1(off))))
        assert (row.usable.value, row.ok.value, row.outside.value) == (1.0, 0.0, 0.0)
        assert row.inside[0.68].n == 0  # no calibration

    def test_keeps_what_the_status_says_apart(self, tool, truth):
        m = len(truth)
        status = np.full(m, RangeStatus.POPULATION.code)
        status[: m // 4] = RangeStatus.OUTSIDE_TRAINING_DOMAIN.code
        status[m // 4 : m // 2] = RangeStatus.MISFIT.code
        answers = Answers.of(truth.attributables, truth.rho, truth.rho_dot, status)
        calibration = StudyMethod.of("gauss").estimator.calibration
        mlp, neo = StudyMethod.of("mlp"), np.array([0.9] * 10 + [0.2] * 30)
        row = tool.judged("reference", mlp, answers, None, truth, calibration, neo)
        assert row.no_neo.value == 0.75
        assert row.outside.value == row.misfit.value == pytest.approx((m // 4) / m)
        assert row.inside[0.68].n == m
        assert row.trusted[0.68].n == m - m // 4
        assert row.kept[0.68].n == m - m // 2


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
def test_page_part_has_all_sets_and_methods(tool, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    command = [str(tmp_path / "work"), "--output", str(tmp_path), "--arcs", "30"]
    command += ["--sets", "reference", "errors 3", "--methods", "gauss", "mlp", "--seed", "3"]
    tool.main(command)
    first = (tmp_path / "shift.inc").read_text()
    assert (tmp_path / "shift.png").stat().st_size > 10_000
    tables = re.findall(r"csv-table:: (.*)", first)
    assert [name for name in tables if name.startswith("Answers")] == [
        "Answers, population",
        "Answers, errors",
    ]
    for name in ("reference", "errors 3"):
        assert re.search(rf'"{name}", "gauss", "30"', first)
    digest = StudyMethod.of("mlp").estimator.identity["weights_sha256"]
    assert f"``mlp`` ``{digest[:8]}``" in first
    tool.main(command)  # from what is kept
    assert (tmp_path / "shift.inc").read_text() == first
    assert "gauss, 30 arcs" in capsys.readouterr().out
