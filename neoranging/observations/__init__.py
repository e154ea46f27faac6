"""Reading and writing astrometric observations, with an account of every record.

Importing this package is cheap; the readers are loaded at their first use.
"""

from __future__ import annotations

from neoranging.observations.report import Note, ReadReport, Reason, SetAside

__all__ = ["Note", "ReadReport", "Reason", "SetAside"]
