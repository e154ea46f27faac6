"""Where the Earth, observatories and spacecraft are, heliocentric, at any epoch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
