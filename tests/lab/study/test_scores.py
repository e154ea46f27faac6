"""Errors and distances arc by arc, against the truth of the method's own origin."""

import numpy as np
import pytest
from astropy import units as u
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging import OrbitalElements, d_sh
from neoranging.exceptions import DatasetError, EvaluationError
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.scores import ArcTruth, score, select

FIELDS = (
    *("rho", "rho_true", "rho_dot", "rho_dot_true", "relative_error", "log10_error"),
    *("d_sh_pseudo", "d_sh_catalogue", "elliptic_pseudo", "elliptic_catalogue"),
    *("admissible", "pseudo_admissible", "eta", "inc", "span", "status"),
)


@pytest.mark.parametrize("origin", ["topocenter", "geocenter"])
def test_the_truth_has_no_error(table, oracle, origin):
    scored = score(table, predict(oracle(table, origin=origin), table))
    assert scored.attrs["origin"] == origin
    np.testing.assert_array_equal(scored.relative_error, 0.0)
    np.testing.assert_array_equal(scored.log10_error, 0.0)
    np.testing.assert_array_equal(scored.rho_dot, scored.rho_dot_true)
    np.testing.assert_array_equal(scored.admissible, scored.pseudo_admissible)
    assert scored.elliptic_pseudo.mean() > 0.95
    np.testing.assert_allclose(scored.d_sh_pseudo[scored.elliptic_pseudo], 0.0, atol=1e-12)


def test_without_noise_the_pseudo_truth_is_the_orbit(exact_table, oracle):
    scored = score(exact_table, predict(oracle(exact_table), exact_table))
    assert np.nanmedian(scored.d_sh_catalogue) < 1e-3
    # from the geocentre the parallax is read as motion
    seen = score(exact_table, predict(oracle(exact_table, origin="geocenter"), exact_table))
    assert np.nanmedian(seen.d_sh_catalogue) > 10.0 * np.nanmedian(scored.d_sh_catalogue)


def test_errors_by_hand(table, oracle):
    factor = np.ones(len(table))
    factor[:5] = 1.1, 0.5, -2.0, 0.0, np.nan

    def change(rho, rho_dot):
        return factor * rho, rho_dot

    scored = score(table, predict(oracle(table, change), table))
    np.testing.assert_allclose(scored.relative_error[:4], [0.1, 0.5, 3.0, 1.0], rtol=1e-12)
    expected = [np.log10(1.1), np.log10(2.0), np.inf, np.inf, np.nan, 0.0]
    np.testing.assert_allclose(scored.log10_error[:6], expected, rtol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(~scored.answered), [4])
    assert np.isnan(scored.relative_error[4])
    assert np.isnan(scored.d_sh_pseudo[4])
    assert not scored.elliptic_pseudo[4]


def test_unbound_answers_have_no_distance_but_stay(table, oracle):
    def escaping(rho, rho_dot):
        return rho, np.where(np.arange(len(rho)) < 10, rho_dot + 0.1, rho_dot)

    scored = score(table, predict(oracle(table, escaping), table))
    assert scored.answered.all()
    assert not scored.elliptic_pseudo[:10].any()
    assert not scored.admissible[:10].any()
    for distance, elliptic in (
        (scored.d_sh_pseudo, scored.elliptic_pseudo),
        (scored.d_sh_catalogue, scored.elliptic_catalogue),
    ):
        np.testing.assert_array_equal(np.isfinite(distance), elliptic)


def test_an_unbound_pseudo_truth_is_no_orbit_to_compare_with(table, oracle):
    """The range-rate of noisy arcs may be that of a hyperbola though the object is bound."""
    rate = table["rho_dot_topo_au_d"].copy()
    rate[:10] += 0.1
    unbound = table.with_columns(rho_dot_topo_au_d=rate)
    scored = score(unbound, predict(oracle(table), unbound))
    np.testing.assert_array_equal(scored.rho_dot, table["rho_dot_topo_au_d"])
    assert scored.elliptic_catalogue[:10].any()
    assert np.isfinite(scored.d_sh_catalogue[:10]).any()
    assert not scored.elliptic_pseudo[:10].any()
    assert np.isnan(scored.d_sh_pseudo[:10]).all()


def test_distance_is_that_of_the_public_function(table, oracle):
    predictions = predict(oracle(table, lambda rho, rate: (1.2 * rho, rate)), table)
    scored = score(table, predictions)
    row = int(np.flatnonzero(scored.elliptic_catalogue)[0])
    state = predictions.r[row] * u.au, predictions.v[row] * u.au / u.d
    answer = OrbitalElements.from_state(*state, Time(table["t2_mjd_tdb"][row], format="mjd"))
    q, ecc, *angles = (
        table[name][row] for name in ("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad")
    )
    catalogue = (q * u.au, ecc * u.one, *(angle * u.rad for angle in angles))
    assert scored.d_sh_catalogue[row] == pytest.approx(d_sh(answer, catalogue), rel=1e-6)


def test_objects_have_numbers(table, oracle):
    scored = score(table, predict(oracle(table), table))
    np.testing.assert_array_equal(scored.designation.astype(str), table["designation"])
    names = scored.designation.cat.categories
    np.testing.assert_array_equal(names[scored.object], table["designation"])
    assert scored.object.nunique() == len(np.unique(table["designation"])) == 50
    assert select(scored, slice(0, 4)).object.nunique() == 1


def test_truth_serves_all_methods_of_its_origin(table, oracle):
    truth = ArcTruth.of(table, "geocenter")
    predictions = predict(oracle(table, origin="geocenter"), table)
    shared = score(table, predictions, truth=truth)
    own = score(table, predictions)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(shared, name), getattr(own, name), err_msg=name)
    with pytest.raises(EvaluationError, match="the truth from the geocenter"):
        score(table, predict(oracle(table), table), truth=truth)


def test_predictions_of_other_arcs_are_refused(table, oracle):
    found = predict(oracle(table), table)
    with pytest.raises(EvaluationError, match="another order"):
        score(table, found.take(np.arange(len(table))[::-1]))
    with pytest.raises(EvaluationError, match="199 answers for 200 arcs"):
        score(table, found.take(slice(1, None)))


def test_only_labelled_arcs_are_scored(table, oracle):
    found = predict(oracle(table), table)
    rho = np.where(np.arange(len(table)) < 7, np.nan, table["rho_topo_au"])
    with pytest.raises(EvaluationError, match="7 of 200 arcs have no true range"):
        score(table.with_columns(rho_topo_au=rho), found)
    with pytest.raises(EvaluationError, match="no arcs to score"):
        ArcTruth.of(table.take([]))
    with pytest.raises(DatasetError, match="origin"):
        ArcTruth.of(table, "heliocenter")


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_of_arcs_does_not_matter(table, oracle, seed):
    order = np.random.default_rng(seed).permutation(len(table))
    method = oracle(table, lambda rho, rate: (1.3 * rho + 0.01, 0.9 * rate))
    straight = score(table, predict(method, table))
    shuffled_table = table.take(order)
    shuffled = score(shuffled_table, predict(method, shuffled_table))
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(shuffled, name), getattr(straight, name)[order], rtol=1e-6, err_msg=name
        )


def test_some_of_them(table, oracle):
    whole = predict(oracle(table), table)
    scored = score(table, whole).assign(low=0.5 * whole.rho, high=2.0 * whole.rho)
    few = select(scored, scored.rho > np.median(scored.rho))
    assert len(few) == 100
    assert few.low.shape == few.high.shape == (100,)
    assert list(few.index) == list(range(100))
    assert few.attrs == scored.attrs
