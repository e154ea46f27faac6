"""The laboratory: labelled sets, training of networks, and studies that judge any method.

Nothing outside it imports it; who only wants a range never meets it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
