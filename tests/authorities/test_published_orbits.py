"""Orbits and distances that others have published, each with its source."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.coordinates import ICRS, CartesianDifferential, CartesianRepresentation
from astropy.coordinates import HeliocentricEclipticIAU76 as Ecliptic
from astropy.time import Time

from neoranging.core.elements import state_to_elements
from neoranging.core.kepler import mean_anomaly
from neoranging.orbits.dcriteria import d_drummond, d_jopek, d_sh
from neoranging.orbits.elements import OrbitalElements

DAY = u.au / u.day


class TestFindOrbDRS044:
    """State and elements of DRS044, https://github.com/Bill-Gray/find_orb/issues/44."""

    position = [1.795930046554, -2.595361725065, -1.115701474350] * u.au
    velocity = [11.779052930229e-3, -0.061550516807e-3, -2.839454952611e-3] * DAY
    epoch = Time(2460139.5, format="jd", scale="tt")

    def test_ecliptic_elements(self):
        orbit = OrbitalElements.from_state(self.position, self.velocity, self.epoch)
        assert orbit.a.value == pytest.approx(9.869929062, rel=2e-9)
        assert orbit.ecc.value == pytest.approx(0.801200098, rel=1e-9)
        assert orbit.inc.value == pytest.approx(15.612146, abs=1e-6)
        assert orbit.raan.value == pytest.approx(122.980575, abs=1e-6)
        assert orbit.argp.value == pytest.approx(93.435029, abs=1e-6)
        assert orbit.M.value == pytest.approx(8.475572, abs=1e-6)

    def test_equatorial_vectors_taken_for_ecliptic_give_the_known_wrong_angles(self):
        wrong = state_to_elements(self.position.value, self.velocity.value)
        got = np.degrees([wrong.inc, wrong.raan, wrong.argp])
        np.testing.assert_allclose(got, [19.626, 42.232, 176.875], atol=5e-4)
        assert np.degrees(mean_anomaly(wrong.nu, wrong.ecc)) == pytest.approx(8.475572, abs=1e-6)


def test_comet_form_of_openorb():
    """Elements with a perihelion time, https://github.com/oorb/oorb/issues/17."""
    orbit = OrbitalElements.from_perihelion(
        q=0.682084069033 * u.au,
        ecc=0.540590690499,
        inc=2.720497800946 * u.deg,
        raan=314.400746000785 * u.deg,
        argp=256.929800925527 * u.deg,
        perihelion_time=Time(54770.509283572, format="mjd", scale="tdb"),
        epoch=Time(54466.0, format="mjd", scale="tdb"),
    )
    assert orbit.a.value == pytest.approx(1.48469797, abs=5e-9)
    position, velocity = orbit.state()
    ecliptic = position.copy(), velocity.copy()
    eps = np.radians(84381.448 / 3600.0)
    turn = np.array([[1, 0, 0], [0, np.cos(eps), np.sin(eps)], [0, -np.sin(eps), np.cos(eps)]])
    r, v = (turn @ x.value for x in ecliptic)
    np.testing.assert_allclose(r, [1.8323155, 1.34766018, 0.10701116], atol=6e-8)
    np.testing.assert_allclose(v, [-5.22801513e-3, 5.76770860e-3, 1.42685869e-5], atol=6e-11)
    assert orbit.perihelion_time.mjd == pytest.approx(54770.509283572, abs=1e-8)


class TestCeres:
    """Ecliptic elements in the equatorial plane, https://github.com/poliastro/poliastro/issues/1469."""

    orbit = OrbitalElements.from_mean(
        a=2.76604306 * u.au,
        ecc=0.07850100198,
        inc=10.587693 * u.deg,
        raan=80.26859547 * u.deg,
        argp=73.63703979 * u.deg,
        mean_anomaly=291.3755993 * u.deg,
        epoch=Time("2022-01-21", scale="tdb"),
    )

    def test_inclination_from_the_icrf_state(self):
        again = OrbitalElements.from_state(*self.orbit.state(), self.orbit.epoch)
        assert again.inc.value == pytest.approx(10.587693, abs=1e-9)
        assert again.M.value == pytest.approx(291.3755993, abs=1e-9)

    def test_plane_against_astropy(self):
        position, velocity = self.orbit.state()
        r, v = (x.value for x in (position, velocity))
        flat = state_to_elements(r, v)
        assert np.degrees(flat.inc) == pytest.approx(27.0, abs=1.0)  # the classic fault
        # The rotation of astropy's ecliptic frame, whatever the origin.
        points = CartesianRepresentation(
            np.column_stack([np.zeros(3), np.eye(3)]) * u.au,
            differentials=CartesianDifferential(np.zeros((3, 4)) * DAY),
        )
        axes = Ecliptic(points).transform_to(ICRS()).cartesian.xyz.to_value(u.au).T
        matrix = axes[1:] - axes[0]
        ecliptic = state_to_elements(matrix @ r, matrix @ v)
        assert np.degrees(ecliptic.inc) == pytest.approx(10.587693, abs=1e-8)
        assert np.degrees(ecliptic.raan) == pytest.approx(80.26859547, abs=1e-7)


def five(e, q, argp, raan, inc):
    return q * u.au, e, inc * u.deg, raan * u.deg, argp * u.deg


class TestDCriteriaOfSbpy:
    """Golden numbers of NASA-Planetary-Science/sbpy, sbpy/data/tests/test_orbit.py."""

    comet_252p = five(0.671813410097529, 1.00097003, 343.32963355, 190.93492189, 10.41045416)
    ba14 = five(0.6650394891797625, 1.01345464, 351.92333244, 180.51874455, 18.89502003)
    halley = five(0.9663712597171566, 0.60100362, 111.98929651, 59.06301115, 162.21355489)

    @pytest.mark.parametrize(
        ("orbit", "southworth", "drummond"),
        [
            ((0.7457, 0.95, 152.0, 45.0, 30.0), 0.0, 0.0),
            ((0.9335, 0.95, 153.694, 42.0, 32.0), 0.193, 0.113),
            ((0.5954, 0.95, 150.0, 46.0, 32.0), 0.155, 0.113),
            ((0.5568, 0.95, 149.339, 46.0, 32.0), 0.193, 0.146),
        ],
    )
    def test_table_1_of_jopek_1993(self, orbit, southworth, drummond):
        reference = five(0.7457, 0.95, 152.0, 45.0, 30.0)
        assert d_sh(reference, five(*orbit)) == pytest.approx(southworth, abs=1e-3)
        assert d_drummond(reference, five(*orbit)) == pytest.approx(drummond, abs=1e-3)

    @pytest.mark.parametrize(
        ("pair", "want"),
        [
            (("comet_252p", "ba14"), (0.15598291, 0.0502142, 0.15560596)),
            (("halley", "comet_252p"), (2.24077662, 1.14268444, 2.21888313)),
            (("halley", "ba14"), (2.50705989, 1.1268579, 2.48606116)),
        ],
    )
    def test_comets(self, pair, want):
        first, second = (getattr(self, name) for name in pair)
        got = d_sh(first, second), d_drummond(first, second), d_jopek(first, second)
        np.testing.assert_allclose(got, want, atol=2e-8)


def test_catalogue_of_the_minor_planet_center(shared):
    """Perihelion distance, mean motion and perihelion time of 40 000 real objects."""
    table = pd.read_csv(shared / "data" / "neo_orbits.csv.gz", low_memory=False)
    orbits = OrbitalElements.from_mean(
        a=np.asarray(table["a_au"]) * u.au,
        ecc=np.asarray(table["e"]),
        inc=np.asarray(table["i_deg"]) * u.deg,
        raan=np.asarray(table["Omega_deg"]) * u.deg,
        argp=np.asarray(table["omega_deg"]) * u.deg,
        mean_anomaly=np.asarray(table["M_deg"]) * u.deg,
        epoch=Time(np.asarray(table["epoch_mjd_tdb"]), format="mjd", scale="tdb"),
    )
    n = orbits.mean_motion.to_value(u.deg / u.day)
    np.testing.assert_allclose(n, table["n_deg_per_day"], rtol=1e-6, atol=6e-9)
    off = np.abs(orbits.q.value - table["q_au"])
    assert (off < 1e-7 * (1.0 + orbits.a.value)).all()  # e is printed to 1e-7
    off = (orbits.perihelion_time.jd - np.asarray(table["tp_jd"])) / orbits.period.value
    assert np.abs(off - np.round(off)).max() < 3e-5
    again = OrbitalElements.from_state(*orbits.state(), orbits.epoch)
    np.testing.assert_allclose(again.q.value, orbits.q.value, rtol=1e-12)
    turn = (again.M - orbits.M).to_value(u.deg)
    assert np.abs(turn - 360.0 * np.round(turn / 360.0)).max() < 1e-9
