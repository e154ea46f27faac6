"""Elements with units, and the bridge to boinor."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from astropy import units as u
from astropy.tests.helper import assert_quantity_allclose
from astropy.time import Time, TimeDelta
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.constants import GM_SUN
from neoranging.core.kepler import propagate
from neoranging.exceptions import MissingDependencyError, OrbitError
from neoranging.orbits import elements as orbit_module
from neoranging.orbits.elements import OrbitalElements, from_orbit, to_orbit

EPOCH = Time(60000.0, format="mjd", scale="tdb")
DAY = u.au / u.day
POSITION = [0.9, 0.5, -0.2] * u.au
VELOCITY = [-0.008, 0.014, 0.003] * DAY


def make(ecc=0.3, q=0.9 * u.au, nu=40.0 * u.deg, epoch=EPOCH):
    return OrbitalElements(q, ecc, 10 * u.deg, 350 * u.deg, 40 * u.deg, nu, epoch)


@pytest.mark.parametrize("ecc", [0.0, 0.3, 0.9999, 1.0, 1.0001, 3.0])
def test_state_and_back(ecc):
    orbit = make(ecc)
    position, velocity = orbit.state()
    again = OrbitalElements.from_state(position, velocity, EPOCH)
    assert_quantity_allclose(again.q, orbit.q, rtol=1e-12)
    assert again.is_elliptic == (ecc < 1.0) or ecc == 1.0
    for got, want in zip(again.state(), (position, velocity), strict=True):
        assert_quantity_allclose(got, want, rtol=1e-9)


@settings(deadline=None, max_examples=60)
@given(days=st.floats(-4000.0, 4000.0), ecc=st.floats(0.0, 3.0))
def test_propagation_is_that_of_the_states(days, ecc):
    orbit = make(ecc)
    later = orbit.propagate(EPOCH + days * u.day)
    r, v = (x.value for x in orbit.state())
    want, _ = propagate(r, v, days)
    distance = np.linalg.norm(want)
    np.testing.assert_allclose(later.state()[0].value, want, atol=2e-8 * distance)
    assert later.q == orbit.q


def test_mean_anomaly_is_named():
    # https://github.com/poliastro/poliastro/issues/1011
    angles = {"inc": 1 * u.deg, "raan": 2 * u.deg, "argp": 3 * u.deg, "epoch": EPOCH}
    orbit = OrbitalElements.from_mean(a=2 * u.au, ecc=0.4, mean_anomaly=90 * u.deg, **angles)
    assert orbit.nu.value == pytest.approx(131.82824, abs=5e-6)
    assert orbit.M.value == pytest.approx(90.0, rel=1e-14)
    assert orbit.a.value == pytest.approx(2.0)
    open_orbit = OrbitalElements.from_mean(a=-2 * u.au, ecc=1.5, mean_anomaly=-1 * u.rad, **angles)
    assert open_orbit.q.value == pytest.approx(1.0)
    assert open_orbit.M.to_value(u.rad) == pytest.approx(-1.0)
    with pytest.raises(OrbitError, match="either a or q"):
        OrbitalElements.from_mean(ecc=0.4, mean_anomaly=90 * u.deg, **angles)
    with pytest.raises(OrbitError, match="give q"):
        OrbitalElements.from_mean(a=np.inf * u.au, ecc=1.0, mean_anomaly=90 * u.deg, **angles)


def test_derived_quantities():
    orbit = make(ecc=[0.1, 1.0, 1.5])
    np.testing.assert_array_equal(orbit.is_elliptic, [True, False, False])
    assert_quantity_allclose(orbit.a, [1.0, np.inf, -1.8] * u.au)
    assert orbit.period[0].value == pytest.approx(2 * np.pi / np.sqrt(GM_SUN))
    assert np.isinf(orbit.period[1:]).all()
    passed = orbit.perihelion_time
    assert_quantity_allclose(orbit.propagate(passed).nu, 0 * u.deg, atol=1e-8 * u.deg)
    assert make(nu=-0.5 * u.deg).M.value == pytest.approx(360.0, abs=0.5)


def test_epoch_becomes_tdb_and_shapes_broadcast():
    utc = Time("2024-03-01T12:00:00", scale="utc")
    assert make(epoch=utc).epoch.scale == "tdb"
    assert (make(epoch=utc).epoch - utc).to_value(u.s) == pytest.approx(0.0, abs=1e-6)
    many = make().propagate(EPOCH + np.arange(3) * u.day)
    assert many.shape == many.epoch.shape == many.q.shape == (3,)
    assert many[1].shape == ()
    assert many[1].epoch == EPOCH + 1 * u.day
    with pytest.raises(OrbitError, match="broadcast"):
        make(ecc=[0.1, 0.2], q=[1, 2, 3] * u.au)


def test_immutable_and_picklable():
    orbit = make()
    with pytest.raises(AttributeError):
        orbit.q = 3 * u.au
    assert pickle.loads(pickle.dumps(orbit)).q == orbit.q


def test_table():
    one, many = make().to_table(), make(ecc=[0.1, 1.0, 1.5]).to_table()
    assert (len(one), len(many)) == (1, 3)
    assert many["inc"].unit == u.deg
    assert many["epoch"].scale == "tdb"
    assert one["M"][0] == make().M


def test_repr():
    assert "a=1.2857143 au e=0.3000000 i=10.00000 node=350.00000 peri=40.00000" in repr(make())
    assert "epoch 2023-02-25.00000 TDB" in repr(make())
    assert "q=0.9000000" in repr(make(ecc=1.2))
    assert repr(make(ecc=[0.1, 1.2])) == (
        "<OrbitalElements of 2 orbits, 1 elliptic, ecliptic J2000>"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 0.9}, "q must be a Quantity with a unit like au"),
        ({"q": 3 * u.deg}, "q must be a Quantity with a unit like au"),
        ({"q": -3 * u.au}, "must not be negative"),
        ({"ecc": -0.1}, "must not be negative"),
        ({"nu": 40.0}, "nu must be a Quantity with a unit like deg"),
        ({"epoch": 60000.0}, "epoch must be an astropy Time"),
    ],
)
def test_bad_elements_say_what_is_needed(change, message):
    with pytest.raises(OrbitError, match=message):
        make(**change)


def test_bad_vectors_say_what_is_needed():
    with pytest.raises(OrbitError, match="position must be a Quantity"):
        OrbitalElements.from_state(POSITION.value, VELOCITY, EPOCH)
    with pytest.raises(OrbitError, match=r"shape \(..., 3\)"):
        OrbitalElements.from_state(POSITION[:2], VELOCITY[:2], EPOCH)


# Columns of the Minor Planet Center's export format, counted from 1.
MPCORB = {
    "designation": (1, 7), "H": (9, 13), "G": (15, 19), "epoch": (21, 25), "M": (27, 35),
    "argp": (38, 46), "node": (49, 57), "inc": (60, 68), "ecc": (71, 79), "n": (81, 91),
    "a": (93, 103),
}  # fmt: skip


class TestMPCORB:
    def fields(self, line):
        return {name: line[a - 1 : b].strip() for name, (a, b) in MPCORB.items()}

    def test_ceres(self):
        orbit = OrbitalElements.from_mean(
            a=2.7660512 * u.au, ecc=0.0794013, inc=10.5878 * u.deg, raan=80.25221 * u.deg,
            argp=73.27343 * u.deg, mean_anomaly=188.70269 * u.deg,
            epoch=Time("2025-05-05", scale="tt"),
        )  # fmt: skip
        line = orbit.to_mpcorb("00001", H=3.34, G=0.15)
        assert len(line) == 103
        assert self.fields(line) == {
            "designation": "00001", "H": "3.34", "G": "0.15", "epoch": "K2555", "M": "188.70269",
            "argp": "73.27343", "node": "80.25221", "inc": "10.58780", "ecc": "0.0794013",
            "n": "0.21424651", "a": "2.7660512",
        }  # fmt: skip

    def test_epoch_moves_to_midnight_and_angles_stay_below_a_turn(self):
        orbit = make(nu=0 * u.deg, epoch=Time("2023-12-31T12:00:01", scale="tt"))
        fields = self.fields(orbit.to_mpcorb("A10TlFw"))
        assert fields["epoch"] == "K2411"
        n = orbit.mean_motion.to_value(u.deg / u.day)
        assert float(fields["M"]) == pytest.approx(0.5 * n, abs=2e-5)
        assert fields["H"] == fields["G"] == ""
        still = make(nu=-1e-9 * u.deg, epoch=Time("2023-10-31", scale="tt"))
        assert self.fields(still.to_mpcorb("x"))["M"] == "0.00000"
        assert self.fields(still.to_mpcorb("x"))["epoch"] == "K23AV"

    @pytest.mark.parametrize("ecc", [1.0, 1.2, [0.1, 0.2]])
    def test_only_one_ellipse(self, ecc):
        with pytest.raises(OrbitError, match="one elliptic orbit"):
            make(ecc=ecc).to_mpcorb("x")

    def test_long_designation(self):
        with pytest.raises(OrbitError, match="pack it"):
            make().to_mpcorb("2015 RN35")


class TestBoinor:
    def test_vectors_are_ecliptic_and_come_back(self):
        orbit = to_orbit(POSITION, VELOCITY, EPOCH)
        assert orbit.plane.name == "EARTH_ECLIPTIC"
        assert orbit.attractor.name == "Sun"
        assert orbit.epoch.scale == "tdb"
        assert not np.allclose(orbit.r.to_value(u.au), POSITION.value)
        position, velocity, epoch = from_orbit(orbit)
        assert_quantity_allclose(position, POSITION, rtol=1e-15)
        assert_quantity_allclose(velocity, VELOCITY, rtol=1e-15)
        assert epoch == EPOCH

    def test_elements_agree_but_for_the_gravitational_parameter(self):
        a, ecc, inc, raan, argp, nu = to_orbit(POSITION, VELOCITY, EPOCH).classical()
        ours = OrbitalElements.from_state(POSITION, VELOCITY, EPOCH)
        assert_quantity_allclose(a, ours.a, rtol=5e-8)
        assert_quantity_allclose(ecc, ours.ecc, rtol=3e-7)
        assert_quantity_allclose(inc, ours.inc, rtol=1e-12)
        assert_quantity_allclose(raan % (360 * u.deg), ours.raan, rtol=1e-12)
        turned = (argp + nu - ours.argp - ours.nu).to_value(u.rad)
        assert np.sin(turned) == pytest.approx(0.0, abs=1e-11)
        assert np.cos(turned) == pytest.approx(1.0)

    def test_its_own_change_of_plane_gives_our_equatorial_vectors(self):
        turned = to_orbit(POSITION, VELOCITY, EPOCH).change_plane(
            type(to_orbit(POSITION, VELOCITY, EPOCH).plane).EARTH_EQUATOR
        )
        position, velocity, _ = from_orbit(turned)
        assert_quantity_allclose(position, POSITION, atol=1e-9 * u.au)
        assert_quantity_allclose(velocity, VELOCITY, atol=1e-9 * DAY)

    @pytest.mark.parametrize("days", [-300.0, 1.0, 50.0])
    def test_propagation_with_its_gravitational_parameter(self, days):
        orbit = to_orbit(POSITION, VELOCITY, EPOCH)
        there, _, epoch = from_orbit(orbit.propagate(TimeDelta(days * u.day)))
        mu = orbit.attractor.k.to_value(u.au**3 / u.day**2)
        assert mu / GM_SUN - 1.0 == pytest.approx(1.55e-8, abs=1e-10)
        want, _ = propagate(POSITION.value, VELOCITY.value, days, mu)
        np.testing.assert_allclose(there.value, want, atol=1e-9)
        assert (epoch - EPOCH).to_value(u.day) == pytest.approx(days)

    def test_from_elements(self):
        position, _, _ = from_orbit(make(ecc=1.2).to_orbit())
        assert_quantity_allclose(position, make(ecc=1.2).state()[0], rtol=1e-14)

    def test_arrays_and_nonsense_are_refused(self):
        with pytest.raises(OrbitError, match="one finite state"):
            to_orbit(u.Quantity([POSITION] * 2), u.Quantity([VELOCITY] * 2), EPOCH)
        with pytest.raises(OrbitError, match="one finite state"):
            to_orbit(POSITION * np.nan, VELOCITY, EPOCH)
        with pytest.raises(OrbitError, match="one finite state"):
            to_orbit(POSITION * 0.0, VELOCITY, EPOCH)

    def test_other_bodies_planes_and_things_are_refused(self):
        orbit = SimpleNamespace(
            r=POSITION, v=VELOCITY, epoch=EPOCH, attractor=SimpleNamespace(name="Sun"),
            plane=SimpleNamespace(name="BODY_FIXED"),
        )  # fmt: skip
        with pytest.raises(OrbitError, match="plane BODY_FIXED"):
            from_orbit(orbit)
        orbit.attractor.name = "Earth"
        with pytest.raises(OrbitError, match="about Earth"):
            from_orbit(orbit)
        with pytest.raises(OrbitError, match="is no Orbit"):
            from_orbit(3.0)

    def test_missing_package_names_the_remedy(self, monkeypatch):
        monkeypatch.setattr(orbit_module, "_PACKAGES", ("no_such_package_here",))
        with pytest.raises(MissingDependencyError, match="pip install boinor"):
            to_orbit(POSITION, VELOCITY, EPOCH)

    @pytest.mark.slow
    def test_making_an_orbit_compiles_nothing(self):
        program = (
            "from astropy import units as u\n"
            "from astropy.time import Time\n"
            "from neoranging.orbits.elements import from_orbit, to_orbit\n"
            "import sys\n"
            "assert 'boinor' not in sys.modules\n"
            "orbit = to_orbit([1, 0.1, 0] * u.au, [0, 0.017, 0] * u.au / u.day, Time('J2024'))\n"
            "from_orbit(orbit)\n"
            "from boinor.core import elements\n"
            "assert not elements.rv2coe.signatures and not elements.coe2rv.signatures\n"
        )
        environment = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
        subprocess.run([sys.executable, "-c", program], check=True, env=environment)
