"""Methods that estimate a range: the interface, the registry, and those of the package."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
