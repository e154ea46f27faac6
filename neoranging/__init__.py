"""Range and range-rate of a new near-Earth object from one night of astrometry.

>>> import neoranging as nr
>>> tracklets = nr.read_tracklets(nr.sample("2024YR4"))
>>> estimate = tracklets[0].estimate(method="gauss")

Importing the package registers its observation formats with astropy's tables and costs little: the
names that ``__init__.pyi`` lists are loaded when they are first used.
"""

from neoranging import _interrupts

if _interrupts.is_command():
    _interrupts.end_at_once()  # before the imports that take long

import lazy_loader

from neoranging import observations  # noqa: F401 (registers the table formats)
from neoranging._version import __version__  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
