"""The page of a night: what each tracklet may be, where it will be, and what to follow up."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
