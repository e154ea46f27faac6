"""Figures: each function takes the axes to draw on, or makes them, and returns them.

Matplotlib is imported when something is drawn (``pip install matplotlib``).
"""

from neoranging.plotting.admissible_region import plot_admissible_region
from neoranging.plotting.estimate import plot_estimate
from neoranging.plotting.tracklet import plot_tracklet

__all__ = ["plot_admissible_region", "plot_estimate", "plot_tracklet"]
