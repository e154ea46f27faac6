"""Reading and writing astrometric observations, with an account of every record.

Importing this package is cheap; the names that ``__init__.pyi`` lists are loaded at their first
use. Once it is imported, ``astropy.table.QTable.read`` knows the formats ``mpc.obs80``,
``ades.psv``, ``ades.xml`` and ``orbfit.rwo`` and recognises them by their content.
"""

import lazy_loader

from neoranging.observations.formats import register_formats

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register_formats()
