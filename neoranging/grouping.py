"""Observations grouped into tracklets: by identity, night and station, one per exposure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from neoranging.constants import MJD_JD
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError, TrackletError
from neoranging.observations import stations
from neoranging.observations.cells import cell_text, translated
from neoranging.observations.columns import (
    Columns,
    Fault,
    Observations,
    faults,
    labels,
    with_credible_sigmas,
)
from neoranging.observations.designation import canonical
from neoranging.observations.exposures import number_of_value, repeated_exposures, running_number
from neoranging.observations.report import ReadReport
from neoranging.records import RecordCount, Rejections, many
from neoranging.typing import AnyArray, BoolArray, IntArray, StrArray

GAP: Final = 0.5
"""Pause that divides the observations of an observer without local noon [d].

Spacecraft come back to an object every orbit or every few (WISE: after 1.6, 3.2, 6.4 or 9.5 hours)
for a day or two, and then after weeks: between 12 and 20 hours real files have no pause at all.
"""

LONGEST_RUN: Final = 1.0
"""Longest run of them that is one tracklet [d]; longer ones are cut into equal parts."""

_RUNS: Final = 1 << 40  # added to the numbers of runs, to tell them from those of nights

AGAIN: Final = "another record of the same exposure"
ALONE: Final = "alone: no second epoch of that object in that night"
ALONE_OF_ID: Final = "alone: no second epoch of that tracklet"
UNNAMED: Final = "without identity: neither designation nor tracklet id"


@dataclass(frozen=True)
class TrackletReport(RecordCount):
    """Account of every observation that went into tracklets.

    Attributes
    ----------
    n_read, n_used : int
        Observations given, and those that stand in a tracklet.
    reasons : mapping of str to int
        Observations set aside, by reason.
    n_tracklets : int
    reading : tuple of ReadReport
        The account of each file that was read before.
    notes : tuple of str
        Changes to observations that are used.
    lost : mapping of str to str
        Reason by tracklet id, of those ids of which no tracklet is left.
    """

    n_tracklets: int = 0
    reading: tuple[ReadReport, ...] = ()
    notes: tuple[str, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)

    def headline(self, thing: str = "observation") -> str:
        """Return the account of the tracklets in one line."""
        return (
            f"{many(self.n_read, thing)}, {self.n_used} used in "
            f"{many(self.n_tracklets, 'tracklet')}, {self.n_set_aside} set aside"
        )

    def __str__(self) -> str:
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([*map(str, self.reading), super().__str__(), *notes])


class Identities(NamedTuple):
    """What keeps K groups of observations apart, also those that form no tracklet."""

    label: StrArray
    """Tracklet id or designation, in words."""
    station: StrArray
    night: IntArray


class Groups(NamedTuple):
    """Observations in order of M tracklets and, within each, of time."""

    columns: Columns
    offsets: IntArray
    """Bounds of the tracklets, shape (M + 1,)."""
    designation: StrArray
    tracklet_id: StrArray
    report: TrackletReport


def group_by_identity(
    parts: Sequence[Observations],
    group_by: tuple[str, ...],
    kinds: tuple[str, ...],
    selected_only: bool,
    order: str = "time",
) -> tuple[Groups, Identities]:
    """Tracklets of the observations of files and tables, and all groups of usable observations.

    Rows of one tracklet id, or else of one designation, belong together within a night and station
    (or within a night). A row without an id belongs to the one that its object has in that night
    and station, if it is only one. The id of a submission names what has no other name (if it names
    one object only), but keeps nothing apart: observers report an object in parts of a night.

    Raises
    ------
    ObservationFormatError
        If no observation says which object it is of.
    """

    def joined(name: str, fill: Any) -> AnyArray:
        columns = (part.extra.get(name, np.full(len(part), fill)) for part in parts)
        return np.concatenate([np.asarray(column) for column in columns])

    reports = tuple(part.meta["report"] for part in parts if "report" in part.meta)
    # of unknown stations the readers have warned already
    reader_notes = [note.text for report in reports for note in report.notes]
    c = Columns.concatenate(part.columns for part in parts) if len(parts) > 1 else parts[0].columns
    c, notes = stations.with_places(c, reader_notes)
    rejections = Rejections(len(c.ra))
    kind = np.concatenate([part.kind for part in parts])
    rejections.reject(~np.isin(kind, kinds), "observer not of the kinds asked for")
    if selected_only:
        rejections.reject(
            ~joined("selected", True).astype(bool), "rejected from its orbit by the file"
        )
    for fault in faults(c):
        rejections.reject(fault.rows, fault.reason)
    names = canonical(np.concatenate([part.designation for part in parts]))
    ids = translated(joined("tracklet", ""), cell_text)
    submission = translated(joined("trkSub", ""), cell_text)
    unnamed = (names == "") & (ids == "") & (submission == "")
    usable = rejections.usable
    if usable.any() and unnamed[usable].all():
        raise ObservationFormatError(
            f"none of {many(int(usable.sum()), 'observation')} says which object it is of, and "
            "observations are never joined on a guess: give a column 'tracklet' (an id of your "
            "own, the same for all rows of one tracklet) or 'designation'; if they are all of one "
            "object, one name will do: table['designation'] = 'mine'"
        )
    if count := int((unnamed & usable).sum()):
        warnings.warn(
            f"{many(count, 'observation')} with neither designation nor tracklet id are set aside",
            NeoRangingWarning,
            stacklevel=3,
        )
    rejections.reject(unnamed, UNNAMED)
    by_station = "station" in group_by
    key, names, ids, identities = _keys(c, names, ids, submission, by_station, rejections.usable)
    groups = _assembled(c, key, names, ids, rejections, ALONE, notes, order=order)
    return groups._replace(report=replace(groups.report, reading=reports)), identities


def group_by_label(c: Columns, tracklet: Any, designation: Any, on_bad: str) -> Groups:
    """Tracklets of the rows of one id, or else of one designation, in the order of these labels.

    Parameters are those of `neoranging.TrackletSet.from_arrays`.

    Raises
    ------
    TrackletError
        If there are no labels, something is bad and ``on_bad="raise"``, or nothing is left.
    """
    if on_bad not in ("set aside", "raise"):
        raise TrackletError(f"on_bad must be 'set aside' or 'raise', got {on_bad!r}")
    n = len(c.ra)
    names = canonical(labels("designation", "" if designation is None else designation, n))
    values = names if tracklet is None else labels("tracklet", tracklet, n)
    label = translated(values, cell_text)
    if (label == "").all():
        raise TrackletError(
            "from_arrays needs tracklet= (an id for each observation) or designation=: "
            "observations are never joined on a guess; for one object write "
            "Tracklet(obstime, SkyCoord(ra, dec), station=...)"
        )
    unnamed = Fault(label == "", UNNAMED, "each needs an id in tracklet= or a designation")
    ids = label if tracklet is not None else np.full(n, "")
    # numbers are in the order of numbers, and texts that differ by blanks are one id
    key = np.unique(label if values.dtype.kind == "U" else values, return_inverse=True)[1]
    return _grouped(c, key, names, ids, (unnamed,), on_bad)


def group_as_one(c: Columns, designation: Any) -> Groups:
    """One tracklet of all rows.

    Raises
    ------
    TrackletError
        If an observation is bad, or there are fewer than two epochs.
    """
    n = len(c.ra)
    names = canonical(labels("designation", designation, n))
    return _grouped(c, np.zeros(n, dtype=np.int64), names, np.full(n, ""), (), "raise")


def _grouped(
    c: Columns,
    key: IntArray,
    names: StrArray,
    ids: StrArray,
    more_faults: tuple[Fault, ...],
    on_bad: str,
) -> Groups:
    c, notes = stations.with_places(c)
    rejections = Rejections(len(c.ra))
    for fault in (*more_faults, *faults(c)):
        if on_bad == "raise" and fault.rows.any():
            raise TrackletError(fault.message)
        rejections.reject(fault.rows, fault.reason)
    groups = _assembled(c, key, names, ids, rejections, ALONE_OF_ID, notes, order="key")
    report = groups.report
    for note in report.notes[len(notes) :]:
        warnings.warn(note, NeoRangingWarning, stacklevel=4)
    lost = list(report.lost)
    listed = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
    reasons = ", ".join(f"{count} {reason}" for reason, count in report.reasons.items())
    message = (
        f"{report.n_set_aside} of {many(report.n_read, 'observation')} cannot be used ({reasons})"
        + (f"; {many(len(lost), 'tracklet')} lost: {listed}" if lost else "")
    )
    if not report.n_tracklets or (on_bad == "raise" and ALONE_OF_ID in report.reasons):
        raise TrackletError(
            f"{message}; a motion needs at least two different epochs of one object from usable "
            "observations"
        )
    if report.reasons:
        warnings.warn(message, NeoRangingWarning, stacklevel=4)
    return groups


def _keys(
    c: Columns,
    designation: StrArray,
    ids: StrArray,
    submission: StrArray,
    by_station: bool,
    usable: BoolArray,
) -> tuple[IntArray, StrArray, StrArray, Identities]:
    """Number of the group of each observation, names and ids with those that rows adopt."""
    station = number_of_value(c.station)
    # readers call by the id of its submission what has no other name
    names = np.where(designation == submission, "", designation)
    for label in (ids, submission):
        names = _adopted((label, station), names, usable & (label != ""))
    nameless = np.where(ids == "", submission, ids)
    objects = number_of_value(np.where(names == "", nameless, names))
    where = station if by_station else np.zeros_like(station)
    night = _nights(c, objects, where, by_station, usable)
    place = _combined(number_of_value(night), where)
    ids = _adopted((objects, place), ids, usable)
    # the id of one object may be the designation of another
    by_id = (ids != "") | (names == "")
    label = np.where(by_id, np.where(ids == "", submission, ids), names)
    key = _combined(_combined(number_of_value(label), by_id.astype(np.int64)), place)
    number = number_of_value(submission)
    of_one = _bearers_of_one(number, names, usable & (submission != ""))[number] >= 0
    names = np.where(names == "", designation, names)
    rows = np.flatnonzero(usable)[np.unique(key[usable], return_index=True)[1]]
    # runs are counted from the first observation that is read: here their day stands for them
    day = np.floor(np.nan_to_num((c.jd1 - MJD_JD) + c.jd2) - 0.5).astype(np.int64)
    identities = Identities(
        np.strings.add(np.where(by_id, "tracklet ", "object "), label)[rows],
        (c.station if by_station else np.full(len(label), ""))[rows],
        np.where(night >= _RUNS, day, night)[rows],
    )
    return key, names, np.where((ids == "") & of_one, submission, ids), identities


def _adopted(group: tuple[AnyArray, ...], labels: StrArray, rows: BoolArray) -> StrArray:
    """Labels, where those of the rows without one take the only one of their group."""
    orphans, bearers = rows & (labels == ""), rows & (labels != "")
    if not orphans.any() or not bearers.any():
        return labels
    number = _combined(*map(number_of_value, group))
    example = _bearers_of_one(number, labels, bearers)[number]
    return np.where(orphans & (example >= 0), labels[example], labels)


def _bearers_of_one(group: IntArray, labels: StrArray, rows: BoolArray) -> IntArray:
    """One row of each group whose rows are all of one label, -1 of the other groups."""
    chosen, n_groups = np.flatnonzero(rows), int(group.max(initial=-1)) + 1
    number = number_of_value(labels) if len(chosen) else np.zeros(len(labels), dtype=np.int64)
    low, high = np.full(n_groups, len(labels), dtype=np.int64), np.full(n_groups, -1)
    np.minimum.at(low, group[chosen], number[chosen])
    np.maximum.at(high, group[chosen], number[chosen])
    example = np.full(n_groups, -1)
    example[group[chosen]] = chosen
    return np.where(low == high, example, -1)


def _nights(
    c: Columns, objects: IntArray, station: IntArray, by_station: bool, usable: BoolArray
) -> IntArray:
    """Number of the night of each observation.

    A night runs from local noon to noon where the longitude of the observer is known. Others have
    runs of observations, divided at pauses; beside ground stations of the same night a run counts
    for the night of Greenwich in which its middle lies.
    """
    mjd = np.nan_to_num((c.jd1 - MJD_JD) + c.jd2)  # rows without epoch are left out already
    x, y, z = c.itrf.T
    longitude = np.arctan2(y, x) / (2.0 * np.pi)
    placed = np.isfinite(longitude) & (np.hypot(np.hypot(x, y), z) > 1.0)  # not the geocentre
    night = np.floor(mjd + np.where(placed, longitude, 0.0) - 0.5).astype(np.int64)
    rows = np.flatnonzero(~placed & usable)
    if not len(rows):
        return night
    key = _combined(objects[rows], station[rows])
    order = np.lexsort((mjd[rows], key))
    rows, key = rows[order], key[order]
    t = mjd[rows]
    run = running_number((np.diff(key) != 0) | (np.diff(t) > GAP))
    first, last = _ends(run)
    span = (t[last] - t[first])[run]
    pieces = np.ceil(np.maximum(span / LONGEST_RUN, 1.0))
    with np.errstate(invalid="ignore"):
        piece = np.floor((t - t[first][run]) / span * pieces)
    piece = np.minimum(np.nan_to_num(piece), pieces - 1.0)
    run = running_number((np.diff(run) != 0) | (np.diff(piece) != 0))
    first, last = _ends(run)
    middle = 0.5 * (t[first] + t[last])[run]
    night[rows] = run + _RUNS if by_station else np.floor(middle - 0.5).astype(np.int64)
    return night


def _ends(run: IntArray) -> tuple[IntArray, IntArray]:
    """First and last row of each run of equal numbers, which count from 0."""
    bounds = np.searchsorted(run, np.arange(run[-1] + 2))
    return bounds[:-1], bounds[1:] - 1


def _combined(first: IntArray, second: IntArray) -> IntArray:
    """Small number of each distinct pair of small numbers."""
    return number_of_value(first * (second.max(initial=0) + 1) + second)


def _assembled(
    c: Columns,
    key: IntArray,
    names: StrArray,
    ids: StrArray,
    rejections: Rejections,
    alone: str,
    notes: tuple[str, ...],
    *,
    order: str,
) -> Groups:
    """Groups of the usable rows, one for each exposure.

    Their ``order`` is that of their keys ("key"), of time ("time") or of the first row of each
    ("input"). ``alone`` is the reason to set groups without two epochs aside.
    """
    c, sigma_notes = with_credible_sigmas(c, rejections.usable)
    rejections.reject(repeated_exposures(c, key, rejections.usable), AGAIN)
    n = int(key.max(initial=-1)) + 1
    first, last = np.full(n, np.inf), np.full(n, -np.inf)  # epochs of the usable rows
    rows = np.flatnonzero(rejections.usable)
    jd = (c.jd1 + c.jd2)[rows]
    np.minimum.at(first, key[rows], jd)
    np.maximum.at(last, key[rows], jd)
    rejections.reject(~(last > first)[key], alone)
    usable = rejections.usable
    rows = np.flatnonzero(usable)
    if order == "input":
        first = np.full(n, len(key))
        np.minimum.at(first, key[rows], rows)
    if order != "key":
        key = np.argsort(np.argsort(first, kind="stable"))[key]  # its rank
    sequence = rows[np.lexsort((c.jd2[rows], c.jd1[rows], key[rows]))]
    starts = np.flatnonzero(np.diff(key[sequence], prepend=-1))
    rejected = np.flatnonzero(~usable & (ids != ""))
    lost, example = np.unique(ids[rejected], return_index=True)
    without = np.flatnonzero(~np.isin(lost, ids[usable]))
    report = TrackletReport(
        **vars(rejections.count),
        n_tracklets=len(starts),
        notes=(*notes, *sigma_notes),
        lost={str(lost[k]): rejections.reason(rejected[example[k]])[0] for k in without},
    )
    offsets = np.append(starts, len(sequence)).astype(np.int64)
    chosen = sequence[starts]
    return Groups(c.take(sequence), offsets, names[chosen], ids[chosen], report)
