"""Weights of nodes that somebody else has chosen."""

import numpy as np

import neoranging as nr
from neoranging.core.attributable import from_fit
from neoranging.core.node_weights import weigh
from neoranging.core.sightings import nights
from neoranging.core.systematic import systematic
from neoranging.ephemeris.states import attractors
from neoranging.orbits.population import load_prior


def test_nodes_of_systematic_ranging_get_its_weights_again():
    arcs = nr.read_tracklets(nr.sample("2024YR4")).arcs()
    at = from_fit(arcs)
    night = nights(arcs, at, attractors(at.epoch, arcs.span))
    prior = load_prior("catalogue")
    posterior = systematic(night, arcs.mean_mag, prior)
    answer = weigh(night, arcs.mean_mag, prior, posterior.arc, posterior.rho, posterior.rho_dot)
    relevant = posterior.weights > 1e-9
    assert relevant.sum() > 100
    for own, other in zip(answer, (posterior.log_likelihood, posterior.log_prior), strict=True):
        # fits begin elsewhere, and end where the likelihood moves no more
        np.testing.assert_allclose(own[relevant], other[relevant], atol=0.02)
