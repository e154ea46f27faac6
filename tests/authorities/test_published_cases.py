"""Public bug reports of other packages, as experiments that must not go wrong here."""

import numpy as np
import pytest
import simulated_arcs
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.table import QTable
from astropy.time import Time

import neoranging as nr
from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import ecliptic_to_equatorial, equatorial_to_ecliptic

METHODS = pytest.mark.parametrize("method", ["gauss", "laplace"])


class TestNearOpposition:
    """Smithsonian/layup 346: near opposition the curvature drowns in the noise.

    A circular orbit at 2.59 au from the Earth, 0.1 arcsec, 20 days: Gauss's method printed a
    single, sharp and wrong 1.68 au there.
    """

    RANGE, SPAN, EPOCH, DRAWS = 2.59, 20.0, 59_400.0, 120

    def arc(self, offset, n=3, tilt=0.003):
        """Noise-free arc of a circular orbit ``offset`` degrees from opposition.

        ``tilt`` is how far it leaves the ecliptic; in that plane three lines of sight and the
        observer's own motion lie in one plane and determine nothing.
        """
        position, _ = simulated_arcs.ephemeris.earth_state(np.array([self.EPOCH]))
        sun = equatorial_to_ecliptic(position)[0]
        angle = np.arctan2(sun[1], sun[0]) + np.radians(offset)
        direction = np.array([np.cos(angle), np.sin(angle), 0.7 * tilt])
        r = sun + self.RANGE * direction / np.linalg.norm(direction)
        v = np.cross([0.5 * tilt, -0.8 * tilt, 1.0], r)
        v *= np.sqrt(GM_SUN / np.linalg.norm(r)) / np.linalg.norm(v)
        states = (np.tile(ecliptic_to_equatorial(x), (self.DRAWS, 1)) for x in (r, v))
        times = self.EPOCH + self.SPAN * np.linspace(-0.5, 0.5, n)
        return simulated_arcs.observe(
            *states, np.full(self.DRAWS, self.EPOCH), [times] * self.DRAWS, "500", sigma=0.1
        )

    @METHODS
    @pytest.mark.parametrize("n", [3, 6])
    @pytest.mark.parametrize("tilt", [0.0005, 0.003, 0.02, 0.1])
    @pytest.mark.parametrize("offset", [0.0, 30.0, 60.0])
    def test_is_never_confidently_wrong(self, method, offset, tilt, n):
        s = self.arc(offset, n, tilt).with_noise(np.random.default_rng(n))
        estimate = s.tracklets().estimate(method)
        ok = estimate.ok
        off = np.abs(estimate.range.value - s.rho)
        wrong = ok & ((off > 4.0 * estimate.range_error.value) | (off > 0.3 * s.rho))
        # of 120 draws one or two may lie beyond four standard errors of a curved posterior
        assert wrong.sum() <= 2
        if tilt == 0.0005 and offset == 0.0:
            allowed = [nr.RangeStatus.UNDETERMINED, nr.RangeStatus.MULTIPLE_ROOTS]
            assert np.isin(estimate.status, allowed).mean() > 0.9
            assert not ok.any()

    @METHODS
    @pytest.mark.parametrize("tilt", [0.0005, 0.1])
    @pytest.mark.parametrize("offset", [0.0, 30.0, 60.0])
    def test_intervals_cover(self, method, offset, tilt):
        s = self.arc(offset, 3, tilt).with_noise(np.random.default_rng(7))
        low, high = s.tracklets().estimate(method).interval(0.9973).value.T
        assert ((low <= s.rho) & (s.rho <= high)).mean() > 0.97

    @METHODS
    def test_far_from_opposition_the_right_root_is_found(self, method):
        s = self.arc(60.0, 6, tilt=0.1)
        candidates = s.tracklets().estimate(method).candidates
        right = np.abs(candidates["range"].value - self.RANGE) < 0.3
        assert len(np.unique(candidates["tracklet"][right])) == self.DRAWS


class TestTenMinutes:
    """Smithsonian/layup 485 and 493: ten minutes of (3666) Holman, "success" on an unbound orbit.

    Positions as reported by three stations of one survey; the object was near 2.22 au.
    """

    ROWS = (
        ("2024-07-15T06:23:43.70", 290.133450, -21.530400, "T08", 0.293),
        ("2024-07-15T06:24:23.60", 290.133440, -21.530390, "T08", 0.280),
        ("2024-07-15T06:25:03.52", 290.133280, -21.530410, "T08", 0.303),
        ("2024-07-15T06:25:43.52", 290.133160, -21.530400, "T08", 0.249),
        ("2024-07-15T06:26:23.46", 290.133130, -21.530490, "T08", 0.252),
        ("2024-07-15T06:29:30.09", 290.131240, -21.529750, "W68", 0.125),
        ("2024-07-15T06:31:19.72", 290.132410, -21.530580, "T05", 0.214),
        ("2024-07-15T06:31:58.77", 290.132300, -21.530560, "T05", 0.227),
        ("2024-07-15T06:32:37.76", 290.132190, -21.530580, "T05", 0.179),
        ("2024-07-15T06:33:16.85", 290.132120, -21.530650, "T05", 0.178),
        ("2024-07-15T06:33:55.94", 290.132020, -21.530640, "T05", 0.236),
    )

    @pytest.fixture
    def table(self):
        time, ra, dec, station, rms = zip(*self.ROWS, strict=True)
        return QTable(
            {
                "designation": ["3666"] * len(time),
                "obstime": Time(time, scale="utc"),
                "ra": ra * u.deg,
                "dec": dec * u.deg,
                "sigma_ra": rms * u.arcsec,
                "sigma_dec": rms * u.arcsec,
                "station": station,
            }
        )

    @METHODS
    @pytest.mark.parametrize("scale", [1.0, 0.3, 3.0])
    @pytest.mark.parametrize("group_by", ["night", ("night", "station")])
    def test_determine_nothing(self, table, method, group_by, scale):
        table["sigma_ra"] *= scale
        table["sigma_dec"] *= scale
        tracklets = nr.read_tracklets(table, group_by=group_by)
        assert len(tracklets) == (1 if group_by == "night" else 2)
        estimate = tracklets.estimate(method)
        assert not estimate.ok.any()
        low, high = estimate.interval(0.68).to_value(u.au).T
        assert (low < 2.22).all()
        assert (high > 2.22).all()
        unbound = estimate.candidates["semimajor_axis"] < 0.0 * u.au
        assert not (estimate.candidates["admissible"] & unbound).any()

    def test_the_lone_row_of_one_station_is_accounted_for(self, table):
        report = nr.read_tracklets(table).report
        assert report.n_used == 10
        assert report.n_set_aside == 1


class TestUnboundOrbits:
    """Same reports: noise on short arcs makes hyperbolas; none may be called a success."""

    @METHODS
    @pytest.mark.parametrize("span", [0.007, 0.1, 3.0, 7.0])
    def test_are_never_ok(self, simulate, method, span):
        s = simulate(500, span, seed=int(1000 * span), sigma=0.5)
        s = s.with_noise(np.random.default_rng(1), 2.0)
        estimate = s.tracklets().estimate(method)
        if estimate.ok.any():
            elements = estimate[estimate.ok].elements
            assert (elements.ecc < 1.0).all()


class TestPlainArrays:
    """oorb 151 and 185: a default standard deviation, and three positions without a file."""

    def test_three_positions_and_three_times_give_an_orbit(self):
        """A Ceres-like orbit over forty days, positions rounded to 0.01 arcsec."""
        elements = 2.77 * (1.0 - 0.08), 0.08, *np.radians([10.6, 80.3, 73.5, 60.0])
        r, v = elements_to_state(*(np.array([x]) for x in elements))
        epoch = np.array([59_100.0])
        s = simulated_arcs.observe(
            ecliptic_to_equatorial(r),
            ecliptic_to_equatorial(v),
            epoch,
            [epoch + 20.0 * np.arange(-1, 2)],
        )
        ra, dec = (np.round(np.degrees(x) * 360_000.0) / 360_000.0 for x in (s.arcs.ra, s.arcs.dec))
        tracklet = nr.Tracklet(
            Time(s.arcs.t, format="mjd", scale="tdb"),
            SkyCoord(ra, dec, unit="deg"),
            station="500",
            sigma=0.01 * u.arcsec,
        )
        candidates = tracklet.estimate("gauss").candidates
        nearest = np.argmin(np.abs(candidates["range"].value - s.rho[0]))
        assert candidates["range"][nearest].value == pytest.approx(s.rho[0], rel=1e-3)
        assert candidates["semimajor_axis"][nearest].value == pytest.approx(2.77, rel=1e-2)

    def test_default_sigma_is_seen_and_can_be_changed(self):
        columns = (
            Time([60_000.1, 60_000.2, 60_000.3], format="mjd"),
            SkyCoord([10.0, 10.1, 10.2], [5.0, 5.0, 5.01], unit="deg"),
        )
        silent = nr.Tracklet(*columns, station="500")
        np.testing.assert_allclose(silent.sigma.to_value(u.arcsec), 1.0)
        told = nr.Tracklet(*columns, station="500", sigma=0.2 * u.arcsec)
        np.testing.assert_allclose(told.sigma.to_value(u.arcsec), 0.2)
