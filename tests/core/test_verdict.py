"""Verdicts on answers that were not solved for."""

import numpy as np
import pytest

from neoranging.core.answers import Answers
from neoranging.core.attributable import from_fit
from neoranging.core.geometry import norm
from neoranging.core.status import RangeStatus
from neoranging.core.verdict import judged


def answers(s, rho, rho_dot):
    """Answers of those ranges that call themselves OK."""
    return Answers.of(from_fit(s.arcs), rho, rho_dot, RangeStatus.OK)


def statuses(s, rho, rho_dot, near=None):
    verdict = judged(s.arcs, from_fit(s.arcs), answers(s, rho, rho_dot), near)
    return np.array([RangeStatus.from_code(code).name for code in verdict.status]), verdict.remarks


@pytest.fixture(scope="module")
def night(simulate):
    s = simulate(400, 0.35, seed=700, n_observations=(5, 9))
    return s.with_noise(np.random.default_rng(1), size=0.3)


def test_the_truth_is_ok_where_observations_determine_it(night):
    status, _ = statuses(night, night.rho, night.rho_dot)
    assert set(status) <= {"OK", "POPULATION"}
    assert (status == "OK").mean() > 0.4


def test_short_arcs_leave_it_to_the_population(simulate):
    s = simulate(300, 0.01, seed=701).with_noise(np.random.default_rng(2), size=0.3)
    status, _ = statuses(s, s.rho, s.rho_dot)
    assert (status == "POPULATION").mean() > 0.7
    assert set(status) <= {"POPULATION", "UNDETERMINED"}


def test_an_answer_that_observations_exclude_is_not_ok(night):
    ok = statuses(night, night.rho, night.rho_dot)[0] == "OK"
    status, remarks = statuses(night, 5.0 * night.rho, night.rho_dot)
    assert not (status == "OK").any()
    determined = np.array(["the observations determine" in text for text in remarks])
    assert determined[ok].mean() > 0.95


def test_bounds_say_what_is_near(night):
    ok = statuses(night, night.rho, night.rho_dot)[0] == "OK"
    tight = night.rho[:, None] * np.array([1.5, 1.6])
    assert not (statuses(night, 1.55 * night.rho, night.rho_dot, tight)[0][ok] == "OK").any()


def test_no_motion_beyond_errors_determines_nothing(night):
    a = night.arcs
    still = night._with(a.ra[a.offsets[:-1]][a.owner], a.dec[a.offsets[:-1]][a.owner])
    status, _ = statuses(still.with_noise(np.random.default_rng(3)), night.rho, night.rho_dot)
    assert (status == "UNDETERMINED").mean() > 0.99
    assert not (status == "OK").any()


@pytest.mark.parametrize("arcsec", [60.0, 600.0])
def test_one_stray_is_a_misfit(night, arcsec):
    dec = night.arcs.dec.copy()
    dec[night.arcs.offsets[:-1] + 1] += np.radians(arcsec / 3600.0)
    status, _ = statuses(night._with(night.arcs.ra, dec), night.rho, night.rho_dot)
    assert (status == "MISFIT").mean() > 0.97
    assert not (status == "OK").any()


def test_two_observations_fit_every_orbit(simulate):
    s = simulate(50, 0.2, seed=702, n_observations=2)
    assert set(statuses(s, s.rho, s.rho_dot)[0]) == {"POPULATION"}


def test_other_verdicts_are_kept(night):
    found = answers(night, night.rho, night.rho_dot)
    found.status[:] = RangeStatus.OUTSIDE_TRAINING_DOMAIN.code
    assert judged(night.arcs, from_fit(night.arcs), found) is found


def test_impactors_in_their_last_hours_are_no_misfit(simulate):
    s = simulate(4000, 0.1, seed=703, n_observations=(5, 9))
    s = s.take(np.flatnonzero(s.rho < 0.01))
    assert norm(s.arcs.position).min() > 0.9
    status, _ = statuses(s.with_noise(np.random.default_rng(4), size=0.3), s.rho, s.rho_dot)
    assert (status == "MISFIT").mean() < 0.05
