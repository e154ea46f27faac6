"""Split conformal prediction: ranks by counting, coverage by the binomial law."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neoranging.core import conformal
from neoranging.exceptions import ConformalError

NAN = np.nan


@pytest.fixture
def answers(made_answers):
    return made_answers


def quantile(scores, level):
    """Quantile of scores of one category."""
    counts, table = conformal.quantiles(
        np.asarray(scores), np.zeros(len(scores), dtype=int), 1, np.array([level])
    )
    assert counts.tolist() == [len(scores)]
    return table[0, 0]


def rated(answers, rho_dot, error):
    """Answers with range-rates and their standard errors [au/d]."""
    answers.covariance[:, 1, 1] = np.square(error)
    return replace(answers, rho_dot=np.array(rho_dot))


def within(n, level, sigmas=5.0):
    """Half width of a binomial bound on a share of n."""
    return sigmas * np.sqrt(level * (1.0 - level) / n)


class TestRank:
    @pytest.mark.parametrize(
        ("n", "level", "expected"),
        [(99, 0.95, 95), (99, 0.68, 68), (24, 0.68, 17), (1, 0.5, 1), (18, 0.95, 19), (9, 0.9, 9)],
    )
    def test_is_the_ceiling(self, n, level, expected):
        assert conformal.rank(n, level) == expected

    def test_means_the_decimal_number(self):
        """In binary 100 * 0.07 is more than 7, and 100 * 0.57 less than 57."""
        for percent in range(1, 100):
            assert conformal.rank(99, percent / 100) == percent

    @pytest.mark.parametrize(
        ("level", "n"), [(0.5, 1), (0.68, 3), (0.95, 19), (0.99, 99), (0.999, 999), (0.9, 9)]
    )
    def test_arcs_needed(self, level, n):
        assert conformal.arcs_needed(level) == n
        assert conformal.rank(n, level) <= n
        assert conformal.rank(n - 1, level) > n - 1

    @pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 68.0, NAN])
    def test_levels_that_are_none(self, level):
        with pytest.raises(ConformalError, match="between 0 and 1"):
            conformal.rank(10, level)


class TestQuantile:
    @given(
        st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 99)
    )  # few different values: ties
    def test_is_the_least_score_with_enough_below(self, scores, percent):
        level, n = percent / 100, len(scores)
        enough = [
            q for q in scores if sum(s <= q for s in scores) >= (n + 1) * Fraction(percent, 100)
        ]
        if not enough:
            assert quantile(np.array(scores, dtype=float), level) == np.inf
        else:
            assert quantile(np.array(scores, dtype=float), level) == min(enough)

    def test_is_that_of_numpy_at_the_corrected_level(self):
        rng = np.random.default_rng(1)
        for n in (19, 100, 257):
            scores = rng.gamma(2.0, size=n)
            for level in (0.5, 0.68, 0.9, 0.95):
                position = (conformal.rank(n, level) - 1) / (n - 1)
                expected = np.quantile(scores, position * (1.0 - 1e-12), method="higher")
                assert quantile(scores, level) == expected

    def test_is_that_of_another_implementation(self):
        """Made with crepes 0.9.1, ConformalRegressor.fit and predict_int, without and with bins.

        At levels where (n + 1) * level is no whole number: there its rank is one more by rounding.
        """
        k = np.arange(1, 100)
        scores, category = (k * 37 % 101) ** 1.5, k * k % 3 + (k % 5 == 0)
        plain = [353.553391, 585.662019, 742.541581, 868.084673, 940.604061, 1000.0]
        for level, expected in zip((0.5, 0.6827, 0.805, 0.8995, 0.95, 0.985), plain, strict=True):
            assert quantile(scores, level) == pytest.approx(expected)
        counts, table = conformal.quantiles(scores, category, 3, np.array([0.5, 0.6827, 0.8995]))
        assert counts.tolist() == [27, 59, 13]
        expected = [
            [243.554922, 364.21285, 524.046754],
            [573.157047, 610.940259, 729.0],
            [839.624321, 925.945463, 769.872717],
        ]
        np.testing.assert_allclose(table.T, expected)

    def test_of_categories_is_that_of_each(self):
        rng = np.random.default_rng(2)
        scores, category = rng.random(300), rng.integers(0, 4, 300)
        levels = np.array([0.1, 0.68, 0.95])
        counts, table = conformal.quantiles(scores, category, 5, levels)
        assert counts[4] == 0
        assert np.isinf(table[4]).all()
        for c in range(4):
            mine = scores[category == c]
            assert counts[c] == len(mine)
            assert table[c].tolist() == [quantile(mine, level) for level in levels]

    def test_of_nothing(self):
        counts, table = conformal.quantiles(np.zeros(0), np.zeros(0, dtype=int), 1, np.array([0.5]))
        assert counts.tolist() == [0]
        assert table.tolist() == [[np.inf]]

    def test_of_too_few_it_is_infinite(self):
        assert quantile(np.arange(18.0), 0.95) == np.inf
        assert quantile(np.arange(19.0), 0.95) == 18.0

    def test_nan_is_refused(self):
        with pytest.raises(ConformalError, match="1 of 3 scores are NaN"):
            quantile(np.array([1.0, NAN, 2.0]), 0.5)


class TestScores:
    def test_kinds(self, answers):
        a = answers([1.0, 2.0], error=[0.1, NAN])
        truth = np.array([1.3, 1.0])
        log = np.abs(np.log([1.0 / 1.3, 2.0]))
        np.testing.assert_allclose(conformal.scores(a, truth, "log"), log)
        np.testing.assert_allclose(conformal.scores(a, truth, "absolute"), [0.3, 1.0])
        np.testing.assert_allclose(conformal.scores(a, truth, "standard"), [3.0, log[1]])
        relative = [log[0] / 0.1, log[1]]  # the relative standard error is 0.1 / 1.0
        np.testing.assert_allclose(conformal.scores(a, truth, "log-standard"), relative)
        with pytest.raises(ConformalError, match=r"one of .*'log'.*got 'cubic'"):
            conformal.scores(a, truth, "cubic")

    def test_what_is_not_positive_is_refused(self, answers):
        for truth in ([NAN, 1.0], [0.0, 1.0], [-1.0, 1.0], [np.inf, 1.0]):
            with pytest.raises(ConformalError, match="1 of 2 true ranges"):
                conformal.scores(answers([1.0, 1.0]), np.array(truth), "log")
        with pytest.raises(ConformalError, match="1 of 2 estimated ranges"):
            conformal.scores(answers([1.0, NAN]), np.ones(2), "absolute")

    @pytest.mark.parametrize("score", conformal.SCORES)
    def test_bounds_are_where_the_score_is_the_half_width(self, answers, score):
        rng = np.random.default_rng(3)
        rho = rng.uniform(0.5, 2.0, 50)
        a = answers(rho, error=rng.uniform(0.01, 0.1, 50), usable=rng.random(50) < 0.5)
        half = rng.uniform(0.01, 0.4, 50)
        for end in conformal.bounds(a, half, score).T:
            np.testing.assert_allclose(conformal.scores(a, end, score), half)

    def test_kinds_of_range_rates(self, answers):
        """Which may be zero or negative: differences, in standard errors where the score asks."""
        a, truth = (
            rated(answers([1.0, 2.0], [0.1, NAN]), [-0.01, 0.02], 0.004),
            np.array([0.0, 0.03]),
        )
        expected = {"log": [0.01, 0.01], "standard": [2.5, 0.01]}
        expected |= {"absolute": expected["log"], "log-standard": expected["standard"]}
        for score, off in expected.items():
            np.testing.assert_allclose(conformal.scores(a, truth, score, "range_rate"), off)
        with pytest.raises(ConformalError, match="1 of 2 true range-rates are no numbers"):
            conformal.scores(a, np.array([NAN, 0.0]), "log", "range_rate")
        with pytest.raises(ConformalError, match=r"of must be one of .*'range_rate'.*got 'rho'"):
            conformal.scores(a, truth, "log", "rho")

    def test_a_missing_range_rate_is_infinitely_off(self, answers):
        a = rated(answers([1.0, 2.0]), [NAN, 0.0], 0.004)
        assert conformal.scores(a, np.zeros(2), "log", "range_rate").tolist() == [np.inf, 0.0]
        bounds = conformal.bounds(a, np.full(2, 0.01), "log", "range_rate")
        assert np.isnan(bounds[0]).all()
        assert bounds[1].tolist() == [-0.01, 0.01]

    @pytest.mark.parametrize("score", conformal.SCORES)
    def test_bounds_of_range_rates_are_where_the_score_is_the_half_width(self, answers, score):
        rng = np.random.default_rng(4)
        a = answers(np.ones(50), error=rng.uniform(0.01, 0.1, 50), usable=rng.random(50) < 0.5)
        a = rated(a, rng.normal(0.0, 0.01, 50), rng.uniform(1e-4, 1e-3, 50))
        half = rng.uniform(0.01, 0.4, 50)
        low, high = conformal.bounds(a, half, score, "range_rate").T
        assert (low < 0.0).any()
        for end in (low, high):
            np.testing.assert_allclose(conformal.scores(a, end, score, "range_rate"), half)

    def test_without_an_answer_there_are_no_bounds(self, answers):
        a = answers([NAN, -1.0, 0.0, np.inf, 1.0])
        assert conformal.answered(a).tolist() == [False] * 4 + [True]
        for score in conformal.SCORES:
            bounds = conformal.bounds(a, np.ones(5), score)
            assert np.isnan(bounds[:4]).all()
            assert np.isfinite(bounds[4]).all()

    def test_absolute_bounds_stay_in_front_of_the_observer(self, answers):
        assert conformal.bounds(answers(1.0), np.array([3.0]), "absolute").tolist() == [[0.0, 4.0]]

    def test_standard_scores_need_an_error_and_ok(self, answers):
        a = answers([1.0] * 4, error=[0.1, NAN, 0.0, 0.1], usable=[True, True, True, False])
        for score in conformal.IN_ERRORS:
            assert conformal.determined(a, score).tolist() == [True, False, False, False]
        assert conformal.determined(a, "log").tolist() == [True, True, True, False]


class TestClipped:
    @pytest.mark.parametrize(
        ("interval", "limits", "expected"),
        [
            ([1.0, 2.0], [0.0, 3.0], [1.0, 2.0]),
            ([1.0, 2.0], [1.5, 3.0], [1.5, 2.0]),
            ([1.0, 2.0], [0.0, 1.5], [1.0, 1.5]),
            ([1.0, 1.0], [0.0, 3.0], [1.0, 1.0]),
            ([4.0, 5.0], [0.0, 3.0], [0.0, 3.0]),
            ([NAN, NAN], [0.0, 3.0], [0.0, 3.0]),
            ([0.0, np.inf], [0.1, 3.0], [0.1, 3.0]),
            ([-np.inf, np.inf], [0.1, 3.0], [0.1, 3.0]),
            ([1.0, 2.0], [NAN, NAN], [1.0, 2.0]),
            ([NAN, NAN], [NAN, NAN], [NAN, NAN]),
            ([0.0, np.inf], [NAN, NAN], [NAN, NAN]),
        ],
    )
    def test_never_empty_nor_beyond(self, interval, limits, expected):
        found = conformal.clipped(np.array([interval]), np.array([limits]))
        np.testing.assert_array_equal(found, [expected])


class TestBins:
    def test_deciles_hold_a_tenth_each(self):
        eta = np.random.default_rng(4).lognormal(size=1003)
        edges = conformal.quantile_edges(eta, 10)
        counts = np.bincount(conformal.bin_of(edges, eta))
        assert len(counts) == 10
        assert counts.min() >= 100
        assert counts.max() <= 101

    def test_outside_is_the_nearest(self):
        edges = conformal.quantile_edges(np.linspace(1.0, 2.0, 100), 10)
        assert conformal.bin_of(edges, np.array([-1.0, 0.0, 1.0, 2.0, 99.0])).tolist() == [
            *(0, 0, 0),
            *(9, 9),
        ]

    @given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
    def test_no_bin_is_empty_whatever_the_ties(self, values):
        eta = np.array(values, dtype=float)
        edges = conformal.quantile_edges(eta, 10)
        counts = np.bincount(conformal.bin_of(edges, eta), minlength=len(edges) + 1)
        assert (counts > 0).all()
        assert len(counts) == len(edges) + 1

    def test_of_nothing_there_is_one(self):
        assert len(conformal.quantile_edges(np.zeros(0), 10)) == 0


class TestFolds:
    def test_are_of_whole_objects_and_of_one_size(self):
        objects = np.random.default_rng(5).integers(0, 103, 2000)
        fold = conformal.folds(objects, 10, np.random.default_rng(0))
        of_object = [np.unique(fold[objects == k]) for k in np.unique(objects)]
        assert all(len(f) == 1 for f in of_object)
        sizes = np.bincount(np.concatenate(of_object))
        assert len(sizes) == 10
        assert np.ptp(sizes) <= 1

    def test_are_a_matter_of_the_seed(self):
        objects = np.array(["a", "b", "c", "d"] * 5)
        one, same, other = (
            conformal.folds(objects, 2, np.random.default_rng(s)) for s in (1, 1, 3)
        )
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()

    @pytest.mark.parametrize("k", [0, 1, 4])
    def test_cannot_be_more_than_objects(self, k):
        with pytest.raises(ConformalError, match=f"{k} folds of 3 objects"):
            conformal.folds(np.array(["a", "b", "c", "a"]), k, np.random.default_rng(0))


class TestCoverage:
    def test_by_arc_and_by_object(self):
        inside = np.array([True, True, True, False, False])
        told = conformal.coverage(inside, np.array(["many", "many", "many", "many", "one"]))
        assert told == (5, 2, pytest.approx(0.6), pytest.approx(0.375))

    def test_of_nothing(self):
        told = conformal.coverage(np.zeros(0, dtype=bool), np.zeros(0, dtype=str))
        assert np.isnan(told.per_arc)
        assert (told.n_arcs, told.n_objects) == (0, 0)

    @pytest.mark.parametrize("level", [0.5, 0.68, 0.95])
    @pytest.mark.parametrize("n", [19, 49, 60])
    def test_of_one_more_is_what_the_rank_says(self, level, n):
        """Exactly k / (n + 1) over many draws, whatever the distribution."""
        rng = np.random.default_rng(6)
        draws = rng.standard_cauchy((20_000, n + 1)) ** 2
        k = conformal.rank(n, level)
        q = np.partition(draws[:, :-1], k - 1, axis=1)[:, k - 1]
        assert q[0] == quantile(draws[0, :-1], level)
        exact = k / (n + 1)
        assert level <= exact < level + 1.0 / (n + 1)
        assert abs((draws[:, -1] <= q).mean() - exact) < within(len(draws), exact)

    @pytest.mark.parametrize("level", [0.68, 0.95])
    def test_holds_in_every_decile_where_errors_grow_with_motion(self, level):
        rng = np.random.default_rng(7)

        def draw(n):
            eta = rng.lognormal(size=n)
            return np.abs(rng.standard_normal(n)) * eta, eta

        known, eta_known = draw(20_000)
        new, eta_new = draw(20_000)
        edges = conformal.quantile_edges(eta_known, 10)
        table = conformal.quantiles(
            known, conformal.bin_of(edges, eta_known), 10, np.array([level])
        )[1]
        decile = conformal.bin_of(edges, eta_new)
        n = np.bincount(decile)
        covered = np.bincount(decile, new <= table[decile, 0]) / n
        # the quantile of 2000 scores is as uncertain as the share of 2000 new ones
        assert (np.abs(covered - level) < within(2_000, level) * np.sqrt(2.0)).all()
        flat = np.bincount(decile, new <= quantile(known, level)) / n
        assert flat[0] > level + 0.04
        assert flat[-1] < level - 0.1

    @pytest.mark.parametrize("level", [0.68, 0.95])
    def test_holds_for_objects_whose_arcs_are_alike(self, level):
        """600 objects of 1 to 60 arcs that share most of their error; bounds count objects."""
        rng = np.random.default_rng(8)
        sizes = rng.integers(1, 61, 600)
        objects = np.repeat(np.arange(600), sizes)
        scores = np.abs(rng.standard_normal(600)[objects] + 0.2 * rng.standard_normal(len(objects)))
        fold = conformal.folds(objects, 10, rng)
        inside = np.empty(len(objects), dtype=bool)
        for k in range(10):
            inside[fold == k] = scores[fold == k] <= quantile(scores[fold != k], level)
        told = conformal.coverage(inside, objects)
        assert abs(told.per_object - level) < within(600, level)
        assert abs(told.per_arc - level) < within(600, level)
