"""Where NEODyS-2 keeps its files, and what objects are called there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from neoranging.exceptions import NeoRangingError
from neoranging.lab.archive.validation import check_orbit, check_rwo

BASE_URL: Final = "https://newton.spacedys.com/~neodys2"
BASE_URL_VARIABLE: Final = "NEORANGING_NEODYS_URL"

Epoch = Literal["middle", "present"]
Kind = Literal["keplerian", "equinoctial"]

EPOCH_DIGIT: Final = {"middle": "0", "present": "1"}
KIND_LETTERS: Final = {"keplerian": "ke", "equinoctial": "eq"}


class RemoteFile(NamedTuple):
    """A file of the portal: its path there and in the cache, and the check of its content."""

    key: str
    check: Callable[[bytes], None]


@dataclass(frozen=True, kw_only=True)
class Portal:
    """Where the files of a portal lie.

    Parameters
    ----------
    base_url : str, optional
        ``https://newton.spacedys.com/~neodys2``, or what the environment variable
        ``NEORANGING_NEODYS_URL`` says.
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

    def url(self, key: str) -> str:
        """Full address of a path."""
        base = self.base_url or os.environ.get(BASE_URL_VARIABLE, "") or BASE_URL
        return f"{base.rstrip('/')}/{quote(key)}"

    def catalogue_file(self) -> RemoteFile:
        """Catalogue of all objects."""
        return RemoteFile(self.catalogue, check_orbit)

    def observation_file(self, designation: str) -> RemoteFile:
        """Observations of an object."""
        return RemoteFile(self.observations.format(name=portal_name(designation)), check_rwo)

    def orbit_file(
        self, designation: str, kind: Kind = "keplerian", epoch: Epoch = "middle"
    ) -> RemoteFile:
        """Orbit of an object.

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
        name, letters, digit = portal_name(designation), KIND_LETTERS[kind], EPOCH_DIGIT[epoch]
        key = self.elements.format(name=name, kind=letters, epoch=digit)
        return RemoteFile(key, check_orbit)


def portal_name(designation: str) -> str:
    """Name of an object in paths of the portal: "2024 YR4" is "2024YR4".

    Raises
    ------
    NeoRangingError
        If it could not be the name of a file.
    """
    name = designation.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise NeoRangingError(
            f"{designation!r} is no name of an object: needed are letters and digits, as in "
            "'433', '2024 YR4' or '2024YR4'"
        )
    return name
