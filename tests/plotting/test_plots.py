"""Figures are drawn with the right labels, marks and limits, on axes given or made."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.table import QTable
from astropy.time import Time
from made_posteriors import SHAPES, posterior

from neoranging.admissible_region import AdmissibleRegion
from neoranging.core.posterior import Posterior
from neoranging.core.status import RangeStatus
from neoranging.exceptions import EstimationError, MissingDependencyError
from neoranging.plotting import plot_admissible_region, plot_estimate, plot_tracklet, style
from neoranging.tracklet import Tracklet, TrackletSet

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RATE = u.au / u.day
N3 = [1.01316, 3.04833e-2, 1.25118e-3, 5.47587e-4, 2.92308e-4, 8.84022e-1]  # OrbFit, 2015 RN35
TWO_COMPONENTS = [1.0, 0.0, 7.398e-7, -2.9591e-5, 2.9591e-4, 2.0]  # back by v_earth / 20 au


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def make_estimate(**changes):
    candidates = QTable(
        {
            "range": [2e-4, 0.035, 0.17] * u.au,
            "range_rate": [0.001, -0.004, 0.003] * RATE,
            "admissible": [False, True, True],
            "chosen": [False, False, True],
        }
    )
    region = AdmissibleRegion.from_coefficients(N3)
    values = {
        "method": "gauss",
        "status": RangeStatus.MULTIPLE_ROOTS,
        "candidates": candidates,
        "range": 0.17 * u.au,
        "range_rate": 5.2 * u.km / u.s,
        "origin": "topocenter",
        "range_error": 0.05 * u.au,
        "range_rate_error": 0.004 * RATE,
        "attributable": SimpleNamespace(admissible_region=lambda: region),
        "_answers": SimpleNamespace(posterior=None),
    }
    return SimpleNamespace(**(values | changes))


def make_tracklet(n=5, ra=0.002):
    minutes = np.array([0.0, 20.0, 41.0, 63.0, 185.0])[:n]
    days = minutes / 1440.0
    coord = SkyCoord((ra + 0.9 * days) % 360 * u.deg, (20 + 0.4 * days + 0.5 * days**2) * u.deg)
    return Tracklet(
        Time(60000.2, format="mjd", scale="utc") + days * u.day,
        coord,
        station="G96",
        sigma=0.3 * u.arcsec,
        designation="2015 RN35",
    )


@pytest.mark.parametrize("log", [True, False])
def test_region(log):
    ax = plot_admissible_region(AdmissibleRegion.from_coefficients(N3), log=log)
    assert ax.get_xlabel() == "range [au]"
    assert ax.get_ylabel() == "range-rate [au/d]"
    assert ax.get_xscale() == ("log" if log else "linear")
    assert labels(ax) == ["admissible region", "bound to the Earth"]
    left, right = ax.get_xlim()
    assert right > 0.3998
    assert left < 4.3e-5
    ax.figure.draw_without_rendering()


def test_region_with_two_components_has_one_name():
    ax = plot_admissible_region(AdmissibleRegion.from_coefficients(TWO_COMPONENTS))
    assert len(ax.lines) == 2
    assert labels(ax) == ["admissible region", "bound to the Earth"]


def test_region_on_given_axes_with_its_own_method():
    _, ax = plt.subplots()
    region = AdmissibleRegion.from_coefficients(N3)
    assert region.plot(ax=ax, legend=False, show_earth_bound=False) is ax
    assert ax.get_legend() is None
    assert labels(ax) == ["admissible region"]


def test_empty_region():
    ax = plot_admissible_region(AdmissibleRegion.from_coefficients(N3, rho_min=2 * u.au))
    assert "empty" in ax.texts[0].get_text()


def test_estimate():
    ax = plot_estimate(make_estimate())
    assert ax.get_title() == "gauss, topocenter: multiple roots"
    assert labels(ax) == [
        "admissible region",
        "bound to the Earth",
        "candidate, admissible",
        "candidate, not admissible",
        "solution, 1 sigma",
    ]
    (solution,) = ax.containers
    assert solution.lines[0].get_xydata()[0] == pytest.approx([0.17, 0.003003], rel=1e-3)
    ax.figure.draw_without_rendering()


def test_estimate_with_an_error_larger_than_itself():
    wide = {"range_error": 3 * u.au, "range_rate_error": np.inf * RATE}
    ax = plot_estimate(make_estimate(status=RangeStatus.OK, **wide))
    assert ax.get_title() == "gauss, topocenter: OK"
    assert ax.get_xlim()[1] < 3.0
    ax.figure.draw_without_rendering()


def test_failed_estimate_is_the_region_alone():
    nothing = {"range": np.nan * u.au, "range_rate": np.nan * RATE}
    failed = make_estimate(candidates=QTable(), status=RangeStatus.NO_ROOT, **nothing)
    assert labels(plot_estimate(failed)) == ["admissible region", "bound to the Earth"]
    unsure = {"range_error": np.nan * u.au, "range_rate_error": np.nan * RATE}
    ax = plot_estimate(make_estimate(candidates=QTable(), **unsure), log=False)
    assert labels(ax)[-1] == "solution"


def test_estimate_of_a_real_class():
    estimate = make_tracklet().estimate("gauss")
    ax = estimate.plot()
    assert ax.get_title().startswith("gauss, topocenter: ")
    many = TrackletSet.from_tracklets([make_tracklet(), make_tracklet(ra=30.0)]).estimate("gauss")
    with pytest.raises(EstimationError, match="index"):
        plot_estimate(many)
    assert plot_estimate(many[1]).get_title()


def with_posterior(night):
    nothing = {"candidates": QTable(), "status": RangeStatus.POPULATION}
    centre = {"range": night.quantile(0.5)[0] * u.au, "range_rate": night.mean[0, 1] * RATE}
    return make_estimate(**nothing, **centre, _answers=SimpleNamespace(posterior=night))


@pytest.mark.parametrize("shape", SHAPES)
def test_posterior(shape):
    night = posterior(shape)
    ax = plot_estimate(with_posterior(night), truth=(0.06 * u.au, 0.001 * RATE))
    plane, above, beside = ax, *(a for a in ax.figure.axes if a is not ax)
    contours = [] if shape == "strip" else ["68% of the posterior", "95% of the posterior"]
    assert labels(plane) == [
        *("admissible region", "bound to the Earth"),
        *contours,
        *("truth", "solution"),
    ]
    assert above.get_title() == "gauss, topocenter: population"
    assert above.get_xlim() == plane.get_xlim()
    assert beside.get_ylim() == plane.get_ylim()
    # the curves are densities: they hold nearly all of the probability
    rho, density = above.lines[0].get_data()
    assert np.trapezoid(density, np.log(rho)) == pytest.approx(0.999, abs=0.01)
    density, rate = beside.lines[0].get_data()
    assert np.trapezoid(density, rate) == pytest.approx(0.999, abs=0.01)
    ax.figure.draw_without_rendering()


def test_contours_hold_their_share():
    night = posterior("leaning")
    ax = plot_estimate(with_posterior(night))
    rho, rate = (x[0] for x in night.draw(4000, np.random.default_rng(2)))
    (contours,) = (c for c in ax.collections if isinstance(c, matplotlib.contour.ContourSet))
    for path, share in zip(contours.get_paths(), (0.95, 0.68), strict=True):
        inside = path.contains_points(np.stack([rho, rate], axis=1))
        assert inside.mean() == pytest.approx(share, abs=0.025)


def test_sharp_posterior_fills_the_view():
    night = posterior("normal")
    x = np.log(0.05) + 0.01 * (np.log(night.rho) - np.log(0.05))
    sharp = replace(night, rho=np.exp(x), log_width=0.01 * night.log_width)
    near, far = plot_estimate(with_posterior(sharp)).get_xlim()
    assert 0.049 < near < 0.05 < far < 0.051
    assert plot_estimate(with_posterior(sharp), zoom=False).get_xlim()[0] < 1e-3
    assert plot_estimate(with_posterior(night), zoom=True).get_xlim()[0] > 0.005


def test_posterior_on_given_axes_is_the_plane_alone():
    _, ax = plt.subplots()
    assert plot_estimate(with_posterior(posterior("lobes")), ax=ax, legend=False) is ax
    assert len(ax.figure.axes) == 1
    assert ax.get_title() == "gauss, topocenter: population"


def test_tracklet_without_a_posterior_among_those_that_have_one():
    without = make_estimate(_answers=SimpleNamespace(posterior=Posterior.none(1)))
    assert labels(plot_estimate(without))[-1] == "solution, 1 sigma"


def test_solution_outside_the_region_stays_in_view():
    ax = plot_estimate(make_estimate(range=3 * u.au, range_rate=0.05 * RATE))
    assert ax.get_xlim()[1] > 3
    assert ax.get_ylim()[1] > 0.05


@pytest.mark.parametrize("ra", [0.002, 359.95])
def test_tracklet_across_zero_right_ascension(ra):
    tracklet = make_tracklet(ra=ra)
    sky, residuals = plot_tracklet(tracklet)
    east, north = sky.lines[1].get_data()
    assert np.hypot(east, north).max() < 600
    assert east.argmax() == 4
    assert sky.xaxis_inverted()
    assert labels(sky) == ["fitted parabola", "observation", "first"]
    assert labels(residuals) == ["east", "north"]
    for k, container in enumerate(residuals.containers):
        drawn = container.lines[0].get_ydata()
        assert drawn == pytest.approx(tracklet.fit_residuals()[:, k].value, abs=1e-12)
    curve = np.array(sky.lines[0].get_data())
    assert np.abs(curve[:, [0, -1]] - [east[[0, -1]], north[[0, -1]]]).max() < 0.05
    sky.figure.draw_without_rendering()


def test_tracklet_of_two():
    sky, residuals = plot_tracklet(make_tracklet(n=2))
    assert labels(sky)[0] == "fitted line"
    assert residuals.get_xlabel().endswith("[min]")
    assert sky.get_title() == "2015 RN35, from 2023-02-25 04:48 UTC"


def test_tracklet_on_given_axes():
    _, axes = plt.subplots(2, 1)
    assert make_tracklet().plot(axes) == tuple(axes)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*\[plot\]"):
        style.pyplot()


def test_importing_the_figures_imports_no_matplotlib():
    code = "import sys, neoranging.plotting; print('matplotlib' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "False"
