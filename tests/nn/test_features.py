import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit
from neoranging.core.geometry import radec
from neoranging.exceptions import DatasetError
from neoranging.lab.training.network import TrainableNetwork
from neoranging.lab.training.physics import jerks
from neoranging.lab.training.tangents import features_with_tangent
from neoranging.nn.features import FEATURES, InvariantFeatures, PaperFeatures
from neoranging.nn.geometry import in_frame, speed
from neoranging.nn.network import NetworkConfig


def fitted(features, inputs):
    features.fit(inputs)
    return features


def test_paper_features_fill_the_unit_interval(night_inputs):
    x = fitted(PaperFeatures(), night_inputs)(night_inputs)
    assert x.shape == (500, 11)
    angles = [1, 2, 3, 4, 6, 7, 8, 9, 10]
    torch.testing.assert_close(x[:, angles].amax(0), torch.ones(9).double())
    torch.testing.assert_close(x[:, angles].amin(0), -torch.ones(9).double())
    assert x[:, 0].max() < 0.0 < x[:, 5].min()
    assert x[:, [0, 5]].abs().max() == pytest.approx(1.0)


def test_invariant_features_are_standardised(night_inputs):
    features = fitted(InvariantFeatures(), night_inputs)
    x = features(night_inputs)
    assert x.shape == (500, features.size) == (500, 21)
    torch.testing.assert_close(x[:, :-1].mean(0), torch.zeros(20).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(x[:, :-1].std(0, correction=0)[2:], torch.ones(18).double())
    assert (x[:, -1] == 1.0).all()


def rotated(arcs, rotation):
    ra, dec = radec(rotation.apply(arcs.direction))
    return Arcs(
        arcs.offsets,
        arcs.t,
        ra,
        dec,
        arcs.sigma_ra,
        arcs.sigma_dec,
        rotation.apply(arcs.position),
        rotation.apply(arcs.velocity),
    )


def test_invariant_features_do_not_change_when_the_scene_is_turned(night, to_inputs):
    turned = rotated(night.arcs, Rotation.random(None, np.random.default_rng(8)))
    features = InvariantFeatures()
    before, after = (
        features.columns(to_inputs(night.arcs))[0],
        features.columns(to_inputs(turned))[0],
    )
    torch.testing.assert_close(after, before, rtol=1e-6, atol=1e-7)


def mirrored(inputs):
    """The scene seen in the plane of the equator."""
    flip = torch.tensor([1.0, 1.0, -1.0]).double()
    vectors = ("observer", "observer_rate", "observer_acc", "observer_velocity")
    vectors = {n: getattr(inputs, n) * flip for n in (*vectors, "earth", "earth_rate")}
    north = {n: getattr(inputs, n) * flip[1:] for n in ("sky", "sky_rate", "sky_acc")}
    return inputs._replace(dec=-inputs.dec, **vectors, **north)


def reversed_(inputs):
    """The scene run backwards."""
    odd = ("sky_rate", "observer_rate", "earth_rate", "observer_velocity")
    return inputs._replace(
        dt1=-inputs.dt3,
        dt3=-inputs.dt1,
        ra=inputs.ra.flip(-1),
        dec=inputs.dec.flip(-1),
        **{name: -getattr(inputs, name) for name in odd},
    )


@pytest.mark.parametrize("output", ["log", "admissible"])
def test_mirror_images_and_reversed_motions_have_the_same_range(output, night_inputs, night_truth):
    torch.manual_seed(5)
    network = TrainableNetwork(NetworkConfig(width=32, blocks=1, output=output))
    network.fit(night_inputs, *night_truth)
    plain = network(night_inputs)
    shown = network(mirrored(night_inputs))
    torch.testing.assert_close(shown.rho, plain.rho, rtol=1e-6, atol=0)
    torch.testing.assert_close(shown.rho_dot, plain.rho_dot, rtol=1e-5, atol=1e-9)
    back = network(reversed_(night_inputs))
    torch.testing.assert_close(back.rho, plain.rho, rtol=1e-6, atol=0)
    torch.testing.assert_close(back.rho_dot, -plain.rho_dot, rtol=1e-5, atol=1e-9)


def test_observers_are_shown_on_the_positive_sides(night_inputs):
    features = InvariantFeatures()
    column = dict(zip(features.scaling.names, features.columns(night_inputs)[0].T, strict=True))
    assert (column["observer_along"] >= 0.0).all()
    assert (column["observer_across"] >= 0.0).all()
    # half of the objects move towards the Sun
    assert 0.2 < (features.columns(night_inputs)[1] < 0.0).double().mean() < 0.8
    assert (PaperFeatures().columns(night_inputs)[1] == 1.0).all()


def test_invariant_features_say_what_the_attributable_says(night, night_inputs):
    attributable = from_fit(night.arcs)
    features = InvariantFeatures()
    column = dict(zip(features.scaling.names, features.columns(night_inputs)[0].T, strict=True))
    eta = np.hypot(attributable.ra_rate * np.cos(attributable.dec), attributable.dec_rate)
    np.testing.assert_allclose(column["log_proper_motion"], np.log(eta), atol=1e-9)
    heading = night_inputs.sky_rate / speed(night_inputs.sky_rate)[:, None]
    sides = in_frame(night_inputs.sky, heading, night_inputs.observer)[:, 1:, 0].sign()
    bend = attributable.curvature * sides.numpy()
    variance = np.einsum("mii->mi", attributable.curvature_covariance)
    for k, axis in enumerate(("along", "across")):
        significance = np.sinh(column[f"significance_{axis}"].numpy())
        np.testing.assert_allclose(significance, bend[:, k] / np.sqrt(variance[:, k]), rtol=1e-3)
        size = np.arcsinh(bend[:, k] / np.sqrt(variance[:, k] + 1e-6))
        np.testing.assert_allclose(column[f"curvature_{axis}"], size, atol=1e-4)
        error = column[f"log_error_{axis}"]
        np.testing.assert_allclose(error, 0.5 * np.log(variance[:, k]), atol=1e-4)
    for name, vector in (("observer", "observer"), ("observer_acc", "observer_acc")):
        length = torch.linalg.vector_norm(getattr(night_inputs, vector), dim=1)
        parts = torch.stack([column[f"{name}_{axis}"] for axis in ("sight", "along", "across")])
        torch.testing.assert_close(torch.linalg.vector_norm(parts, dim=0), length)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_derivative_is_that_of_the_map(name, night_inputs):
    """Along the straight line through the inputs, where differences are exact."""
    features = fitted(FEATURES[name](), night_inputs)
    tangent = night_inputs.tangent()
    x, x_dot = features_with_tangent(features, night_inputs)
    torch.testing.assert_close(x, features(night_inputs))
    h = 1e-5
    moved = [
        features(
            type(tangent)(*(a + s * h * b for a, b in zip(night_inputs, tangent, strict=True)))
        )
        for s in (1, -1)
    ]
    expected = (moved[0] - moved[1]) / (2 * h)
    error = (x_dot - expected).abs() / (1e-3 + expected.abs())
    assert error.quantile(0.99) < 1e-4


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_derivative_along_the_true_orbit(name, simulate, slide, to_inputs):
    simulated = simulate(200, 0.005, seed=12)
    inputs = to_inputs(simulated.arcs)
    features = fitted(FEATURES[name](), inputs)
    truth = torch.from_numpy(simulated.rho), torch.from_numpy(simulated.rho_dot)
    tangent = inputs.tangent(*jerks(inputs, *truth))
    _, found = features_with_tangent(features, inputs, tangent)
    h = 0.002
    late, early = (features(to_inputs(slide(simulated, s * h).arcs)) for s in (1, -1))
    expected = (late - early) / (2 * h)
    near = ((inputs.ra - torch.pi).abs() < 3.0).all(dim=1)  # away from 0 h
    error = (found - expected)[near].abs().quantile(0.9, dim=0)
    scale = expected[near].abs().quantile(0.5, dim=0)
    assert (error <= 0.05 * scale + 1e-6).all(), dict(
        zip(features.scaling.names, (error / scale).tolist(), strict=False)
    )


def test_two_epochs_have_no_curvature_and_say_so(simulate, night_inputs, to_inputs):
    features = fitted(InvariantFeatures(), night_inputs)
    pair = simulate(20, 0.05, seed=5, n_observations=2)
    inputs = to_inputs(pair.arcs)
    assert not inputs.curved.any()
    x, x_dot = features_with_tangent(features, inputs)
    assert x.isfinite().all()
    assert x_dot.isfinite().all()
    assert not x[:, 8:20].any()
    assert (x[:, 20] == -1.0).all()
    assert x[:, :8].abs().max() < 10.0
    assert not features.outside(features.show(inputs))[:, 8:].any()


def test_an_object_that_stands_still_has_finite_features(night_inputs):
    features = fitted(InvariantFeatures(), night_inputs)
    still = night_inputs._replace(sky_rate=torch.zeros_like(night_inputs.sky_rate))
    x, x_dot = features_with_tangent(features, still)
    assert x.isfinite().all()
    assert x_dot.isfinite().all()
    assert features.outside(features.show(still))[:, 0].all()


def test_what_lies_outside_the_domain_is_named(night_inputs):
    features = fitted(InvariantFeatures(), night_inputs)
    assert not features.outside(features.show(night_inputs)).any()
    fast = night_inputs._replace(sky_rate=night_inputs.sky_rate * 1e3)
    outside = features.outside(features.show(fast))
    names = np.array(features.scaling.names)[outside[0].numpy()]
    assert "log_proper_motion" in names
    assert "log_span" not in names
    assert not features.outside(features.show(fast), slack=100.0).any()


@pytest.fixture
def bright_inputs(night_inputs):
    """The night with magnitudes, every fifth arc without."""
    n = len(night_inputs.dt1)
    has = (torch.arange(n) % 5 > 0).double()
    return night_inputs._replace(magnitude=has * torch.linspace(17.0, 22.0, n), has_magnitude=has)


def test_magnitude_is_one_more_feature_with_a_flag(bright_inputs):
    features = fitted(InvariantFeatures(magnitude=True), bright_inputs)
    x = features(bright_inputs)
    assert x.shape == (500, features.size) == (500, 23)
    has = bright_inputs.has_magnitude > 0.0
    torch.testing.assert_close(
        x[:, :20], fitted(InvariantFeatures(), bright_inputs)(bright_inputs)[:, :20]
    )
    assert (x[:, -1] == torch.where(has, 1.0, -1.0)).all()
    assert (x[~has, 20] == 0.0).all()
    assert x[has, 20].mean().abs() < 1e-9
    assert (x[has, 20].diff() > 0.0).all()


def test_an_absent_magnitude_is_inside_every_domain(bright_inputs):
    features = fitted(InvariantFeatures(magnitude=True), bright_inputs)
    assert not features.outside(features.show(bright_inputs)).any()
    bright = bright_inputs._replace(magnitude=bright_inputs.magnitude - 9.0)
    outside = features.outside(features.show(bright))
    assert (outside[:, -1] == (bright_inputs.has_magnitude > 0.0)).all()
    assert not outside[:, :-1].any()


def test_the_magnitude_stays_while_an_arc_slides(bright_inputs):
    features = fitted(InvariantFeatures(magnitude=True), bright_inputs)
    x, rate = features_with_tangent(features, bright_inputs)
    torch.testing.assert_close(x, features(bright_inputs))
    assert (rate[:, 20:] == 0.0).all()


def test_magnitudes_cannot_be_learnt_without_any(night_inputs):
    with pytest.raises(DatasetError, match="magnitude"):
        InvariantFeatures(magnitude=True).fit(night_inputs)


@pytest.fixture
def rooted_inputs(bright_inputs):
    """The night with roots of Gauss's method, every third arc without."""
    n = len(bright_inputs.dt1)
    has = (torch.arange(n) % 3 > 0).double()
    columns = (
        torch.linspace(-4.0, 1.0, n),
        torch.linspace(-0.5, 0.5, n),
        torch.linspace(-6.0, 2.0, n),
    )
    root, rate, error = (has * column for column in columns)
    return bright_inputs._replace(root=root, root_rate=rate, log_error_root=error, has_root=has)


def test_the_root_adds_three_features_and_a_flag(rooted_inputs):
    features = fitted(InvariantFeatures(magnitude=True, root=True), rooted_inputs)
    x, rate = features_with_tangent(features, rooted_inputs)
    assert x.shape == (500, features.size) == (500, 27)
    has = rooted_inputs.has_root > 0.0
    assert (x[:, -1] == torch.where(has, 1.0, -1.0)).all()
    assert (x[~has, 21:24] == 0.0).all()
    # the root moves as its own orbit does, its error stays
    scale = features.scaling.scale
    torch.testing.assert_close(rate[has, 21] * scale[21], rooted_inputs.root_rate[has])
    assert (rate[:, 22] == 0.0).all()
    trust = 1.0 / (1.0 + torch.exp(2.0 * rooted_inputs.log_error_root[has]))
    torch.testing.assert_close(rate[has, 23] * scale[23], trust * rooted_inputs.root_rate[has])


def test_every_arc_has_a_pattern(rooted_inputs):
    features = fitted(InvariantFeatures(magnitude=True, root=True), rooted_inputs)
    present = features.present(rooted_inputs)
    assert len(features.patterns) == 6
    assert (present[:, None] == torch.from_numpy(features.patterns)).all(dim=2).any(dim=1).all()


def test_roots_cannot_be_learnt_without_any(bright_inputs):
    with pytest.raises(DatasetError, match="root"):
        InvariantFeatures(root=True).fit(bright_inputs)
