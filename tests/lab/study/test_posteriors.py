"""Scores of posteriors: closed forms, and methods that are too sure or too unsure told apart."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from neoranging.core.answers import Answers
from neoranging.core.posterior import Posterior
from neoranging.core.status import RangeStatus
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.study import predictions
from neoranging.lab.study.checks import check_answers
from neoranging.lab.study.methods import StudyMethod
from neoranging.lab.study.metrics import DENSITY_FLOOR, METRICS
from neoranging.lab.study.posteriors import PosteriorScores, with_posteriors
from neoranging.lab.study.report import render
from neoranging.lab.study.run import run_study
from neoranging.lab.study.scores import STUDY_LEVELS, interval_score, with_intervals
from neoranging.lab.study.strata import Strata
from neoranging.lab.study.tables import MEDIAN_OF_ALL, NEAR_AU, pit_deciles


def gaussian(middle, spread, n=121, reach=6.0):
    """Posteriors that are normal in ln rho and level in three range-rates; NaN is none."""
    middle, spread = np.broadcast_arrays(middle, spread)
    has = np.isfinite(middle)
    offsets = np.append(0, np.cumsum(np.where(has, 3 * n, 0)))
    edges = np.linspace(-reach, reach, n + 1)
    z, step = 0.5 * (edges[1:] + edges[:-1]), edges[1] - edges[0]
    columns = (middle[has, None] + z * spread[has, None]).repeat(3)
    width = np.repeat(step * spread[has], 3 * n)
    # the density of (rho, rho_dot) that is normal in ln rho, in two factors
    likelihood = np.tile(norm.logpdf(z).repeat(3), has.sum())
    return Posterior(
        offsets=offsets,
        rho=np.exp(columns),
        rho_dot=np.tile([-1e-3, 0.0, 1e-3], n * has.sum()),
        log_width=width,
        rate_width=np.full(len(columns), 1e-3),
        log_likelihood=likelihood + 17.0,
        log_prior=-columns,
    )


@pytest.fixture
def scores_of(made_answers):
    """Scores of posteriors that are normal in ln rho."""

    def scores(middle, spread, rho, **options):
        posterior = gaussian(middle, spread, **options)
        answers = replace(made_answers(np.exp(middle)), posterior=posterior)
        return PosteriorScores.of(answers, np.asarray(rho, dtype=float))

    return scores


def test_scores_of_normal_posteriors_are_the_closed_forms(scores_of):
    rng = np.random.default_rng(4)
    middle, spread = rng.uniform(-5.0, 1.0, 60), rng.uniform(0.01, 1.5, 60)
    z = rng.normal(0.0, 1.2, 60)
    found = scores_of(middle, spread, np.exp(middle + z * spread), n=241)
    np.testing.assert_allclose(found.pit, norm.cdf(z), atol=1e-4)
    np.testing.assert_allclose(found.depth, 1.0 - 2.0 * norm.sf(np.abs(z)), atol=1e-4)
    np.testing.assert_allclose(found.density, norm.pdf(z) / spread, rtol=2e-3)
    np.testing.assert_allclose(found.rho_median, np.exp(middle), rtol=1e-5)
    # Gneiting & Raftery, equation 21
    crps = spread * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    np.testing.assert_allclose(found.crps, crps / np.log(10.0), rtol=3e-4)
    for k, level in enumerate(STUDY_LEVELS):
        for bound, p in zip(found.bounds[:, k].T, (0.5 - level / 2, 0.5 + level / 2), strict=True):
            np.testing.assert_allclose(np.log(bound), middle + norm.ppf(p) * spread, atol=3e-4)


def test_scores_of_two_lobes_with_a_gap_are_those_by_hand(made_answers):
    """A quarter of the probability on ln rho in [-3, -2], the rest on [0, 1]."""
    posterior = Posterior(
        offsets=np.array([0, 2]),
        rho=np.exp([-2.5, 0.5]),
        rho_dot=np.zeros(2),
        log_width=np.ones(2),
        rate_width=np.ones(2),
        log_likelihood=np.log([1.0, 3.0]),
        log_prior=-np.array([-2.5, 0.5]),
    )
    true = np.array([-4.0, -2.5, -1.0, 0.5, 2.0])
    answers = replace(made_answers(np.ones(5)), posterior=posterior.take(np.zeros(5, dtype=int)))
    found = PosteriorScores.of(answers, np.exp(true))
    np.testing.assert_allclose(found.pit, [0.0, 0.125, 0.25, 0.625, 1.0])
    np.testing.assert_allclose(found.depth, [1.0, 0.875, 1.0, 0.375, 1.0])
    np.testing.assert_allclose(found.density, [0.0, 0.25, 0.0, 0.75, 0.0])
    fine = np.linspace(-6.0, 4.0, 400_001)
    f = np.interp(fine, [-3.0, -2.0, 0.0, 1.0], [0.0, 0.25, 0.25, 1.0])
    numeric = [np.trapezoid((f - (fine >= x)) ** 2, fine) for x in true]
    np.testing.assert_allclose(found.crps * np.log(10.0), numeric, rtol=3e-4)
    np.testing.assert_allclose(np.log(found.rho_median), 1.0 / 3.0, rtol=1e-12)


def test_an_arc_without_a_posterior_has_no_scores_and_its_limits(scores_of):
    found = scores_of([-1.0, np.nan, -2.0], 0.1, [0.3, 0.3, 0.1])
    for name in ("rho_median", "pit", "depth", "crps", "density", "nodes_admissible"):
        np.testing.assert_array_equal(np.isfinite(getattr(found, name)), [True, False, True])
    bounds = found.intervals(np.tile([1e-4, 3.0], (3, 1)))[0.68]
    np.testing.assert_allclose(bounds[1], [1e-4, 3.0])
    np.testing.assert_allclose(np.log(bounds[0]), -1.0 + 0.1 * norm.ppf([0.16, 0.84]), atol=1e-3)
    none = scores_of([np.nan, np.nan], 0.1, [0.3, 0.3])
    assert np.isnan(none.pit).all()
    assert none.bounds.shape == (2, len(STUDY_LEVELS), 2)


def test_the_interval_score_is_that_by_hand():
    bounds = np.array([[0.1, 1.0], [0.1, 1.0], [0.1, 1.0]])
    found = interval_score(np.array([0.3, 0.01, 100.0]), bounds, 0.95)
    np.testing.assert_allclose(found, [1.0, 1.0 + 40.0 * 1.0, 1.0 + 40.0 * 2.0])
    # the quantiles of the truth do best
    z = np.random.default_rng(1).normal(0.0, 0.2, 40_000)
    means = []
    for factor in (0.7, 1.0, 1.4):
        ends = 10.0 ** (factor * 0.2 * norm.ppf([0.16, 0.84]))
        means.append(interval_score(10.0**z, np.tile(ends, (len(z), 1)), 0.68).mean())
    assert np.argmin(means) == 1


def test_intervals_of_some_arcs_and_limits_where_there_are_none(made):
    scored = made([0.2, np.nan, 0.5], [0.2, 0.3, 0.1])
    bounds = {0.68: np.array([[0.1, 0.4], [0.01, 1.0]])}
    limits = np.array([[1e-3, 2.0], [0.01, 1.0]])
    found = with_intervals(scored, np.array([0, 1]), bounds, limits)
    np.testing.assert_array_equal(found.inside_68, [1.0, 1.0, np.nan])
    np.testing.assert_allclose(found.interval_score_68[:2], [np.log10(4.0), 2.0])
    np.testing.assert_allclose(found.interval_score_95[:2], [np.log10(2000.0), 2.0])
    # bounds are drawn around answers
    np.testing.assert_array_equal(found.low, [0.1, np.nan, np.nan])


# ---------------------------------------------------------------------- told apart


def judged(made, scores_of, factor, m=3000, seed=2):
    """Scores of posteriors ``factor`` times as wide as they should be, of m independent arcs."""
    rng = np.random.default_rng(seed)
    true = rng.uniform(np.log(2e-4), 1.0, m)
    spread = rng.uniform(0.05, 1.0, m)
    middle = true + spread * rng.standard_normal(m)
    found = scores_of(middle, factor * spread, np.exp(true))
    scored = with_posteriors(made(np.exp(middle), np.exp(true)), np.arange(m), found)
    limits = np.tile([1e-4, 9.0], (m, 1))
    return with_intervals(scored, np.arange(m), found.intervals(limits), limits)


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.6])
def test_pit_and_coverage_tell_too_sure_from_calibrated_from_too_unsure(made, scores_of, factor):
    scored = judged(made, scores_of, factor)
    m = len(scored)
    deciles = pit_deciles(scored, n_boot=50)
    assert deciles["percent"].sum() == pytest.approx(100.0)
    outer = deciles["percent"].iloc[[0, 9]].sum()
    inside = METRICS["inside_68"](scored)
    region = METRICS["region_95"](scored)
    # three standard deviations to either side
    share = 100.0 * binom.ppf([0.0013, 0.9987], m, 0.2) / m
    held = 100.0 * binom.ppf([0.0013, 0.9987], m, 0.68) / m
    dense = 100.0 * binom.ppf([0.0013, 0.9987], m, 0.95) / m
    if factor == 1.0:
        assert share[0] < outer < share[1]
        assert held[0] < inside < held[1]
        assert dense[0] < region < dense[1]
        within = deciles["percent"].between(deciles["band_low"], deciles["band_high"])
        assert within.sum() >= 8
    elif factor < 1.0:
        assert outer > share[1]
        assert inside < held[0]
        assert region < dense[0]
    else:
        assert outer < share[0]
        assert inside > held[1]
        assert region > dense[1]
    expected = norm.cdf(norm.ppf(0.84) * factor) - norm.cdf(norm.ppf(0.16) * factor)
    assert inside == pytest.approx(100.0 * expected, abs=2.6)


def test_scores_prefer_the_calibrated_posterior(made, scores_of):
    by_factor = {factor: judged(made, scores_of, factor) for factor in (0.6, 1.0, 1.6)}
    for name in ("crps", "nats", "interval_score_68", "interval_score_95"):
        values = {factor: METRICS[name](scored) for factor, scored in by_factor.items()}
        assert min(values, key=values.get) == 1.0, (name, values)


def test_truths_off_the_posterior_are_counted_and_cost_the_floor(made, scores_of):
    found = scores_of([-1.0, -1.0], 0.01, np.exp([-1.0, 0.0]))
    scored = with_posteriors(made([0.3, 0.3], np.exp([-1.0, 0.0])), np.arange(2), found)
    assert METRICS["floored"](scored) == 50.0
    assert METRICS["nats"](scored, [1]) == pytest.approx(-np.log(DENSITY_FLOOR))
    assert METRICS["region_95"](scored) == 50.0
    (remark,) = check_answers(scored.assign(nodes_admissible=1.0))
    assert not remark.is_alarm
    assert "1 of 2 arcs" in remark.text
    for share, is_alarm in ((0.9, True), (0.995, False)):
        first, *_ = check_answers(scored.assign(nodes_admissible=share))
        assert first.is_alarm is is_alarm
        assert "not admissible on 2 of 2 arcs" in first.text


def test_half_decades_of_the_median_hold_calibrated_posteriors(made, scores_of):
    """Posteriors under the law that the truths are drawn from, which are calibrated there."""
    rng = np.random.default_rng(6)
    m, prior, noise = 6000, 1.2, 1.0
    true = -3.0 + prior * rng.standard_normal(m)
    seen = true + noise * rng.standard_normal(m)
    shrink = prior**2 / (prior**2 + noise**2)
    middle, spread = -3.0 + shrink * (seen + 3.0), noise * np.sqrt(shrink)
    found = scores_of(middle, np.full(m, spread), np.exp(true))
    scored = with_posteriors(made(np.exp(middle), np.exp(true)), np.arange(m), found)
    by_median, by_truth = (Strata.half_decades(scored, axis) for axis in ("median", "rho"))
    assert by_median.names[:3] == ("< 0.001", "0.001 – 0.0032", "0.0032 – 0.01")
    inside = np.abs(2.0 * found.pit - 1.0) <= 0.68
    big = [by_median.rows(k) for k in by_median.cells if len(by_median.rows(k)) > 200]
    assert len(big) >= 4
    for rows in big:
        low, high = binom.ppf([0.0005, 0.9995], len(rows), 0.68) / len(rows)
        assert low <= inside[rows].mean() <= high
    # and not in bins of the truth, whose extremes look ordinary
    far = np.flatnonzero(by_truth.cell >= by_truth.cells[-3])
    assert inside[far].mean() < binom.ppf(0.0005, len(far), 0.68) / len(far)
    assert by_median.describe(1)["lower"] == pytest.approx(1e-3)
    with pytest.raises(EvaluationError, match="posterior median"):
        Strata.half_decades(made([1.0], [1.0], rho_median=[np.nan]), "median")


# ---------------------------------------------------------------------- in a study


class Sure(RangingEstimator):
    """Posteriors about the truth of the arcs of a table, off by what they say times a factor."""

    name = "sure"

    def __init__(self, table, factor=1.0, origin="topocenter"):
        super().__init__(origin=origin)
        self.epochs = table["t_mjd_tdb"][table.offsets[:-1]]
        rng = np.random.default_rng(9)
        self.spread = rng.uniform(0.05, 0.5, len(table))
        self.middle = np.log(table["rho_topo_au"]) + self.spread * rng.standard_normal(len(table))
        self.rho_dot, self.factor = table["rho_dot_topo_au_d"], factor
        self.sizes = []

    def _estimate(self, arcs, attributables):
        self.sizes.append(len(arcs))
        order = np.argsort(self.epochs)
        rows = order[np.searchsorted(self.epochs[order], arcs.t[arcs.offsets[:-1]])]
        middle, spread = self.middle[rows], self.factor * self.spread[rows]
        answers = Answers.of(
            attributables, np.exp(middle), self.rho_dot[rows], RangeStatus.POPULATION
        )
        return replace(answers, posterior=gaussian(middle, spread, n=41))


@pytest.fixture(scope="module")
def judged_study(folder, arcs, oracle, noisy, tmp_path_factory):
    methods = [
        StudyMethod("honest", oracle(arcs, noisy)),
        StudyMethod("sure@catalogue", Sure(arcs)),
    ]
    kept = tmp_path_factory.mktemp("kept")
    first = run_study(folder, methods, n_boot=20, folds=4, predictions=kept)
    sizes = methods[1].estimator.sizes
    asked = len(sizes)
    again = run_study(folder, methods, n_boot=20, folds=4, predictions=kept)
    # asked again for the single objects alone, which are not kept
    assert sum(sizes[asked:]) == len(again.cases.table)
    return first, again


def test_a_study_judges_posteriors_beside_calibrated_intervals(judged_study):
    study, again = judged_study
    assert list(study.posteriors) == ["sure@catalogue"]
    sources = study.tables["coverage"].groupby("method")["source"].unique()
    assert sources["sure@catalogue"].tolist() == ["posterior"]
    assert sources["honest"].tolist() == ["crosswise"]
    scores = study.tables["scores"]
    assert scores["method"].unique().tolist() == ["honest", "sure@catalogue", MEDIAN_OF_ALL]
    wide = scores.pivot(index="method", columns="metric", values="value")
    assert np.isfinite(wide[["interval_score_68", "interval_score_95"]]).all(axis=None)
    # who knows only the distribution of all ranges is worse than who knows something
    assert wide["interval_score_95"].idxmax() == MEDIAN_OF_ALL
    assert wide["inside_95"][MEDIAN_OF_ALL] == pytest.approx(95.0, abs=2.0)
    assert wide["crps"]["sure@catalogue"] < wide["crps"][MEDIAN_OF_ALL]
    assert np.isnan(wide["crps"]["honest"])
    near = study.tables["near"]
    assert set(near["below_au"]) <= set(NEAR_AU)
    of_near = near[(near["below_au"] == 0.1) & (near["metric"] == "interval_score_95")]
    assert of_near["method"].tolist() == ["honest", "sure@catalogue"]
    assert set(of_near["n_arcs"]) == {int((study.scored["honest"].rho_true < 0.1).sum())}
    scored = study.scored["sure@catalogue"]
    np.testing.assert_allclose(scored.rho_median, scored.rho, rtol=0.01)
    assert scored.low.lt(scored.rho).all()
    np.testing.assert_array_equal(again.posteriors["sure@catalogue"].pit, scored.pit)
    assert np.isfinite(study.cases.scored[1].low).all()


def test_posteriors_have_tables_by_stratum_and_of_deciles(judged_study):
    study, _ = judged_study
    rows = study.tables["posteriors"]
    assert set(rows["method"]) == {"sure@catalogue"}
    assert rows["axis"].unique().tolist() == ["all", "eta", "span", "median", "rho"]
    assert not rows[rows["axis"] == "rho"]["is_judged"].any()
    assert rows[rows["axis"] != "rho"]["is_judged"].all()
    of_bins = rows[(rows["axis"] == "median") & (rows["metric"] == "inside_68")]
    assert of_bins["n_arcs"].sum() == len(study.table)
    assert study.tables["pit"]["percent"].sum() == pytest.approx(100.0)


def test_the_report_has_a_section_of_posteriors_and_scores_of_all(judged_study, study):
    judged, _ = judged_study
    page = render(judged)
    section = page.split('<section id="posteriors">')[1].split("</section>")[0]
    assert "posterior median: 0.1 – 0.32 au" in section
    assert "For information: in bins of the true range" in section
    intervals = page.split('<section id="intervals">')[1].split("</section>")[0]
    assert MEDIAN_OF_ALL in intervals
    assert "mean interval score of log10 rho at 95 %" in intervals
    without = render(study)
    assert '<section id="posteriors">' not in without
    assert "mean interval score of log10 rho at 95 %" in without


def test_posteriors_are_asked_for_in_small_chunks_and_let_go(arcs, monkeypatch):
    monkeypatch.setattr(predictions, "_POSTERIORS", 32)
    method = Sure(arcs)
    assert predictions.predict(method, arcs).posterior is None
    assert max(method.sizes) == 32
    assert sum(method.sizes) == len(arcs)


def test_chunks_without_a_posterior_have_their_place(arcs, monkeypatch):
    """Whole chunks too short for the method, before and between others."""

    class Choosy(Sure):
        def _estimate(self, arcs, attributables):
            first = np.flatnonzero(self.epochs == arcs.t[0])[0]
            if (first // 32) % 2 == 0:
                self.sizes.append(len(arcs))
                return Answers.unsolved(attributables, np.full(len(arcs), RangeStatus.NO_ROOT.code))
            return super()._estimate(arcs, attributables)

    monkeypatch.setattr(predictions, "_POSTERIORS", 32)
    method, seen, rho = Choosy(arcs), to_core(arcs), arcs["rho_topo_au"]
    _, found = predictions.ask_arcs(method, seen, seen, rho=rho)
    assert max(method.sizes) == 32
    has = (np.arange(len(arcs)) // 32) % 2 == 1
    np.testing.assert_array_equal(np.isfinite(found.pit), has)
    _, whole = predictions.ask_arcs(Sure(arcs), seen, seen, rho=rho)
    np.testing.assert_allclose(found.pit[has], whole.pit[has])


def test_scores_of_posteriors_are_kept_with_the_answers(arcs, tmp_path):
    seen, path = to_core(arcs), tmp_path / "sure.npz"
    answers, scores = predictions.ask_arcs(Sure(arcs), seen, seen, rho=arcs["rho_topo_au"])
    predictions.save_answers(answers, path, scores)
    again, same = predictions.load_answers(path, answers.attributables)
    np.testing.assert_array_equal(again.rho, answers.rho)
    for field in fields(scores):
        np.testing.assert_array_equal(getattr(same, field.name), getattr(scores, field.name))
    wrong = replace(scores, pit=scores.pit[:-1])
    predictions.save_answers(answers, path, wrong)
    with pytest.raises(EvaluationError, match=r"'posterior_pit' has the shape"):
        predictions.load_answers(path, answers.attributables)
