"""`Calibration`: half widths by verdict and motion, files, and the intervals of estimates."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from astropy import units as u

from neoranging.calibration import LEVELS, Calibration, default_calibration
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
def pair(simulate):
    """The same 300 tracklets by Gauss's method, bare and calibrated on themselves; the truth."""
    s = simulate(300, 0.3, seed=700, sigma=0.25).with_noise(np.random.default_rng(7))
    base = GaussEstimator()
    made = ConformalEstimator(base).calibrate(s.tracklets(), s.rho * u.au)
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
        decile = core.bin_of(core.quantile_edges(answers.eta, 10), answers.eta)
        tercile = core.bin_of(core.quantile_edges(span, 3), span)
        for ok in (True, False):
            for stratum in (decile, tercile):
                for k in np.unique(stratum):
                    rows = given & (answers.usable == ok) & (stratum == k)
                    n = rows.sum()
                    assert n > 400
                    bound = 5.0 * np.sqrt(2.0 * level * (1.0 - level) / n)
                    assert abs(inside[rows].mean() - level) < bound

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
        np.testing.assert_array_equal(table["range_high"].value, whole[:, 1])

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
