"""Figures by hand; wrong methods move the figures they should; resamples are those of objects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.exceptions import EvaluationError
from neoranging.lab.study import bootstrap
from neoranging.lab.study.metrics import METRICS, compare, summarise
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.scores import score, select

NAN, INF = np.nan, np.inf


def values(scored, rows=None):
    return {name: metric(scored, rows) for name, metric in METRICS.items()}


def records(table):
    return table.to_dict("records")


def by_name(table):
    return {row["metric"]: row for row in records(table)}


def test_accuracy_by_hand(made):
    found = values(made([1.0, 2.0, 3.0, 4.0, NAN], [1.0, 1.0, 5.0, 4.0, 9.0]))
    assert found["mae_rho"] == pytest.approx((0 + 1 + 2 + 0) / 4)
    assert found["medae_rho"] == pytest.approx(0.5)
    assert found["mae_rho_dot"] == pytest.approx(0.0075)
    assert found["medae_rho_dot"] == pytest.approx(0.005)
    # deviations (-1.5, -.5, .5, 1.5) and (-1.75, -1.75, 2.25, 1.25)
    correlation = 6.5 / np.sqrt(5.0 * 12.75)
    assert found["corr_rho"] == pytest.approx(correlation)
    assert found["corr_rho_dot"] == pytest.approx(correlation)
    assert found["spread_rho"] == pytest.approx(np.sqrt(5.0 / 12.75))
    assert found["median_relative_error"] == pytest.approx(0.2)
    assert found["median_log10_error"] == pytest.approx(0.5 * np.log10(5.0 / 3.0))
    assert found["median_rho"] == pytest.approx(2.5)
    assert found["median_rho_true"] == pytest.approx(2.5)


def test_fractions_by_hand(made):
    scored = made(
        [5e-4, 0.2, 0.3, NAN],
        [0.1, 0.2, 0.3, 0.4],
        ok=[False, True, False, False],
        admissible=[False, True, True, False],
        pseudo_admissible=[True, True, False, True],
        d_sh_pseudo=[0.1, 0.5, NAN, NAN],
        elliptic_pseudo=[True, True, False, False],
        d_sh_catalogue=[0.1, 0.2, 0.19, NAN],
        elliptic_catalogue=[True, True, True, False],
    )
    found = values(scored)
    third = 100.0 / 3.0
    assert found["solved"] == 75.0
    assert found["ok"] == 25.0
    assert found["collapsed"] == pytest.approx(third)
    assert found["p_ar"] == found["p_ar_truth"] == pytest.approx(2.0 * third)
    assert found["elliptic_pseudo"] == 50.0
    assert found["d_sh_pseudo"] == pytest.approx(0.3)
    assert found["d_sh_pseudo_below"] == 50.0
    assert found["d_sh_pseudo_associated"] == 25.0
    assert found["elliptic_catalogue"] == 75.0
    assert found["d_sh_catalogue"] == pytest.approx(0.19)
    assert found["d_sh_catalogue_below"] == pytest.approx(2.0 * third)
    assert found["d_sh_catalogue_associated"] == 50.0


def test_medians_by_object_by_hand(made):
    error = np.array([1.0, 2.0, 3.0, 10.0, 30.0, 100.0, NAN])
    scored = made(5.0 + error, np.full(7, 5.0), object=[0, 0, 0, 1, 1, 2, 3])
    assert METRICS["medae_rho"](scored) == pytest.approx(6.5)
    # medians 2, 20, 100 of three objects that have an answer
    assert METRICS["medae_rho_by_object"](scored) == pytest.approx(20.0)
    row = by_name(summarise(scored))["medae_rho_by_object"]
    assert (row["n_arcs"], row["n_without"], row["n_objects"]) == (6, 1, 3)


def test_what_cannot_enter_is_counted(made):
    scored = made([1.0, NAN, 3.0, NAN], np.ones(4), object=[0, 0, 1, 2])
    rows = by_name(summarise(scored, n_boot=5))
    assert rows.keys() == METRICS.keys()
    for row in rows.values():
        assert row["n_arcs"] + row["n_without"] == 4
        assert row["method"] == "made"
        assert row["cap"] is None
    assert (rows["mae_rho"]["n_arcs"], rows["mae_rho"]["n_objects"]) == (2, 2)
    assert (rows["solved"]["n_arcs"], rows["solved"]["n_objects"]) == (4, 3)
    assert rows["solved"]["value"] == 50.0
    assert rows["ok"]["value"] == 50.0
    assert rows["d_sh_pseudo_associated"]["value"] == 50.0


def test_nothing_that_enters_is_no_number(made):
    for row in records(summarise(made([NAN, NAN], [1.0, 2.0]))):
        counted = row["metric"] in {
            *("solved", "ok", "elliptic_pseudo", "elliptic_catalogue"),
            *("d_sh_pseudo_associated", "d_sh_catalogue_associated"),
        }
        assert (row["n_arcs"] == 2) == counted
        assert (row["value"] == 0.0) if counted else np.isnan(row["value"])
        assert np.isnan(row["low"]) != counted
    none = summarise(made([1.0], [1.0]), rows=[])
    assert none["value"].isna().all()
    assert (none["n_arcs"] == 0).all()


def test_answers_that_are_not_positive_are_infinitely_wrong(made):
    scored = made([1.0, -1.0, 0.0], np.ones(3), log10_error=[0.0, INF, INF])
    row = by_name(summarise(scored))["median_log10_error"]
    assert (row["value"], row["n_arcs"]) == (INF, 3)
    assert row["high"] == INF
    assert row["low"] == 0.0


def test_constant_answers_have_no_correlation(made):
    scored = made(np.full(50, 0.1), np.linspace(0.05, 0.6, 50))
    assert np.isnan(METRICS["corr_rho"](scored))
    assert METRICS["spread_rho"](scored) == 0.0
    constant_truth = made(np.linspace(0.05, 0.6, 50), np.full(50, 0.1))
    assert np.isnan(METRICS["corr_rho"](constant_truth))
    assert np.isnan(METRICS["spread_rho"](constant_truth))


def test_one_monstrous_answer_spoils_no_other_resample(made):
    rng = np.random.default_rng(3)
    true = rng.uniform(0.1, 1.0, 40)
    rho = true + 0.01 * rng.standard_normal(40)
    rho[0] = 1e9
    scored = made(rho, true)
    unit, weights = bootstrap.resamples(scored.object, 50, np.random.default_rng(1))
    spared = weights[:, 0] == 0
    found = METRICS["corr_rho"].resampled(scored, unit, weights)
    for value, weight in zip(found[spared], weights[spared], strict=True):
        drawn = np.repeat(np.arange(40), weight)
        assert value == pytest.approx(np.corrcoef(rho[drawn], true[drawn])[0, 1], abs=1e-9)


# ---- wrong on purpose: which figures move --------------------------------------------------------


def moved(one, other):
    """Names of the figures that differ."""
    first, second = values(one), values(other)
    same = {
        name
        for name in METRICS
        if first[name] == pytest.approx(second[name], rel=1e-9, nan_ok=True)
    }
    return METRICS.keys() - same


def good(rho, rho_dot):
    """A decent method: 20 % of scatter."""
    scatter = np.exp(0.2 * np.random.default_rng(5).standard_normal(len(rho)))
    return scatter * rho, 0.9 * rho_dot


ERRORS = {"mae_rho", "medae_rho", "median_relative_error", "median_log10_error"}
ERRORS_BY_OBJECT = {f"{name}_by_object" for name in ERRORS - {"mae_rho"}}
RATE_ERRORS = {"mae_rho_dot", "medae_rho_dot", "medae_rho_dot_by_object"}
ORBITS = {
    *("d_sh_pseudo", "d_sh_pseudo_by_object", "d_sh_pseudo_below", "d_sh_pseudo_associated"),
    *("d_sh_catalogue", "d_sh_catalogue_by_object"),
    *("d_sh_catalogue_below", "d_sh_catalogue_associated"),
}
ADMISSIBLE = {"p_ar", "elliptic_pseudo", "elliptic_catalogue"}
RHO = ERRORS | ERRORS_BY_OBJECT | {"corr_rho"}
RATE = RATE_ERRORS | {"corr_rho_dot"}


@pytest.fixture(scope="module")
def scored_by(table, oracle):
    def scored(change):
        def changed(*truth):
            return change(*good(*truth))

        return score(table, predict(oracle(table, changed), table))

    return scored


def test_answers_of_the_neighbour(scored_by):
    before = scored_by(lambda *answers: answers)
    after = scored_by(lambda *answers: np.roll(answers, 1, axis=1))
    # the distribution of the answers is the same, so their spread and median are
    assert moved(before, after) == RHO | RATE | ORBITS | ADMISSIBLE


def test_range_rate_in_km_per_second(scored_by):
    before = scored_by(lambda *answers: answers)
    after = scored_by(lambda rho, rate: (rho, 1731.456836805 * rate))
    assert moved(before, after) == RATE_ERRORS | {"spread_rho_dot"} | ORBITS | ADMISSIBLE


def test_range_that_is_always_the_same(scored_by):
    before = scored_by(lambda *answers: answers)
    after = scored_by(lambda rho, rate: (np.full_like(rho, 0.3), rate))
    assert moved(before, after) >= RHO | {"spread_rho", "median_rho"}
    assert moved(before, after) <= RHO | {"spread_rho", "median_rho"} | ORBITS | ADMISSIBLE
    assert values(after)["spread_rho"] == pytest.approx(0.0, abs=1e-12)


def test_no_answer_for_half_the_arcs(scored_by):
    before = scored_by(lambda *answers: answers)
    half = np.arange(len(before)) % 2 == 0
    after = scored_by(lambda rho, rate: np.where(half, [rho, rate], NAN))
    found, on_half = values(after), values(before, half)
    of_all = {
        *("solved", "ok", "elliptic_pseudo", "elliptic_catalogue"),
        *("d_sh_pseudo_associated", "d_sh_catalogue_associated"),
    }
    for name in METRICS:
        expected = 0.5 * on_half[name] if name in of_all else on_half[name]
        assert found[name] == pytest.approx(expected, rel=1e-12, nan_ok=True), name
    rows = by_name(summarise(after, n_boot=0))
    assert rows["solved"]["n_without"] == 0
    assert rows["mae_rho"]["n_without"] == 100


def test_collapse(scored_by):
    before = scored_by(lambda *answers: answers)
    after = scored_by(lambda rho, rate: (np.where(np.arange(len(rho)) < 50, 1e-4, rho), rate))
    assert "collapsed" in moved(before, after)
    assert values(after)["collapsed"] == 25.0
    assert not moved(before, after) & (RATE | {"solved", "ok"})


# ---- resamples -----------------------------------------------------------------------------------


def explicit(statistic, columns, unit, weight):
    """The same statistic of the resample itself."""
    rows = np.repeat(np.arange(len(unit)), weight[unit])
    if not len(rows):
        return NAN
    x = columns[:, rows]
    if statistic is bootstrap.median_by_object:
        drawn = np.repeat(np.unique(unit), weight[np.unique(unit)])
        return np.median([np.median(columns[0][unit == each]) for each in drawn])
    return {
        bootstrap.mean: x[0].mean,
        bootstrap.percent: lambda: 100.0 * x[0].mean(),
        bootstrap.median: lambda: np.median(x[0]),
        bootstrap.correlation: lambda: np.corrcoef(x)[0, 1],
        bootstrap.spread_ratio: lambda: x[0].std() / x[1].std(),
    }[statistic]()


@pytest.mark.parametrize(
    "statistic",
    [
        *(bootstrap.mean, bootstrap.percent, bootstrap.median, bootstrap.median_by_object),
        *(bootstrap.correlation, bootstrap.spread_ratio),
    ],
)
def test_weights_are_resamples(statistic):
    rng = np.random.default_rng(8)
    objects = rng.integers(0, 23, 200)
    columns = rng.lognormal(size=(2, 200))
    unit, weights = bootstrap.resamples(objects, 60, rng)
    assert (weights.sum(axis=1) == weights.shape[1]).all()
    found = statistic(columns, unit, weights)
    expected = [explicit(statistic, columns, unit, weight) for weight in weights]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_resamples_without_an_arc_are_no_number():
    columns, unit = np.ones((2, 3)), np.array([0, 0, 1])
    weights = np.array([[0, 0, 2], [1, 0, 0]])
    for statistic in (bootstrap.mean, bootstrap.median, bootstrap.median_by_object):
        np.testing.assert_array_equal(statistic(columns, unit, weights), [NAN, 1.0])


def test_interval_is_by_object(made):
    """Arcs of an object that err alike are hardly more than one arc."""
    rng = np.random.default_rng(11)
    objects = np.repeat(np.arange(60), 25)
    error = rng.standard_normal(60)[objects] + 0.1 * rng.standard_normal(1500)
    true = np.full(1500, 10.0)
    together = made(true + error, true, object=objects)
    apart = made(true + error, true)
    names = ("mae_rho", "medae_rho", "median_rho", "median_relative_error")
    by_object, by_arc = (records(summarise(each, metrics=names)) for each in (together, apart))
    for wide, narrow in zip(by_object, by_arc, strict=True):
        assert wide["value"] == pytest.approx(narrow["value"], rel=1e-12)
        assert wide["low"] <= wide["value"] <= wide["high"]
        width = wide["high"] - wide["low"]
        assert width > 3.0 * (narrow["high"] - narrow["low"])


def test_arcs_seen_thrice_prove_nothing_more(made):
    rng = np.random.default_rng(12)
    rho, true = rng.lognormal(size=(2, 80))
    once = made(rho, true, object=np.arange(80))
    thrice = made(np.tile(rho, 3), np.tile(true, 3), object=np.tile(np.arange(80), 3))
    for one, three in zip(records(summarise(once)), records(summarise(thrice)), strict=True):
        assert [three[k] for k in ("value", "low", "high")] == pytest.approx(
            [one[k] for k in ("value", "low", "high")], nan_ok=True
        )
        assert three["n_objects"] == one["n_objects"]


def test_interval_covers_as_often_as_it_says(made):
    rng = np.random.default_rng(13)
    hits = 0
    for _ in range(200):
        objects = np.repeat(np.arange(40), 4)
        rho = 1.0 + 0.3 * (rng.standard_normal(40)[objects] + 0.5 * rng.standard_normal(160))
        scored = made(rho, np.ones(160), object=objects)
        row = summarise(scored, metrics=["median_rho"]).loc[0]
        hits += row["low"] <= 1.0 <= row["high"]
    assert 0.89 <= hits / 200 <= 0.99


def test_one_object_has_no_interval(made):
    scored = made([1.0, 2.0], [1.0, 1.0], object=[4, 4])
    row = by_name(summarise(scored, metrics=["mae_rho"]))["mae_rho"]
    assert row["value"] == 0.5
    assert np.isnan([row["low"], row["high"]]).all()


def test_level_and_seed(made):
    rng = np.random.default_rng(14)
    scored = made(*rng.lognormal(size=(2, 100)))

    def interval(**options):
        row = summarise(scored, metrics=["mae_rho"], **options).loc[0]
        return row["low"], row["high"]

    assert interval() == interval(rng=0) == interval(rng=np.random.default_rng(0))
    assert interval() != interval(rng=1)
    narrow, wide = interval(level=0.5), interval(level=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_cap(made):
    objects = np.repeat([7, 3, 5], [100, 4, 30])
    rows = bootstrap.capped(objects, 20, rng=2)
    np.testing.assert_array_equal(rows, np.sort(rows))
    named, counts = np.unique(objects[rows], return_counts=True)
    assert dict(zip(named, counts, strict=True)) == {7: 20, 3: 4, 5: 20}
    np.testing.assert_array_equal(rows, bootstrap.capped(objects, 20, rng=2))
    assert not np.array_equal(rows, bootstrap.capped(objects, 20, rng=3))
    with pytest.raises(EvaluationError, match="cap=0"):
        bootstrap.capped(objects, 0)


def test_a_cap_takes_the_weight_of_a_great_object(made):
    error = np.concatenate([np.full(100, 5.0), np.full(20, 1.0)])
    scored = made(10.0 + error, np.full(120, 10.0), object=np.repeat([0, 1], [100, 20]))
    whole, held = (summarise(scored, metrics=["mae_rho"], cap=cap).loc[0] for cap in (None, 20))
    assert whole["value"] == pytest.approx(13.0 / 3.0)
    assert held["value"] == pytest.approx(3.0)
    assert (held["n_arcs"], held["n_objects"], held["cap"]) == (40, 2, 20)


# ---- differences ---------------------------------------------------------------------------------


def test_difference_of_two_methods(made):
    rng = np.random.default_rng(15)
    true = rng.lognormal(size=300)
    better = made(1.1 * true, true, method="better")
    worse = made(np.where(np.arange(300) < 30, NAN, 1.3 * true), true, method="worse")
    row = compare(better, worse, metrics=["median_relative_error"]).loc[0]
    assert (row["first"], row["second"]) == ("better", "worse")
    assert row["difference"] == pytest.approx(-0.2)
    # what both have in common cancels
    assert row["low"] == pytest.approx(-0.2)
    assert row["high"] == pytest.approx(-0.2)
    assert (row["n_arcs"], row["n_without"]) == (270, 30)


def test_no_difference_of_a_method_from_itself(made):
    scored = made(*np.random.default_rng(16).lognormal(size=(2, 50)))
    for row in records(compare(scored, scored)):
        assert row["difference"] == row["low"] == row["high"] == 0.0


def test_methods_on_different_arcs_are_not_compared(made):
    scored = made(*np.ones((2, 5)))
    with pytest.raises(EvaluationError, match="different arcs"):
        compare(scored, select(scored, [0, 1, 2, 4, 3]))


def test_unknown_metrics_are_told(made):
    with pytest.raises(EvaluationError, match="no metric mea_rho; there are solved, ok"):
        summarise(made([1.0], [1.0]), metrics=["mae_rho", "mea_rho"])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(2, 40))
def test_order_of_arcs_and_names_of_objects_do_not_matter(made, seed, m):
    rng = np.random.default_rng(seed)
    rho = np.where(rng.random(m) < 0.2, NAN, rng.lognormal(size=m))
    scored = made(rho, rng.lognormal(size=m), object=rng.integers(0, 6, m))
    order = rng.permutation(m)
    renamed = select(scored, order)
    renamed["object"] = 10 * renamed.object + 3
    for one, other in zip(records(summarise(scored)), records(summarise(renamed)), strict=True):
        for key in ("value", "low", "high", "n_arcs", "n_without", "n_objects"):
            assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-12, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(0.01, 100.0))
def test_the_unit_of_range_does_not_matter_to_pure_numbers(made, seed, factor):
    rho, true = np.random.default_rng(seed).lognormal(size=(2, 30))
    one, other = values(made(rho, true)), values(made(factor * rho, factor * true))
    for name, metric in METRICS.items():
        scale = factor if metric.unit in {"au", "au/d"} else 1.0
        if name != "collapsed":
            assert other[name] == pytest.approx(scale * one[name], rel=1e-9, nan_ok=True)
