"""Real tracklets of six near-Earth objects against the ranges of JPL's ephemeris.

Topocentric range and range-rate at each observation, from JPL Horizons, in
``cases/truth_tracklets.json`` of the folder of outside data.
"""

import json

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord
from astropy.time import Time

import neoranging as nr
from neoranging.core.gauss import Triplets, gauss_orbits
from neoranging.core.geometry import line_of_sight
from neoranging.tracklet import TrackletSet

METHODS = pytest.mark.parametrize("method", ["gauss", "laplace"])


@pytest.fixture(scope="module")
def cases(shared):
    return json.loads((shared / "cases" / "truth_tracklets.json").read_text())


@pytest.fixture(scope="module")
def tracklets(cases):
    """Every tracklet, with its ranges, range-rates and epochs by JPL."""
    made, truth = [], []
    for name, case in cases.items():
        for tracklet in case["tracklets"]:
            obs = tracklet["obs"]
            made.append(
                nr.Tracklet(
                    Time([o["utc"] for o in obs], scale="utc"),
                    SkyCoord([o["ra"] for o in obs], [o["dec"] for o in obs], unit="deg"),
                    station=tracklet["obscode"],
                    sigma=0.5 * u.arcsec,
                    designation=name,
                )
            )
            truth.append(np.array([[o["jd_tdb"], o["rho_au"], o["rhodot_au_d"]] for o in obs]).T)
    return TrackletSet.from_tracklets(made), truth


@pytest.fixture(scope="module")
def middle_truth(tracklets):
    """Range and range-rate at the reference epoch of each tracklet, shape (M, 2)."""
    found, truth = tracklets
    epochs = found.attributable().epoch.jd
    rows = [np.argmin(np.abs(t[0] - at)) for t, at in zip(truth, epochs, strict=True)]
    assert all(abs(t[0][k] - at) < 1e-7 for t, k, at in zip(truth, rows, epochs, strict=True))
    return np.array([t[1:, k] for t, k in zip(truth, rows, strict=True)])


@METHODS
def test_ok_is_within_three_standard_errors(tracklets, middle_truth, method):
    estimate = tracklets[0].estimate(method)
    ok = estimate.ok
    assert ok.sum() >= 2
    for found, error, truth in (
        (estimate.range, estimate.range_error, middle_truth[:, 0]),
        (estimate.range_rate, estimate.range_rate_error, middle_truth[:, 1]),
    ):
        assert (np.abs(found.value - truth) / error.value)[ok].max() < 3.0


@METHODS
def test_whatever_the_verdict_the_interval_holds_the_truth(tracklets, middle_truth, method):
    low, high = tracklets[0].estimate(method).interval(0.9973).value.T
    assert (low <= middle_truth[:, 0]).all()
    assert (middle_truth[:, 0] <= high).all()


@METHODS
@pytest.mark.parametrize(("name", "range_au"), [("2014 AA", 0.00269), ("2008 TC3", 0.00309)])
def test_impactors_keep_their_close_root(tracklets, method, name, range_au):
    """Discovery nights of 2014 AA and 2008 TC3, a day before they hit the Earth."""
    found = tracklets[0]
    first = found[int(np.nonzero(found.designation == name)[0][0])]
    estimate = first.estimate(method)
    assert estimate.status is nr.RangeStatus.OK
    assert estimate.range.to_value(u.au) == pytest.approx(range_au, rel=0.1)
    assert estimate.range_rate.to_value(u.au / u.d) < -0.002


@METHODS
def test_impactors_stay_right_at_other_claims_of_precision(tracklets, cases, method):
    case = cases["2014AA"]["tracklets"][0]["obs"]
    for sigma in (0.2, 0.3, 0.7, 1.0):
        tracklet = tracklets[0][0]
        estimate = nr.Tracklet(
            tracklet.obstime, tracklet.coord, station="G96", sigma=sigma * u.arcsec
        ).estimate(method)
        if estimate.ok:
            assert abs(estimate.range.value - case[2]["rho_au"]) < 4.0 * estimate.range_error.value


@pytest.mark.parametrize("method", ["mlp", "pinn"])
def test_networks_answer_all_to_a_factor_of_two(tracklets, middle_truth, method):
    """Median error of kete's statistical ranging on the same tracklets: 0.34 dex."""
    estimate = tracklets[0].estimate(method)
    error = np.abs(np.log10(estimate.range.value / middle_truth[:, 0]))
    assert np.isfinite(error).all()
    assert np.median(error) <= 0.30


def test_only_impactors_hit_the_earth(tracklets):
    """Discovery tracklets of 2014 AA and 2008 TC3 against the others, under the population."""
    found = tracklets[0]
    estimate = found.estimate("systematic")
    chance = estimate.impact_probability(n=5000)
    names = found.designation
    hours = np.array([tracklet.arc_length.to_value(u.h) for tracklet in found])
    fell = np.isin(names, ["2014 AA", "2008 TC3"]) & (hours > 1.0)
    assert fell.sum() == 2
    assert chance[fell].min() > 0.99
    assert estimate[fell].impact_probability(prior="log-uniform", n=1000).min() > 0.99
    # below 0.001, and three standard errors of so many draws
    assert chance[~fell].max() < 2.3e-3
    assert np.median(chance[~fell]) < 1e-4


@METHODS
def test_minutes_are_never_called_ok(tracklets, method):
    found = tracklets[0]
    hours = np.array([tracklet.arc_length.to_value(u.h) for tracklet in found])
    estimate = found.estimate(method)
    assert not estimate.ok[hours < 0.5].any()
    few = found.counts < 3
    assert (estimate.status[few] == nr.RangeStatus.TOO_FEW_OBSERVATIONS).all()


@METHODS
def test_geocentric_observers_are_not_confidently_wrong(tracklets, middle_truth, method):
    """Their range counts from another place; beyond that place it may not be false."""
    estimate = tracklets[0].estimate(method, origin="geocenter")
    off = np.abs(estimate.range.value - middle_truth[:, 0])
    allowed = 4.0 * estimate.range_error.value + 5e-5
    assert (off[estimate.ok] < allowed[estimate.ok]).all()


# One direction per tracklet, as published for adam_core 0.6.1 (and layup 1.1.0, which agrees to
# 1 %): the series at the middle, in au.
@pytest.mark.parametrize(
    ("name", "series"),
    [("2023DW", [0.07208]), ("2023QR6", [0.15551, 0.47947]), ("2008TC3", [0.00288])],
)
def test_gauss_through_three_tracklets(cases, name, series):
    means = [tracklet["mean"] for tracklet in cases[name]["tracklets"][:3]]
    sky = np.array([[mean["ra_rad"], mean["dec_rad"]] for mean in means]).T
    triplets = Triplets(
        np.array([[mean["mjd_tdb"] for mean in means]]),
        line_of_sight(*sky)[None],
        np.array([[mean["observer_helio_icrf_au_aud"][:3] for mean in means]]),
    )
    truth = means[1]["rho_true_au"]
    classical = gauss_orbits(triplets, max_iterations=0).ranges[:, 1]
    np.testing.assert_allclose(np.sort(classical), series, atol=6e-6)
    refined = gauss_orbits(triplets)
    assert refined.converged.all()
    errors = [np.abs(ranges - truth).min() for ranges in (refined.ranges[:, 1], classical)]
    # exact motion undoes the error of the series; the noise of the directions remains
    assert errors[0] <= errors[1] * 1.01
    assert errors[0] < 0.05 * truth


def test_the_tracklets_of_several_nights_together(tracklets):
    """2023 DW over nine hours from four stations: parallax settles what one night cannot."""
    found = tracklets[0]
    rows = found[found.designation == "2023 DW"]
    joined = nr.read_tracklets(rows.to_table(), group_by="night")
    longest = joined[int(np.argmax(joined.counts))]
    assert len(longest) >= 9
    for method in ("gauss", "laplace"):
        estimate = longest.estimate(method)
        if estimate.ok:
            assert abs(estimate.range.value - 0.0717) < 4.0 * estimate.range_error.value + 5e-4
