"""`Calibration`: half widths by verdict and motion, files, and the intervals of estimates."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from astropy import units as u

from neoranging.calibration import CELLS, LEVELS, Calibration, default_calibration
from neoranging.core import conformal as core
from neoranging.core.status import RangeStatus
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.exceptions import ConformalError, EstimationError

NAN = np.nan
ETA = u.rad / u.d
SPAN = 0.05 * u.d


def draw(made_answers, n, seed, ok=0.3, missing=0.1):
    """Answers, spans and truths: OK ones good, errors growing with motion, falling with span."""
    rng = np.random.default_rng(seed)
    eta = 0.01 * rng.lognormal(size=n)
    span = 0.05 * rng.lognormal(size=n)
    good = rng.random(n) < ok
    error = np.where(good, rng.uniform(0.001, 0.02, n), NAN)
    truth = rng.uniform(0.1, 1.0, n)
    spread = np.minimum(10.0 * eta, 2.0) / (1.0 + 20.0 * span)
    rho = truth * np.exp(rng.standard_normal(n) * spread)
    rho[good] = (truth + 1.4 * error * rng.standard_normal(n))[good]
    rho[~good & (rng.random(n) < missing)] = NAN
    return made_answers(rho, error, good, eta), span, truth


def with_rates(answers, seed):
    """Answers with range-rates, 1.4 times as far off as they claim if OK; the true ones [au/d]."""
    rng = np.random.default_rng(seed)
    n, ok = len(answers), answers.usable
    truth = rng.normal(0.0, 0.01, n)
    error = np.where(ok, rng.uniform(1e-4, 2e-3, n), NAN)
    spread = np.where(ok, 1.4 * error, np.minimum(0.3 * answers.eta, 0.01))
    off = spread * rng.standard_normal(n)
    covariance = answers.covariance.copy()
    covariance[:, 1, 1] = error**2
    rho_dot = np.where(core.answered(answers), truth + off, NAN)
    return replace(answers, rho_dot=rho_dot, covariance=covariance), truth


def strata_of(answers, span):
    """Rows of every decile of motion and tercile of length, of OK answers and of others."""
    given = core.answered(answers)
    decile = core.bin_of(core.quantile_edges(answers.eta, 10), answers.eta)
    tercile = core.bin_of(core.quantile_edges(span, 3), span)
    for ok in (True, False):
        for stratum in (decile, tercile):
            for k in np.unique(stratum):
                yield given & (answers.usable == ok) & (stratum == k)


def bound(n, level):
    """Difference of the coverages of two samples of n that five standard deviations allow."""
    return 5.0 * np.sqrt(2.0 * level * (1.0 - level) / n)


def quantile(scores, level):
    """Exact one of a cell."""
    return core.quantiles(scores, np.zeros(len(scores), dtype=int), 1, np.array([level]))[1][0, 0]


@pytest.fixture(scope="module")
def known(made_answers):
    return draw(made_answers, 20_000, seed=1)


@pytest.fixture(scope="module", params=core.SCORES)
def calibration(request, known):
    return Calibration.fit(*known, score=request.param, identity={"method": "made up"})


@pytest.fixture(scope="module")
def rated(known):
    answers, span, truth = known
    with_rate, true_rate = with_rates(answers, seed=11)
    return with_rate, span, truth, true_rate


@pytest.fixture(scope="module", params=core.SCORES)
def both(request, rated):
    *columns, true_rate = rated
    return Calibration.fit(*columns, true_rate=true_rate, score=request.param)


@pytest.fixture(scope="module")
def paper(known):
    answers, span, truth = known
    answers, rate = with_rates(answers, seed=21)
    return Calibration.fit(
        answers, span, truth, true_rate=rate, score="absolute", cells="motion deciles"
    )


@pytest.fixture(scope="module")
def pair(simulate):
    """The same 300 tracklets by Gauss's method, bare and calibrated on themselves; the truth."""
    s = simulate(300, 0.3, seed=700, sigma=0.25).with_noise(np.random.default_rng(7))
    base = GaussEstimator()
    made = ConformalEstimator(base).calibrate(s.tracklets(), s.rho * u.au, s.rho_dot * u.au / u.d)
    return s.tracklets().estimate(base), s.tracklets().estimate(made), s


def limits(n, low=1e-4, high=3.0):
    return np.broadcast_to([low, high], (n, 2))


class TestHalfWidths:
    def test_are_those_of_each_bin(self, known, calibration):
        answers, span, truth = known
        given = core.answered(answers)
        mine, score = answers.take(given), calibration.score
        off, vouched = core.scores(mine, truth[given], score), core.determined(mine, score)
        for rows, ok in ((vouched, True), (~vouched, False)):
            part, part_span, off_part = mine.take(rows), span[given][rows], off[rows]
            decile = core.bin_of(core.quantile_edges(part.eta, 10), part.eta)
            cells = []
            for k in range(10):
                arcs = np.flatnonzero(decile == k)
                edges = core.quantile_edges(part_span[arcs], min(len(arcs) // 400, 6))
                column = core.bin_of(edges, part_span[arcs])
                cells += [arcs[column == j] for j in range(len(edges) + 1)]
            assert len(cells) == (10 if ok else 30)
            first = np.array([cell[0] for cell in cells])
            for level in (0.5, 0.68, 0.6827, 0.95, 0.99):
                exact = [quantile(off_part[cell], level) for cell in cells]
                width = calibration.half_width(
                    part.eta[first] * ETA, part_span[first] * u.d, ok, level
                )
                np.testing.assert_allclose(width, exact, rtol=1e-4)
                assert (width >= exact).all()

    def test_between_levels_take_the_next_above(self, calibration):
        eta = np.array([0.001, 0.01, 0.1]) * ETA
        between, above = (calibration.half_width(eta, SPAN, True, x) for x in (0.6801, 0.6827))
        np.testing.assert_array_equal(between, above)
        widths = [calibration.half_width(eta, SPAN, False, x) for x in np.linspace(0.02, 0.995, 40)]
        assert (np.diff(widths, axis=0) >= 0.0).all()

    def test_are_never_narrower_than_exact(self, known):
        answers, span, truth = known
        rows = np.flatnonzero(core.answered(answers) & answers.usable)[:180]
        few, truth = answers.take(rows), truth[rows]
        one_bin = Calibration.fit(few, span[rows], truth, score="log")
        exact = core.scores(few, truth, "log")
        for level in np.random.default_rng(3).uniform(0.01, 0.994, 300):
            width = one_bin.half_width(0.01 * ETA, SPAN, True, level)
            assert width >= quantile(exact, level)
        # between the last level kept and 180 / 181 the largest score serves
        assert one_bin.half_width(0.01 * ETA, SPAN, True, 0.9944) >= exact.max()

    def test_outside_of_what_was_seen_the_nearest_bin_counts(self, calibration):
        width = calibration.half_width([0.0, 1e-5, 10.0, 1e9] * ETA, SPAN, True, 0.68)
        assert width[0] == width[1]
        assert width[2] == width[3]
        lengths = [0.0, 0.1, 1e3, 1e6] * u.h
        width = calibration.half_width(0.01 * ETA, lengths, False, 0.68)
        assert width[0] == width[1] > width[2] == width[3]

    def test_shapes_and_units(self, calibration):
        assert calibration.half_width(0.01 * ETA, SPAN, True, 0.5).shape == ()
        motion = np.full((2, 3), 0.5) * u.deg / u.d
        assert calibration.half_width(motion, SPAN, True, 0.5).shape == (2, 3)
        assert calibration.half_width(0.01 * ETA, [1, 2] * u.h, [[True]] * 3, 0.5).shape == (3, 2)
        with pytest.raises(ConformalError, match="proper_motion must be a Quantity"):
            calibration.half_width(0.01, SPAN, True, 0.5)
        with pytest.raises(ConformalError, match="arc_length must be a Quantity"):
            calibration.half_width(0.01 * ETA, 0.05, True, 0.5)
        hours = calibration.half_width(0.01 * ETA, 1.2 * u.h, False, 0.5)
        assert hours == calibration.half_width(0.01 * ETA, 0.05 * u.d, False, 0.5)

    @pytest.mark.parametrize("level", [0.0, 1.0, NAN, 68.0])
    def test_levels_that_are_none(self, calibration, level):
        with pytest.raises(ConformalError, match="between 0 and 1"):
            calibration.half_width(0.01 * ETA, SPAN, True, level)

    def test_too_few_arcs_name_the_number_needed(self, known):
        answers, span, truth = known
        calibration = Calibration.fit(answers.take(slice(90)), span[:90], truth[:90], score="log")
        n = int((answers.usable & core.answered(answers))[:90].sum())
        with pytest.raises(ConformalError, match=f"0.99 needs 99 .*there are {n}") as caught:
            calibration.half_width(0.01 * ETA, SPAN, True, 0.99)
        assert caught.value.needed == 99
        assert caught.value.available == n
        copied = pickle.loads(pickle.dumps(caught.value))
        assert copied.needed == 99

    def test_few_arcs_make_few_bins(self, known):
        answers, span, truth = known
        rows = np.nonzero(answers.usable)[0][:1_300]
        calibration = Calibration.fit(answers.take(rows), span[rows], truth[rows])
        eta = np.geomspace(1e-4, 1.0, 500) * ETA
        assert len(np.unique(calibration.half_width(eta, SPAN, True, 0.5))) == 3
        assert len(np.unique(calibration.half_width(0.01 * ETA, eta.value * u.d, True, 0.5))) == 1

    def test_ties(self, made_answers):
        """All arcs alike: one bin, and every width the same."""
        n = 1000
        answers = made_answers(np.ones(n))
        calibration = Calibration.fit(answers, np.full(n, 0.05), np.full(n, 2.0))
        for level in (0.01, 0.68, 0.99):
            assert calibration.half_width(0.5 * ETA, SPAN, True, level) == 0.69315


class TestFit:
    def test_the_natural_score(self, known):
        answers, span, truth = known
        assert Calibration.fit(answers, span, truth).score == "standard"
        bare = replace(answers, covariance=np.full((len(truth), 2, 2), NAN))
        assert Calibration.fit(bare, span, truth).score == "log"
        with pytest.raises(ConformalError, match="take score='log'"):
            Calibration.fit(bare, span, truth, score="standard")
        none_ok = replace(answers, status=np.full(len(truth), RangeStatus.UNDETERMINED.code))
        assert Calibration.fit(none_ok, span, truth).score == "log"

    def test_counts_what_it_saw(self, known):
        answers, span, truth = known
        told = Calibration.fit(answers, span, truth, description={"split": "test"}).description
        missing = int((~core.answered(answers)).sum())
        assert told == {"n_arcs": 20_000, "n_without_answer": missing, "split": "test"}

    def test_truth_is_not_needed_where_there_is_no_answer(self, known):
        answers, span, truth = known
        holes = np.where(core.answered(answers), truth, NAN)
        Calibration.fit(answers, span, holes)
        holes[np.argmax(core.answered(answers))] = NAN
        with pytest.raises(ConformalError, match=r"1 of .* true ranges"):
            Calibration.fit(answers, span, holes)

    def test_without_any_answer(self, known):
        answers, span, truth = known
        with pytest.raises(ConformalError, match="none of the 20000"):
            Calibration.fit(replace(answers, rho=np.full(len(truth), NAN)), span, truth)

    def test_a_score_that_is_none(self, known):
        with pytest.raises(ConformalError, match="score must be one of"):
            Calibration.fit(*known, score="cubic")


class TestIntervals:
    @pytest.mark.parametrize("level", [0.68, 0.95])
    def test_hold_for_new_arcs_at_every_decile_span_and_verdict(
        self, made_answers, calibration, level
    ):
        answers, span, truth = draw(made_answers, 20_000, seed=2)
        nowhere = np.full((len(truth), 2), NAN)
        low, high = calibration.bounds(answers, span, nowhere, level).T
        given = core.answered(answers)
        np.testing.assert_array_equal(np.isfinite(low), given)
        inside = (low <= truth) & (truth <= high)
        for rows in strata_of(answers, span):
            n = rows.sum()
            assert n > 400
            assert abs(inside[rows].mean() - level) < bound(n, level)

    def test_around_an_answer_from_anywhere(self, made_answers, calibration):
        answers, span, truth = draw(made_answers, 500, seed=3)
        nowhere = np.full((len(truth), 2), NAN)
        interval = calibration.interval(
            answers.rho * u.au,
            answers.eta * u.rad / u.d,
            span * u.d,
            answers.usable,
            0.68,
            error=answers.rho_error * u.au,
        )
        np.testing.assert_array_equal(
            interval.value, calibration.bounds(answers, span, nowhere, 0.68)
        )

    def test_around_one_answer(self, calibration):
        one = calibration.interval(0.3 * u.au, 0.5 * u.deg / u.d, 40.0 * u.min, True, 0.68)
        assert one.shape == (2,)
        assert one.unit == u.au
        assert one[0] < 0.3 * u.au < one[1]

    def test_within_the_limits(self, made_answers, calibration):
        answers, span, _ = draw(made_answers, 2_000, seed=4)
        silent = ~core.answered(answers)
        narrow = limits(2_000, 0.2, 0.8)
        bounds = calibration.bounds(answers, span, narrow, 0.9)
        assert (bounds >= 0.2).all()
        assert (bounds <= 0.8).all()
        assert (bounds[:, 0] <= bounds[:, 1]).all()
        np.testing.assert_array_equal(bounds[silent], narrow[silent])
        inside = (answers.rho >= 0.2) & (answers.rho <= 0.8)
        assert (bounds[inside, 0] <= answers.rho[inside]).all()
        assert (answers.rho[inside] <= bounds[inside, 1]).all()

    def test_what_the_calibration_never_saw(self, known):
        """OK: an error. Otherwise the limits, which hold at any level."""
        answers, span, truth = known
        whole, ok = limits(len(truth)), answers.usable
        only_ok = Calibration.fit(answers.take(ok), span[ok], truth[ok])
        bounds = only_ok.bounds(answers, span, whole, 0.68)
        np.testing.assert_array_equal(bounds[~answers.usable], whole[~answers.usable])
        assert (bounds[answers.usable] != whole[answers.usable]).any(axis=1).all()
        only_other = Calibration.fit(answers.take(~ok), span[~ok], truth[~ok])
        assert only_other.score == "log"
        with pytest.raises(ConformalError, match=r"needs 3 .*that are usable .*there are 0"):
            only_other.bounds(answers, span, whole, 0.68)
        lenient = only_other.bounds(answers, span, whole, 0.68, too_few="limits")
        np.testing.assert_array_equal(lenient[answers.usable], whole[answers.usable])

    def test_of_nothing(self, made_answers, calibration):
        none = made_answers(np.zeros(0))
        assert calibration.bounds(none, np.zeros(0), np.zeros((0, 2)), 0.68).shape == (0, 2)


class TestRangeRate:
    @pytest.mark.parametrize("level", [0.68, 0.95])
    def test_holds_for_new_arcs_at_every_decile_span_and_verdict(self, made_answers, both, level):
        answers, span, _ = draw(made_answers, 20_000, seed=12)
        answers, truth = with_rates(answers, seed=13)
        nowhere = np.full((len(truth), 2), NAN)
        low, high = both.bounds(answers, span, nowhere, level, of="range_rate").T
        np.testing.assert_array_equal(np.isfinite(low), core.answered(answers))
        inside = (low <= truth) & (truth <= high)
        for rows in strata_of(answers, span):
            assert abs(inside[rows].mean() - level) < bound(rows.sum(), level)

    def test_leaves_the_range_as_it_is(self, made_answers, rated, both):
        assert both.quantities == ("range", "range_rate")
        alone = Calibration.fit(*rated[:3], score=both.score)
        assert alone.quantities == ("range",)
        answers, span, _ = draw(made_answers, 500, seed=14)
        np.testing.assert_array_equal(
            *(c.bounds(answers, span, limits(500), 0.9) for c in (alone, both))
        )

    def test_follows_the_error_of_the_arc_in_scores_of_errors(self, both):
        """And is of one width at each motion, length and verdict in the others."""
        rates = [-0.01, 0.0, 0.01] * u.au / u.d
        errors = [1e-4, 1e-3, 1e-2] * u.au / u.d
        place = 0.01 * ETA, SPAN, True, 0.68
        widths = np.ptp(both.interval(rates, *place, error=errors, of="range_rate").value, axis=1)
        ratio = 10.0 if both.score in core.IN_ERRORS else 1.0
        np.testing.assert_allclose(widths[1:] / widths[:-1], ratio)

    def test_around_an_answer_from_anywhere(self, made_answers, both):
        answers, span, _ = draw(made_answers, 500, seed=15)
        answers, _ = with_rates(answers, seed=16)
        nowhere = np.full((500, 2), NAN)
        interval = both.interval(
            answers.rho_dot * u.au / u.d,
            answers.eta * ETA,
            span * u.d,
            answers.usable,
            0.68,
            error=np.sqrt(answers.covariance[:, 1, 1]) * u.au / u.d,
            of="range_rate",
        )
        assert interval.unit == u.au / u.d
        np.testing.assert_array_equal(
            interval.value, both.bounds(answers, span, nowhere, 0.68, of="range_rate")
        )

    def test_of_an_answer_without_one_it_is_all_that_is_admissible(self, rated, both):
        answers, span, *_ = rated
        bare = replace(answers, rho_dot=np.full(len(answers), NAN))
        whole = limits(len(answers), -0.03, 0.02)
        bounds = both.bounds(bare, span, whole, 0.68, of="range_rate")
        np.testing.assert_array_equal(bounds, whole)

    def test_round_trip(self, rated, both, tmp_path):
        answers, span, *_ = rated
        both.write(tmp_path / "c.json")
        assert (tmp_path / "c.json").stat().st_size < 120_000
        again = Calibration.read(tmp_path / "c.json")
        assert again.to_json() == both.to_json()
        whole = limits(len(span), -0.03, 0.02)
        np.testing.assert_array_equal(
            *(c.bounds(answers, span, whole, 0.95, of="range_rate") for c in (both, again))
        )

    @pytest.mark.parametrize("damage", ["partial", "short", "negative", "falling", "text"])
    def test_damage(self, both, damage):
        content = copy.deepcopy(both.to_json())
        group = content["groups"][1]
        rows = group["range_rate_half_widths"]
        if damage == "partial":
            del group["range_rate_half_widths"]
        elif damage == "short":
            rows.pop()
        elif damage == "negative":
            rows[0][-1] = -1.0
        elif damage == "falling":
            rows[0][:-1] = rows[0][:-1][::-1]
        else:
            rows[0][0] = "x"
        with pytest.raises(ConformalError, match="make it anew"):
            Calibration.from_json(content)

    def test_of_a_former_version_says_what_to_do(self, rated, both):
        """Files that are older than the range-rate lack it, and the choice of cells."""
        answers, span, *_ = rated
        content = copy.deepcopy(both.to_json())
        del content["cells"]
        for group in content["groups"]:
            del group["range_rate_half_widths"]
        old, whole = Calibration.from_json(content), limits(len(span), -0.03, 0.02)
        np.testing.assert_array_equal(
            *(c.bounds(answers, span, limits(len(span)), 0.68) for c in (old, both))
        )
        with pytest.raises(ConformalError, match=r"none of 'range_rate': calibrate anew with true"):
            old.bounds(answers, span, whole, 0.68, of="range_rate")
        with pytest.raises(ConformalError, match=r"calibrate anew.*neoranging calibrate"):
            old.half_width(0.01 * ETA, SPAN, True, 0.68, of="range_rate")
        lenient = old.bounds(answers, span, whole, 0.68, of="range_rate", too_few="limits")
        np.testing.assert_array_equal(lenient, whole)

    def test_the_natural_score_of_learned_methods(self, rated):
        answers, span, truth, rate = rated
        learned = Calibration.fit(answers, span, truth, true_rate=rate, is_learned=True)
        assert learned.score == "log-standard"
        bare = replace(answers, covariance=np.full((len(truth), 2, 2), NAN))
        assert Calibration.fit(bare, span, truth, is_learned=True).score == "log"
        with pytest.raises(ConformalError, match="log-standard scores need usable answers"):
            Calibration.fit(bare, span, truth, score="log-standard")


class TestMotionDeciles:
    """The construction of the literature: absolute residuals by decile of proper motion."""

    def test_is_the_quantile_of_the_residuals_of_each_tenth(self, known, paper):
        answers, _, truth = known
        given = np.flatnonzero(core.answered(answers))
        order = given[np.argsort(answers.eta[given], kind="stable")]
        cuts = np.ceil(len(order) * np.arange(1, 10) / 10).astype(int)
        for tenth in np.split(order, cuts):
            residuals = np.sort(np.abs(answers.rho - truth)[tenth])
            for level in (0.68, 0.95):
                k = int(np.ceil(np.round((len(tenth) + 1) * level, 9)))
                eta = np.median(answers.eta[tenth]) * ETA
                for arc in (SPAN, 10.0 * SPAN):
                    for usable in (True, False):
                        width = paper.half_width(eta, arc, usable, level)
                        assert residuals[k - 1] <= width <= residuals[k - 1] * 1.0001

    @pytest.mark.parametrize("level", [0.68, 0.95])
    @pytest.mark.parametrize("of", core.QUANTITIES)
    def test_holds_in_every_decile(self, made_answers, paper, level, of):
        answers, span, truth = draw(made_answers, 20_000, seed=22)
        answers, rate = with_rates(answers, seed=23)
        nowhere = np.full((len(truth), 2), NAN)
        low, high = paper.bounds(answers, span, nowhere, level, of=of).T
        true = truth if of == "range" else rate
        inside = (low <= true) & (true <= high)
        decile = core.bin_of(core.quantile_edges(answers.eta, 10), answers.eta)
        for k in range(10):
            rows = core.answered(answers) & (decile == k)
            assert abs(inside[rows].mean() - level) < bound(rows.sum(), level)

    def test_round_trip(self, paper, tmp_path):
        paper.write(tmp_path / "c.json")
        again = Calibration.read(tmp_path / "c.json")
        assert again.to_json() == paper.to_json()
        assert again.cells == "motion deciles"
        assert "motion deciles, score absolute" in repr(again)
        assert again.to_json()["groups"][0]["verdict"] == "any"

    def test_too_few_arcs(self, made_answers):
        answers, span, truth = draw(made_answers, 150, seed=24, missing=0.0)
        few = Calibration.fit(answers, span, truth, score="absolute", cells="motion deciles")
        with pytest.raises(
            ConformalError, match=r"needs 19 .*with a like proper motion, there.*15"
        ):
            few.half_width(0.01 * ETA, SPAN, True, 0.95)

    def test_cells_that_are_none(self, known, paper):
        with pytest.raises(ConformalError, match=r"cells must be one of .*got 'terciles'"):
            Calibration.fit(*known, cells="terciles")
        with pytest.raises(ConformalError, match="make it anew"):
            Calibration.from_json(paper.to_json() | {"cells": "terciles"})
        with pytest.raises(ConformalError, match="make it anew"):
            Calibration.from_json(paper.to_json() | {"cells": CELLS[0]})


class TestFiles:
    def test_round_trip(self, made_answers, calibration, tmp_path):
        path = tmp_path / "made_up.json"
        calibration.write(path)
        again = Calibration.read(path)
        assert again.to_json() == calibration.to_json()
        assert again.matches({"method": "made up"})
        assert not again.matches({"method": "other"})
        answers, span, _ = draw(made_answers, 500, seed=6)
        for level in (0.1, 0.68, 0.99):
            np.testing.assert_array_equal(
                *(c.bounds(answers, span, limits(500), level) for c in (calibration, again))
            )

    def test_are_small(self, calibration, tmp_path):
        calibration.write(tmp_path / "c.json")
        assert (tmp_path / "c.json").stat().st_size < 60_000

    def test_of_all_cells_are_small(self, made_answers, tmp_path):
        Calibration.fit(
            *draw(made_answers, 56_000, seed=8, ok=0.5, missing=0.0), score="log"
        ).write(tmp_path / "c.json")
        groups = Calibration.read(tmp_path / "c.json").to_json()["groups"]
        assert [len(group["n_arcs"]) for group in groups] == [60, 60]
        assert (tmp_path / "c.json").stat().st_size < 60_000

    def test_too_few_arcs_survive(self, known, tmp_path):
        answers, span, truth = known
        Calibration.fit(answers.take(slice(40)), span[:40], truth[:40]).write(tmp_path / "c.json")
        with pytest.raises(ConformalError, match="needs 99"):
            Calibration.read(tmp_path / "c.json").half_width(0.01 * ETA, SPAN, True, 0.99)

    @pytest.mark.parametrize(
        "damage", ["format", "version", "score", "levels", "groups", "edges", "lengths", "order"]
    )
    def test_damage(self, calibration, damage):
        content = copy.deepcopy(calibration.to_json())
        if damage == "edges":
            content["groups"][0]["proper_motion_edges_rad_d"].pop()
        elif damage == "lengths":
            content["groups"][1]["arc_length_edges_d"][3].pop()
        elif damage == "order":
            content["groups"][1]["arc_length_edges_d"][3].reverse()
        elif damage == "levels":
            content["levels"].pop()
        elif damage == "groups":
            content["groups"].pop()
        else:
            content[damage] = "other"
        with pytest.raises(ConformalError, match="make it anew"):
            Calibration.from_json(content)

    def test_an_older_version_says_so(self, calibration, tmp_path):
        old = calibration.to_json() | {"version": 1}
        for group in old["groups"]:
            group["edges_rad_d"] = group.pop("proper_motion_edges_rad_d")
            del group["arc_length_edges_d"]
        (tmp_path / "old.json").write_text(json.dumps(old))
        with pytest.raises(ConformalError, match=r"version 1, .* version 2.*neoranging calibrate"):
            Calibration.read(tmp_path / "old.json")

    @pytest.mark.parametrize("text", ["", "[1, 2]", '{"format": ', "null"])
    def test_other_files(self, tmp_path, text):
        path = tmp_path / "c.json"
        path.write_text(text)
        with pytest.raises(ConformalError, match=r"c\.json"):
            Calibration.read(path)
        with pytest.raises(OSError, match=r"none\.json"):
            Calibration.read(tmp_path / "none.json")

    def test_pickle_and_repr(self, calibration):
        again = pickle.loads(pickle.dumps(calibration))
        assert again.to_json() == calibration.to_json()
        assert "made up" in repr(calibration)
        assert "OK" in repr(calibration)

    def test_numbers_are_rounded_upwards(self, calibration):
        for group in calibration.to_json()["groups"]:
            for row in group["half_widths"]:
                assert all(float(f"{x:.5g}") == x for x in row if x is not None)

    def test_of_the_package(self):
        assert default_calibration("no such method") is None

    def test_levels_have_the_usual_ones(self):
        assert {0.5, 0.68, 0.6827, 0.9, 0.95, 0.9545, 0.99, 0.9973} <= set(LEVELS.tolist())
        assert (np.diff(LEVELS) > 0.0).all()
        json.dumps(LEVELS.tolist())


class TestEstimates:
    """What `RangeEstimate` makes of a calibration."""

    def test_numbers_stay(self, pair):
        plain, calibrated, _ = pair
        np.testing.assert_array_equal(plain.range, calibrated.range)
        assert calibrated.method == "gauss"
        for level in (0.5, 0.999999):
            np.testing.assert_array_equal(
                plain.interval(level, calibrated=False),
                calibrated.interval(level, calibrated=False),
            )

    def test_intervals_are_never_empty_and_admissible(self, pair):
        plain, calibrated, _ = pair
        whole = plain.attributable._arrays.range_limits
        for level in (0.1, 0.68, 0.9):
            bounds = calibrated.interval(level).value
            known = np.isfinite(whole[:, 0])
            assert (bounds[known, 0] >= whole[known, 0]).all()
            assert (bounds[known, 1] <= whole[known, 1]).all()
            assert (bounds[known, 0] <= bounds[known, 1]).all()
            silent = ~np.isfinite(plain.range.value)
            np.testing.assert_array_equal(bounds[silent], whole[silent])

    def test_not_ok_answers_get_narrower_ones(self, pair):
        plain, calibrated, s = pair
        rows = ~plain.ok & np.isfinite(plain.range.value)
        ratio = [
            np.median(np.ptp(bounds.value[rows], axis=1))
            for bounds in (plain.interval(0.5, calibrated=False), calibrated.interval(0.5))
        ]
        assert ratio[1] < 0.8 * ratio[0]
        low, high = calibrated.interval(0.5).value[rows].T
        inside = (low <= s.rho[rows]) & (s.rho[rows] <= high)
        assert inside.mean() == pytest.approx(0.5, abs=0.12)

    def test_follow_an_index_and_a_table(self, pair):
        _, calibrated, _ = pair
        whole = calibrated.interval(0.68).value
        for k in (0, 17, 255):
            np.testing.assert_allclose(calibrated[k].interval(0.68).value, whole[k])
        np.testing.assert_allclose(calibrated[5:9].interval(0.68).value, whole[5:9])
        table = calibrated.to_table()
        np.testing.assert_array_equal(table["range_low"].value, whole[:, 0])
        rates = calibrated.interval(0.68, of="range_rate").value
        np.testing.assert_array_equal(table["range_rate_low"].value, rates[:, 0])
        np.testing.assert_array_equal(table["range_rate_high"].value, rates[:, 1])
        np.testing.assert_array_equal(table["range_high"].value, whole[:, 1])

    def test_of_the_range_rate_hold_where_the_answers_are_ok(self, pair):
        """Calibrated on themselves: the share is what the rank says, to the bins."""
        plain, calibrated, s = pair
        low, high = calibrated.interval(0.68, of="range_rate").value.T
        ok = plain.ok
        assert ok.sum() > 50
        inside = (low <= s.rho_dot) & (s.rho_dot <= high)
        assert abs(inside[ok].mean() - 0.68) < 3.0 / np.sqrt(ok.sum())
        whole = plain._answers.rate_limits
        known = np.isfinite(whole[:, 0])
        assert (low[known] >= whole[known, 0]).all()
        assert (high[known] <= whole[known, 1]).all()
        with pytest.raises(EstimationError, match=r"of must be one of .*got 'rate'"):
            plain.interval(0.68, of="rate")

    def test_of_the_range_rate_with_a_calibration_of_the_range_alone(self, pair):
        plain, _, s = pair
        of_range = ConformalEstimator(GaussEstimator()).calibrate(s.tracklets(), s.rho * u.au)
        estimate = s.tracklets().estimate(of_range)
        with pytest.raises(ConformalError, match=r"calibrate anew.*calibrated=False"):
            estimate.interval(0.68, of="range_rate")
        bare = estimate.interval(0.68, of="range_rate", calibrated=False)
        np.testing.assert_array_equal(bare, plain.interval(of="range_rate", calibrated=False))
        table = estimate.to_table()
        whole = plain._answers.rate_limits
        np.testing.assert_array_equal(table["range_rate_low"].value, whole[:, 0])
        assert "its 68% interval" in estimate[0]._repr_html_()

    def test_survive_pickle(self, pair):
        _, calibrated, _ = pair
        again = pickle.loads(pickle.dumps(calibrated[3]))
        np.testing.assert_array_equal(again.interval(0.9), calibrated[3].interval(0.9))

    def test_a_level_too_high_is_an_error_and_a_table_none(self, pair):
        _, calibrated, _ = pair
        with pytest.raises(ConformalError, match="lower level"):
            calibrated.interval(0.9999)
        with pytest.raises(EstimationError, match="between 0 and 1"):
            calibrated.interval(1.0)
        assert len(calibrated.to_table()) == 300
