"""Figures: each function takes the axes to draw on, or makes them, and returns them.

Matplotlib is imported when something is drawn (``pip install matplotlib``).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
