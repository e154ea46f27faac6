"""Reading and writing astrometric observations, with an account of every record.

Importing this package is cheap; the readers are loaded at their first use. Once it is imported,
``astropy.table.QTable.read`` knows the formats ``mpc.obs80``, ``ades.psv``, ``ades.xml`` and
``orbfit.rwo`` and recognises them by their content.
"""

from __future__ import annotations

from neoranging.observations.formats import register_formats
from neoranging.observations.report import Note, ReadReport, Reason, SetAside

__all__ = ["Note", "ReadReport", "Reason", "SetAside", "register_formats"]

register_formats()
