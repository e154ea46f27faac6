"""The region's core against OrbFit (Pisa), against polynomial roots, and against its own claims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import admissible as reference
from scipy import optimize

from neoranging.constants import GM_EARTH, GM_SUN, R_EARTH
from neoranging.core import admissible as ar
from neoranging.core.geometry import line_of_sight, line_of_sight_rate

# OrbFit, 2015 RN35 with 3, 1 and 20 nights: coefficients, far end [au], range-rates at 1e-4 au.
ORBFIT = {
    "N3": ([1.01316, 3.04833e-2, 1.25118e-3, 5.47587e-4, 2.92308e-4, 8.84022e-1],
           0.399450, -0.038217, 0.007734),
    "N1": ([1.01417, 3.01636e-2, 9.49973e-4, 5.17270e-4, 2.98046e-4, 9.36537e-1],
           0.428882, -0.037820, 0.007656),
    "N20": ([1.00609, -3.01292e-2, 2.91379e-5, -9.13580e-5, 2.98597e-4, 9.89547e-1],
            3.73106, -0.007703, 0.037832),
}  # fmt: skip
FILES = ["2015RN35_N20_0_ar.sample", "2015RN35_N3_total.ar_sample"]

angles = st.floats(-3.2, 3.2)
rates = st.floats(-0.3, 0.3)
declinations = st.floats(-1.55, 1.55)


def earth_like_state(longitude=0.3, radius=1.0, speed=1.0):
    obliquity = 0.4090926
    turn = np.array(
        [[1, 0, 0], [0, np.cos(obliquity), -np.sin(obliquity)],
         [0, np.sin(obliquity), np.cos(obliquity)]]
    )  # fmt: skip
    position = turn @ np.array([np.cos(longitude), np.sin(longitude), 0.0]) * radius
    velocity = turn @ np.array([-np.sin(longitude), np.cos(longitude), 0.0])
    return position, velocity * speed * np.sqrt(GM_SUN / radius)


def random_coefficients(n, seed=1):
    rng = np.random.default_rng(seed)
    states = [earth_like_state(x) for x in rng.uniform(0, 2 * np.pi, n)]
    position, velocity = (np.array(part) for part in zip(*states, strict=True))
    rate = 10 ** rng.uniform(-4, -0.5, n)
    direction = rng.uniform(0, 2 * np.pi, n)
    dec = np.arcsin(rng.uniform(-1, 1, n))
    return ar.energy_coefficients(
        rng.uniform(0, 2 * np.pi, n),
        dec,
        rate * np.cos(direction) / np.cos(dec),
        rate * np.sin(direction),
        position,
        velocity,
    )


def slow_retrograde_coefficients(distance=20.0):
    """An object at opposition that is seen to move back at (v_earth / distance)."""
    v = np.sqrt(GM_SUN)
    position, velocity = np.array([1.0, 0.0, 0.0]), np.array([0.0, v, 0.0])
    return ar.energy_coefficients(0.0, 0.0, -v / distance, 0.0, position, velocity)


def read_orbfit(path: Path):
    header, rows = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("%"):
            name, _, value = line[1:].partition("=")
            header[name.strip()] = value.replace("[au]", "").replace("[au/day]", "").split()
        else:
            rows.append([float(x) for x in line.split()])
    return header, np.array([row for row in rows if len(row) == 11])


@pytest.mark.parametrize("name", ORBFIT)
def test_far_end_and_range_rates_of_orbfit(name):
    numbers, far, low, high = ORBFIT[name]
    c = np.array(numbers)
    # OrbFit ends its range where a = 400 au, its range-rates where E = 0; c has six digits.
    roots = ar.range_roots(ar.limit_semimajor_axis(c, 400.0))
    assert np.count_nonzero(np.isfinite(roots)) == 1
    assert roots[0] == pytest.approx(far, rel=2e-5)
    assert ar.range_rate_interval(c, 1e-4) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_every_grid_row_of_orbfit(shared, name):
    header, rows = read_orbfit(shared / "data" / "orbfit_2015RN35" / name)
    c = np.array([float(x) for x in header["Coefficients"]])
    assert len(rows) >= 1600
    rho, rho_dot, e_sun, e_earth = rows[:, 2], rows[:, 3], rows[:, 8], rows[:, 9]
    assert ar.sun_energy(c, rho, rho_dot) == pytest.approx(e_sun, abs=1e-8)
    if "N3_total" in name:
        assert ar.earth_energy(c, rho, rho_dot) == pytest.approx(e_earth, abs=1e-8)
        inside = (e_sun <= 0) & (e_earth >= 0)
        clear = (np.abs(e_sun) > 1e-8) & (np.abs(e_earth) > 1e-8)
        assert np.array_equal(ar.is_admissible(c, rho, rho_dot)[clear], inside[clear])
    far = ar.range_roots(ar.limit_semimajor_axis(c, 400.0))[0]
    assert far == pytest.approx(rho.max(), rel=2e-5)


def test_orbfit_earth_energy_seen_from_a_station(shared):
    """The 20-night file counts the observer's place and motion about the geocentre.

    Adding a station d, d' to the range vector reproduces its column with a station on the ground.
    """
    header, rows = read_orbfit(shared / "data" / "orbfit_2015RN35" / FILES[0])
    c = np.array([float(x) for x in header["Coefficients"]])
    rho, rho_dot, expected = rows[:, 2], rows[:, 3], rows[:, 9]

    def energy(p):
        geocentric = np.sqrt(rho**2 + 2 * rho * p[0] * R_EARTH + R_EARTH**2)
        kinetic = ar.earth_energy(c, rho, rho_dot) + GM_EARTH / rho
        speed = 1e-4 * (p[1] * rho_dot + 1e-2 * p[2] * rho) + 0.5e-8 * p[3]
        return kinetic + speed - GM_EARTH / geocentric

    fit = optimize.least_squares(lambda p: 1e8 * (energy(p) - expected), [0.5, 0.0, 0.0, 1.0])
    assert energy(fit.x) == pytest.approx(expected, abs=1e-8)
    elevation, along, _, square = fit.x
    assert 0.0 < elevation <= 1.0
    assert abs(along) * 1e-4 < 2.7e-4  # no faster than the equator turns
    assert 0.0 < np.sqrt(square) * 1e-4 < 2.7e-4


@pytest.mark.parametrize("name", FILES)
def test_coefficients_of_orbfit_from_its_attributable(shared, name):
    """c2 is all attributable; the others bound the observer's state (the file omits it)."""
    header, _ = read_orbfit(shared / "data" / "orbfit_2015RN35" / name)
    ra, dec, ra_rate, dec_rate = (float(x) for x in header["Attributable"])
    expected = np.array([float(x) for x in header["Coefficients"]])
    # Any state with the observer's components along and across the line of sight will do.
    sight = line_of_sight(ra, dec)
    motion = line_of_sight_rate(ra, dec, ra_rate, dec_rate)
    eta = np.sqrt(motion @ motion)
    across = np.cross(sight, motion / eta)
    along, forward = expected[1] / 2, expected[3] / 2 / eta
    side = np.sqrt(expected[4] - along**2 - forward**2)
    velocity = along * sight + forward * motion / eta + side * across
    radial = expected[5] / 2
    position = radial * sight + np.sqrt(expected[0] - radial**2) * across
    c = ar.energy_coefficients(ra, dec, ra_rate, dec_rate, position, velocity)
    assert c == pytest.approx(expected, rel=1e-5)


def test_a_newly_found_impactor_lies_in_its_region():
    """2024 BX1: attributable of NEOs.jl's tests; range 0.000747 au; Earth on 2024-01-20.91."""
    day = np.pi / 180
    position = np.array([-0.4919, 0.7852, 0.3404])  # 0.984 au, ecliptic longitude 120 deg
    velocity = np.array([-0.01523, -0.00787, -0.00341])
    c = ar.energy_coefficients(
        116.61547 * day, 45.39840 * day, -3.21667 * day, 5.76667 * day, position, velocity
    )
    low, high = ar.range_rate_interval(c, 0.000747)
    rate = np.linspace(low, high, 101)
    assert ar.is_admissible(c, 0.000747, rate).sum() > 80
    assert ar.is_admissible(c, 0.000747, -0.0085)


@given(angles, declinations, rates, rates, angles, st.floats(0.01, 5), st.floats(-0.03, 0.03))
def test_energy_is_that_of_the_state(ra, dec, ra_rate, dec_rate, longitude, rho, rho_dot):
    position, velocity = earth_like_state(longitude)
    c = ar.energy_coefficients(ra, dec, ra_rate, dec_rate, position, velocity)
    sight = line_of_sight(np.float64(ra), np.float64(dec))
    motion = line_of_sight_rate(*(np.float64(x) for x in (ra, dec, ra_rate, dec_rate)))
    r = position + rho * sight
    v = velocity + rho_dot * sight + rho * motion
    direct = 0.5 * v @ v - GM_SUN / np.sqrt(r @ r)
    assert ar.sun_energy(c, rho, rho_dot) == pytest.approx(direct, rel=1e-10, abs=1e-15)
    own = 0.5 * (rho_dot**2 + rho**2 * motion @ motion) - GM_EARTH / rho
    assert ar.earth_energy(c, rho, rho_dot) == pytest.approx(own, rel=1e-12, abs=1e-18)


def sextic_roots(c, mu=GM_SUN):
    """The usual way: square, solve the companion matrix, keep what was there before squaring."""
    transverse = np.array([c[2], c[3], c[4] - c[1] ** 2 / 4])
    distance2 = np.array([1.0, c[5], c[0]])
    sextic = np.polymul(np.polymul(transverse, transverse), distance2)
    roots = np.roots(np.polysub(sextic, [4 * mu**2]))
    real = np.sort(roots[(np.abs(roots.imag) < 1e-7 * np.abs(roots)) & (roots.real > 0)].real)
    value = np.polyval(transverse, real) * np.sqrt(np.polyval(distance2, real))
    return real[np.abs(value / (2 * mu) - 1) < 1e-4]


@pytest.mark.parametrize("a_max", [np.inf, 3.0, 0.7])
def test_roots_agree_with_the_sextic(a_max):
    c = ar.limit_semimajor_axis(random_coefficients(400), a_max)
    c = np.vstack([c, [slow_retrograde_coefficients(d) for d in (5.0, 12.0, 20.0, 40.0)]])
    for row, padded in zip(c, ar.range_roots(c), strict=True):
        expected = sextic_roots(row)
        found = padded[np.isfinite(padded)]
        assert len(found) == len(expected)
        assert found == pytest.approx(expected, rel=1e-7)


def with_odd_rows(c, seed=7):
    """Coefficients of which one in each row is replaced by a number that no arc should have."""
    odd, rng = c.copy(), np.random.default_rng(seed)
    numbers = [np.nan, np.inf, -np.inf, 0.0, 1e300, -1e-300]
    odd[np.arange(len(c)), rng.integers(0, 6, len(c))] = rng.choice(numbers, len(c))
    return odd


@pytest.mark.parametrize("a_max", [np.inf, 3.0, 0.7])
def test_compiled_rows_are_those_of_numpy(a_max):
    c = ar.limit_semimajor_axis(random_coefficients(2000, seed=8), a_max)
    c = np.vstack([c, with_odd_rows(c[:300])])
    with np.errstate(all="ignore"):
        intervals = reference.range_intervals(c)
        np.testing.assert_allclose(ar.range_roots(c), reference.range_roots(c), rtol=1e-12)
        np.testing.assert_allclose(ar.range_intervals(c), intervals, rtol=1e-12)
        limits = ar.range_limits(c)
        near, far = np.fmin.reduce(intervals[..., 0], 1), np.fmax.reduce(intervals[..., 1], 1)
        np.testing.assert_allclose(limits, np.stack([near, far], axis=1), rtol=1e-12)
        widest = reference.widest_strip(c, limits)
        np.testing.assert_allclose(ar.widest_strip(c, limits), widest, rtol=1e-9)


def test_one_point_is_judged_as_many_are():
    c = random_coefficients(400, seed=10)
    rng = np.random.default_rng(10)
    rho, rho_dot = 10.0 ** rng.uniform(-5.0, 1.0, 400), rng.normal(0.0, 0.01, 400)
    energy = rng.normal(-1e-4, 1e-4, 400)
    rho[:2] = np.nan, -1.0
    expected = ar.is_admissible(c, rho, rho_dot, energy)
    assert 40 < expected.sum() < 360
    points = zip(c, rho, rho_dot, energy, strict=True)
    assert [ar.is_inside(*point) for point in points] == expected.tolist()


def test_compiled_coefficients_are_those_of_numpy():
    rng = np.random.default_rng(9)
    sky = rng.uniform([-7, -1.6, -1, -1], [7, 1.6, 1, 1], (500, 4)).T
    state = rng.standard_normal((2, 500, 3))
    found = ar.energy_coefficients(*sky, *state)
    np.testing.assert_allclose(found, reference.energy_coefficients(*sky, *state), rtol=1e-11)
    # an object at rest over many directions, and one direction from many places
    grid = ar.energy_coefficients(sky[0][:, None], sky[1], 0.0, 0.0, *state)
    assert grid.shape == (500, 500, 6)
    one = ar.energy_coefficients(1.0, 0.5, 0.1, 0.2, *state)
    np.testing.assert_allclose(
        one[3], reference.energy_coefficients(1.0, 0.5, np.float64(0.1), 0.2, *state[:, 3])
    )


def test_the_strip_has_no_width_at_a_root():
    c = random_coefficients(2000, seed=3)
    roots = ar.range_roots(c)
    with np.errstate(invalid="ignore"):
        closure = ar.sun_energy(c[:, None], roots, -0.5 * c[:, None, 1])
    assert np.nanmax(np.abs(closure)) < 1e-17
    assert np.all(np.isfinite(roots[:, 0]))
    assert np.all(np.isfinite(roots).sum(axis=1) % 2 == 1)


def test_two_components_of_a_slow_retrograde_object():
    intervals = ar.range_intervals(slow_retrograde_coefficients(20.0))
    (near, gap), (reopen, far) = intervals
    assert near == R_EARTH
    assert gap < reopen < 20.0 < far
    c = slow_retrograde_coefficients(20.0)
    assert np.isnan(ar.range_rate_interval(c, 0.5 * (gap + reopen))[0])
    assert ar.is_admissible(c, 20.0, 0.0)
    assert np.isnan(ar.range_intervals(slow_retrograde_coefficients(5.0))[1]).all()


def test_intervals_are_where_the_strip_is_open():
    c = ar.limit_semimajor_axis(random_coefficients(300, seed=5), 0.9)
    intervals = ar.range_intervals(c)
    rho = np.geomspace(R_EARTH * 1.001, 50.0, 4000)
    open_strip = np.isfinite(ar.range_rate_interval(c[:, None], rho)[0])
    low, high = intervals[..., 0, None], intervals[..., 1, None]
    covered = ((rho >= low) & (rho <= high)).any(axis=1)
    assert np.array_equal(covered, open_strip)
    assert not open_strip[:, 0].all()  # the limit shuts some regions near the Earth


def test_ranges_at_which_the_strip_closes():
    c = np.stack([slow_retrograde_coefficients(d) for d in (5.0, 20.0)])
    (one, _), (near, far) = ar.range_intervals(c)
    expected = [[one[1], one[1], one[1]], [near[1], far[0], far[1]]]
    np.testing.assert_array_equal(ar.closing_ranges(c), expected)


def test_near_limit_is_respected():
    c = random_coefficients(50)
    far = ar.range_roots(c)[:, 0]
    intervals = ar.range_intervals(c, rho_min=0.5 * far)
    assert np.array_equal(intervals[:, 0, 0], 0.5 * far)
    assert np.isnan(ar.range_intervals(c, rho_min=1e3)).all()


def test_semimajor_axis_limit_is_an_energy_limit():
    c = random_coefficients(200)
    low, high = ar.range_rate_interval(ar.limit_semimajor_axis(c, 5.0), 0.01)
    for edge in (low, high):
        assert ar.sun_energy(c, 0.01, edge) == pytest.approx(-GM_SUN / 10.0, rel=1e-10)


def test_escape_rate_is_where_the_earth_lets_go():
    c = random_coefficients(200)
    end = ar.earth_bound_range(c)
    rate = ar.escape_rate(c, 0.5 * end)
    assert ar.earth_energy(c, 0.5 * end, rate) == pytest.approx(np.zeros(200), abs=1e-18)
    assert np.array_equal(ar.escape_rate(c, 1.001 * end), np.zeros(200))


def test_escape_rate_is_zero_at_the_end_of_the_bound_ranges():
    """Not the root of a rounding error, 1e-8 of the motion: for single rows and for many alike."""
    c = random_coefficients(500)
    assert np.array_equal(ar.escape_rate(c, ar.earth_bound_range(c)), np.zeros(500))
    assert not any(ar.escape_rate(row, ar.earth_bound_range(row)) for row in c)
    assert np.isnan(ar.escape_rate(c, np.nan)).all()


@pytest.mark.parametrize("bad", [np.nan, -1.0, 0.0, 1e-6])
def test_nonsense_is_not_admissible(bad):
    assert not ar.is_admissible(random_coefficients(1)[0], bad, 0.001)
    assert not ar.is_admissible(random_coefficients(1)[0], 0.1, np.nan)


def test_no_motion_at_all():
    """Without angular rate the far end is finite; without transverse velocity it is infinite."""
    v = np.sqrt(GM_SUN)
    x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    across = ar.energy_coefficients(0.0, 0.0, 0.0, 0.0, x, v * y)
    assert ar.range_roots(across)[0] == pytest.approx(1.0, rel=1e-12)  # 2 mu / (1 + rho) = mu
    along = ar.energy_coefficients(0.0, 0.0, 0.0, 0.0, x, v * x)
    assert ar.range_roots(along)[0] == np.inf
    assert ar.range_intervals(along)[0, 1] == np.inf


def test_absolute_magnitude():
    position, velocity = earth_like_state()
    c = ar.energy_coefficients(0.0, 0.0, 0.01, 0.0, position, velocity)
    r = ar.heliocentric_distance(c, 1.0)
    flat = ar.absolute_magnitude(c, 1.0, 20.0)
    sight = line_of_sight(np.float64(0.0), np.float64(0.0))
    target = position + sight
    phase = np.arccos(target @ sight / r)
    phi = [np.exp(-a * np.tan(phase / 2) ** b) for a, b in ((3.33, 0.63), (1.87, 1.22))]
    expected = 20.0 - 5 * np.log10(r) + 2.5 * np.log10(0.85 * phi[0] + 0.15 * phi[1])
    assert flat == pytest.approx(expected, rel=1e-12)


def test_shapes_broadcast():
    c = random_coefficients(6).reshape(2, 3, 6)
    assert ar.range_roots(c).shape == (2, 3, 4)
    assert ar.range_intervals(c).shape == (2, 3, 2, 2)
    assert ar.is_admissible(c[..., None, :], np.geomspace(1e-3, 1, 7), 0.0).shape == (2, 3, 7)
    assert ar.range_roots(c[:0]).shape == (0, 3, 4)
