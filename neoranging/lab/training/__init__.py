"""Training of networks: configuration, data in memory, the loop, files of a run."""

import lazy_loader

from neoranging.exceptions import extra

with extra("lab", "trainings of networks"):
    import torch  # noqa: F401 (which its modules need, for the error that names the extra)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
