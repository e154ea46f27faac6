"""The twin: a simulated set of arcs with the statistics of NEODyS-2."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
