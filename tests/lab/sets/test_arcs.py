"""From observations to arcs: triplets, rates, nights, and an account of every drop."""

from __future__ import annotations

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging import read_tracklets
from neoranging.constants import ARCSEC
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import form_arcs, local_night, make_arcs, to_core
from neoranging.records import RecordCount

MJD = 60_000.3  # night at G96


def observations(*tracks, station="G96", designation="A", mag=None, kind="ground"):
    """Table of tracks, each given by its epochs [d after MJD] and its motion in ra, dec [deg/d]."""
    t = np.concatenate([np.asarray(epochs, dtype=float) for epochs, _ in tracks])
    east = np.concatenate([np.asarray(epochs) * motion[0] for epochs, motion in tracks])
    north = np.concatenate([np.asarray(epochs) * motion[1] for epochs, motion in tracks])
    n = len(t)
    names = np.repeat(
        [f"{designation}{k}" for k in range(len(tracks))], [len(e) for e, _ in tracks]
    )
    return QTable(
        {
            "designation": names,
            "obstime": Time(np.full(n, MJD), t, format="mjd", scale="utc"),
            "ra": (east % 360.0) << u.deg,
            "dec": (10.0 + north) << u.deg,
            "mag": np.full(n, 20.0) if mag is None else np.asarray(mag, dtype=float),
            "band": np.full(n, "G"),
            "station": np.broadcast_to(station, n).copy(),
            "kind": np.broadcast_to(kind, n).copy(),
        }
    )


FAST = (1.0, 0.2)


def test_triplet_is_first_nearest_to_the_middle_and_last():
    table, account = form_arcs(observations(([0.0, 0.01, 0.024, 0.05], FAST)))
    assert account.counts["arcs"] == RecordCount(1, 1)
    t = [table[f"t{k}_mjd_tdb"][0] for k in "123"]
    np.testing.assert_allclose(np.diff(t), [0.024, 0.026], atol=1e-9)
    assert table["span_d"][0] == pytest.approx(0.05)
    assert table["n_obs"][0] == 4
    assert table["station"][0] == "G96"


def test_rates_are_coordinate_rates_wrapped_at_zero():
    track = observations(([-0.02, 0.0, 0.03], FAST))
    assert track["ra"][0] > 359 * u.deg
    table, _ = form_arcs(track)
    assert np.degrees(table["ra_rate_rad_d"][0]) == pytest.approx(1.0)
    assert np.degrees(table["dec_rate_rad_d"][0]) == pytest.approx(0.2)
    expected = np.hypot(np.cos(np.radians(10.0)), 0.2)
    assert np.degrees(table["proper_motion_rad_d"][0]) == pytest.approx(expected)


def test_poor_arcs_are_dropped_each_for_its_reason():
    short = 0.9e-3
    source = observations(
        ([0.0, 0.01, 0.02], FAST),
        ([0.0, 0.01], FAST),
        ([0.0, 0.0, 0.02], FAST),
        ([0.0, short / 2, short], FAST),
        ([0.0, 0.01, 0.02], (0.004, 0.0)),
    )
    # at the same moment from two stations; two records of one exposure would count once
    source["station"][5] = "703"
    table, account = form_arcs(source, group_by="night")
    assert table["designation"].tolist() == ["A0"]
    assert account.counts["arcs"] == RecordCount(
        5,
        1,
        {
            "fewer than three observations": 1,
            "two of the three epochs coincide": 1,
            "no longer than 0.001 d": 1,
            "no faster than 0.0001 rad/d": 1,
        },
    )
    assert len(form_arcs(source, group_by="night", least_motion=0.0, least_span=0.0)[0]) == 3


def test_stations_of_a_night_are_kept_apart_or_joined():
    stations = ["G96", "703", "G96", "703", "G96", "703"]
    source = observations((np.arange(6) * 0.01, FAST), station=stations)
    apart, _ = form_arcs(source)
    assert sorted(apart["station"]) == ["703", "G96"]
    joined, _ = form_arcs(source, group_by="night")
    assert joined["station"].tolist() == [""]
    assert joined["stations"].tolist() == stations


def test_only_the_ground_is_taken_and_every_drop_counted():
    kind = np.array(["ground"] * 3 + ["space"])
    source = observations(([0.0, 0.01, 0.02, 0.03], FAST), kind=kind)
    table, account = form_arcs(source)
    assert table["n_obs"].tolist() == [3]
    assert account.counts["observations"].reasons == {"observer not of the kinds asked for": 1}


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
def test_observers_without_a_place_are_dropped():
    table, account = form_arcs(observations(([0.0, 0.01, 0.02], FAST), station="zz9"))
    assert len(table) == 0
    assert account.counts["arcs"].reasons == {"an observer without a known place on the ground": 1}


def test_magnitude_is_the_lower_median_of_those_given():
    mags = [np.nan, 19.5, 19.1, 19.9, 19.3]
    table, _ = form_arcs(observations((np.arange(5) * 0.01, FAST), mag=mags))
    assert table["mag"][0] == np.float32(19.3)
    assert table["band"][0] == "G"
    table, _ = form_arcs(observations((np.arange(5) * 0.01, FAST), mag=np.full(5, np.nan)))
    assert np.isnan(table["mag"][0])
    assert table["band"][0] == ""


def test_nights_run_from_local_noon_to_noon():
    # noon at F51 (Haleakala, 203.7 deg east) is 22:25 UTC
    mjd = 60_000.0 + np.array([22.3, 22.5, 46.3, 46.5]) / 24.0
    assert local_night(mjd, np.full(4, "F51")).tolist() == [59_999, 60_000, 60_000, 60_001]
    assert local_night(mjd[:1], np.array(["???"])).tolist() == [60_000]


def test_nothing_makes_nothing():
    table, account = form_arcs(observations(([0.0], FAST)))
    assert len(table) == 0
    assert account.counts["arcs"] == RecordCount()
    assert account.counts["observations"].n_used == 0


@pytest.mark.parametrize("origin", ["topocenter", "geocenter"])
def test_columns_for_the_core_are_those_of_the_tracklets(origin):
    source = observations((np.arange(4) * 0.01, FAST), ([0.0, 0.02, 0.03], FAST), station="703")
    tracklets = read_tracklets(source)
    table, _ = form_arcs(tracklets)
    expected, got = tracklets.arcs(origin), to_core(table, origin)
    for name in ("offsets", "t", "ra", "dec", "sigma_ra", "sigma_dec"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    np.testing.assert_allclose(got.position, expected.position, rtol=0, atol=1e-16)
    np.testing.assert_allclose(got.velocity, expected.velocity, rtol=0, atol=1e-16)
    np.testing.assert_array_equal(got.triplet, expected.triplet)


def test_another_origin_is_refused():
    table, _ = form_arcs(observations(([0.0, 0.01, 0.02], FAST)))
    with pytest.raises(DatasetError, match="topocenter"):
        to_core(table, "heliocenter")


def test_rates_equal_those_of_the_attributable(simulate):
    simulated = simulate(200, 0.06, seed=2)
    a = simulated.arcs
    table, counts = make_arcs(
        a.offsets, a.t, a.ra, a.dec, sigma_ra=a.sigma_ra, sigma_dec=a.sigma_dec,
        stations=simulated.station, designation=np.full(200, "S"), night=np.zeros(200, dtype=int),
    )  # fmt: skip
    assert counts == RecordCount(200, 200)
    points = simulated.tracklets().attributable("three-point")
    motion = points.proper_motion.to_value(u.rad / u.d)
    np.testing.assert_allclose(table["proper_motion_rad_d"], motion, rtol=1e-6)
    assert (table["sigma_ra_rad"] == 0.2 * ARCSEC).all()


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
def test_real_files_add_up(shared):
    table, account = form_arcs(str(shared / "data" / "rwo" / "1685.rwo"))
    records, seen = account.counts["records"], account.counts["observations"]
    assert records.n_used == seen.n_read
    assert records.reasons["radar delay or Doppler, not an optical position"] == 9
    assert seen.reasons["rejected from its orbit by the file"] == 26
    assert len(table) == account.counts["arcs"].n_used == 749


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
def test_real_observations_of_many_objects(shared):
    import pandas as pd

    names = {"mjd_utc": "obstime", "ra_deg": "ra", "dec_deg": "dec"}
    frame = pd.read_csv(
        shared / "data" / "real_obs.csv.gz", dtype={"designation": str, "station": str}
    ).rename(columns=names)[["designation", "obstime", "ra", "dec", "mag", "station"]]
    table, account = form_arcs(frame)
    # the makers of the file count 6,715 groups of three and more over 1.44 minutes
    assert len(table) == pytest.approx(6715, abs=10)
    assert account.counts["observations"].n_read == 46_273
    assert np.isfinite(to_core(table).position).all()
