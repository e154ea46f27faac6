"""Calibrations of stored sets, and crosswise coverage of their own arcs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import neoranging as nr
from neoranging import calibration as conformal
from neoranging.calibration import Calibration
from neoranging.core import conformal as core
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.learned import default_weights
from neoranging.exceptions import (
    ConformalError,
    DatasetError,
    EvaluationError,
    NotTrainedError,
)
from neoranging.lab.sets.schema import COLUMNS, ArcTable
from neoranging.lab.sets.splits import split_set
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.study.calibration import (
    CONSTRUCTIONS,
    CalibrationSample,
    calibrate,
    calibrate_defaults,
    coverage,
    cross_conformal,
)
from neoranging.lab.study.scores import ArcTruth

LEVEL = pytest.mark.parametrize("level", [0.68, 0.95])


def table_of(s, **columns):
    """Simulated arcs as rows of a set, in the form that `read_arcs` gives."""
    a = s.arcs
    needed = (name for name, c in COLUMNS.items() if c.fill is None and not c.per_observation)
    unseen = {name: np.zeros(len(s)) for name in needed if name != "n_obs"}
    return ArcTable.make(
        a.offsets,
        **{
            **unseen,
            "t_mjd_tdb": a.t,
            "ra_rad": a.ra,
            "dec_rad": a.dec,
            "sigma_ra_rad": a.sigma_ra,
            "sigma_dec_rad": a.sigma_dec,
            "station": s.station[a.offsets[:-1]],
            "rho_topo_au": s.rho,
            "rho_geo_au": s.rho + 1e-5,
            "rho_dot_topo_au_d": s.rho_dot,
            "rho_dot_geo_au_d": s.rho_dot + 1e-6,
            "designation": np.char.mod("S%04d", np.arange(len(s)) // 2),
            "split": "test",
            **columns,
        },
    )


@pytest.fixture(scope="module")
def arcs(simulate):
    return simulate(900, 0.3, seed=901, sigma=0.25).with_noise(np.random.default_rng(9))


@pytest.fixture(scope="module")
def folder(arcs, tmp_path_factory):
    """A set of two parts: 600 arcs of ``test``, 50 of them close ones, and 300 of ``val``."""
    pytest.importorskip("pyarrow")
    place = tmp_path_factory.mktemp("set")
    close = np.arange(900) % 18 == 0
    split = np.where(np.arange(900) % 3 == 1, "val", "test")
    table = table_of(arcs, is_close=close & (split == "test"), split=split)
    with ArcWriter(place, settings={"seed": 9}) as writer:
        writer.write(table.take(slice(0, 500)))
        writer.write(table.take(slice(500, 900)))
    return place


def truth_of(answers, span, rho, objects, rho_dot=0.0):
    """Truth of made-up answers; every range is admissible."""
    n = len(rho)
    limits = np.broadcast_to([1e-5, 1e5], (n, 2))
    nothing = np.full((n, 5), np.nan)
    names = np.asarray(objects).astype(str)
    return ArcTruth(
        "topocenter", answers.attributables, limits, rho, rho_dot + 0.0 * rho, nothing, span, names
    )


def held_out(made_answers, n_objects, arcs_each, seed, shared=0.9, ok=0.8):
    """Made-up answers of which most of the error is that of the object."""
    rng = np.random.default_rng(seed)
    objects = np.repeat(np.arange(n_objects), rng.integers(1, 2 * arcs_each, n_objects))
    n = len(objects)
    eta, span = 0.01 * rng.lognormal(size=n), 0.05 * rng.lognormal(size=n)
    error = np.sqrt(shared) * rng.standard_normal(n_objects)[objects]
    error += np.sqrt(1.0 - shared) * rng.standard_normal(n)
    truth = rng.uniform(0.1, 1.0, n)
    rho = truth * np.exp(20.0 * eta / (1.0 + 20.0 * span) * error)
    rho[rng.random(n) < 0.1] = np.nan
    answers = made_answers(rho, np.nan, rng.random(n) < ok, eta)
    true_rate = rng.normal(0.0, 0.01, n)
    answers = replace(answers, rho_dot=true_rate + 0.3 * eta * error)
    return CalibrationSample(
        {"method": "made up"}, answers, truth_of(answers, span, truth, objects, true_rate)
    )


class TestCalibrationSample:
    def test_is_what_the_estimator_says(self, arcs):
        table = table_of(arcs)
        held = CalibrationSample.of(
            GaussEstimator(), [table.take(slice(0, 400)), table.take(slice(400, 900))]
        )
        estimate = arcs.tracklets().estimate("gauss")
        assert len(held) == 900
        ok = estimate.ok
        np.testing.assert_array_equal(held.answers.usable, ok)
        np.testing.assert_allclose(held.answers.rho[ok], estimate.range.value[ok], rtol=1e-6)
        np.testing.assert_array_equal(held.truth.rho, arcs.rho)
        np.testing.assert_array_equal(held.truth.rho_dot, arcs.rho_dot)
        np.testing.assert_allclose(held.truth.span, estimate._tracklets._span, atol=1e-9)
        assert held.truth.designation[3] == "S0001"
        assert "gauss on 900 arcs of 450 objects" in repr(held)

    def test_truth_is_that_of_the_origin(self, arcs):
        held = CalibrationSample.of(GaussEstimator(origin="geocenter"), [table_of(arcs)])
        np.testing.assert_array_equal(held.truth.rho, arcs.rho + 1e-5)

    def test_of_a_set_has_no_resampled_arcs(self, folder):
        held = CalibrationSample.read(GaussEstimator(), folder, "test")
        assert len(held) == 550
        assert len(CalibrationSample.read(GaussEstimator(), folder, "val")) == 300

    def test_of_nothing(self, folder):
        with pytest.raises(ConformalError, match="no arcs"):
            CalibrationSample.read(GaussEstimator(), folder, "train")
        with pytest.raises(DatasetError, match="no split"):
            CalibrationSample.read(GaussEstimator(), folder, "tests")

    def test_of_what_a_network_learnt_from(self, arcs, learnt, tmp_path):
        with ArcWriter(tmp_path, settings={"seed": 9}) as writer:
            writer.write(table_of(arcs, is_simulated=True))
        split_set(tmp_path, ratios=(0.3, 0.2, 0.5), seed=4)
        estimator = learnt(tmp_path)
        with pytest.raises(EvaluationError, match=r"learnt from, or was chosen by.*'test' and"):
            CalibrationSample.read(estimator, tmp_path, "val")
        assert "learnt" not in calibrate(estimator, tmp_path, "test").description
        noted = calibrate(estimator, tmp_path, "val", allow_learnt=True).description
        assert "no measure of those on new objects" in noted["learnt"]
        # the same arcs divided otherwise
        split_set(tmp_path, ratios=(0.3, 0.2, 0.5), seed=5)
        with pytest.raises(EvaluationError, match=r"--seed 4 --ratios 0\.3 0\.2 0\.5"):
            CalibrationSample.read(estimator, tmp_path, "test")

    def test_real_arcs_may_calibrate_what_learnt_from_simulated_ones(self, arcs, learnt, tmp_path):
        with ArcWriter(tmp_path, settings={}) as writer:
            writer.write(table_of(arcs))
        split_set(tmp_path, ratios=(0.3, 0.2, 0.5))
        estimator = learnt(tmp_path)
        estimator.card["train"]["settings"]["kind"] = "twin"
        assert "these arcs are real" in calibrate(estimator, tmp_path, "val").description["learnt"]

    def test_no_object_has_more_than_twenty_arcs_in_a_calibration(self, made_answers):
        counts = np.array([1, 7, 20, 21, 300, 40])
        n = counts.sum()
        rng = np.random.default_rng(3)
        rho, eta, span, truth = rng.uniform(0.1, 1.0, (4, n))
        answers = made_answers(rho, eta=eta)
        objects = np.repeat(np.arange(6), counts)
        held = CalibrationSample(
            {"method": "made up"}, answers, truth_of(answers, span, truth, objects)
        )
        told = held.calibration().description
        assert told["n_arcs"] == 1 + 7 + 20 + 20 + 20 + 20
        assert told["most_of_an_object"] == 20
        assert (told["n_held_out"], told["n_objects"]) == (n, 6)

    def test_the_construction_of_the_paper_counts_every_arc(self, made_answers):
        held = held_out(made_answers, 20, 100, seed=7)
        made = held.calibration(construction="paper")
        assert (made.score, made.cells) == ("absolute", "motion deciles")
        assert made.description["n_arcs"] == len(held)
        assert made.description["most_of_an_object"] is None
        with pytest.raises(ConformalError, match=r"construction must be one of .*got 'mine'"):
            held.calibration(construction="mine")

    def test_range_rates_are_calibrated_where_they_are_labelled(self, made_answers):
        held = held_out(made_answers, 80, 10, seed=9)
        assert held.calibration().quantities == ("range", "range_rate")
        unlabelled = replace(held.truth, rho_dot=np.full(len(held), np.nan))
        bare = replace(held, truth=unlabelled)
        assert bare.calibration().quantities == ("range",)

    def test_networks_with_errors_are_counted_in_their_logarithms(self, made_answers):
        """A learned method says how far off it is as a share of the range."""
        rho = np.random.default_rng(10).uniform(0.1, 1.0, 60)
        answers = made_answers(rho, 0.1 * rho)
        truth = truth_of(answers, np.full(60, 0.05), 1.1 * rho, np.arange(60))
        for is_learned, score in ((True, "log-standard"), (False, "standard")):
            held = CalibrationSample({"method": "made up"}, answers, truth, is_learned)
            assert held.calibration().score == score


class TestCalibrate:
    def test_says_what_it_was_made_of(self, folder):
        calibration = calibrate("gauss", folder)
        told = calibration.description
        assert (told["n_arcs"], told["split"], told["set"]) == (550, "test", {"seed": 9})
        assert told["neoranging"] == nr.__version__
        assert told["n_objects"] > 300
        assert calibration.matches(GaussEstimator().identity)
        assert str(folder) not in json.dumps(calibration.to_json())

    def test_serves_tracklets(self, folder, arcs):
        gauss = ConformalEstimator(GaussEstimator(), calibrate(GaussEstimator, folder, "val"))
        estimate = arcs.tracklets().estimate(gauss)
        low, high = estimate.interval(0.68).value.T
        rate_low, rate_high = estimate.interval(0.68, of="range_rate").value.T
        answered = np.isfinite(estimate.range.value)
        n = answered.sum() / 3.0  # of the sample that it was made of
        for inside in (
            (low <= arcs.rho) & (arcs.rho <= high),
            (rate_low <= arcs.rho_dot) & (arcs.rho_dot <= rate_high),
        ):
            assert abs(inside[answered].mean() - 0.68) < 5.0 * np.sqrt(0.22 / n)

    def test_takes_options(self, folder):
        other = calibrate("gauss", folder, origin="geocenter", score="log")
        assert other.score == "log"
        assert other.matches(GaussEstimator(origin="geocenter").identity)

    def test_of_the_defaults(self, folder, tmp_path):
        pytest.importorskip("torch")
        written = calibrate_defaults(folder, "test", tmp_path / "new")
        names = [path.name for path in written]
        assert names[:2] == ["gauss.json", "laplace.json"]
        for model in ("mlp", "pinn"):
            for kind in ("invariant", "paper"):
                try:
                    default_weights(model, kind)
                except NotTrainedError:
                    assert f"{model}-{kind}.json" not in names
                else:
                    assert f"{model}-{kind}.json" in names
        for path in written:
            assert path.stat().st_size < 120_000
            assert Calibration.read(path).quantities == ("range", "range_rate")
        assert Calibration.read(written[0]).matches(GaussEstimator().identity)

    def test_what_was_written_is_found(self, folder, tmp_path, monkeypatch, arcs):
        pytest.importorskip("torch")
        calibrate_defaults(folder, "test", tmp_path / "data" / "calibration")
        monkeypatch.setattr(conformal, "files", lambda _: tmp_path)
        conformal.default_calibration.cache_clear()
        try:
            few = arcs.tracklets()[:10]
            for method in ("gauss", "laplace"):
                assert few.estimate(method).calibration.identity["method"] == method
        finally:
            conformal.default_calibration.cache_clear()


class TestCrossConformal:
    def test_no_object_sees_itself(self, made_answers):
        """Intervals of a fold are those of a calibration on all other objects."""
        held = held_out(made_answers, 80, 20, seed=1)
        crossed = cross_conformal(held, folds=4, levels=(0.68,))[0.68]
        fold = core.folds(held.truth.designation, 4, np.random.default_rng(0))
        for k in range(4):
            part, others = held.take(fold == k), held.take(fold != k)
            assert not set(part.truth.designation) & set(others.truth.designation)
            bounds = part.intervals(others.calibration(), 0.68)
            np.testing.assert_array_equal(crossed[fold == k], bounds)

    @LEVEL
    def test_holds_for_arcs_and_for_objects(self, made_answers, level):
        held = held_out(made_answers, 700, 15, seed=2)
        crossed = cross_conformal(held, levels=(level,))
        told = coverage(held, crossed).set_index("stratum").loc["answered"]
        bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / 700)
        assert told["n_objects"] <= 700
        assert abs(told["per_object"] - level) < bound
        assert abs(told["per_arc"] - level) < bound

    @LEVEL
    @pytest.mark.parametrize("construction", CONSTRUCTIONS)
    def test_range_rates_hold_in_every_decile(self, made_answers, level, construction):
        held = held_out(made_answers, 6_000, 2, seed=11, shared=0.0)
        crossed = cross_conformal(
            held, levels=(level,), construction=construction, of="range_rate"
        )[level]
        inside, given = held.inside(crossed, "range_rate"), core.answered(held.answers)
        decile = core.bin_of(core.quantile_edges(held.answers.eta, 10), held.answers.eta)
        for k in range(10):
            rows = given & (decile == k)
            bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / rows.sum())
            assert abs(inside[rows].mean() - level) < bound

    @LEVEL
    def test_holds_in_every_decile(self, made_answers, level):
        held = held_out(made_answers, 6_000, 2, seed=3, shared=0.0)
        rows = coverage(held, cross_conformal(held, levels=(level,))).to_dict("records")
        deciles = [row for row in rows if row["stratum"] == "eta decile"]
        assert [row["bin"] for row in deciles] == list(range(1, 11))
        for row in deciles:
            bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / row["n_arcs"])
            assert abs(row["per_arc"] - level) < bound

    @LEVEL
    def test_holds_among_short_arcs_and_long_ones(self, made_answers, level):
        held = held_out(
            made_answers, 16_000, 2, seed=8, shared=0.0, ok=1.0
        )  # six bins within each decile
        rows = coverage(held, cross_conformal(held, levels=(level,))).to_dict("records")
        terciles = {row["bin"]: row for row in rows if row["stratum"] == "span tercile"}
        assert set(terciles) == {"short", "mid", "long"}
        for row in terciles.values():
            bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / row["n_arcs"])
            assert abs(row["per_arc"] - level) < bound
        assert terciles["short"]["median_ratio"] > terciles["long"]["median_ratio"] > 1.0

    def test_of_gauss(self, folder):
        held = CalibrationSample.read(GaussEstimator(), folder, "test")
        crossed = cross_conformal(held, levels=(0.5, 0.68))
        given = core.answered(held.answers)
        ok = given & held.answers.usable
        low, high = crossed[0.68].T
        assert (low[ok] <= held.answers.rho[ok]).all()
        assert (held.answers.rho[ok] <= high[ok]).all()
        inside = ((low <= held.truth.rho) & (held.truth.rho <= high))[given]
        assert abs(inside.mean() - 0.68) < 5.0 * np.sqrt(0.44 / len(inside))

    def test_rows(self, made_answers):
        held = held_out(made_answers, 200, 5, seed=4)
        parity = np.arange(len(held)) % 2
        crossed = cross_conformal(held, levels=(0.5, 0.9), folds=5)
        rows = coverage(held, crossed, {"parity": parity}).to_dict("records")
        by = {(r["level"], r["stratum"], r["bin"]): r for r in rows}
        assert len(by) == len(rows)
        given = core.answered(held.answers)
        for level in (0.5, 0.9):
            assert by[level, "all", "all"]["n_arcs"] == len(held)
            assert by[level, "answered", "answered"]["n_arcs"] == given.sum()
            verdicts = [by[level, "verdict", x] for x in ("usable", "not usable", "no answer")]
            assert sum(row["n_arcs"] for row in verdicts) == len(held)
            assert verdicts[2]["per_arc"] == 1.0
            assert sum(by[level, "parity", k]["n_arcs"] for k in (0, 1)) == given.sum()
        wide, narrow = (by[x, "answered", "answered"] for x in (0.9, 0.5))
        assert wide["median_width_au"] > narrow["median_width_au"]
        assert wide["median_ratio"] > narrow["median_ratio"] > 1.0
        json.dumps(rows)

    def test_is_a_matter_of_the_seed(self, made_answers):
        held = held_out(made_answers, 100, 10, seed=5)
        one, same, other = (cross_conformal(held, seed=s)[0.68] for s in (0, 0, 1))
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()

    def test_too_few(self, made_answers):
        with pytest.raises(ConformalError, match="10 folds of 4 objects"):
            cross_conformal(held_out(made_answers, 4, 10, seed=6))
        with pytest.raises(ConformalError, match=r"0\.999 needs 999"):
            cross_conformal(held_out(made_answers, 100, 5, seed=6), levels=(0.999,))
