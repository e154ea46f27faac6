"""Orbits in OrbFit's element format OEF2.0: catalogues of one line each, files of one object.

Elements are heliocentric and osculating, on the mean ecliptic and equinox of J2000; epochs are TT
(``TDT`` in the files). Single-object files give Keplerian (``KEP``) or equinoctial (``EQU``)
elements with their covariance.

References
----------
OrbFit consortium, http://adams.dm.unipi.it/orbfit/; Broucke & Cefola 1972, Celestial Mechanics 5,
303 (equinoctial elements).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.exceptions import ObservationFormatError, OrbitFormatError
from neoranging.observations.designation import spaced
from neoranging.observations.report import ReadReport, Reason, SetAside
from neoranging.observations.source import TextSource, read_source
from neoranging.typing import FloatArray

KEPLERIAN: Final = ("a", "ecc", "inc", "raan", "argp", "M")
EQUINOCTIAL: Final = ("a", "h", "k", "p", "q", "mean_longitude")

_UNITS: Final = {"a": u.au, "ecc": u.one}  # of elements that are no angles
_FRAME: Final = "ECLM J2000"
_END: Final = "END_OF_HEADER"
_HEADER: Final = re.compile(r"\s*(format|rectype|elem|refsys)\s*=\s*'?([^'!]*?)'?\s*(?:!.*)?$")
_NO_MAGNITUDE: Final = -99.0  # OrbFit writes less where there is none
_MJD_RANGE: Final = (-100_000.0, 200_000.0)  # 1585 to 2406: epochs outside are damage
_N_LINE_VALUES: Final = 7  # epoch and six elements; H and G may be missing


@dataclass(frozen=True, eq=False, kw_only=True)
class OrbitRecord:
    """An orbit of one object, as a single-object file gives it.

    Attributes
    ----------
    designation : str
        With the blank that the format leaves out: "2018 VP1".
    epoch : Time
        Scale TT.
    a : Quantity
        Semimajor axis [au], negative for a hyperbola.
    ecc : Quantity
        Eccentricity.
    inc, raan, argp, M : Quantity
        Inclination, longitude of the node, argument of perihelion, mean anomaly [deg], ecliptic
        J2000.
    H, G : float
        Absolute magnitude and slope; NaN where absent.
    kind : {"KEP", "EQU"}
        Elements that the file holds; Keplerian ones are computed from equinoctial ones.
    values : ndarray, shape (6,)
        The elements as they stand in the file: au and degrees. Equinoctial ones are a,
        e sin(varpi), e cos(varpi), tan(i/2) sin(node), tan(i/2) cos(node), mean longitude.
    covariance : ndarray, shape (D, D), or None
        Of ``values``, in their units; D > 6 where non-gravitational parameters were fitted too.
    correlation : ndarray, shape (D, D), or None
        Where the file gives it.
    url : str
        Where it came from.
    """

    designation: str
    epoch: Time
    a: u.Quantity
    ecc: u.Quantity
    inc: u.Quantity
    raan: u.Quantity
    argp: u.Quantity
    M: u.Quantity
    H: float
    G: float
    kind: str
    values: FloatArray
    covariance: FloatArray | None = None
    correlation: FloatArray | None = None
    url: str = ""


def looks_like_catalogue(content: bytes) -> bool:
    """True if the header announces one line per object."""
    header = content.partition(_END.encode())[0]
    return any(b"rectype" in line and b"1L" in line.split(b"!")[0] for line in header.splitlines())


def read_orbit(source: TextSource, *, url: str = "") -> OrbitRecord:
    """Read a file of one object, such as the portal's ``.ke0``, ``.ke1``, ``.eq0``, ``.eq1``.

    Parameters
    ----------
    source : str, path-like, bytes or file object
    url : str
        Kept in the record.

    Raises
    ------
    OrbitFormatError
        If the file is something else, is cut short, or is on another frame than the ecliptic of
        J2000.
    """
    text, name = _read(source)
    _, body = _split_header(text, name or url)
    if not body:
        raise OrbitFormatError(f"{name or url or 'the file'} ends with its header; fetch it again")
    designation = body[0][1].strip().strip("'")
    rows: dict[str, list[str]] = {}
    for _, line in body[1:]:
        keyword, *rest = line.split()
        rows.setdefault(keyword, []).extend(rest)
    return _record(designation, rows, url)


def orbit_from_astroquery(answer: Mapping[str, Any], designation: str) -> OrbitRecord:
    """Typed record of what `astroquery.solarsystem.neodys` returns.

    Parameters
    ----------
    answer : mapping
        Of ``NEODyS.query_object``; its keys are those the code uses, not those it documents.
    designation : str
        The answer does not name its object.

    Raises
    ------
    OrbitFormatError
        If elements, epoch or a number of them are missing. astroquery does not notice when it was
        sent a web page: the answer then holds empty lists.
    """
    keys = {
        "KEP": "Keplerian State Vector",
        "EQU": "Equinoctial State Vector",
        "MJD": "Mean Julian Date",
        "MAG": "Magnitude",
        "COV": "Covariance Matrix",
        "COR": "Keplerian Correlation Matrix",
    }
    rows = {short: list(answer[key]) for short, key in keys.items() if answer.get(key)}
    return _record(designation, rows, str(answer.get("URL", "")))


def read_catalogue(source: TextSource) -> QTable:
    """Read a catalogue of one line per object, such as the portal's ``neodys.cat``.

    Parameters
    ----------
    source : str, path-like, bytes or file object

    Returns
    -------
    QTable
        ``designation``, ``epoch`` (TT), ``a`` [au], ``ecc``, ``inc``, ``raan``, ``argp``, ``M``
        [deg], ``H``, ``G`` (NaN where absent). ``meta["report"]`` is the account of all lines.

    Raises
    ------
    OrbitFormatError
        If the file is no such catalogue.
    """
    text, name = _read(source)
    header, body = _split_header(text, name)
    if header.get("rectype", "1L") != "1L" or header.get("elem", "KEP") != "KEP":
        raise OrbitFormatError(
            f"{name or 'the file'} is no catalogue of Keplerian elements in one line each, got "
            f"{header}; read a file of one object with read_orbit"
        )
    names, values, bad = [], [], []
    for line, record in body:
        parsed = _catalogue_line(record)
        if parsed is None:
            bad.append(SetAside(line, Reason.MALFORMED, record, "no name, epoch and six elements"))
        else:
            names.append(parsed[0])
            values.append(parsed[1])
    columns = np.array(values, dtype=float).reshape(-1, _N_LINE_VALUES + 2).T
    epoch, *elements, magnitude, slope = columns
    table = QTable(
        {
            "designation": np.array([spaced(name) for name in names], dtype=np.str_),
            "epoch": Time(epoch, format="mjd", scale="tt"),
        }
    )
    for name, column in zip(KEPLERIAN, elements, strict=True):
        table[name] = u.Quantity(column, _UNITS.get(name, u.deg))
    table["H"] = np.where(magnitude > _NO_MAGNITUDE, magnitude, np.nan)
    table["G"] = slope
    table.meta["report"] = ReadReport(len(body), len(names), tuple(bad), source=name)
    return table


def _catalogue_line(line: str) -> tuple[str, list[float]] | None:
    """Name, epoch, elements, H and G of a line, None if it is damaged."""
    _, quote, rest = line.partition("'")
    name, end, rest = rest.partition("'") if quote else line.strip().partition(" ")
    try:
        values = [float(word.replace("D", "E")) for word in rest.split()[: _N_LINE_VALUES + 2]]
    except ValueError:
        return None
    values += [math.nan] * (_N_LINE_VALUES + 2 - len(values))
    orbit = values[:_N_LINE_VALUES]
    if not (end and name.strip() and all(map(math.isfinite, orbit)) and _is_orbit(orbit)):
        return None
    return name.strip(), values


def _is_orbit(values: Sequence[float]) -> bool:
    """True if epoch, a, e, i can be those of an orbit around the Sun."""
    epoch, a, ecc, inc = values[:4]
    in_range = _MJD_RANGE[0] < epoch < _MJD_RANGE[1] and 0.0 <= inc <= 180.0 and ecc >= 0.0
    return in_range and (a > 0.0 if ecc < 1.0 else a < 0.0)


def _read(source: TextSource) -> tuple[bytes, str]:
    """Content and name of a file; one that does not unpack is a damaged file of orbits here."""
    try:
        return read_source(source)
    except ObservationFormatError as error:
        raise OrbitFormatError(str(error)) from error


def _split_header(text: bytes, name: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """Header, and the numbered lines below it without comments."""
    lines = text.decode("utf-8", "replace").splitlines()
    end = next((n for n, line in enumerate(lines) if line.startswith(_END)), None)
    if end is None:
        raise OrbitFormatError(
            f"{name or 'this'} is no file of orbital elements in OrbFit's format: got "
            f"{lines[0][:60] if lines else 'nothing'!r}, needed a header that ends with {_END}"
        )
    header = {m[1]: m[2].strip() for line in lines[:end] if (m := _HEADER.match(line))}
    frame = " ".join(header.get("refsys", _FRAME).split())
    if frame != _FRAME:
        raise OrbitFormatError(f"{name or 'the file'} is on the frame {frame}, needed is {_FRAME}")
    numbered = enumerate(lines[end + 1 :], end + 2)
    return header, [(n, line) for n, line in numbered if line.strip() and line.lstrip()[0] != "!"]


def _record(designation: str, rows: Mapping[str, Sequence[Any]], url: str) -> OrbitRecord:
    kind = "KEP" if "KEP" in rows else "EQU"
    what = url or designation
    values = _numbers(rows, kind, what, 6)
    epoch = _numbers(rows, "MJD", what, 1)[0]
    a, ecc, inc, raan, argp, mean = values if kind == "KEP" else _keplerian(values)
    if not (np.isfinite(values).all() and _is_orbit((epoch, a, ecc, inc))):
        raise OrbitFormatError(f"{what}: {kind} {values} at MJD {epoch} are no heliocentric orbit")
    scale = rows["MJD"][1:2]
    if scale and str(scale[0]) not in ("TDT", "TT"):
        raise OrbitFormatError(f"{what}: epoch in the time scale {scale[0]}, needed is TDT")
    magnitude = [*_numbers(rows, "MAG", what, 0), math.nan, math.nan]
    return OrbitRecord(
        designation=spaced(designation),
        epoch=Time(epoch, format="mjd", scale="tt"),
        a=a * u.au,
        ecc=ecc * u.one,
        inc=inc * u.deg,
        raan=raan * u.deg,
        argp=argp * u.deg,
        M=mean * u.deg,
        H=magnitude[0] if magnitude[0] > _NO_MAGNITUDE else math.nan,
        G=magnitude[1],
        kind=kind,
        values=values,
        covariance=_symmetric(rows, "COV", what),
        correlation=_symmetric(rows, "COR", what),
        url=url,
    )


def _numbers(rows: Mapping[str, Sequence[Any]], keyword: str, what: str, count: int) -> FloatArray:
    """First `count` numbers of a keyword, all of them for 0."""
    words = list(rows.get(keyword, ()))
    try:
        numbers = np.array([float(word) for word in words[: count or None]])
    except ValueError as error:
        raise OrbitFormatError(f"{what}: {keyword} holds {words}, needed are numbers") from error
    if len(numbers) < count:
        raise OrbitFormatError(
            f"{what}: {len(numbers)} numbers after {keyword}, needed are {count}; "
            "the file is cut short or is something else: fetch it again"
        )
    return numbers


def _symmetric(rows: Mapping[str, Sequence[Any]], keyword: str, what: str) -> FloatArray | None:
    """Matrix of the rows of its upper triangle; None where there is none."""
    if keyword not in rows:
        return None
    upper = _numbers(rows, keyword, what, 0)
    size = (math.isqrt(8 * len(upper) + 1) - 1) // 2
    if size < 6 or size * (size + 1) // 2 != len(upper):
        raise OrbitFormatError(
            f"{what}: {len(upper)} numbers after {keyword} are no upper triangle of a matrix of at "
            "least 6 by 6; the file is cut short: fetch it again"
        )
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


def _keplerian(values: FloatArray) -> FloatArray:
    """Keplerian elements [au, deg] of equinoctial ones [au, deg]."""
    a, h, k, p, q, mean_longitude = values
    longitude_of_perihelion, node = math.atan2(h, k), math.atan2(p, q)
    angles = np.degrees([node, longitude_of_perihelion - node, -longitude_of_perihelion])
    angles[2] += mean_longitude
    inc = math.degrees(2.0 * math.atan(math.hypot(p, q)))
    return np.array([a, math.hypot(h, k), inc, *angles % 360.0])
