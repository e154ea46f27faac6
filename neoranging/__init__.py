"""neoranging: range and range-rate of a new near-Earth object from one night of astrometry."""

from neoranging._version import __version__

__all__ = ["__version__"]
