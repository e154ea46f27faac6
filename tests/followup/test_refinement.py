"""Differential corrections: exact where they must be, calibrated, and honest where they fail."""

import pickle

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.time import Time

import neoranging as nr
from neoranging.constants import ARCSEC
from neoranging.core.differential import Problem, first_guess, stages
from neoranging.core.geometry import norm, radec
from neoranging.core.prediction import sight
from neoranging.ephemeris import observer_posvel
from neoranging.ephemeris.states import almanac
from neoranging.exceptions import EstimationError, NeoRangingWarning
from neoranging.followup.dynamics import dynamics_of
from neoranging.followup.refinement import joined, predictions
from neoranging.orbits import OrbitalElements
from neoranging.orbits.solution import ADVICE

T0 = 60000.2
DAYS = np.array([0.0, 1.0, 4.0])
SIGMA = 0.3

ORBIT = OrbitalElements.from_mean(
    a=1.6 * u.au,
    ecc=0.42,
    inc=9.0 * u.deg,
    raan=150.0 * u.deg,
    argp=20.0 * u.deg,
    mean_anomaly=2.0 * u.deg,
    epoch=Time(T0, format="mjd", scale="tdb"),
)


def nights(orbit=ORBIT, dynamics="kepler", per_night=10, days=DAYS, noise=0.0, rng=None):
    """Tracklets of an orbit from G96, without noise or with independent errors [arcsec]."""
    spread = np.linspace(0.0, 0.06, per_night)
    t = Time((T0 + np.asarray(days)[:, None] + spread).ravel(), format="mjd", scale="tdb")
    place, motion = (
        x.to_value(unit)
        for x, unit in zip(observer_posvel(t, "G96"), (u.au, u.au / u.d), strict=True)
    )
    r, v = (x.value[None] for x in orbit.state())
    epoch = np.atleast_1d(orbit.epoch.tdb.mjd)
    if dynamics == "kepler":
        many = (np.repeat(x, len(t), axis=0) for x in (r, v, epoch))
        direction = sight(*many, t.tdb.mjd, place, motion).direction
    else:
        path = almanac(T0 - 2.0, t.tdb.mjd.max() + 1.0)
        views = dynamics_of(dynamics).views(r, v, epoch, path, t.tdb.mjd, place)
        direction = views.line[0] / norm(views.line[0])[:, None]
    ra, dec = radec(direction)
    if noise:
        east, north = rng.normal(scale=noise * ARCSEC, size=(2, len(t)))
        ra, dec = ra + east / np.cos(dec), dec + north
    return nr.TrackletSet.from_tracklets(
        nr.Tracklet(
            t[rows].utc,
            SkyCoord(ra[rows], dec[rows], unit="rad"),
            station="G96",
            sigma=SIGMA * u.arcsec,
            designation="simulated",
        )
        for rows in np.split(np.arange(len(t)), len(days))
    )


def displaced(ratio):
    """The orbit seen at another range, in the same direction on the first night."""
    first = nights()[0]
    arcs = first._set.arcs("topocenter")
    (r, v), epoch = (x.value for x in ORBIT.state()), T0
    frame, x = first_guess(arcs, 5, r, v, epoch)
    x[4] += np.log(ratio)
    r, v, epoch = frame.states(x[None])
    epoch = Time(epoch[0], format="mjd", scale="tdb")
    return OrbitalElements.from_state(r[0] << u.au, v[0] << u.au / u.d, epoch)


@pytest.fixture(scope="module")
def exact():
    return nights()


@pytest.fixture(scope="module")
def estimate(exact):
    return exact[0].estimate(method="gauss")


class TestWithoutNoise:
    @pytest.mark.parametrize("dynamics", ["kepler", "near-earth", "nbody"])
    def test_the_orbit_is_recovered(self, dynamics):
        if dynamics == "nbody":
            pytest.importorskip("assist")
        set_ = nights(dynamics=dynamics)
        solution = (
            set_[0].estimate(method="gauss").refine(set_, start=displaced(1.3), dynamics=dynamics)
        )
        assert (solution.status, solution.n_used) == ("OK", 30)
        assert solution.rms < 1e-5 * u.arcsec
        truth = ORBIT.state()[0] if dynamics == "kepler" else None
        if truth is not None:
            back = solution.elements.propagate(ORBIT.epoch)
            assert abs(back.a / ORBIT.a - 1.0) < 1e-7
            assert abs(back.ecc - ORBIT.ecc) < 1e-7
            assert norm((back.state()[0] - truth).value) < 1e-8

    @pytest.mark.parametrize("ratio", [0.2, 0.5, 2.0, 4.0])
    def test_a_poor_guess_is_led_to_the_same_orbit(self, exact, estimate, ratio):
        solution = estimate.refine(exact, start=displaced(ratio), dynamics="kepler")
        assert solution.status == "OK"
        assert abs(solution.elements.a / ORBIT.a - 1.0) < 1e-6

    def test_a_tracklet_given_twice_counts_once(self, exact, estimate):
        once = estimate.refine(exact[1:], dynamics="kepler", start=ORBIT)
        twice = estimate.refine([*exact, *exact], dynamics="kepler", start=ORBIT)
        assert once.n_observations == twice.n_observations == 30
        assert once.range == twice.range

    def test_any_night_gives_the_same_orbit(self, exact):
        a = [
            exact[k].estimate(method="gauss").refine(exact, start=ORBIT, dynamics="kepler")
            for k in range(3)
        ]
        np.testing.assert_allclose([s.elements.a.value for s in a], ORBIT.a.value, rtol=1e-7)
        assert a[0].range_epoch < a[1].range_epoch < a[2].range_epoch


def test_partials_are_those_of_small_differences(exact):
    arcs = joined(exact).arcs("topocenter")
    (r, v) = (x.value for x in ORBIT.state())
    frame, x = first_guess(arcs, 5, r, v, T0)
    problem = Problem(arcs, frame, *predictions(arcs, "kepler"), by_law=True)
    slope = problem.partials(x, 4.0)
    base = problem.residual(x)
    for k, step in enumerate([1e-7, 1e-7, 1e-7, 1e-7, 1e-7, 1e-9]):
        shifted = x.copy()
        shifted[k] += step
        want = (base - problem.residual(shifted)) / step
        np.testing.assert_allclose(slope[..., k], want, atol=1e-4 * np.abs(want).max())


def test_stages_double_the_arc_and_end_with_all():
    elapsed = np.array([0.0, 0.02, 1.0, 1.1, 3.0, 20.0, 100.0])
    parts = stages(elapsed, elapsed < 0.1)
    assert [int(part.sum()) for part in parts] == [4, 5, 6, 7]


class TestCovariance:
    def test_is_that_of_the_errors(self):
        """Squares of errors by the covariance have the law of chi-square with six degrees."""
        rng = np.random.default_rng(5)
        squares = []
        for _ in range(60):
            set_ = nights(noise=SIGMA, rng=rng, per_night=4)
            solution = (
                set_[0]
                .estimate(method="gauss")
                .refine(set_, start=ORBIT, dynamics="kepler", errors="claimed", reject=False)
            )
            r, v, epoch = solution.state
            truth = np.concatenate([x.value for x in ORBIT.propagate(epoch).state()])
            off = np.concatenate([r.value, v.value]) - truth
            squares.append(off @ np.linalg.solve(solution.covariance, off))
        # mean 6 and variance 12 of each: 60 of them have a mean within 4 standard errors
        assert abs(np.mean(squares) - 6.0) < 4.0 * np.sqrt(12.0 / 60)
        assert abs(np.mean(np.array(squares) < 5.348) - 0.5) < 4.0 * np.sqrt(0.25 / 60)

    def test_by_the_law_follows_the_scatter(self):
        """Visits of many observations tell how large their errors are."""
        rng = np.random.default_rng(6)
        errors = []
        for noise in (0.02, 0.2):
            set_ = nights(noise=noise, rng=rng, per_night=30)
            start = set_[0].estimate(method="gauss")
            solution = start.refine(set_, start=ORBIT, dynamics="kepler")
            assert 0.3 < solution.weighted_rms < 1.3
            errors.append(solution.residuals["sigma_north"].mean().value)
        assert errors[0] < errors[1]

    def test_of_elements_is_that_of_drawn_orbits(self):
        set_ = nights(noise=SIGMA, rng=np.random.default_rng(1))
        solution = set_[0].estimate(method="gauss").refine(set_, start=ORBIT, dynamics="kepler")
        at_once = solution.samples(4000, 0).elements.propagate(solution.epoch)
        columns = [getattr(at_once, name).value for name in ("q", "ecc", "inc", "raan")]
        want = np.sqrt(np.diag(solution.elements_covariance))[:4]
        np.testing.assert_allclose(np.std(columns, axis=1), want, rtol=0.1)
        row = solution.to_table()[0]
        np.testing.assert_allclose(row["q_error"].value, want[0])
        assert row["a_error"] > 0.0 * u.au
        assert row["M_error"] > 0.0 * u.deg


@pytest.fixture(scope="module")
def spoilt_solution():
    set_ = nights(noise=SIGMA, rng=np.random.default_rng(3), per_night=5)
    bad = set_[1]
    dec = bad.coord.dec + [0.0, 0.0, 30.0, 0.0, 0.0] * u.arcsec
    spoilt = nr.Tracklet(
        bad.obstime, SkyCoord(bad.coord.ra, dec), station="G96", sigma=SIGMA * u.arcsec
    )
    estimate = set_[0].estimate(method="gauss")
    return estimate.refine([spoilt, set_[2]], start=ORBIT, dynamics="kepler")


class TestRejection:
    def test_sets_the_outlier_aside_and_no_good_one(self, spoilt_solution):
        rows = spoilt_solution.residuals
        assert np.flatnonzero(~rows["used"]).tolist() == [7]
        assert rows["residual_north"][7] > 25.0 * u.arcsec
        assert rows["reason"][7].startswith("chi-square")
        assert (rows["reason"][rows["used"]] == "").all()
        assert spoilt_solution.status == "OK"
        assert spoilt_solution.n_rejected == 1

    def test_is_left_out_on_request(self, exact, estimate):
        kept = estimate.refine(exact, start=ORBIT, dynamics="kepler", reject=False)
        assert kept.n_rejected == 0


class TestFailing:
    def test_of_too_few_observations(self, exact):
        two = exact[0][[0, 9]]
        solution = two.estimate(method="gauss").refine(dynamics="kepler", start=ORBIT)
        assert solution.status == "TOO_FEW_OBSERVATIONS"
        assert np.isnan(solution.range.value)
        assert np.isnan(solution.to_table()["a"][0].value)
        with pytest.raises(EstimationError, match="add a tracklet"):
            _ = solution.elements

    def test_of_one_night(self, exact, estimate):
        solution = estimate.refine(start=ORBIT, dynamics="kepler")
        assert solution.status in {"UNDETERMINED", "OK"}
        assert solution.range_error > 0.0 * u.au

    def test_without_a_first_guess(self, exact):
        night = exact[0][[0, 9]].estimate(method="gauss")
        assert night.refine(exact, dynamics="kepler").status == "NO_FIRST_GUESS"

    def test_of_two_objects(self, exact, estimate):
        other = nights(
            OrbitalElements.from_mean(
                a=2.5 * u.au,
                ecc=0.1,
                inc=2.0 * u.deg,
                raan=150.0 * u.deg,
                argp=100.0 * u.deg,
                mean_anomaly=300.0 * u.deg,
                epoch=ORBIT.epoch,
            )
        )
        solution = estimate.refine([*other[1:]], start=ORBIT, dynamics="kepler")
        assert solution.status in {"MISFIT", "NOT_CONVERGED", "HYPERBOLIC", "UNDETERMINED"}
        assert not solution.ok

    def test_of_a_hyperbola(self):
        orbit = OrbitalElements.from_perihelion(
            q=0.9 * u.au,
            ecc=1.6,
            inc=30.0 * u.deg,
            raan=150.0 * u.deg,
            argp=20.0 * u.deg,
            perihelion_time=ORBIT.epoch,
            epoch=ORBIT.epoch,
        )
        set_ = nights(orbit)
        solution = set_[0].estimate(method="gauss").refine(set_, start=orbit, dynamics="kepler")
        assert solution.status == "HYPERBOLIC"
        assert abs(solution.elements.ecc - 1.6) < 1e-5

    def test_every_verdict_says_what_to_do(self):
        assert all(text.endswith(".") and len(text) > 40 for text in ADVICE.values())

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"dynamics": "magic"}, "dynamics must be one of"),
            ({"errors": "none"}, "errors must be one of"),
            ({"start": 3}, "OrbitalElements or OrbitSamples"),
            ({"more": [3]}, "Tracklet, a TrackletSet"),
        ],
    )
    def test_arguments_of_another_kind(self, estimate, options, match):
        with pytest.raises(EstimationError, match=match):
            estimate.refine(**options)

    def test_of_many_tracklets(self, exact):
        with pytest.raises(EstimationError, match="index it"):
            exact.estimate(method="gauss").refine()

    def test_names_that_differ_are_a_warning(self, exact, estimate):
        other = nr.Tracklet(
            exact[1].obstime, exact[1].coord, station="G96", sigma=SIGMA * u.arcsec, designation="x"
        )
        with pytest.warns(NeoRangingWarning, match="fitted as one object"):
            assert estimate.refine(other, start=ORBIT, dynamics="kepler").n_observations == 20

    def test_an_observer_without_a_place_is_set_aside(self, exact, estimate):
        with pytest.warns(NeoRangingWarning):
            far = nr.Tracklet(exact[1].obstime, exact[1].coord, station="C57")
        solution = estimate.refine([far, exact[2]], start=ORBIT, dynamics="kepler")
        assert (solution.n_used, solution.n_rejected) == (20, 10)
        assert "place" in solution.residuals["reason"][10]


@pytest.fixture(scope="module")
def set_():
    return nr.read_tracklets(nr.sample("2024YR4"))


@pytest.fixture(scope="module")
def solution(set_):
    return set_[1].estimate(method="mlp").refine(set_)


class TestRealNights:
    def test_the_orbit_is_that_of_jpl(self, solution):
        """JPL, from months of observations: a = 2.5158 au, e = 0.6615, i = 3.408, H = 23.9."""
        row = solution.to_table()[0]
        assert (solution.status, solution.n_used) == ("OK", 14)
        for name, jpl in (("a", 2.5158), ("ecc", 0.6615), ("inc", 3.408)):
            assert abs(row[name].value - jpl) < 4.0 * row[f"{name}_error"].value + 2e-3
        assert abs(solution.absolute_magnitude.value - 23.9) < 0.5

    def test_a_later_night_lies_in_the_cloud(self, set_):
        solution = set_[1].estimate(method="mlp").refine(set_[:4])
        cloud = solution.ephemeris(set_[4].obstime[0], "W88", n=300)
        assert cloud.contains(set_[4].coord[0], 0.99)
        assert cloud.area(0.95) < 1.0 * u.arcmin**2

    def test_starts_from_draws_of_a_posterior(self, set_, solution):
        estimate = set_[1].estimate(method="systematic")
        other = estimate.refine(set_, start=estimate.samples(5, rng=0))
        assert abs(other.range / solution.range - 1.0) < 1e-6

    def test_shows_and_copies(self, solution):
        assert "2024 YR4: OK, 14 of 14" in repr(solution)
        assert "advice" in solution._repr_html_()
        again = pickle.loads(pickle.dumps(solution))
        assert again.range == solution.range
        np.testing.assert_array_equal(again.covariance, solution.covariance)
