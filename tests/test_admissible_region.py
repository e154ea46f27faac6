"""The admissible region as an object: its claims about itself, on random attributables."""

from __future__ import annotations

import copy
import json
import pickle
from types import SimpleNamespace

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.admissible_region import AdmissibleRegion
from neoranging.attributable import Attributable
from neoranging.constants import GM_SUN, R_EARTH
from neoranging.core import admissible as core
from neoranging.exceptions import AdmissibleRegionError
from neoranging.tracklet import Tracklet

N3 = [1.01316, 3.04833e-2, 1.25118e-3, 5.47587e-4, 2.92308e-4, 8.84022e-1]  # OrbFit, 2015 RN35
RATE = u.au / u.day
V_EARTH = np.sqrt(GM_SUN)


def attributable(ra=0.0, dec=0.0, eta=0.01, turn=0.0, longitude=0.0):
    """An observer on a circular orbit in the equator's plane."""
    position = np.array([np.cos(longitude), np.sin(longitude), 0.0])
    velocity = V_EARTH * np.array([-np.sin(longitude), np.cos(longitude), 0.0])
    return SimpleNamespace(
        ra=np.rad2deg(ra) * u.deg,
        dec=np.rad2deg(dec) * u.deg,
        ra_rate=np.rad2deg(eta * np.cos(turn) / np.cos(dec)) * u.deg / u.day,
        dec_rate=np.rad2deg(eta * np.sin(turn)) * u.deg / u.day,
        observer_position=position * u.au,
        observer_velocity=(velocity * RATE).to(u.km / u.s),
    )


def two_components():
    """At opposition, moving back as slowly as something beyond Saturn."""
    return AdmissibleRegion(attributable(eta=V_EARTH / 20.0, turn=np.pi))


attributables = st.builds(
    attributable,
    ra=st.floats(0, 6.28),
    dec=st.floats(-1.4, 1.4),
    eta=st.floats(-4, -0.5).map(lambda x: 10**x),
    turn=st.floats(0, 6.28),
)
limits = st.sampled_from([{}, {"a_max": 5 * u.au}, {"rho_min": 0.01 * u.au}])


def polygon_area(curve):
    x, y = curve.range.value, curve.range_rate.value
    return 0.5 * abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]))


def test_units_at_the_border_do_not_matter():
    region = AdmissibleRegion(attributable(eta=0.02))
    rho, rho_dot = 0.05 * u.au, -0.003 * RATE
    assert region.contains(rho.to(u.km), rho_dot.to(u.km / u.s))
    assert region.contains(rho, rho_dot)
    with pytest.raises(AdmissibleRegionError, match=r"`rho \* u.au`"):
        region.contains(0.05, rho_dot)
    with pytest.raises(AdmissibleRegionError, match=r"`a_max \* u.au`"):
        AdmissibleRegion(attributable(eta=0.02), a_max=3.0)
    here = attributable(eta=0.02)
    c = core.energy_coefficients(
        0.0, 0.0, 0.02, 0.0, here.observer_position.value, np.array([0, V_EARTH, 0])
    )
    assert region.coefficients == pytest.approx(c, rel=1e-12, abs=1e-18)


@settings(max_examples=40, deadline=None)
@given(attributables, limits, st.sampled_from(["linear", "log"]))
def test_samples_are_contained_and_agree_with_the_core(target, options, spacing):
    region = AdmissibleRegion(target, **options)
    rho, rho_dot = region.sample(300, np.random.default_rng(0), spacing=spacing)
    assert rho.shape == rho_dot.shape == (300,)
    assert region.contains(rho, rho_dot).all()
    assert core.is_admissible(region.coefficients, rho.value, rho_dot.value).all()
    assert (region.energy(rho, rho_dot) <= 0).all()
    assert (region.earth_energy(rho, rho_dot) >= 0).all()
    near, far = region.range_limits
    lowest, highest = region.range_rate_limits()
    assert near <= rho.min()
    assert rho.max() <= far
    assert lowest <= rho_dot.min()
    assert rho_dot.max() <= highest
    low, high = region.range_rate_limits(rho)
    assert ((low <= rho_dot) & (rho_dot <= high)).all()


@settings(max_examples=40, deadline=None)
@given(attributables, limits)
def test_boundary_lies_on_the_limits_of_energy(target, options):
    region = AdmissibleRegion(target, **options)
    level = -GM_SUN / (2 * options["a_max"].value) if "a_max" in options else 0.0
    for rho, rho_dot in region.boundary(60):
        assert rho[0] == rho[-1]
        assert rho_dot[0] == rho_dot[-1]
        sun = np.abs(region.energy(rho, rho_dot).value - level)
        earth = np.abs(region.earth_energy(rho, rho_dot).value)
        assert np.minimum(sun, earth).max() < 1e-15


@settings(max_examples=40, deadline=None)
@given(attributables, limits)
def test_area_is_that_of_the_boundary(target, options):
    region = AdmissibleRegion(target, **options)
    enclosed = sum(polygon_area(curve) for curve in region.boundary(4000))
    assert region.area.to_value(u.au**2 / u.day) == pytest.approx(enclosed, rel=1e-5)


@pytest.mark.parametrize("region", [AdmissibleRegion.from_coefficients(N3), two_components()])
def test_area_by_monte_carlo(region):
    near, far = region.range_limits.value
    low, high = (edge.value for edge in region.range_rate_limits())
    rng = np.random.default_rng(2)
    rho, rho_dot = rng.uniform((near, low), (far, high), (400_000, 2)).T
    share = region.contains(rho * u.au, rho_dot * RATE).mean()
    assert region.area.value == pytest.approx(share * (far - near) * (high - low), rel=0.01)


def test_samples_are_uniform():
    region = AdmissibleRegion.from_coefficients(N3)
    rho, _ = region.sample(40_000, np.random.default_rng(3))
    part = AdmissibleRegion.from_coefficients(N3, rho_min=0.1 * u.au)
    share = (part.area / region.area).to_value(u.one)
    assert np.mean(rho > 0.1 * u.au) == pytest.approx(share, abs=0.01)
    rho, _ = region.sample(40_000, np.random.default_rng(3), spacing="log")
    # The strip hardly narrows below 0.01 au: each decade there gets the same number.
    decades = np.histogram(np.log10(rho.value), [-4, -3, -2])[0]
    assert decades[1] / decades[0] == pytest.approx(1.0, abs=0.1)


def test_range_rate_limits_are_attained():
    region = AdmissibleRegion.from_coefficients(N3)
    lowest, highest = region.range_rate_limits()
    low, high = region.range_rate_limits(np.geomspace(R_EARTH, 0.3998, 5000) * u.au)
    assert lowest.value == pytest.approx(low.value.min(), abs=1e-9)
    assert highest.value == pytest.approx(high.value.max(), abs=1e-9)
    outside = region.range_rate_limits([[1e-6, 0.5]] * u.au)
    assert np.isnan(outside).all()
    assert outside[0].shape == (1, 2)


def test_two_components():
    region = two_components()
    assert region.components.shape == (2, 2)
    (_, gap), (reopen, far) = region.components
    assert gap < reopen < 20 * u.au < far
    curves = region.boundary()
    assert len(curves) == 2
    assert curves[0].range.max() == gap
    assert curves[1].range.min() == reopen
    rho, _ = region.sample(2000, np.random.default_rng(1))
    assert (rho > reopen).any()
    assert (rho < gap).any()
    middle = (0.5 * (gap + reopen), -0.5 * region.coefficients[1] * RATE)
    assert not region.contains(*middle)


@pytest.mark.parametrize("eta", np.geomspace(0.005, 0.05, 8))
def test_earth_bound_orbits_are_a_notch(eta):
    region = AdmissibleRegion(attributable(eta=eta))
    rho = 1e-4 * u.au
    escape = float(core.escape_rate(region.coefficients, rho.value))
    assert list(region.contains(rho, np.array([-1.01, -0.99, 0.99, 1.01]) * escape * RATE)) == [
        True, False, False, True,
    ]  # fmt: skip
    (curve,) = region.boundary()
    inner_end = core.earth_bound_range(region.coefficients)
    assert np.any((curve.range.value == inner_end) & (curve.range_rate.value == 0.0))


def test_notch_to_the_far_end_makes_two_curves():
    """So slow that the geocentric energy is negative at zero range-rate everywhere."""
    region = AdmissibleRegion(attributable(eta=1e-5, turn=0.3), a_max=1.2 * u.au)
    assert core.earth_bound_range(region.coefficients) > region.range_limits[1].value
    assert len(region.boundary()) == 2
    enclosed = sum(polygon_area(curve) for curve in region.boundary(4000))
    assert region.area.value == pytest.approx(enclosed, rel=1e-5)


def test_strip_within_the_notch_is_no_component():
    """A limit on a can shut one finger, or all of the region near the Earth."""
    target = attributable(longitude=1.5 * np.pi, eta=0.02, turn=np.pi)
    wide = AdmissibleRegion(target, rho_min=5e-5 * u.au)
    narrow = AdmissibleRegion(target, a_max=0.52 * u.au)
    assert narrow.area < wide.area
    for rho, rho_dot in narrow.boundary(50):
        outside = narrow.energy(rho, rho_dot).value + GM_SUN / 1.04
        assert np.minimum(
            np.abs(outside), np.abs(narrow.earth_energy(rho, rho_dot).value)
        ).max() < (1e-15)
    enclosed = sum(polygon_area(curve) for curve in narrow.boundary(4000))
    assert narrow.area.value == pytest.approx(enclosed, rel=1e-5)


def test_semimajor_axis_limit():
    free = AdmissibleRegion.from_coefficients(N3)
    held = AdmissibleRegion.from_coefficients(N3, a_max=400 * u.au)
    assert held.range_limits[1].value == pytest.approx(0.39945, rel=2e-5)  # OrbFit's own end
    tight = AdmissibleRegion.from_coefficients(N3, a_max=2 * u.au)
    rho, rho_dot = tight.sample(2000, np.random.default_rng(1))
    energy = tight.energy(rho, rho_dot).value
    assert (-GM_SUN / (2 * energy)).max() <= 2.0 + 1e-12
    assert tight.area < held.area < free.area
    assert free.contains(rho, rho_dot).all()


def test_shooting_star_limit():
    region = AdmissibleRegion.from_coefficients(N3, h_max=30.0, mag=21.0)
    near = region.range_limits[0].value
    h = core.absolute_magnitude(np.array(N3), near, 21.0)
    assert h == pytest.approx(30.0, abs=1e-9)
    bright = AdmissibleRegion.from_coefficients(N3, h_max=30.0, mag=12.0)
    assert bright.range_limits[0].value < near
    huge = AdmissibleRegion.from_coefficients(N3, h_max=100.0, mag=20.0)
    assert huge.range_limits[0].value == R_EARTH
    assert AdmissibleRegion.from_coefficients(N3, h_max=5.0, mag=21.0).is_empty


def test_near_limit_never_enters_the_earth():
    region = AdmissibleRegion.from_coefficients(N3, rho_min=1 * u.km)
    assert region.range_limits[0].value == R_EARTH


def test_empty_region_says_so():
    region = AdmissibleRegion.from_coefficients(N3, rho_min=1 * u.au)
    assert region.is_empty
    assert region.components.shape == (0, 2)
    assert region.area == 0 * u.au**2 / u.day
    assert region.boundary() == ()
    assert not region.contains(0.1 * u.au, -0.01 * RATE)
    assert np.isnan(region.range_rate_limits(0.1 * u.au)[0])
    assert "empty" in repr(region)
    for call in (
        lambda: region.sample(3, np.random.default_rng(0)),
        lambda: region.range_limits,
        region.range_rate_limits,
    ):
        with pytest.raises(AdmissibleRegionError, match="relax"):
            call()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"a_max": -1 * u.au}, "positive"),
        ({"h_max": 30.0}, "mag"),
        ({"h_max": 30.0, "mag": np.nan}, "mag"),
    ],
)
def test_senseless_limits(options, match):
    with pytest.raises(AdmissibleRegionError, match=match):
        AdmissibleRegion.from_coefficients(N3, **options)


def test_senseless_attributables():
    with pytest.raises(AdmissibleRegionError, match="finite"):
        AdmissibleRegion.from_coefficients([np.nan] * 6)
    with pytest.raises(AdmissibleRegionError, match="six"):
        AdmissibleRegion.from_coefficients([N3, N3])
    target = attributable(eta=0.0)
    target.observer_velocity = [V_EARTH, 0, 0] * RATE
    with pytest.raises(AdmissibleRegionError, match="far end"):
        AdmissibleRegion(target)


def test_sampling_takes_nothing_but_its_generator():
    region = AdmissibleRegion.from_coefficients(N3)
    first, again = (region.sample(5, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert len(region.sample(0, np.random.default_rng(7))[0]) == 0
    with pytest.raises(AdmissibleRegionError, match="spacing"):
        region.sample(5, np.random.default_rng(7), spacing="cubic")


def test_immutable_and_portable():
    region = AdmissibleRegion.from_coefficients(N3)
    with pytest.raises(AttributeError):
        region.coefficients = np.zeros(6)
    with pytest.raises(ValueError, match="read-only"):
        region.coefficients[0] = 0.0
    for twin in (pickle.loads(pickle.dumps(region)), copy.deepcopy(region)):
        assert np.array_equal(twin.components, region.components)
    assert repr(region) == "<AdmissibleRegion: range 4.2635e-05 to 0.39986 AU>"


@settings(max_examples=30, deadline=None)
@given(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3), st.floats(-3, -1).map(lambda x: 10**x))
def test_lines_of_sight_past_the_sun(ra, dec, eta):
    """Close to the Sun the strip has a sharp peak, which area, outline and bounds must not miss."""
    if np.hypot(ra, dec) < 0.02:
        dec = 0.02
    region = AdmissibleRegion(attributable(ra=np.pi + ra, dec=dec, eta=eta, turn=0.4))
    enclosed = sum(polygon_area(curve) for curve in region.boundary(4000))
    assert region.area.value == pytest.approx(enclosed, rel=1e-4)
    near, far = region.range_limits
    dense = np.linspace(near, far, 20_000)
    low, high = region.range_rate_limits(dense)
    lowest, highest = region.range_rate_limits()
    assert lowest <= np.nanmin(low)
    assert highest >= np.nanmax(high)
    width = (lowest.value, highest.value)
    assert width == pytest.approx((np.nanmin(low.value), np.nanmax(high.value)), rel=2e-3)


def test_true_orbits_of_real_tracklets_lie_inside(shared):
    """Impactors on their last night and ordinary objects, with the range JPL gives for them."""
    objects = json.loads((shared / "cases" / "truth_tracklets.json").read_text())
    seen = 0
    for name, entry in objects.items():
        for night in entry["tracklets"]:
            rows = night["obs"]
            tracklet = Tracklet(
                Time([row["utc"] for row in rows], scale="utc"),
                SkyCoord([row["ra"] for row in rows], [row["dec"] for row in rows], unit="deg"),
                station=night["obscode"],
            )
            attributable = tracklet.attributable()
            middle = np.argmin(np.abs((tracklet.obstime - attributable.epoch).to_value(u.s)))
            truth = sorted(rows, key=lambda row: row["utc"])[middle]
            region = attributable.admissible_region(a_max=100 * u.au)
            assert region.contains(truth["rho_au"] * u.au, truth["rhodot_au_d"] * RATE), name
            seen += 1
    assert seen >= 15


def test_2024_bx1_as_neos_jl_has_it():
    """First tracklet of an impactor 0.000747 au away (NEOs.jl, test/orbitdetermination.jl)."""
    target = Attributable(
        Time("2024-01-20T21:50:15.360", scale="utc"),
        ra=116.61547 * u.deg,
        dec=45.39840 * u.deg,
        ra_rate=-3.21667 * u.deg / u.day,
        dec_rate=5.76667 * u.deg / u.day,
        station="K88",
    )
    region = target.admissible_region()
    rates = np.linspace(-0.02, 0.02, 201) * RATE
    inside = region.contains(0.000747 * u.au, rates)
    assert inside.any()
    assert (region.earth_energy(0.000747 * u.au, rates[inside]) > 0).all()
    assert not inside[100]  # at rest: a satellite of the Earth
