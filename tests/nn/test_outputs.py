import numpy as np
import pytest
import torch

from neoranging.constants import GM_SUN, R_EARTH
from neoranging.core import admissible
from neoranging.core.attributable import from_fit, from_three_points
from neoranging.lab.training.tangents import jvp
from neoranging.nn.geometry import Axes
from neoranging.nn.outputs import OUTPUTS, AdmissibleOutput, LogOutput, MinMaxOutput

ORIGINS = ("geocenter", "topocenter")


@pytest.fixture(params=[(name, origin) for name in sorted(OUTPUTS) for origin in ORIGINS], ids=str)
def output(request, night_inputs, night_truth):
    name, origin = request.param
    made = OUTPUTS[name](origin)
    made.fit(night_inputs, *night_truth)
    return made


def heads(n, size=1.0, seed=0):
    return torch.from_numpy(size * np.random.default_rng(seed).standard_normal((n, 2)))


def test_minmax_scales_the_extremes_to_the_unit_interval(night_inputs, night_truth):
    output = MinMaxOutput("geocenter")
    output.fit(night_inputs, *night_truth)
    scaled = output.normalise(*night_truth)
    torch.testing.assert_close(scaled.amax(0), torch.ones(2).double())
    torch.testing.assert_close(scaled.amin(0), -torch.ones(2).double())
    for found, truth in zip(output(scaled, night_inputs), night_truth, strict=True):
        torch.testing.assert_close(found, truth)


def test_log_output_says_log_range_and_velocity_along_the_line_of_sight(night_inputs, night_truth):
    output = LogOutput("topocenter")
    output.fit(night_inputs, *night_truth)
    assert output.normalise(*night_truth).mean(0).abs().max() < 1e-9
    zero = torch.zeros(500, 2).double()
    rho, rho_dot = output(zero, night_inputs)
    torch.testing.assert_close(rho, night_truth[0].log().mean().exp().expand(500))
    sight = Axes.at(night_inputs.sky).sight
    torch.testing.assert_close(rho_dot, -(sight * night_inputs.observer_velocity).sum(-1))
    one = output(zero + 1.0, night_inputs)
    torch.testing.assert_close(one[1] - rho_dot, torch.full((500,), (2 * GM_SUN) ** 0.5).double())
    torch.testing.assert_close(torch.log(one[0] / rho), output.scaling.scale[0].expand(500))


def coefficients(night, night_inputs, origin):
    if origin == "geocenter":
        a = from_three_points(night.arcs)
        earth = night_inputs.earth.numpy(), night_inputs.earth_rate.numpy()
        return admissible.energy_coefficients(a.ra, a.dec, a.ra_rate, a.dec_rate, *earth)
    a = from_fit(night.arcs)
    return admissible.energy_coefficients(
        a.ra, a.dec, a.ra_rate, a.dec_rate, a.position, a.velocity
    )


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("size", [0.3, 3.0, 30.0, 1e4])
def test_admissible_output_is_always_admissible(origin, size, night, night_inputs, night_truth):
    output = AdmissibleOutput(origin)
    output.fit(night_inputs, *night_truth)
    c = coefficients(night, night_inputs, origin)
    for seed in range(5):
        rho, rho_dot = output(heads(500, size, seed), night_inputs)
        assert admissible.is_admissible(c, rho.numpy(), rho_dot.numpy()).all()


@pytest.mark.parametrize("speed", [1e-3, 0.1, 10.0, 100.0])
def test_admissible_however_fast_and_from_wherever(speed, night_inputs, night_truth):
    """Motions far outside the training domain; every corner of the two heads."""
    rng = np.random.default_rng(1)
    turn = torch.from_numpy(rng.uniform(0.0, 2.0 * np.pi, 500))
    rate = speed * 0.02 * torch.stack([turn.cos(), turn.sin()], dim=1)
    inputs = night_inputs._replace(sky_rate=rate)
    output = AdmissibleOutput("topocenter")
    output.fit(night_inputs, *night_truth)
    dec = inputs.sky[:, 1].numpy()
    c = admissible.energy_coefficients(
        inputs.sky[:, 0].numpy(),
        dec,
        rate[:, 0].numpy() / np.cos(dec),
        rate[:, 1].numpy(),
        inputs.observer.numpy(),
        inputs.observer_velocity.numpy(),
    )
    for a in (-1e3, -12.0, -8.0, -4.0, 0.0, 1.0, 2.0, 1e3):
        for b in (-1e3, -2.0, -0.5, 0.0, 0.5, 2.0, 1e3):
            said = torch.tensor([[a, b]], dtype=torch.float64).expand(500, 2)
            rho, rho_dot = output(said, inputs)
            assert admissible.is_admissible(c, rho.numpy(), rho_dot.numpy()).all(), (a, b)


def test_admissible_output_reaches_the_truth(night, night_inputs, night_truth):
    """True states come out again from the heads that say them: nothing possible is excluded."""
    output = AdmissibleOutput("topocenter")
    output.fit(night_inputs, *night_truth)
    rho, rho_dot = night_truth
    c = coefficients(night, night_inputs, "topocenter")
    inside = torch.from_numpy(admissible.is_admissible(c, rho.numpy(), rho_dot.numpy()))
    assert inside.double().mean() > 0.95
    first = ((rho.log() - output.scaling.center[0]) / output.scaling.scale[0])[:, None]
    second = torch.linspace(-6.0, 6.0, 401, dtype=torch.float64)
    found_rho, rates = [], []
    for b in second:
        said = torch.cat([first, b.expand(500, 1)], dim=1)
        found, rate = output(said, night_inputs)
        found_rho.append(found)
        rates.append(rate)
    nearest = (torch.stack(rates) - rho_dot).abs().amin(dim=0)
    assert nearest[inside].quantile(0.98) < 5e-4
    error = (found_rho[0] / rho - 1.0).abs()
    assert error[inside].quantile(0.95) < 0.01


def test_second_head_runs_upward_through_the_strip(night_inputs, night_truth):
    output = AdmissibleOutput("topocenter")
    output.fit(night_inputs, *night_truth)
    for a in (-9.0, 0.0):  # near the Earth, where bound orbits are cut out, and far
        said = [torch.tensor([[a, b]]).double().expand(500, 2) for b in (-3.0, -0.1, 0.1, 3.0)]
        rates = torch.stack([output(x, night_inputs)[1] for x in said])
        assert (rates.diff(dim=0) > 0).all()
    rho, _ = output(torch.tensor([[-1e9, 0.0]]).double().expand(500, 2), night_inputs)
    assert (rho > R_EARTH).all()
    assert (rho < 1.002 * R_EARTH).all()


def test_derivatives_through_the_output(output, night_inputs):
    said, said_rate = heads(500), heads(500, seed=1)
    tangent = night_inputs.tangent()
    state, rate = jvp(output, (said, night_inputs), (said_rate, tangent))
    h = 1e-5
    moved = [
        output(
            said + s * h * said_rate,
            type(tangent)(*(a + s * h * b for a, b in zip(night_inputs, tangent, strict=True))),
        )
        for s in (1, -1)
    ]
    for value, found, direct, late, early in zip(
        state, rate, output(said, night_inputs), *moved, strict=True
    ):
        torch.testing.assert_close(value, direct)
        expected = (late - early) / (2 * h)
        error = (found - expected).abs() / expected.abs().median()
        assert error.quantile(0.98) < 1e-4
