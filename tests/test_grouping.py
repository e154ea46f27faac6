"""Observations of one tracklet: identity, nights, stations, exposures, full accounting."""

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from astropy.utils.masked import Masked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import neoranging as nr
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError

STATIONS = ("G96", "703", "500", "F51", "C51")


def table_of(mjd, designation="x", station="G96", **columns):
    n = len(mjd)
    table = QTable(
        {
            "designation": np.broadcast_to(np.asarray(designation, dtype=np.str_), n),
            "obstime": Time(np.asarray(mjd, dtype=float), format="mjd", scale="utc"),
            "ra": np.linspace(10.0, 10.1, n) << u.deg,
            "dec": np.linspace(5.0, 5.1, n) << u.deg,
            "station": np.broadcast_to(np.asarray(station, dtype=np.str_), n),
        }
    )
    for name, values in columns.items():
        table[name] = values
    return table


def flown(mjd, station="C51", **columns):
    place = np.stack([7000.0 + 0.0 * mjd, 100.0 * (mjd - mjd[0]), 0.0 * mjd], axis=1)
    return table_of(mjd, station=station, kind=["space"] * len(mjd), observer_gcrs=place * u.km)


def read(source, **options):
    tracklets = nr.read_tracklets(source, **options)
    report = tracklets.report
    assert report.n_observations == report.n_used + sum(report.dropped.values())
    assert report.n_used == tracklets.counts.sum() == len(tracklets._columns.ra)
    assert report.n_tracklets == len(tracklets)
    assert all(count > 0 for count in report.dropped.values())
    return tracklets


class TestNights:
    def test_run_from_local_noon_to_local_noon(self):
        """At G96, 110.8 W, noon is at 19.4 h UTC: 0.808 of a day."""
        noon = 60_000.0 + 0.5 + 110.789 / 360.0
        times = noon + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(times)).counts) == [2, 2]

    def test_are_not_cut_at_midnight_utc(self):
        assert list(read(table_of([60_000.9, 60_000.99, 60_001.01, 60_001.1])).counts) == [4]

    def test_at_an_eastern_station(self):
        """Q63 Siding Spring, 149 E: noon at 2 h UTC."""
        noon = 60_000.5 - 149.07 / 360.0
        times = noon + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(times, station="Q63")).counts) == [2, 2]

    @pytest.mark.filterwarnings("ignore:.*no list of observatories has 'ZZZ'")
    @pytest.mark.parametrize("station", ["500", "ZZZ"])
    def test_without_a_longitude_end_at_a_pause(self, station):
        noon = 60_000.5 + np.array([-0.2, -0.01, 0.01, 0.2])
        assert list(read(table_of(noon, station=station)).counts) == [4]
        later = np.concatenate([noon, noon + 0.95])  # a pause of 13 h
        assert list(read(table_of(later, station=station)).counts) == [4, 4]

    def test_of_a_spacecraft_around_the_clock(self):
        """Four days of an observation every hour are tracklets of no more than a day."""
        tracklets = read(flown(60_000.3 + np.arange(97) / 24.0))
        assert tracklets.counts.sum() == 97
        assert list(tracklets.counts) == [24, 24, 24, 25]
        assert tracklets.arc_length.max() <= 1.0001 * u.d

    def test_of_a_spacecraft_over_noon(self):
        """Orbits of 95 minutes, from 10 h to 15 h UTC."""
        times = 60_000.4166 + np.arange(4) * 95.0 / 1440.0
        for group_by in ("night", "station"):
            assert list(read(flown(times), group_by=group_by).counts) == [4]

    def test_of_a_spacecraft_are_those_of_its_object(self):
        times = np.repeat(60_000.45 + np.arange(4) * 0.066, 2) + np.tile([0.0, 0.01], 4)
        table = flown(times)
        table["designation"] = ["a", "b"] * 4
        assert list(read(table).counts) == [4, 4]

    def test_of_a_spacecraft_beside_a_station(self):
        """By night, a run counts where its middle lies; noon does not divide it."""
        craft = flown(60_000.45 + np.arange(4) * 0.066)
        ground = table_of(60_000.6 + 0.01 * np.arange(3), station="M22")
        assert list(read([craft, ground], group_by="night").counts) == [7]
        assert sorted(read([craft, ground]).counts) == [3, 4]

    def test_of_a_roving_observer_are_local_too(self):
        place = np.array([0.0, 6.378e6, 0.0])  # 90 E, noon at 6 h UTC
        times = 60_000.25 + np.array([-0.2, -0.01, 0.01, 0.2])
        table = table_of(
            times,
            station="247",
            kind=["roving"] * 4,
            observer_itrf=np.tile(place, (4, 1)) << u.m,
        )
        assert list(read(table).counts) == [2, 2]


class TestGroups:
    def test_stations_are_kept_apart_by_default_and_joined_on_request(self):
        times = 60_000.1 + 0.01 * np.arange(6)
        table = table_of(times, station=["G96", "703"] * 3)
        assert sorted(read(table).counts) == [3, 3]
        joined = read(table, group_by="night")
        assert list(joined.counts) == [6]
        assert set(joined[0].station) == {"G96", "703"}
        for group_by in (("night", "station"), "station", ["station"]):
            assert list(read(table, group_by=group_by).counts) == [3, 3]

    @pytest.mark.parametrize("group_by", ["night", "station"])
    def test_nights_are_always_apart(self, group_by):
        assert list(
            read(table_of([60_000.1, 60_000.2, 60_001.1, 60_001.2]), group_by=group_by).counts
        ) == [2, 2]

    @pytest.mark.parametrize("group_by", ["night", "station"])
    def test_programmes_and_notes_divide_nothing(self, group_by):
        times = 60_000.1 + 0.01 * np.arange(4)
        for codes in (["1", "2", "1", "2"], ["", "", "K", "K"]):
            assert list(read(table_of(times, program=codes), group_by=group_by).counts) == [4]

    def test_objects_are_always_apart(self):
        times = 60_000.1 + 0.01 * np.arange(4)
        tracklets = read(table_of(times, designation=["a", "b", "a", "b"]), group_by="night")
        assert list(tracklets.designation) == ["a", "b"]

    def test_come_in_order_of_their_first_observation(self):
        times = [60_002.1, 60_002.2, 60_000.1, 60_000.2, 60_001.1, 60_001.2]
        tracklets = read(table_of(times, designation=["late"] * 2 + ["early"] * 2 + ["mid"] * 2))
        assert list(tracklets.designation) == ["early", "mid", "late"]

    @pytest.mark.parametrize("group_by", ["month", (), ("night", "object"), None])
    def test_that_make_no_sense(self, group_by):
        with pytest.raises((ObservationFormatError, TypeError)):
            nr.read_tracklets(table_of([60_000.1, 60_000.2]), group_by=group_by)


class TestAccounting:
    def test_lone_observations_are_counted(self):
        tracklets = read(table_of([60_000.1, 60_000.12, 60_005.1, 60_007.1]))
        assert list(tracklets.counts) == [2]
        (reason, count), *rest = tracklets.report.dropped.items()
        assert not rest
        assert "alone" in reason
        assert count == 2

    @pytest.mark.parametrize("group_by", ["night", ("night", "station")])
    def test_an_observation_counts_once_however_often_it_stands_there(self, group_by):
        once = table_of([60_000.1, 60_000.12, 60_000.15])
        tracklets = read([once, once[1:], once], group_by=group_by)
        assert list(tracklets.counts) == [3]
        assert tracklets.report.dropped == {"another record of the same exposure": 5}

    def test_a_repetition_of_an_observation_left_out_is_used(self):
        table = table_of([60_000.1, 60_000.1, 60_000.2], selected=[False, True, True])
        table["ra"], table["dec"] = [1.0, 1.0, 1.1] * u.deg, [5.0, 5.0, 5.1] * u.deg
        assert list(read(table).counts) == [2]

    def test_one_of_a_kind_is_told_in_the_singular(self):
        assert "\n1 observation: 0 in 0 tracklets" in f"\n{read(table_of([60_000.1])).report}"
        assert "in 1 tracklet\n" in f"{read(table_of([60_000.1, 60_000.2])).report}\n"

    def test_kinds_can_be_left_out(self):
        table = table_of(60_000.1 + 0.01 * np.arange(4), kind=["ground", "space"] * 2)
        assert list(read(table).counts) in ([2, 2], [4])
        ground = read(table, kinds="ground")
        assert list(ground.counts) == [2]
        assert sum(ground.report.dropped.values()) == 2
        with pytest.raises(ObservationFormatError, match="kinds"):
            nr.read_tracklets(table, kinds="lunar")

    def test_rejected_observations_can_be_asked_for(self):
        table = table_of(60_000.1 + 0.01 * np.arange(4), selected=[True, False, True, True])
        assert list(read(table).counts) == [3]
        assert list(read(table, selected_only=False).counts) == [4]

    def test_observations_without_weight(self):
        """A sigma of zero is none to divide by; one that is missing is that of the station."""
        sigma = np.array([0.3, np.nan, 0.3, 0.0]) << u.arcsec
        tracklets = read(
            table_of(60_000.1 + 0.01 * np.arange(4), sigma_ra=sigma, sigma_dec=abs(sigma))
        )
        assert list(tracklets.counts) == [3]
        np.testing.assert_allclose(tracklets[0].sigma[:, 0].to_value(u.arcsec), [0.3, 0.5, 0.3])
        assert any("sigma" in reason for reason in tracklets.report.dropped)

    def test_positions_that_are_no_numbers(self):
        """They cannot be estimated from; they must not turn into NaN with a verdict."""
        ra = np.array([10.0, np.nan, 10.02, 10.04]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), ra=ra))
        assert list(tracklets.counts) == [3]

    def test_declinations_beyond_a_pole(self):
        dec = np.array([5.0, 95.0, 5.1, 5.2]) << u.deg
        tracklets = read(table_of(60_000.1 + 0.01 * np.arange(4), dec=dec))
        assert list(tracklets.counts) == [3]
        assert "declination beyond a pole" in str(tracklets.report)

    def test_masked_positions(self):
        ra = np.ma.array([10.0, 0.0, 10.02, 10.04], mask=[False, True, False, False])
        table = table_of(60_000.1 + 0.01 * np.arange(4))
        table["ra"] = Masked(ra.data, mask=ra.mask) << u.deg
        assert list(read(table).counts) == [3]

    def test_an_empty_table(self):
        tracklets = read(table_of([]))
        assert len(tracklets) == 0
        assert len(tracklets.estimate("gauss")) == 0
        assert str(tracklets.report)

    def test_a_table_of_nothing_but_lone_observations(self):
        assert len(read(table_of([60_000.1]))) == 0

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.integers(0, 40),
                st.sampled_from(STATIONS),
                st.sampled_from([0.3, 0.3, 0.3, 0.0, np.nan, -1.0, np.inf]),
                st.sampled_from(["ground", "ground", "space", "roving"]),
                st.booleans(),
            ),
            max_size=30,
        ),
        st.sampled_from(["night", ("night", "station")]),
        st.sampled_from([("ground", "roving", "space"), "ground"]),
    )
    def test_of_random_tables(self, rows, group_by, kinds):
        columns = list(zip(*rows, strict=True)) or [[]] * 6
        designation, steps, station, sigma, kind, selected = columns
        n = len(rows)
        table = table_of(
            60_000.0 + 0.11 * np.array(steps, dtype=float),
            designation=np.array(designation, dtype="U1"),
            station=np.array(station, dtype="U3"),
            sigma_ra=np.array(sigma, dtype=float) << u.arcsec,
            sigma_dec=np.full(n, 0.3) << u.arcsec,
            kind=np.array(kind, dtype="U6"),
            selected=np.array(selected, dtype=bool),
        )
        tracklets = read(table, group_by=group_by, kinds=kinds)
        for tracklet in tracklets:
            mjd = tracklet.obstime.mjd
            assert (np.diff(mjd) >= 0.0).all()
            assert mjd[-1] > mjd[0]
            # nights of two stations are each a day long and lie up to a day apart
            assert mjd[-1] - mjd[0] <= (1.0 if "station" in group_by else 2.0)
            if group_by != "night":
                assert len(set(tracklet.station)) == 1
        firsts = [tracklet.obstime.mjd[0] for tracklet in tracklets]
        assert firsts == sorted(firsts)

    def test_the_order_of_rows_does_not_matter(self):
        rng = np.random.default_rng(0)
        times = 60_000.0 + 3.0 * rng.random(40)
        table = table_of(times, designation=rng.choice(list("ab"), 40), station="G96")
        shuffled = table[rng.permutation(40)]
        one, other = read(table), read(shuffled)
        np.testing.assert_array_equal(one.counts, other.counts)
        np.testing.assert_allclose(one.obstime.mjd, other.obstime.mjd)


def test_stations_of_unknown_place_keep_their_observations():
    with pytest.warns(NeoRangingWarning, match="3 observations .* has 'ZZZ'"):
        tracklets = read(table_of([60_000.1, 60_000.12, 60_000.14], station="ZZZ"))
    estimate = tracklets[0].estimate("gauss")
    assert estimate.status is nr.RangeStatus.UNKNOWN_OBSERVER
