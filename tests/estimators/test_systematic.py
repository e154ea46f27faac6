"""Systematic ranging as users call it: priors, verdicts, hard input, the truth, calibration."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import simulated_arcs
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.time import Time
from scipy.stats import binom

import neoranging as nr
from neoranging.constants import ARCSEC, C_AU_PER_DAY, GM_SUN
from neoranging.core.arcs import Arcs, visits
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic, norm
from neoranging.core.motion import move_near_earth
from neoranging.core.noise import LEAST_CLAIM_RAD, TIMING_D, VISIT_TIMING_D
from neoranging.core.status import RangeStatus
from neoranging.ephemeris import earth_state, observer_state
from neoranging.ephemeris.states import attractors
from neoranging.estimators.registry import get_estimator
from neoranging.estimators.systematic import SystematicRangingEstimator
from neoranging.exceptions import (
    CorruptFileError,
    EstimationError,
    NeoRangingWarning,
    UnknownMethodError,
)
from neoranging.lab.simulation.astrometric_errors import Errors, displaced
from neoranging.observations.observatories import itrf_positions
from neoranging.tracklet import TrackletSet

AU_D = u.au / u.d
PRIORS = ("population", "catalogue", "near-earth", "log-uniform", "uniform")


def tracklet(times, ra, dec, station="G96", **options):
    coord = SkyCoord(ra, dec, unit="deg")
    return nr.Tracklet(Time(times, format="mjd"), coord, station=station, **options)


def with_magnitude(one, mag):
    """The same tracklet with a magnitude in V."""
    return nr.Tracklet(
        one.obstime,
        one.coord,
        station=one.station,
        sigma=0.2 * u.arcsec,
        mag=np.full(len(one), mag),
        band="V",
    )


def placed(tracklets, **columns):
    """The first tracklet with other columns, as of observers that say where they are."""
    table = tracklets.to_table()
    for name, values in columns.items():
        table[name] = values
    return nr.read_tracklets(table)[0]


def ones(orbits):
    return np.ones(orbits.ecc.shape)


@pytest.fixture(scope="module")
def nights(simulate):
    """Forty tracklets of an hour with errors of a third of what they claim."""
    s = simulate(40, 0.05, seed=7, n_observations=(2, 7))
    return s.with_noise(np.random.default_rng(7), 0.3).tracklets()


@pytest.fixture(scope="module")
def night(nights):
    return nights[int(np.argmax(nights.counts))]


class TestPriors:
    @pytest.mark.parametrize("prior", PRIORS)
    def test_by_name(self, night, prior):
        estimate = night.estimate("systematic", prior=prior)
        low, high = estimate.interval(0.9)
        assert low < estimate.range < high
        assert get_estimator("systematic", prior=prior).identity["prior"] == prior

    def test_of_no_population_differ_by_their_densities(self, night):
        flat, by_log = (
            get_estimator("systematic", prior=prior).estimate(night)._posterior
            for prior in ("uniform", "log-uniform")
        )
        # the grids differ, as each is made for its prior
        again = flat.with_log_prior(flat.log_prior - np.log(flat.rho))
        levels = [0.05, 0.5, 0.95]
        np.testing.assert_allclose(again.quantile(levels), by_log.quantile(levels), rtol=0.03)
        assert (flat.quantile(levels) > by_log.quantile(levels)).all()

    def test_by_words_behind_the_name(self, night):
        words = night.estimate("systematic@log-uniform@geocenter")
        options = night.estimate("systematic", prior="log-uniform", origin="geocenter")
        assert words.origin == "geocenter"
        assert words.range == options.range
        assert night.estimate("systematic@geocenter@log-uniform").range == options.range
        assert night.estimate("systematic@log-uniform").origin == "topocenter"

    def test_of_a_file(self, night, tmp_path):
        path = tmp_path / "flat.npz"
        table = {
            "start": np.array([-4.0, 0.0, 0.0, -20.0]),
            "step": np.array([5.0, 1.0, 1.0, 60.0]),
        }
        np.savez(path, log_density=np.zeros((2, 2, 2, 2)), **table)
        bright = with_magnitude(night, 20.0)
        by_file = bright.estimate("systematic", prior=path)
        assert by_file.range == bright.estimate("systematic", prior=str(path)).range
        # one density for all orbits and sizes is that of phase space
        expected = bright.estimate("systematic", prior=ones)
        assert by_file.range.value == pytest.approx(expected.range.value, rel=1e-6)
        identity = get_estimator("systematic", prior=path).identity
        np.savez(path, log_density=np.ones((2, 2, 2, 2)), **table)
        assert get_estimator("systematic", prior=path).identity != identity

    def test_of_a_file_that_is_none(self, tmp_path):
        path = tmp_path / "broken.npz"
        path.write_bytes(b"nothing")
        with pytest.raises(CorruptFileError, match=r"broken\.npz is no table of orbits"):
            get_estimator("systematic", prior=path)
        with pytest.raises(FileNotFoundError):
            get_estimator("systematic", prior=tmp_path / "missing.npz")

    def test_of_a_function(self, night):
        def circular(orbits):
            return np.where(orbits.ecc < 0.3, 1.0, 0.0)

        estimate = night.estimate("systematic", prior=circular)
        assert estimate.probability(lambda orbits: orbits.ecc < 0.35) > 0.95
        everywhere = night.estimate("systematic", prior=ones)
        assert everywhere.probability(lambda orbits: orbits.ecc < 0.35) < 0.5
        assert "circular" in get_estimator("systematic", prior=circular).identity["prior"]

    def test_of_a_function_that_rules_all_out(self, night):
        estimate = night.estimate("systematic", prior=lambda orbits: 0.0 * orbits.ecc.value)
        assert estimate.status is RangeStatus.INADMISSIBLE
        assert np.isnan(estimate.range)
        assert np.isfinite(estimate.interval()).all()

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (lambda _: 1.0, r"one density each.*shape \(\)"),
            (lambda _: np.ones(3), r"one density each.*shape \(3,\)"),
            (lambda orbits: -ones(orbits), "zero or positive.*from -1.0"),
            (lambda orbits: np.nan * ones(orbits), "zero or positive.*nan"),
            (lambda orbits: np.inf * ones(orbits), "finite.*to inf"),
            (lambda orbits: np.full(orbits.ecc.shape, "many"), "prior failed.*many"),
            (lambda orbits: orbits.eccentricities, "prior failed.*AttributeError.*eccentricities"),
        ],
        ids=["scalar", "short", "negative", "nan", "infinite", "text", "raises"],
    )
    def test_of_a_function_with_a_fault(self, night, function, words):
        with pytest.raises(EstimationError, match=words) as caught:
            night.estimate("systematic", prior=function)
        assert "whoever maintains it" not in str(caught.value)

    @pytest.mark.parametrize("prior", ["populaton", "Population", None, 3])
    def test_that_are_none(self, prior):
        with pytest.raises(EstimationError, match=r"log-uniform.*\(\.npz\).*function") as caught:
            get_estimator("systematic", prior=prior)
        assert ("did you mean 'population'?" in str(caught.value)) == isinstance(prior, str)

    def test_that_are_no_words_behind_the_name(self, night):
        with pytest.raises(UnknownMethodError, match="did you mean 'log-uniform'"):
            night.estimate("systematic@log-unifrom")


class TestMagnitudes:
    @pytest.mark.parametrize("prior", ["population", "catalogue"])
    def test_a_faint_object_is_nearer(self, night, prior):
        ranges = []
        for mag in (16.0, 22.0):
            one = with_magnitude(night, mag)
            ranges.append(one.estimate("systematic", prior=prior).range)
        without = night.estimate("systematic", prior=prior).range
        assert ranges[0] > ranges[1]
        assert np.isfinite(without)

    def test_do_not_matter_without_a_population(self, night):
        bright = with_magnitude(night, 12.0)
        for prior in ("uniform", "log-uniform", ones):
            assert (
                bright.estimate("systematic", prior=prior).range
                == night.estimate("systematic", prior=prior).range
            )


class TestFewObservations:
    def test_two_are_enough(self, nights):
        pairs = nights[nights.counts == 2]
        estimate = pairs.estimate("systematic@log-uniform")
        assert (estimate.status == RangeStatus.POPULATION).all()
        assert (estimate.quantile(0.95) > 3.0 * estimate.quantile(0.05)).all()

    def test_one_epoch_is_not(self, simulate):
        arcs = simulate(1, 0.05, seed=8, n_observations=2).arcs
        doubled = replace(arcs, t=np.full(2, arcs.t[0]))
        answers = get_estimator("systematic")._solve(doubled, doubled)
        assert answers.status.tolist() == [RangeStatus.TOO_FEW_OBSERVATIONS.code]
        assert np.isnan(answers.rho).all()

    def test_a_repeated_exposure_adds_nothing(self, night):
        columns = night.obstime.mjd, night.coord.ra.deg, night.coord.dec.deg
        doubled = (np.append(x, x[1]) for x in columns)
        station = str(np.atleast_1d(night.station)[0])
        with pytest.warns(NeoRangingWarning, match="another record of the same exposure"):
            twice = tracklet(*doubled, station=station, sigma=0.2 * u.arcsec)
        once = tracklet(*columns, station=station, sigma=0.2 * u.arcsec)
        assert twice.estimate("systematic").range == once.estimate("systematic").range


class TestObservers:
    def test_a_spacecraft_is_where_it_says(self, simulate):
        """The same path seen from G96, its place given as that of a spacecraft."""
        s = simulate(1, 0.1, seed=9, n_observations=5, station="G96", rho=0.02)
        gcrs = (s.arcs.position - earth_state(s.arcs.t)[0]) * u.au
        flown = placed(s.tracklets(), station="C51", kind="space", observer_gcrs=gcrs.to(u.km))
        in_space = flown.estimate("systematic@log-uniform")
        expected = s.tracklets()[0].estimate("systematic@log-uniform")
        assert in_space.range.value == pytest.approx(expected.range.value, rel=1e-4)
        assert in_space.ok == expected.ok

    def test_a_roving_observer_is_where_it_says(self, simulate):
        s = simulate(1, 0.1, seed=9, n_observations=5, station="G96", rho=0.02)
        itrf = itrf_positions(np.full(5, "G96")) * u.m
        roving = placed(s.tracklets(), station="247", kind="roving", observer_itrf=itrf)
        expected = s.tracklets()[0].estimate("systematic@log-uniform")
        on_the_road = roving.estimate("systematic@log-uniform")
        assert on_the_road.range.value == pytest.approx(expected.range.value, rel=1e-6)

    @pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
    def test_unknown_stations_among_others(self, nights, night):
        lost = tracklet([60_000.0, 60_000.05, 60_000.1], [10, 10.1, 10.2], [5, 5, 5], station="ZZZ")
        mixed = TrackletSet.from_tracklets([lost, night, lost]).estimate("systematic")
        assert [status.name for status in mixed.status][::2] == ["UNKNOWN_OBSERVER"] * 2
        assert mixed.range[1] == night.estimate("systematic").range
        samples = mixed.samples(5, 1)
        assert np.isfinite(samples.range[1]).all()
        assert np.isnan(samples.range[[0, 2]]).all()
        assert np.isnan(mixed.quantile(0.5)[[0, 2]]).all()


class TestHardInput:
    def test_a_still_object_is_not_determined(self):
        estimate = tracklet(60_000.0 + np.array([0.0, 0.02, 0.05]), [10.0] * 3, [5.0] * 3).estimate(
            "systematic"
        )
        assert estimate.status is RangeStatus.POPULATION
        assert np.isfinite(estimate.interval(0.95)).all()

    @pytest.mark.parametrize("size", [10.0, 60.0, 600.0, 6000.0])
    def test_a_blunder_is_a_misfit_and_named(self, size):
        times = 60_000.0 + 0.02 * np.arange(5)
        dec = 5.0 + 0.3 * (times - times[0])
        dec[2] += size / 3600.0
        path = tracklet(times, 10.0 + (times - times[0]), dec, sigma=0.5 * u.arcsec)
        estimate = path.estimate("systematic@log-uniform")
        assert estimate.status is RangeStatus.MISFIT
        assert "observation 3 of 5" in estimate.diagnostics

    def test_unbound_motion_is_not_taken_for_bound(self, simulate):
        """Three times the speed of an object of the solar system, over eight hours."""
        s = simulate(8, 0.3, seed=10, n_observations=6, rho=0.3)
        times = np.split(s.arcs.t, s.arcs.offsets[1:-1])
        fast = simulated_arcs.observe(s.r, 3.0 * s.v, s.epoch, times, s.station, 0.05)
        estimate = fast.tracklets().estimate("systematic@uniform")
        assert not estimate.ok.any()
        elsewhere = estimate.status == RangeStatus.INADMISSIBLE
        low, high = estimate.interval(0.99).value[~elsewhere].T
        off = estimate.status[~elsewhere] == RangeStatus.MISFIT
        assert (off | ((low < 0.3) & (high > 0.3)) | (high > 2.0 * low)).all()

    def test_sigmas_of_any_size(self, night):
        columns = night.obstime.mjd, night.coord.ra.deg, night.coord.dec.deg
        widths = []
        for sigma in (1e-9, 0.2, 1e5):
            if sigma == 0.2:
                one = tracklet(*columns, station=night.station, sigma=sigma * u.arcsec)
            else:
                with pytest.warns(NeoRangingWarning, match="sigma"):
                    one = tracklet(*columns, station=night.station, sigma=sigma * u.arcsec)
            estimate = one.estimate("systematic@log-uniform")
            assert estimate.status is not RangeStatus.INADMISSIBLE
            widths.append(np.log(np.divide(*estimate.interval(0.9)[::-1])).value)
        assert np.isfinite(widths).all()
        assert widths[1] < widths[2]

    def test_a_sigma_that_is_none_is_refused(self, night):
        columns = night.obstime.mjd, night.coord.ra.deg, night.coord.dec.deg
        with pytest.raises(nr.exceptions.TrackletError, match="sigma"):
            tracklet(*columns, sigma=np.nan * u.arcsec)

    @pytest.mark.parametrize("dec", [89.9995, -89.9995])
    def test_a_pole_is_a_place_like_others(self, simulate, dec):
        """Close by a pole right ascension runs through all values, and nothing else changes."""
        s = simulate(1, 0.1, seed=11, n_observations=5, station="500", rho=0.05)
        middle = s.arcs.triplet[0, 1]
        pole = np.array([0.0, 0.0, np.sign(dec)])
        side = np.cos(np.radians(dec)) * np.array([0.6, 0.8, 0.0])
        direction = np.abs(np.sin(np.radians(dec))) * pole + side
        r = s.arcs.position[[middle]] + 0.05 * direction
        over = simulated_arcs.observe(r, s.v, s.epoch, [s.arcs.t], "500")
        estimate = over.tracklets()[0].estimate("systematic@log-uniform")
        assert estimate.status is RangeStatus.POPULATION
        assert estimate.cdf(over.rho[0] * u.au) == pytest.approx(0.5, abs=0.48)
        low, high = estimate.interval(0.9)
        assert high < 30.0 * low

    def test_sixty_observations(self, simulate):
        s = simulate(1, 0.2, seed=12, n_observations=60, rho=0.1)
        s = s.with_noise(np.random.default_rng(12), 0.3)
        estimate = s.tracklets()[0].estimate("systematic@log-uniform")
        assert estimate.ok
        low, high = estimate.interval(0.997).value
        assert low < s.rho[0] < high

    def test_ten_days(self, simulate):
        s = simulate(4, 10.0, seed=13, n_observations=6, rho=0.4)
        estimate = s.tracklets().estimate("systematic@log-uniform")
        assert estimate.ok.all()
        np.testing.assert_allclose(estimate.range.value, s.rho, rtol=0.01)

    def test_twenty_seconds(self, simulate):
        s = simulate(4, 20.0 / 86_400.0, seed=14, n_observations=4)
        estimate = s.tracklets().estimate("systematic@log-uniform")
        assert (estimate.status == RangeStatus.POPULATION).all()
        low, high = estimate.interval(0.95).value.T
        assert ((low < s.rho) & (s.rho < high)).all()
        assert (high > 30.0 * low).all()


class TestManyAtOnce:
    def test_each_is_as_alone(self, nights):
        together = nights.estimate("systematic")
        for k in range(0, len(nights), 3):
            part, alone = together[k]._posterior, nights[k].estimate("systematic")._posterior
            for name in ("rho", "rho_dot", "log_likelihood", "log_prior", "rate_width"):
                np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))

    def test_chunks_and_threads_do_not_show(self, nights, monkeypatch):
        whole = nights.estimate("systematic@log-uniform")
        monkeypatch.setattr(SystematicRangingEstimator, "chunk_size", 7)
        pieces = nights.estimate("systematic@log-uniform")
        np.testing.assert_array_equal(pieces.range, whole.range)
        np.testing.assert_array_equal(pieces.status, whole.status)
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda _: nights.estimate("systematic@log-uniform"), range(4)))
        for one in runs:
            np.testing.assert_array_equal(one.range_rate, whole.range_rate)

    def test_all_nodes_are_admissible(self, nights):
        for prior in ("population", "uniform"):
            estimate = nights.estimate("systematic", prior=prior)
            refit, p = estimate._refit, estimate._posterior
            change = refit(p.arc, p.rho, p.rho_dot, None)
            attributables = estimate._answers.attributables.take(p.arc).corrected(change)
            out = ~attributables.complete(p.rho, p.rho_dot).admissible
            # fits that begin elsewhere end elsewhere, of two observations next to the Earth
            assert out.mean() < 1e-3
            assert p.average(out).max() < 1e-3
            assert (p.log_width > 0.0).all()
            assert (p.rate_width > 0.0).all()
            assert np.isfinite(p.log_likelihood + p.log_prior).all()


@pytest.fixture(scope="module")
def jpl(shared):
    """Tracklets of six objects, and ranges by JPL at their reference epochs [au]."""
    cases = json.loads((shared / "cases" / "truth_tracklets.json").read_text())
    made, truth = [], []
    for name, case in cases.items():
        for one in case["tracklets"]:
            obs = one["obs"]
            times = Time([o["utc"] for o in obs], scale="utc")
            coord = SkyCoord([o["ra"] for o in obs], [o["dec"] for o in obs], unit="deg")
            made.append(
                nr.Tracklet(
                    times, coord, station=one["obscode"], sigma=0.5 * u.arcsec, designation=name
                )
            )
            at = made[-1].attributable().epoch.jd
            row = np.argmin([abs(o["jd_tdb"] - at) for o in obs])
            truth.append(obs[row]["rho_au"])
    return TrackletSet.from_tracklets(made), np.array(truth)


class TestRealTracklets:
    @pytest.mark.parametrize("name", ["2014 AA", "2008 TC3"])
    def test_impactors_are_where_they_were(self, jpl, name):
        tracklets, truth = jpl
        first = int(np.flatnonzero(tracklets.designation == name)[0])
        assert (np.atleast_1d(tracklets[first].station) == "G96").all()
        for prior in ("population", "log-uniform", "uniform"):
            estimate = tracklets[first].estimate("systematic", prior=prior)
            assert estimate.ok
            assert estimate.range.value == pytest.approx(truth[first], rel=0.03)

    def test_no_truth_is_excluded(self, jpl):
        """Objects at the far end of what is bound are where a prior by logarithms has 1 % left."""
        tracklets, truth = jpl
        estimate = tracklets.estimate("systematic@log-uniform")
        low, high = estimate.interval(0.99).value.T
        assert ((low <= truth) & (truth <= high)).all()
        three = tracklets.counts > 2
        for region, rho in zip(estimate[three].credible_region(0.99), truth[three], strict=True):
            low, high = region.value.T
            assert ((low <= rho) & (rho <= high)).any()


@pytest.fixture(scope="module")
def impactors():
    """Five tracklets next to the Earth, three objects."""
    return nr.read_tracklets(nr.sample("impactors")).estimate("systematic@log-uniform")


def sky_offsets(estimate, samples):
    """Predicted minus observed positions of samples of one tracklet, shape (n, observations) [rad].

    The Earth bends the paths that are compared here.
    """
    arcs = estimate._arcs
    r, v = samples.r.to_value(u.au), samples.v.to_value(AU_D)
    epoch, n = samples.epoch.mjd, len(arcs.t)
    owner = np.repeat(np.arange(len(r)), n)
    place, t = np.tile(arcs.position, (len(r), 1)), np.tile(arcs.t, len(r))
    paths, delay = attractors(epoch, np.full(len(r), 0.3)), np.zeros(len(t))
    for _ in range(4):
        path = move_near_earth(r, v, owner, t - epoch[owner] - delay, paths)[0] - place
        delay = norm(path) / C_AU_PER_DAY
    off = path / norm(path)[:, None] - np.tile(arcs.direction, (len(r), 1))
    return off.reshape(len(r), n, 3)


class TestWhatFollows:
    def test_samples_are_admissible_orbits(self, impactors):
        samples = impactors.samples(200, 1)
        assert samples.shape == (len(impactors), 200)
        energy = 0.5 * norm(samples.v.to_value(AU_D)) ** 2
        energy -= GM_SUN / norm(samples.r.to_value(u.au))
        assert (energy < 0.0).all()
        assert (samples.elements.ecc < 1.0).all()
        np.testing.assert_allclose(samples.weights.sum(axis=1), 1.0)
        again = impactors.samples(200, 1)
        np.testing.assert_array_equal(samples.range, again.range)

    def test_samples_are_where_the_object_was_seen(self, impactors):
        """What is left to the attributable is drawn too, and less than the observations err."""
        for k in range(len(impactors)):
            estimate = impactors[k]
            off = sky_offsets(estimate, estimate.samples(100, 2))
            sigma = np.sqrt(np.mean(estimate._arcs.sigma_ra**2 + estimate._arcs.sigma_dec**2))
            spread = np.sqrt(np.sum(np.var(off, axis=0), axis=1))
            assert (spread > 0.05 * sigma).all()
            assert (spread < 1.2 * sigma).all()
            # 2008 EK68 ran at 9 deg/d past clocks that are good to a second
            assert np.sqrt(np.mean(np.sum(off**2, axis=2))) < 2.0 * sigma

    def test_samples_follow_the_posterior(self, impactors):
        samples = impactors.samples(2000, 3)
        for k, estimate in enumerate(impactors):
            share = np.sort(estimate.cdf(samples.range[k]))
            even = (np.arange(2000) + 0.5) / 2000
            # Kolmogorov's distance is exceeded by chance once in 10 000
            assert np.abs(share - even).max() < 2.2 / np.sqrt(2000)
            middle = estimate._posterior.rate_quantile(0.5)[0]
            below = np.mean(samples.range_rate[k].value < middle)
            assert below == pytest.approx(0.5, abs=0.05)

    def test_numbers_agree_with_each_other(self, impactors):
        quantiles = impactors.quantile([0.005, 0.16, 0.5, 0.84, 0.995]).value
        np.testing.assert_allclose(impactors.range.value, quantiles[:, 2], rtol=1e-9)
        np.testing.assert_allclose(impactors.interval(0.68).value, quantiles[:, [1, 3]], rtol=1e-6)
        for k, estimate in enumerate(impactors):
            region = estimate.credible_region(0.9)
            inside = estimate.cdf(region[:, 1]) - estimate.cdf(region[:, 0])
            assert inside.sum() == pytest.approx(0.9, abs=0.02)
            table = estimate.to_table()
            assert table["range"][0] == impactors.range[k]
            assert repr(estimate).startswith("<RangeEstimate systematic, topocenter: 0.0")
        assert impactors.to_table().meta["method"] == "systematic"
        assert repr(impactors).startswith("<RangeEstimate systematic, topocenter: 5 tracklets (")

    def test_probabilities(self, impactors):
        neo = impactors.probability("neo")
        assert ((neo >= 0.0) & (neo <= 1.0)).all()
        assert (neo[impactors.ok] > 0.99).all()
        parts = sum(impactors.probability(name) for name in ("aten", "apollo", "amor", "atira"))
        np.testing.assert_allclose(parts, neo, atol=1e-9)
        samples = impactors.samples(2000, 4)
        by_samples = np.mean(samples.elements.ecc < 0.5, axis=1)
        by_nodes = impactors.probability(lambda orbits: orbits.ecc < 0.5)
        np.testing.assert_allclose(by_samples, by_nodes, atol=0.08)

    def test_the_figure(self, impactors, tmp_path):
        ax = impactors[0].plot()
        path = tmp_path / "posterior.png"
        ax.figure.savefig(path)
        assert path.stat().st_size > 10_000
        assert ax.get_xlabel()
        assert ax.get_ylabel()


def spread_about_the_earth(orbits):
    """Density of orbits to draw from: nearly even in the logarithm of the distance, and smooth."""
    r, _ = orbits.state()
    distance = norm(r.to_value(u.au) - earth_state(orbits.epoch)[0])
    return np.exp(log_density_about_the_earth(distance, orbits.ecc.value))


def log_density_about_the_earth(distance, ecc):
    return -3.0 * np.log(distance) - 0.5 * np.log(distance / 0.05) ** 2 - (ecc / 0.4) ** 2


def drawn_states(m, epoch, rng):
    """Heliocentric states drawn from `spread_about_the_earth` at epochs, shapes (M, 3)."""
    earth, _ = earth_state(epoch)
    distance = 0.05 * np.exp(rng.standard_normal(m))
    place = rng.standard_normal((m, 3))
    r = earth + distance[:, None] * place / norm(place)[:, None]
    v, missing = np.zeros((m, 3)), np.arange(m)
    while len(missing):
        escape = np.sqrt(2.0 * GM_SUN / norm(r[missing]))
        trial = rng.standard_normal((len(missing), 3))
        # uniform in the ball of all that is bound to the Sun
        trial *= (escape * rng.random(len(missing)) ** (1.0 / 3.0) / norm(trial))[:, None]
        v[missing] = trial
        ecc = state_to_elements(*(equatorial_to_ecliptic(x[missing]) for x in (r, v))).ecc
        missing = missing[rng.random(len(missing)) > np.exp(-((ecc / 0.4) ** 2))]
    return r, v


def observed(r, v, epoch, times, codes, claim, rng):
    """Arcs of objects that Sun, Earth and Moon move, with the errors of the law; and true ranges.

    A clock that is wrong sees the object where it was at another time than is recorded.
    """
    m, n = times.shape
    t, owner = times.ravel(), np.repeat(np.arange(m), n)
    offsets, station = np.arange(m + 1) * n, codes.ravel()
    visit = visits(offsets, t, station)
    position, velocity = observer_state(itrf_positions(station), t)
    clock = (
        TIMING_D * rng.standard_normal(m * n) + VISIT_TIMING_D * rng.standard_normal(m * n)[visit]
    )
    seen_from, _ = observer_state(itrf_positions(station), t + clock)
    paths = attractors(epoch, np.full(m, 0.3))
    path = []
    for place, late in ((position, 0.0), (seen_from, clock)):
        delay = np.zeros(m * n)
        for _ in range(4):
            dt = t + late - epoch[owner] - delay
            off = move_near_earth(r, v, owner, dt, paths)[0] - place
            delay = norm(off) / C_AU_PER_DAY
        path.append(off)
    sigma = np.hypot(claim, LEAST_CLAIM_RAD) * np.ones((2, m * n))
    direction = path[1] / norm(path[1])[:, None]
    ra, dec = displaced(direction, Errors("measured").draw(sigma, visit, rng))
    claims = np.full(m * n, claim)
    arcs = Arcs(offsets, t, ra, dec, claims, claims, position, velocity, visit)
    return arcs, norm(path[0])[arcs.triplet[:, 1]]


def share_within(posterior, truth, level):
    """Number of truths within the central intervals of a level."""
    return int(np.sum(np.abs(posterior.cdf(truth) - 0.5) < 0.5 * level))


def holds(posterior, truth, level):
    """Flag of a number within the central intervals that chance explains, at 1 in 1000."""
    low, high = binom.interval(0.999, len(truth), level)
    return low <= share_within(posterior, truth, level) <= high


@pytest.fixture(scope="module")
def ranged():
    """Posteriors of 150 arcs, half of them of two stations hours apart, and true ranges."""
    rng, m = np.random.default_rng(5), 150
    epoch = rng.uniform(59_000.0, 60_500.0, m)
    r, v = drawn_states(m, epoch, rng)
    hours = np.array([-0.4, 0.0, 0.5, 0.9])
    times = epoch[:, None] + rng.uniform(0.5, 1.5, (m, 1)) * hours / 24.0
    codes = np.full((m, 4), "G96")
    codes[::2, 2:] = "I41"
    times[::2, 2:] += 0.1
    arcs, rho = observed(r, v, epoch, times, codes, 0.5 * ARCSEC, rng)
    gone = ~np.isfinite(rho) | (arcs.sum((~np.isfinite(arcs.ra)).astype(float)) > 0)
    assert gone.mean() < 0.02
    arcs, rho = arcs.take(np.flatnonzero(~gone)), rho[~gone]
    answers = get_estimator("systematic", prior=spread_about_the_earth)._solve(arcs, arcs)
    return answers, rho


class TestCalibration:
    """Objects drawn from the prior that is asked for, errors from the law: all levels must hold."""

    def test_every_arc_has_a_posterior(self, ranged):
        answers, _ = ranged
        assert answers.posterior.has_any.all()
        widths = np.ptp(np.log(answers.posterior.quantile([0.05, 0.95])), axis=1)
        assert widths.min() < 0.05
        assert widths.max() > 1.5

    @pytest.mark.parametrize("level", [0.3, 0.5, 0.68, 0.9, 0.95])
    def test_of_levels(self, ranged, level):
        answers, rho = ranged
        assert holds(answers.posterior, rho, level)

    def test_an_overconfident_likelihood_would_show(self, ranged):
        posterior, rho = ranged[0].posterior, ranged[1]
        sharper = replace(posterior, log_likelihood=2.0 * posterior.log_likelihood)
        assert not all(holds(sharper, rho, level) for level in (0.5, 0.68, 0.9))

    def test_of_the_side_that_truths_are_on(self, ranged):
        """The mean of 150 even numbers has a standard deviation of 0.024."""
        answers, rho = ranged
        assert np.mean(answers.posterior.cdf(rho)) == pytest.approx(0.5, abs=0.08)

    def test_few_are_misfits_and_ok_is_right(self, ranged):
        answers, rho = ranged
        assert np.mean(answers.status == RangeStatus.MISFIT.code) < 0.02
        ok = answers.status == RangeStatus.OK.code
        assert 0.1 < ok.mean() < 0.9
        low, high = answers.posterior.quantile([0.0005, 0.9995])[ok].T
        assert np.mean((low < rho[ok]) & (rho[ok] < high)) > 0.98
