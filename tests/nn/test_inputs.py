import numpy as np
import pytest
import torch

from neoranging.core.attributable import three_point as numpy_three_point
from neoranging.lab.training.physics import jerks
from neoranging.lab.training.tangents import jvp
from neoranging.nn.geometry import Axes, in_frame, speed, three_point
from neoranging.nn.inputs import MAX_ACCELERATION_RAD_D2, MAX_RATE_RAD_D, ArcInputs

H = 0.002


def test_three_point_rates_are_those_of_the_numeric_core(night, night_inputs):
    arcs = night.arcs
    rows = arcs.triplet
    expected = numpy_three_point(arcs.t[rows], arcs.ra[rows], arcs.dec[rows])
    found = three_point(night_inputs.dt1, night_inputs.dt3, night_inputs.ra, night_inputs.dec)
    for ours, theirs in zip(found, expected, strict=True):
        scale = np.abs(theirs).max()
        # epochs are differences of MJDs, whose last bit is 1e-11 d
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-12 * scale)


def test_three_point_rates_of_a_parabola_across_the_zero_of_right_ascension():
    dt1, dt3 = torch.tensor([-0.03]).double(), torch.tensor([0.05]).double()
    dt = torch.stack([dt1, torch.zeros_like(dt1), dt3], dim=-1)
    ra = (6.283 + 0.02 * dt + 0.5 * 0.3 * dt**2) % (2 * torch.pi)
    dec = 0.1 - 0.01 * dt + 0.5 * 0.07 * dt**2
    assert ra[0, 0] > 6 > 1 > ra[0, 2]
    found = torch.cat(three_point(dt1, dt3, ra, dec))
    expected = torch.tensor([0.02, -0.01, 0.3, 0.07], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dt1", "dt3", "ra"), [(0.0, 0.1, (1, 1, 2)), (-0.1, 0.0, (1, 2, 2))])
def test_two_epochs_make_a_straight_line(dt1, dt3, ra):
    ra = torch.tensor([ra]).double() * 1e-3
    found = three_point(torch.tensor([dt1]), torch.tensor([dt3]), ra, 2.0 * ra)
    assert [x.item() for x in found] == pytest.approx([0.01, 0.02, 0.0, 0.0])


def test_rates_of_a_triplet_stay_in_their_envelope(night_inputs):
    """Limits of the paper: 1 rad/d and 0.5 rad/d^2, for right ascension and declination alike."""
    assert (MAX_RATE_RAD_D, MAX_ACCELERATION_RAD_D2) == (1.0, 0.5)
    jump = torch.tensor([1.0, 1.5, 0.7])
    wild = night_inputs._replace(ra=night_inputs.ra * jump, dec=night_inputs.dec * jump)
    sizes = [column.abs().max().item() for column in wild.motion()]
    assert sizes == [1.0, 1.0, 0.5, 0.5]


def differences(simulated, slide, to_inputs, of=lambda inputs: inputs):
    """Central differences of inputs, or of a map of them, along the true orbit."""
    late, early = (of(to_inputs(slide(simulated, h).arcs)) for h in (H, -H))
    if isinstance(late, ArcInputs):
        return ArcInputs(*((a - b) / (2 * H) for a, b in zip(late, early, strict=True)))
    return (late - early) / (2 * H)


@pytest.fixture(scope="module")
def seen_from_stations(simulate):
    return simulate(200, 0.005, seed=11)


def relative_error(found, expected):
    """Root mean square error over root mean square, robust against one arc near a pole."""
    error = (found - expected).flatten().abs().quantile(0.95)
    return (error / expected.flatten().abs().quantile(0.5)).item()


SMOOTH = ("dec", "earth", "earth_rate", "sky", "sky_rate", "observer", "observer_rate")


@pytest.mark.parametrize("name", [*SMOOTH, "ra", "sky_acc", "observer_acc"])
def test_tangent_is_the_motion_along_the_true_orbit(name, seen_from_stations, slide, to_inputs):
    inputs = to_inputs(seen_from_stations.arcs)
    truth = torch.from_numpy(seen_from_stations.rho), torch.from_numpy(seen_from_stations.rho_dot)
    tangent = inputs.tangent(*jerks(inputs, *truth))
    expected = differences(seen_from_stations, slide, to_inputs)
    found, wanted = getattr(tangent, name), getattr(expected, name)
    if name in ("ra", "sky"):  # right ascension may pass 0 h
        far = wanted.abs() > 1.0
        wanted = torch.where(far, wanted - wanted.sign() * torch.pi / H, wanted)
    # a parabola through unevenly spaced epochs is that of a shifted instant: 1 % of seven minutes
    assert relative_error(found, wanted) < 0.03


def test_without_jerks_the_arc_follows_its_own_parabola(night_inputs):
    tangent = night_inputs.tangent()
    assert not tangent.observer_acc.any()
    turn = tangent.sky[:, 0] * torch.sin(night_inputs.sky[:, 1])
    expected = torch.stack([night_inputs.sky_acc[:, 1], -night_inputs.sky_acc[:, 0]], dim=1)
    torch.testing.assert_close(tangent.sky_acc, expected * turn[:, None])


def test_slid_parabola_moves_the_frame_as_the_tangent_says(night_inputs):
    """The line of sight's own second derivative, through the frame, against its definition."""

    def rate_vector(inputs):
        return Axes.at(inputs.sky).tangential(inputs.sky_rate)

    _, found = jvp(rate_vector, (night_inputs,), (night_inputs.tangent(),))
    east_north = night_inputs.sky_rate / speed(night_inputs.sky_rate)[:, None]
    along = (night_inputs.sky_acc * east_north).sum(-1)
    across = night_inputs.sky_acc[:, 1] * east_north[:, 0]
    across = across - night_inputs.sky_acc[:, 0] * east_north[:, 1]
    square = (night_inputs.sky_rate**2).sum(-1)
    expected = torch.stack([-square, along, across], dim=-1)
    components = in_frame(night_inputs.sky, east_north, found)[..., 0]
    torch.testing.assert_close(components, expected, rtol=1e-9, atol=1e-12)


def test_inputs_are_mapped_column_by_column(night_inputs):
    few = night_inputs.map(lambda x: x[:7])
    assert len(few.dt1) == 7
    assert few.observer.shape == (7, 3)
