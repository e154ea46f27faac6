"""Small files of real observations that come with the package, to try things on.

================  ===========================================================================
name              content
================  ===========================================================================
``2024YR4``       2024 YR4 on the nights about its discovery, 26 to 30 December 2024: five
                  tracklets, each too short to determine a range
``impactors``     2014 AA and 2008 TC3, hours before they fell on the Earth, and 2008 EK68 on
                  its way past it: five tracklets, close enough for parallax to give a range
``messy``         made-up records of every kind that a reader meets: radar, replaced,
                  malformed, of an unknown station, in two lines
================  ===========================================================================

The positions of the first two were published by the Minor Planet Center of the International
Astronomical Union; all files are in its 80-column format. `docs/tools/make_samples.py` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from neoranging.arguments import did_you_mean
from neoranging.exceptions import UnknownSampleError

if TYPE_CHECKING:
    from astropy.table import QTable


_FOLDER: Final = Path(__file__).parent / "data" / "samples"
_NAMES: Final = ("2024YR4", "impactors", "messy")


def available_samples() -> tuple[str, ...]:
    """Names that `sample` takes."""
    return _NAMES


def sample(name: str) -> Path:
    """Path of a sample file.

    Parameters
    ----------
    name : str
        One of ``available_samples``; case and blanks do not matter.

    Raises
    ------
    UnknownSampleError
        If there is no such sample.

    Examples
    --------
    >>> import neoranging as nr
    >>> nr.read_tracklets(nr.sample("2024YR4"))
    <TrackletSet: 5 tracklets, 14 observations>
    """
    key = str(name).replace(" ", "").casefold()
    for listed in _NAMES:
        if listed.casefold() == key:
            return _FOLDER / f"{listed}.obs80"
    hint = did_you_mean(key, _NAMES)
    raise UnknownSampleError(f"no sample {name!r}{hint}: choose one of {', '.join(_NAMES)}")


def reference_ranges() -> QTable:
    """Ranges of the real samples at each observation, to hold estimates against.

    Returns
    -------
    QTable
        ``designation``, ``station``, ``obstime`` (UTC), ``range`` and ``range_rate`` along the
        light path from the place of the observer, and their ``source``: JPL's ephemeris, or for
        2024 YR4 an orbit fitted to 26 days of observations.
    """
    from astropy import units as u
    from astropy.table import QTable
    from astropy.time import Time

    plain = QTable.read(_FOLDER / "ranges.csv", format="ascii.csv")
    return QTable(
        {
            "designation": plain["designation"],
            "station": plain["station"].astype(str),
            "obstime": Time(plain["obstime_utc"], scale="utc"),
            "range": plain["range_au"] * u.au,
            "range_rate": plain["range_rate_au_d"] * u.au / u.d,
            "source": plain["source"],
        }
    )
