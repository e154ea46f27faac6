"""Orbital elements, distances between orbits, the catalogue of known objects, n-body motion."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
