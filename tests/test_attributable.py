"""`Attributable`: units, shapes, observers, and the way to an orbit and back."""

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.time import Time
from hypothesis import given, settings
from hypothesis import strategies as st

import neoranging as nr
from neoranging.constants import C_AU_PER_DAY
from neoranging.core.geometry import radec, wrap_angle
from neoranging.core.prediction import sight
from neoranging.exceptions import TrackletError, UnknownStationError

EPOCH = Time("2015-09-09T08:00", scale="utc")
RATES = {"ra_rate": 2.07249 * u.deg / u.day, "dec_rate": 0.53208 * u.deg / u.day}


def make(**changes):
    columns = {"epoch": EPOCH, "ra": 50.4121 * u.deg, "dec": 19.3376 * u.deg, **RATES}
    observer = (
        {"station": "500"}
        if not any(name.startswith(("observer", "station")) for name in changes)
        else {}
    )
    return nr.Attributable(**{**columns, **observer, **changes})


def test_gives_back_what_was_given():
    a = make()
    assert a.ra.to_value(u.deg) == pytest.approx(50.4121, abs=1e-12)
    assert a.dec.to_value(u.deg) == pytest.approx(19.3376, abs=1e-12)
    assert a.ra_rate.to_value(u.deg / u.day) == pytest.approx(2.07249, rel=1e-14)
    assert abs((a.epoch - EPOCH).to_value(u.s)) < 1e-5
    assert a.epoch.scale == "tdb"
    expected = np.hypot(2.07249 * np.cos(np.radians(19.3376)), 0.53208)
    assert a.proper_motion.to_value(u.deg / u.day) == pytest.approx(expected, rel=1e-12)
    assert np.linalg.norm(a.line_of_sight) == pytest.approx(1.0)
    assert "2015-09-09T08:00" in repr(a)


@pytest.mark.parametrize(
    ("east", "north", "angle"), [(0, 1, 0), (1, 0, 90), (0, -1, 180), (-1, 0, 270), (1, 1, 45)]
)
def test_position_angle_runs_from_north_through_east(east, north, angle):
    a = make(dec=60.0 * u.deg, ra_rate=2.0 * east * u.arcsec / u.h, dec_rate=north * u.arcsec / u.h)
    assert a.position_angle.to_value(u.deg) == pytest.approx(angle, abs=1e-9)


def test_right_ascensions_are_reduced_to_one_turn():
    for ra in (-10.0, 350.0, 710.0):
        assert make(ra=ra * u.deg).ra.to_value(u.deg) == pytest.approx(350.0)


class TestObserver:
    def test_is_needed_once(self):
        state = {
            "observer_position": [1, 0, 0] * u.au,
            "observer_velocity": [0, 0.017, 0] * u.au / u.d,
        }
        make(**state)
        with pytest.raises(TrackletError, match="station="):
            make(station=None)
        with pytest.raises(TrackletError, match="once"):
            make(station="500", **state)
        with pytest.raises(TrackletError, match="observer_velocity"):
            make(observer_position=state["observer_position"])

    def test_half_a_state_beside_a_code_is_an_error_too(self):
        with pytest.raises(TrackletError):
            make(station="500", observer_position=[1, 0, 0] * u.au)

    def test_by_code_place_or_state(self):
        from neoranging.observations.observatories import observatory

        by_code = make(station="G96")
        by_place = make(station=observatory("G96").location)
        np.testing.assert_allclose(by_code.observer_position, by_place.observer_position)
        by_state = make(
            observer_position=by_code.observer_position.to(u.km),
            observer_velocity=by_code.observer_velocity.to(u.km / u.s),
        )
        np.testing.assert_allclose(
            by_state.observer_velocity.value, by_code.observer_velocity.value, rtol=1e-13
        )

    def test_unknown(self):
        with pytest.raises(UnknownStationError, match="ZZZ"):
            make(station="ZZZ")

    def test_of_several_arcs(self):
        epoch = EPOCH + [0, 1, 2] * u.d
        place = EarthLocation.from_geodetic([0, 120, 240] * u.deg, 30 * u.deg)
        a = nr.Attributable(
            epoch, [1, 2, 3] * u.deg, 0 * u.deg, *([1.0] * 2 * u.deg / u.d), station=place
        )
        assert a.observer_position.shape == (3, 3)
        codes = nr.Attributable(
            epoch,
            [1, 2, 3] * u.deg,
            0 * u.deg,
            *([1.0] * 2 * u.deg / u.d),
            station=["G96", "703", "500"],
        )
        assert len(codes) == 3


class TestShapes:
    def many(self):
        return make(ra=np.arange(5.0) * u.deg)

    def test_broadcast(self):
        a = self.many()
        assert len(a) == 5
        for name in ("ra", "dec", "ra_rate", "dec_rate", "proper_motion", "position_angle"):
            assert getattr(a, name).shape == (5,)
        assert a.epoch.shape == (5,)
        assert a.line_of_sight.shape == a.observer_position.shape == (5, 3)
        assert a.covariance.shape == (5, 4, 4)
        assert a.curvature.shape == (5, 2)
        assert repr(a) == "<Attributable of 5 arcs>"

    def test_index(self):
        a = self.many()
        assert a[2].ra.shape == ()
        assert a[-1].ra.to_value(u.deg) == pytest.approx(4.0)
        assert len(a[1:3]) == 2
        assert len(a[np.array([True, False, True, False, False])]) == 2
        with pytest.raises(IndexError):
            a[5]

    def test_one_arc_has_no_length(self):
        with pytest.raises(TypeError):
            len(make())
        with pytest.raises(TypeError):
            make()[0]

    def test_that_disagree(self):
        with pytest.raises(TrackletError, match="shape"):
            make(ra=np.arange(3.0) * u.deg, dec=np.arange(2.0) * u.deg)

    def test_a_state_of_another_length(self):
        with pytest.raises(TrackletError):
            make(
                ra=np.arange(3.0) * u.deg,
                observer_position=np.ones((2, 3)) * u.au,
                observer_velocity=np.ones((2, 3)) * u.au / u.d,
            )

    def test_wrong_units(self):
        with pytest.raises(TrackletError, match=r"ra must be .* deg, got km"):
            make(ra=1.0 * u.km)
        with pytest.raises(TrackletError, match=r"`ra_rate \* u.deg / u.d`"):
            make(ra_rate=1.0)
        with pytest.raises(TrackletError, match="epoch must be an astropy Time, got float"):
            make(epoch=60000.0)


class TestState:
    @settings(max_examples=40, deadline=None)
    @given(
        st.floats(0.0, 6.28),
        st.floats(-1.5, 1.5),
        st.floats(-0.02, 0.02),
        st.floats(-0.02, 0.02),
        st.floats(0.01, 3.0),
        st.floats(-0.02, 0.02),
    )
    def test_is_seen_where_it_was_seen(self, ra, dec, ra_rate, dec_rate, rho, rho_dot):
        a = make(
            ra=ra * u.rad,
            dec=dec * u.rad,
            ra_rate=ra_rate * u.rad / u.d,
            dec_rate=dec_rate * u.rad / u.d,
        )
        r, v, epoch = a.state(rho * u.au, rho_dot * u.au / u.d)
        r, v, epoch = r.to_value(u.au)[None], v.to_value(u.au / u.d)[None], epoch.mjd[None]
        if np.linalg.norm(r) < 0.1:
            return
        at = a.epoch.mjd[None]
        place, motion = (x.value[None] for x in (a.observer_position, a.observer_velocity))
        seen = sight(r, v, epoch, at, place, motion)
        blur = 1e-12 / rho  # of the epoch, a microsecond, and of positions
        assert seen.rho[0] == pytest.approx(rho, abs=1e-12)
        assert seen.rho_dot[0] == pytest.approx(rho_dot, abs=1e-12)
        back = radec(seen.direction)
        assert wrap_angle(back[0][0] - ra) * np.cos(dec) == pytest.approx(0.0, abs=blur)
        assert back[1][0] == pytest.approx(dec, abs=blur)

    def test_epoch_is_that_of_emission(self):
        a = make()
        *_, epoch = a.state(0.5 * u.au, 0 * u.au / u.d)
        assert (a.epoch - epoch).to_value(u.d) == pytest.approx(0.5 / C_AU_PER_DAY, abs=1e-10)
        assert epoch.scale == "tdb"

    def test_units_are_free(self):
        a = make()
        one = a.state(0.1 * u.au, 0.001 * u.au / u.d)
        other = a.state((0.1 * u.au).to(u.km), (0.001 * u.au / u.d).to(u.km / u.s))
        np.testing.assert_allclose(one[0].value, other[0].to_value(u.au), rtol=1e-13)

    def test_many_ranges_of_one_arc(self):
        rho, rho_dot = np.geomspace(0.01, 1.0, 7) * u.au, np.linspace(-1, 1, 5) * 0.01 * u.au / u.d
        r, v, epoch = make().state(rho[:, None], rho_dot)
        assert r.shape == v.shape == (7, 5, 3)
        assert epoch.shape == (7, 5)

    def test_one_range_of_each_arc(self):
        a = make(ra=np.arange(4.0) * u.deg)
        r, *_ = a.state(np.full(4, 0.2) * u.au, np.zeros(4) * u.au / u.d)
        assert r.shape == (4, 3)
        one = a[2].state(0.2 * u.au, 0 * u.au / u.d)
        np.testing.assert_allclose(one[0].value, r[2].value)


def test_the_admissible_region_is_that_of_the_same_numbers():
    region = make().admissible_region()
    assert not region.is_empty
    assert region.coefficients.shape[-1] == 6


def test_unknown_errors_are_nan_not_zero():
    a = make()
    assert np.isnan(a.covariance).all()
    assert np.isnan(a.curvature).all()
    assert not a.curvature_significance > 0.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dec": 95 * u.deg}, "dec must lie between -90 and 90 deg, got 95"),
        ({"dec": 1e5 * u.deg}, "see its unit"),
        ({"ra": np.nan * u.deg}, "ra must be finite"),
        ({"dec_rate": np.inf * u.deg / u.day}, "dec_rate must be finite"),
    ],
)
def test_directions_that_are_none(changes, words):
    with pytest.raises(TrackletError, match=words):
        make(**changes)
