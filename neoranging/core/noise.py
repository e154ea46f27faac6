"""The law of the errors of one night: smaller than they claim, and those of one visit alike.

The sigmas that stations claim serve the fit of orbits over years, where the errors of a catalogue
and of a clock count. Within a visit, that is one station in one night, directions scatter by a
fraction of them that differs from visit to visit, about an offset which they share. The figures are
our own measurements of real arcs, made with ``docs/tools/noise_profile.py``.
"""

from __future__ import annotations

from typing import Final

SHARE_OF_CLAIM: Final = 0.25
"""Scatter of the observations of a visit, as a fraction of the standard deviation that services
assign to them: the median of real arcs of magnitude 20 and fainter."""

SHARE_SPREAD: Final = 0.85
"""Scatter of the natural logarithm of the share `SHARE_OF_CLAIM` from visit to visit."""

LARGEST_SHARE: Final = 1.5
"""Largest share; with more a tracklet would not have been reported, or would have been removed."""

OFFSET: Final = 0.25
"""Standard deviation of the offset of a visit, in units of the claimed sigma."""

CLOCK: Final = 0.3e-5
"""Error of the time of an observation [d]: records of the 80-column format round to 1e-5 d."""

VISIT_CLOCK: Final = 1.0e-5
"""Error of the clock of a visit [d], common to its observations."""
