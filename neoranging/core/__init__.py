"""Numeric core: float64 arrays in au, day, radian and TDB; no units, no input or output.

The public modules of the same names dress these functions with Quantity, Time and SkyCoord. Calling
the core directly is supported and fast, but nothing here checks a unit for you.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
