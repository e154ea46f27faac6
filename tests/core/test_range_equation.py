"""The equation shared by Gauss and Laplace: every positive range, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import range_equation as reference

from neoranging.constants import GM_SUN
from neoranging.core import columns
from neoranging.core.range_equation import MOST_ROOTS, RangeEquation, positive_roots


def positive_ranges(equation):
    """Ranges that `positive_roots` finds for each equation, and the number of its equation."""
    P, Q, E, R, mu = equation
    rho, count = np.empty((len(P), MOST_ROOTS)), np.zeros(len(P), dtype=int)
    for k, row in enumerate(zip(P, Q, E, R, strict=True)):
        count[k] = positive_roots(*row, mu, rho[k])
    return rho[np.arange(MOST_ROOTS) < count[:, None]], np.repeat(np.arange(len(P)), count)


def equations(m, seed):
    """Equations as real arcs have them: P and Q of both signs over many magnitudes."""
    rng = np.random.default_rng(seed)
    P, Q = rng.choice([-1.0, 1.0], (2, m)) * 10.0 ** rng.uniform(
        [[-3.0], [1.0]], [[2.0], [6.0]], (2, m)
    )
    R = rng.uniform(0.98, 1.02, m)
    return RangeEquation(P, Q, R * rng.uniform(-1.0, 1.0, m), R, GM_SUN)


def companion_ranges(equation, k):
    """Positive ranges of one equation by numpy's companion matrix."""
    P, Q, E, R = (float(x[k]) for x in equation[:4])
    mu = equation.mu
    a, b, c = P * P + 2.0 * P * E + R * R, 2.0 * mu * Q * (P + E), (mu * Q) ** 2
    roots = np.roots([1.0, 0.0, -a, 0.0, 0.0, -b, 0.0, 0.0, -c])
    real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
    rho = P + Q * mu / real**3
    return np.sort(rho[rho > 0.0])


def test_all_roots_are_those_of_the_companion_matrix():
    equation = equations(3000, seed=1)
    rho, arc = positive_ranges(equation)
    counts = np.bincount(arc, minlength=3000)
    assert counts.max() <= 3
    assert {0, 1, 2} <= set(counts)
    differing = 0
    for k in range(3000):
        expected = companion_ranges(equation, k)
        found = np.sort(rho[arc == k])
        if len(expected) != len(found):
            differing += 1  # a double root, which the eigenvalues blur into a complex pair
            continue
        # rho is a difference of large numbers where P and Q mu / r^3 nearly cancel
        scale = abs(equation.P[k])
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * scale)
    assert differing <= 6


def test_the_roots_solve_the_equation():
    """To 1e-7 of the range at worst, where the polynomial nearly has a double root at rho = 0."""
    equation = equations(20_000, seed=2)
    rho, arc = positive_ranges(equation)
    misfit = np.abs(reference.misfit(columns.take(equation, arc), rho))
    assert misfit.max() < 1e-7
    assert np.percentile(misfit, 90.0) < 1e-13


def test_roots_are_ordered_by_arc():
    _, arc = positive_ranges(equations(5000, seed=3))
    assert (np.diff(arc) >= 0).all()


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.001, 5.0),
    st.floats(-1.0, 1.0),
    st.floats(-6.0, 6.0),
    st.booleans(),
)
def test_a_planted_range_is_found(rho, cosine, log_size, positive):
    Q = (1.0 if positive else -1.0) * 10.0**log_size
    E = np.array([cosine])
    equation = RangeEquation(np.array([0.0]), np.array([Q]), E, np.array([1.0]), GM_SUN)
    radius = reference.radius(equation, np.array([rho]))
    if radius[0] < 0.05:
        return  # an object inside the Sun's corona
    equation = equation._replace(P=rho - equation.Q * GM_SUN / radius**3)
    slope = abs(reference.slope(equation, np.array([rho]))[0])
    blur = np.finfo(float).eps * (1.0 + equation.P[0] ** 2) / max(slope, 1e-300)
    if blur > 1e-4 * rho:
        return  # two roots merging, or no digits left
    found, arc = positive_ranges(equation)
    assert (arc == 0).all()
    assert np.min(np.abs(found - rho)) < 1e-9 * rho + 1000.0 * blur


def test_the_observer_itself_is_no_root():
    """r = R, rho = 0 solves the equation whenever P = -Q mu / R^3; only positive ranges count."""
    Q = np.array([1.0e3])
    one = np.ones(1)
    rho, _ = positive_ranges(RangeEquation(-Q * GM_SUN, Q, 0.3 * one, one, GM_SUN))
    assert (rho > 1e-9).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["P", "Q"])
def test_an_equation_without_numbers_has_no_roots_and_harms_no_neighbour(field, bad):
    equation = equations(5, seed=4)
    expected = positive_ranges(equation)
    spoiled = getattr(equation, field).copy()
    spoiled[2] = bad
    rho, arc = positive_ranges(equation._replace(**{field: spoiled}))
    keep = expected[1] != 2
    np.testing.assert_array_equal(rho[arc != 2], expected[0][keep])
    assert not (arc == 2).any()


def test_no_equations():
    rho, arc = positive_ranges(equations(0, seed=5))
    assert len(rho) == len(arc) == 0


def test_units_do_not_matter():
    equation = equations(500, seed=6)
    length, time = 1.495978707e11, 86_400.0
    scaled = RangeEquation(
        equation.P * length,
        equation.Q * length * time**2,
        equation.E * length,
        equation.R * length,
        GM_SUN * length**3 / time**2,
    )
    # rho = P + Q mu / r^3 asks Q to carry time^2 length
    rho, arc = positive_ranges(equation)
    other, other_arc = positive_ranges(scaled)
    np.testing.assert_array_equal(arc, other_arc)
    np.testing.assert_allclose(other / length, rho, rtol=1e-6, atol=1e-9)


def test_slope_is_the_derivative_and_polish_follows_a_moved_root():
    equation = equations(2000, seed=7)
    rho, arc = positive_ranges(equation)
    taken = columns.take(equation, arc)
    h = 1e-6 * rho

    def value(x):
        return reference.misfit(taken, x) * x

    slope = reference.slope(taken, rho)
    steady = np.abs(slope) > 0.2
    derivative = (value(rho + h) - value(rho - h)) / (2.0 * h)
    size = 1.0 + np.abs(taken.P) * 1e-9 / h
    assert (np.abs(derivative - slope)[steady] < 1e-3 * (np.abs(slope) + size)[steady]).all()
    moved = taken._replace(P=taken.P * (1.0 + 1e-6))
    polished = reference.polish(moved, rho)
    near = steady & (np.abs(taken.P) < 10.0) & (rho > 0.01)
    assert (np.abs(reference.misfit(moved, polished))[near] < 1e-8).mean() > 0.99


def test_compiled_roots_are_those_of_numpy():
    equation = equations(5000, seed=11)
    rho, arc = positive_ranges(equation)
    expected, its_arc = reference.positive_ranges(equation)
    np.testing.assert_array_equal(arc, its_arc)
    np.testing.assert_allclose(rho, expected, rtol=1e-11)
