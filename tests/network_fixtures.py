"""Arcs of true orbits as inputs of networks, by an own way through the numeric core.

Fixtures for tests of networks and of their training.
"""

import numpy as np
import pytest
import simulated_arcs
import torch

from neoranging import ephemeris
from neoranging.core.attributable import tangent_fit
from neoranging.core.geometry import dot, radec, sky_basis
from neoranging.core.parallax import parallax
from neoranging.nn.inputs import ArcInputs


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def inputs_of(arcs):
    """`ArcInputs` of `neoranging.core.arcs.Arcs`."""
    fit = tangent_fit(arcs)
    rows = arcs.triplet
    t2 = arcs.t[rows[:, 1]]
    earth, earth_rate = ephemeris.earth_state(t2)
    ra, dec = radec(fit.line_of_sight)
    basis = sky_basis(ra, dec)
    components = [
        np.stack([dot(vector, axis) for axis in basis], axis=1)
        for vector in (fit.rate, fit.acceleration)
    ]
    curved = arcs.n_epochs >= 3
    error = np.where(curved[:, None], np.sqrt(fit.covariance[:, :, 2, 2]), 1.0)
    columns = {
        "dt1": arcs.t[rows[:, 0]] - t2,
        "dt3": arcs.t[rows[:, 2]] - t2,
        "ra": arcs.ra[rows],
        "dec": arcs.dec[rows],
        "earth": earth,
        "earth_rate": earth_rate,
        "sky": np.stack([ra, dec], axis=1),
        "sky_rate": components[0],
        "sky_acc": components[1] * curved[:, None],
        "log_span": np.log(arcs.t[rows[:, 2]] - arcs.t[rows[:, 0]]),
        "log_sigma_acc": np.log(error),
        "curved": curved.astype(float),
        "observer": fit.observer[:, :, 0],
        "observer_rate": fit.observer[:, :, 1],
        "observer_acc": fit.observer[:, :, 2],
        "observer_velocity": arcs.velocity[rows[:, 1]],
        "parallax": parallax(arcs).inverse_range,
        "log_sigma_parallax": np.log(parallax(arcs).error),
        "magnitude": np.nan_to_num(arcs.mean_mag),
        "has_magnitude": np.isfinite(arcs.mean_mag).astype(float),
        **dict.fromkeys(("root", "root_rate", "log_error_root", "has_root"), np.zeros(len(arcs))),
    }
    return ArcInputs(**{name: torch.from_numpy(value) for name, value in columns.items()})


@pytest.fixture(scope="session")
def to_inputs():
    return inputs_of


@pytest.fixture(scope="session")
def night(simulate):
    """500 noisy arcs of an hour and a half."""
    return simulate(500, 0.06, seed=3).with_noise(np.random.default_rng(4))


@pytest.fixture(scope="session")
def night_inputs(night):
    return inputs_of(night.arcs)


@pytest.fixture(scope="session")
def night_truth(night):
    return torch.from_numpy(night.rho), torch.from_numpy(night.rho_dot)


@pytest.fixture(scope="session")
def slide():
    """Function that observes the same objects from the same stations ``h`` days later."""

    def later(simulated, h):
        a = simulated.arcs
        times = [a.t[i:j] + h for i, j in zip(a.offsets, a.offsets[1:], strict=False)]
        return simulated_arcs.observe(
            simulated.r, simulated.v, simulated.epoch, times, simulated.station
        )

    return later
