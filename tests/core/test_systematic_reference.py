"""The posterior of systematic ranging beside a brute-force grid and a Markov chain."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from reference_posterior import (
    CASES,
    PRIORS,
    BruteForce,
    first_walkers,
    markov_chain,
)

import neoranging as nr
from neoranging.constants import C_AU_PER_DAY

PROBABILITIES = [0.05, 0.25, 0.5, 0.75, 0.95]


@cache
def brute_force(name: str, flat_in: str = "sky") -> BruteForce:
    return BruteForce(CASES[name].night(), flat_in=flat_in).run()


def test_nights_are_of_very_different_kinds():
    widths = [np.ptp(brute_force(name).quantiles("log-uniform")[0]) for name in CASES]
    assert len(CASES) == 10
    assert min(widths) < 0.02
    assert max(widths) > 2.0


@pytest.mark.parametrize("name", CASES)
def test_reference_moves_objects_as_an_integrator_of_high_order(name):
    night, case = CASES[name].night(), CASES[name]
    motion = np.array([[0.02, -0.005, 0.003]]).T
    middle = night.middle
    r = night.arc.position[middle] + case.rho * night.arc.direction[middle]
    v = night.arc.velocity[middle] + motion[:, 0]
    delay = case.rho / C_AU_PER_DAY
    steps = night._path(r[:, None], v[:, None], np.array([delay]))[0][..., 0]
    off = np.linalg.norm(steps - night.integrated(r, v, delay), axis=1) / case.rho
    assert np.all(off < 1e-3 * night.sigma.min())


def test_reference_does_not_hang_on_its_grids():
    name = "near, two stations, eight hours"
    coarse = brute_force(name)
    fine = BruteForce(coarse.night, scales=24, rates=41).run(step=0.25)
    width = np.ptp(fine.quantiles("uniform"), axis=1)[:, None]
    difference = coarse.quantiles("uniform") - fine.quantiles("uniform")
    assert np.all(np.abs(difference) < 0.005 * width)


@pytest.mark.slow
def test_grid_and_chain_agree():
    """What the grid integrates in closed form the chain samples; all nights: in benchmarks."""
    rng = np.random.default_rng(3)
    name, prior = "near, an hour", "phase space"
    force = brute_force(name, "attributable")
    walkers = first_walkers(force, prior, 400, rng)
    chain = markov_chain(force.night, walkers, PRIORS[prior], 500, rng)[20:]
    expected = force.quantiles(prior)
    width = np.ptp(expected, axis=1)
    for k, column in enumerate((4, 5)):
        parts = [np.quantile(part[..., column], PROBABILITIES) for part in np.array_split(chain, 4)]
        error = np.std(parts, axis=0, ddof=1) / 2.0
        difference = np.quantile(chain[..., column], PROBABILITIES) - expected[k]
        assert np.all(np.abs(difference) < 0.01 * width[k] + 4.0 * error)
        assert np.all(error < 0.03 * width[k])


@pytest.mark.parametrize("prior", ["log-uniform", "phase space"])
@pytest.mark.parametrize("name", CASES)
def test_systematic_ranging_agrees_with_brute_force(name, prior):
    force = brute_force(name, "attributable" if prior == "phase space" else "sky")
    arc = force.night.arc
    density = (lambda orbits: np.ones(orbits.ecc.shape)) if prior == "phase space" else prior
    method = nr.get_estimator("systematic", prior=density)
    posterior = method._solve(arc, arc).posterior
    expected = force.quantiles(prior)
    found = np.log(posterior.quantile(PROBABILITIES)[0]), posterior.rate_quantile(PROBABILITIES)[0]
    for values, quantiles in zip(found, expected, strict=True):
        assert np.all(np.abs(values - quantiles) < 0.01 * np.ptp(quantiles))
