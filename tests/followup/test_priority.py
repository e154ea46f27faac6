"""Order of what to observe next, of constructed nights."""

from types import SimpleNamespace

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.time import Time

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError
from neoranging.followup.ephemeris import Clouds, Ephemeris
from neoranging.followup.priority import ranking
from neoranging.orbits.samples import OrbitSamples

N = 400
TIMES = Time(["2025-03-02T06:00:00", "2025-03-03T06:00:00"], scale="utc")


class Night:
    """Constructed tracklets, one after the other, as an estimate and its ephemeris."""

    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.rows, self.names = [], []

    def add(
        self,
        name,
        *,
        spread=1.0,
        stretch=300.0,
        width=1.0,
        neo=1.0,
        impact=(0.0, 0.0),
        mag=19.0,
        altitude=50.0,
        sun=-30.0,
        status=RangeStatus.POPULATION,
        fallen=0.0,
    ):
        """Tracklet of a cloud that lies ``stretch`` arcsec along ln rho, ``width`` across it."""
        x, across = self.rng.normal(size=(2, N))
        east, north = (stretch * x, width * across) * np.array(ARCSEC)
        line = np.stack([east, np.ones(N), north], axis=-1)
        line /= np.linalg.norm(line, axis=-1, keepdims=True)
        line[: round(fallen * N)] = np.nan
        self.names.append(name)
        self.rows.append((0.05 * np.exp(spread * x), line, neo, impact, mag, altitude, sun, status))
        return self

    def ranked(self, monkeypatch, times=TIMES[:1], **options):
        rho, line, neo, impact, mag, altitude, sun, status = (
            np.array(column) for column in zip(*self.rows, strict=True)
        )
        n, t = len(rho), len(times)

        def each(column):
            return np.broadcast_to(column.reshape(n, -1), (n, t))

        monkeypatch.setattr(Ephemeris, "altitude", each(altitude) * u.deg)
        monkeypatch.setattr(Ephemeris, "sun_altitude", each(sun) * u.deg)
        misfit = np.array([one is RangeStatus.MISFIT for one in status])
        vectors = np.where(misfit[:, None, None], np.nan, np.ones((n, N, 3)))
        line = np.where(misfit[:, None, None], np.nan, line)
        samples = OrbitSamples(
            rho * u.au,
            0.0 * rho * u.au / u.d,
            vectors * u.au,
            vectors * u.au / u.d,
            Time(np.full((n, N), 60_000.0), format="mjd", scale="tdb"),
            mag[:, None] - 5.0 * np.log10(rho) << u.mag,
            np.full((n, N), 1.0 / N),
        )
        line = np.broadcast_to(line[:, None], (n, t, N, 3))
        distance = np.where(np.isfinite(line[..., 0]), rho[:, None], np.nan)
        clouds = Clouds(line, 0.0 * line, distance, np.ones_like(distance), np.ones_like(distance))
        estimate = SimpleNamespace(
            _answers=SimpleNamespace(status=np.array([one.code for one in status])),
            probability=lambda _: neo.astype(float),
            _tracklets=SimpleNamespace(
                _labels=np.arange(n).astype(str), designation=np.array(self.names)
            ),
        )
        sky = Ephemeris(samples, times, None, clouds=clouds)
        settings = {"field": np.radians(0.5), "limit": 21.0, "min_altitude": 20.0} | options
        return ranking(estimate, sky, impact, **settings)


@pytest.fixture
def table(monkeypatch):
    night = Night()
    night.add("misfit", status=RangeStatus.MISFIT)
    night.add("main belt", neo=0.001, spread=0.3, impact=(0.0, 0.3))
    night.add("faint", mag=24.0)
    night.add("below", altitude=-10.0)
    night.add("low", altitude=10.0)
    night.add("by day", sun=-3.0)
    night.add("determined", spread=0.01)
    night.add("undetermined")
    night.add("wide", stretch=4000.0)
    night.add("impactor", spread=0.01, impact=(0.05, 0.2), altitude=-20.0)
    night.add("sure impactor", spread=0.01, impact=(1.0, 1.0))
    return night.ranked(monkeypatch)


def row_of(table, name):
    return table[table["designation"].tolist().index(name)]


def test_possible_impactors_come_first_and_what_has_no_answer_last(table):
    names = table["designation"].tolist()
    assert names[:5] == ["sure impactor", "impactor", "undetermined", "wide", "determined"]
    assert names[-1] == "misfit"
    assert sorted(table["index"].tolist()) == list(range(11))
    assert table["possible_impactor"].tolist() == [True] * 2 + [False] * 9
    last = table[-1]
    assert np.isnan([last["bits"], last["worth"], last["neo"]]).all()
    assert last["remark"] == RangeStatus.MISFIT.advice


def test_bits_are_those_down_to_the_resolution(table):
    assert 6.0 < row_of(table, "undetermined")["bits"] < np.log2(100.0)
    assert 0.3 < row_of(table, "determined")["bits"] < 0.7  # from 1.4 % to 1 %


def test_worth_is_the_product_of_the_columns(table):
    shown = table[(table["altitude"] > 20.0 * u.deg) & (table["sun_altitude"] < -12.0 * u.deg)]
    product = shown["neo"] * shown["bits"] * shown["in_field"] * shown["bright"]
    np.testing.assert_allclose(shown["worth"][:-1], product[:-1])
    assert row_of(table, "main belt")["worth"] < 0.01
    assert row_of(table, "wide")["in_field"] == pytest.approx(0.178, abs=0.06)  # +- 0.225 sigma


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        ("faint", "probably too faint"),
        ("below", "below the horizon"),
        ("low", "below 20 degrees of altitude"),
        ("by day", "not dark"),
        ("impactor", "possible impactor; below the horizon"),
        ("undetermined", ""),
    ],
)
def test_remarks_say_why(table, name, remark):
    row = row_of(table, name)
    assert row["remark"] == remark
    if remark:
        assert row["worth"] == pytest.approx(0.0, abs=0.1)


def test_without_a_magnitude_the_brightness_counts_as_enough(monkeypatch):
    row = Night().add("dark", mag=np.nan).ranked(monkeypatch)[0]
    assert row["bright"] == 1.0
    assert "no magnitude" in row["remark"]


def test_without_a_place_altitudes_do_not_count(monkeypatch):
    row = Night().add("from anywhere", altitude=np.nan, sun=np.nan).ranked(monkeypatch)[0]
    assert row["worth"] > 5.0
    assert "no place on the ground" in row["remark"]


def test_draws_that_have_fallen_are_not_found(monkeypatch):
    night = Night().add("falling", fallen=0.25).add("fallen", fallen=1.0)
    falling, fallen = night.ranked(monkeypatch)
    assert falling["in_field"] == pytest.approx(0.75, abs=0.01)
    assert falling["remark"] == "25% of the draws have met the Earth by then"
    assert fallen["worth"] == 0.0
    assert "100%" in fallen["remark"]


def test_of_several_instants_the_best_is_taken(monkeypatch):
    night = Night().add("rises", altitude=[10.0, 40.0]).add("sets", altitude=[40.0, 10.0])
    table = night.ranked(monkeypatch, TIMES)
    instants = dict(zip(table["designation"], table["time"].isot, strict=True))
    assert instants == {"rises": TIMES[1].isot, "sets": TIMES[0].isot}


class TestRealNights:
    def test_one_row_a_tracklet_with_all_its_columns(self):
        tracklets = nr.read_tracklets(nr.sample("2024YR4"))
        estimate = tracklets.estimate("systematic")
        options = {"station": "W68", "limit": 22.0 * u.mag, "n": 300}
        table = estimate.priority(Time("2024-12-31T06:00", scale="utc"), **options)
        assert sorted(table["index"].tolist()) == [0, 1, 2, 3, 4]
        assert (table["designation"] == "2024 YR4").all()
        assert (np.diff(table["worth"][~table["possible_impactor"]]) <= 0.0).all()
        # the last night leaves least of the sky
        assert table["index"][0] == 4
        one = estimate[4].priority(Time("2024-12-31T06:00", scale="utc"), **options)
        assert one["bits"][0] == pytest.approx(table["bits"][0], abs=0.5)

    def test_a_misfit_is_not_left_out(self):
        night = nr.read_tracklets(nr.sample("impactors"))[1]
        dec = night.coord.dec.copy()
        dec[3] += 0.01 * u.deg
        moved = SkyCoord(night.coord.ra, dec)
        bad = nr.Tracklet(night.obstime, moved, station="G96").estimate("systematic")
        assert bad.status is RangeStatus.MISFIT
        (row,) = bad.priority(Time("2008-10-06T12:00", scale="utc"), "G96")
        assert row["status"] == "MISFIT"
        assert "Look for a blunder" in row["remark"]

    def test_of_a_method_without_a_posterior(self):
        estimate = nr.read_tracklets(nr.sample("impactors")).estimate("gauss")
        with pytest.raises(EstimationError, match="gives no posterior"):
            estimate.priority(Time("2008-10-06T12:00", scale="utc"), "G96")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"times": 60_000.0}, "times must be an astropy Time"),
            ({"field": 0.5}, "field must be a Quantity"),
            ({"field": 0.0 * u.deg}, "field must be one value between 0 and 90 deg"),
            ({"field": [1, 2] * u.deg}, "field must be one value"),
            ({"times": Time([], format="mjd")}, "times must be one instant or a row"),
            ({"n": 0}, "n must be a whole number"),
            ({"limit": 21.0}, "limit must be a Quantity"),
            ({"limit": np.nan * u.mag}, "limit must be one value"),
            ({"min_altitude": 95.0 * u.deg}, "min_altitude must be one value between -90 and 90"),
            ({"min_altitude": 1.0 * u.mag}, "min_altitude must be a Quantity"),
            ({"within": -1.0 * u.d}, "within must be"),
        ],
    )
    def test_of_arguments_with_a_fault(self, options, words):
        estimate = nr.read_tracklets(nr.sample("2024YR4"))[1].estimate("systematic")
        with pytest.raises(EstimationError, match=words):
            estimate.priority(**({"times": TIMES[0], "station": "W68", "n": 50} | options))
