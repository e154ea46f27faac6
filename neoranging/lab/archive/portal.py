"""Where NEODyS-2 keeps its files, and what objects are called there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from neoranging.exceptions import NeoRangingError

BASE_URL: Final = "https://newton.spacedys.com/~neodys2"
"""Folder of the portal below which all files lie."""

BASE_URL_VARIABLE: Final = "NEORANGING_NEODYS_URL"
"""Environment variable with another base address, such as that of a mirror."""

Epoch = Literal["middle", "present"]
Kind = Literal["keplerian", "equinoctial"]

EPOCH_DIGIT: Final = {"middle": "0", "present": "1"}
KIND_LETTERS: Final = {"keplerian": "ke", "equinoctial": "eq"}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class Portal:
    """Where the files of a portal lie.

    Parameters
    ----------
    base_url : str, optional
        ``BASE_URL``, or what the environment variable ``BASE_URL_VARIABLE`` says.
    catalogue : str
        Elements of all objects at an epoch near the present, one line each: also the list of
        objects.
    observations : str
        Observations of one object; ``{name}`` is its name without blanks.
    elements : str
        Orbit of one object; ``{kind}`` is ``ke`` or ``eq``, ``{epoch}`` is 0 in the middle of the
        observed arc and 1 near the present.
    """

    base_url: str = ""
    catalogue: str = "neodys.cat"
    observations: str = "mpcobs/{name}.rwo"
    elements: str = "epoch/{name}.{kind}{epoch}"

    def url(self, path: str) -> str:
        """Full address of a path."""
        base = self.base_url or os.environ.get(BASE_URL_VARIABLE, "") or BASE_URL
        return f"{base.rstrip('/')}/{quote(path)}"

    def observation_path(self, designation: str) -> str:
        """Path of the observations of an object."""
        return self.observations.format(name=portal_name(designation))

    def orbit_path(self, designation: str, kind: Kind, epoch: Epoch) -> str:
        """Path of an orbit of an object.

        Raises
        ------
        NeoRangingError
            If there is no such kind or epoch.
        """
        if kind not in KIND_LETTERS or epoch not in EPOCH_DIGIT:
            raise NeoRangingError(
                f"an orbit is one of {tuple(KIND_LETTERS)} at one of {tuple(EPOCH_DIGIT)}, "
                f"got {kind!r} at {epoch!r}"
            )
        return self.elements.format(
            name=portal_name(designation), kind=KIND_LETTERS[kind], epoch=EPOCH_DIGIT[epoch]
        )


def portal_name(designation: str) -> str:
    """Name of an object in paths of the portal: "2024 YR4" is "2024YR4".

    Raises
    ------
    NeoRangingError
        If it could not be the name of a file.
    """
    name = designation.replace(" ", "")
    if not _NAME.fullmatch(name):
        raise NeoRangingError(
            f"{designation!r} is no name of an object: needed are letters and digits, as in "
            "'433', '2024 YR4' or '2024YR4'"
        )
    return name
