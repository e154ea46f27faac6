"""The figure of tomorrow's cloud."""

import numpy as np
import pytest
from astropy import units as u
from astropy.coordinates import SkyCoord

import neoranging as nr
from neoranging.exceptions import EstimationError
from neoranging.plotting import plot_sky

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def estimate():
    return nr.read_tracklets(nr.sample("2024YR4")).estimate(method="systematic")


@pytest.fixture(scope="module")
def tomorrow(estimate):
    return estimate[4].ephemeris(estimate.epoch[4] + 1 * u.d, "G96", n=300)


def line(ax, label):
    (found,) = (one for one in ax.lines if one.get_label() == label)
    return found.get_xydata()


def test_shows_draws_regions_and_a_field_to_scale(tomorrow, drawn):
    ax = tomorrow.plot_sky(0.5 * u.deg)
    texts = drawn(ax.figure)
    assert {"68% of the probability", "95% of the probability", "orbits drawn"} <= set(texts)
    assert any(text.startswith("2024-12-31 05:38 UTC") for text in texts)
    assert "east [arcmin]" in texts
    square = line(ax, "field of 0.5 deg")
    assert np.ptp(square, axis=0) == pytest.approx([30.0, 30.0], rel=1e-3)
    assert square.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1.0)
    assert ax.get_aspect() == 1.0


def test_east_is_left_and_north_up(tomorrow, drawn):
    place = tomorrow.center.directional_offset_by(90 * u.deg, 20 * u.arcmin)
    ax = tomorrow.plot_sky(observed=place)
    assert line(ax, "observed") == pytest.approx(np.array([[20.0, 0.0]]), abs=0.3)
    left, right = ax.get_xlim()
    assert left > right
    assert ax.get_ylim()[0] < ax.get_ylim()[1]


def test_everything_is_in_view(tomorrow):
    far = SkyCoord(tomorrow.center.ra + 6 * u.deg, tomorrow.center.dec)
    ax = tomorrow.plot_sky(observed=far)
    x, _ = line(ax, "observed")[0]
    assert ax.get_xlim()[1] < x < ax.get_xlim()[0]
    assert ax.get_xlabel() == "east [deg]"


def test_fields_are_numbered_in_their_order(tomorrow, drawn):
    fields = tomorrow.pointings(10.0 * u.arcmin)
    texts = drawn(plot_sky(tomorrow, 10.0 * u.arcmin, pointings=True).figure)
    assert {str(k) for k in range(1, len(fields) + 1)} <= set(texts)


def test_draws_on_axes_given(tomorrow):
    _, ax = matplotlib.pyplot.subplots()
    assert tomorrow.plot_sky(ax=ax) is ax


def test_refuses_what_it_cannot_draw(estimate, tomorrow):
    many = estimate.ephemeris(estimate.epoch[0], n=20)
    with pytest.raises(EstimationError, match="one tracklet at one instant"):
        many.plot_sky()
    with pytest.raises(EstimationError, match="pointings need a field"):
        tomorrow.plot_sky(pointings=True)
