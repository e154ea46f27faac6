"""Orbits of NEODyS-2 through astroquery, its answers made typed records."""

from __future__ import annotations

from neoranging.exceptions import (
    CorruptFileError,
    DownloadError,
    ResourceNotFoundError,
    extra,
)
from neoranging.lab.archive.http import ABSENT
from neoranging.lab.archive.oef import OrbitRecord, orbit_from_astroquery
from neoranging.lab.archive.portal import (
    EPOCH_DIGIT,
    KIND_LETTERS,
    Epoch,
    Kind,
    Portal,
    portal_name,
)


def query_astroquery(
    designation: str, *, kind: Kind = "keplerian", epoch: Epoch = "present", base_url: str = ""
) -> OrbitRecord:
    """Orbit of one object by ``astroquery.solarsystem.neodys``, as a typed record.

    For those who have astroquery at work already; it neither retries nor keeps, see
    `NeodysClient.orbit`.

    Parameters
    ----------
    designation : str
    kind, epoch
        As for `NeodysClient.orbit`.
    base_url : str
        As for `Portal`.

    Raises
    ------
    MissingDependencyError
        If astroquery is not installed (extra ``lab``).
    ResourceNotFoundError, DownloadError
        If the portal does not deliver.
    OrbitFormatError, CorruptFileError
        If what came is no orbit.
    """
    with extra("lab", "elements by way of astroquery", "use NeodysClient.orbit"):
        from astroquery import cache_conf
        from astroquery.solarsystem.neodys import NEODySClass
        from requests import RequestException

    service = NEODySClass()
    # its address is frozen at import, and its answers would be kept for a week
    service.NEODYS_URL = Portal(base_url=base_url).url("epoch")
    try:
        with cache_conf.set_temp("cache_active", False):
            answer = service.query_object(
                portal_name(designation),
                orbital_element_type=KIND_LETTERS[kind],
                epoch_near_present=int(EPOCH_DIGIT[epoch]),
            )
    except RequestException as error:
        status = getattr(error.response, "status_code", None)
        kind_of_error = ResourceNotFoundError if status in ABSENT else DownloadError
        raise kind_of_error(f"{designation}: {error}", service.NEODYS_URL, status) from error
    except (ValueError, IndexError) as error:
        msg = f"{designation}: astroquery cannot read what came: {error}"
        raise CorruptFileError(msg) from error
    return orbit_from_astroquery(answer, designation)
