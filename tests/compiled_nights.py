"""Simulated arcs as the compiled functions of systematic ranging take them."""

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_fit
from neoranging.core.sightings import Nights, Space, make_space, nights
from neoranging.ephemeris.states import attractors


def prepared(arcs: Arcs) -> tuple[Nights, Space]:
    """Observations as the compiled functions take them, and room to work in."""
    attributables = from_fit(arcs)
    paths = attractors(attributables.epoch, arcs.span)
    longest = int(arcs.counts.max())
    return nights(arcs, attributables, paths), make_space(longest, longest)
