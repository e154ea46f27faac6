"""Consequences of a night: where the object will be, and whether it meets the Earth."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
