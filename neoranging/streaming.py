"""Estimates of observations that no memory holds: piece by piece, in order, resumable.

A piece of the input (``neoranging.observations.pieces``) is read, grouped, estimated and turned
into rows by `Estimation.answer`: here, in worker processes, or on a cluster. The rows of each piece
are kept in a folder beside the output, whole or not at all, and joined once all are there. So a
worker that is killed, or a run that is, loses, doubles or changes no row.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from neoranging._version import __version__
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.files import TEMPORARY, FolderLock, plain, read_json, replacing, write_json
from neoranging.grouping import Identities, group_by_identity
from neoranging.observations.pieces import RECORDS, Piece, pieces_of
from neoranging.observations.reading import parse_observations
from neoranging.observations.report import N_SHOWN, ReadReport
from neoranging.processes import deal
from neoranging.read import GROUPS, KINDS
from neoranging.records import Account, RecordCount, many
from neoranging.recurrence import Seen, bounds_of, keys_of
from neoranging.rows import arrow_of, estimate_rows, plain_columns
from neoranging.tables import csv_table
from neoranging.tracklet import TrackletSet
from neoranging.typing import AnyArray, IntArray

_NOTES: Final = 20
"""Notes that an account keeps."""

_ROW_GROUP: Final = 250_000
"""Rows of a group of Parquet, at least."""

_SETTINGS: Final = "run.json"


@dataclass(frozen=True)
class Tally:
    """Account of a piece, or of many: every record of the files is in it.

    Attributes
    ----------
    records : Account
        Records by file.
    observations : RecordCount
        Those that were read, and those of them that stand in tracklets.
    n_tracklets : int
    statuses : mapping of str to int
        Tracklets by status.
    examples : mapping of str to tuple of str
        The first records that were set aside for a reason.
    notes : tuple of str
        The first remarks on records in use.
    """

    records: Account = field(default_factory=Account)
    observations: RecordCount = field(default_factory=RecordCount)
    n_tracklets: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, tracklets: TrackletSet, statuses: AnyArray, piece: Piece) -> Tally:
        """Account of the tracklets of a piece, in lines of the file."""
        formed = tracklets.report
        (read,) = formed.reading or (ReadReport(),)
        examples: dict[str, list[str]] = {}
        at = f"{piece.source}, line "
        for entry in read.set_aside:
            first = examples.setdefault(str(entry.reason), [])
            if len(first) < N_SHOWN:
                what = entry.detail or entry.text.rstrip()
                first.append(f"{at}{entry.line + piece.shift}: {what}")
        notes = [
            f"{piece.source}, line {note.line + piece.shift}: {note.text}"
            if note.line
            else note.text
            for note in read.notes[:_NOTES]
        ]
        names, counts = np.unique(statuses, return_counts=True)
        reasons = {str(reason): count for reason, count in read.reasons.items()}
        return cls(
            Account({piece.source: RecordCount(read.n_read, read.n_used, reasons)}),
            RecordCount(formed.n_read, formed.n_used, dict(formed.reasons)),
            len(tracklets),
            dict(zip(names.tolist(), counts.tolist(), strict=True)),
            {reason: tuple(lines) for reason, lines in examples.items()},
            (*notes, *formed.notes),
        )

    def __add__(self, other: Tally) -> Tally:
        reasons = dict.fromkeys([*self.examples, *other.examples])
        return Tally(
            self.records + other.records,
            self.observations + other.observations,
            self.n_tracklets + other.n_tracklets,
            dict(Counter(self.statuses) + Counter(other.statuses)),
            {
                reason: (*self.examples.get(reason, ()), *other.examples.get(reason, ()))[:N_SHOWN]
                for reason in reasons
            },
            tuple(dict.fromkeys((*self.notes, *other.notes)))[:_NOTES],
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"records": self.records.to_json()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Tally:
        """Inverse of `to_json`."""
        values = dict(plain)
        observations = RecordCount(**values.pop("observations"))
        return cls(Account.from_json(values.pop("records")), observations, **values)

    def headline(self) -> str:
        """One line per file, and one for the tracklets."""
        files = [f"{name}: {count.headline()}" for name, count in self.records.counts.items()]
        lost = self.observations.n_set_aside
        formed = f"{many(self.n_tracklets, 'tracklet')} of "
        formed += many(self.observations.n_used, "observation")
        return "\n".join([*files, formed + (f", {lost} set aside" if lost else "")])

    def __str__(self) -> str:
        total = sum(self.records.counts.values(), RecordCount())
        lines = [self.headline()]
        for reason, count in (*total.reasons.items(), *self.observations.reasons.items()):
            lines.append(f"  {count} set aside: {reason}")
            lines += [f"    {example}" for example in self.examples.get(reason, ())]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class PieceAnswer:
    """Rows of a piece, and what is to be said of it.

    Attributes
    ----------
    rows : bytes
        Lines of CSV, or a file of Arrow.
    tally : Tally
    keys : ndarray of uint64, shape (K,)
        Numbers that stand for the groups of observations.
    labels : str
        Their names, a line for each.
    bounds : dict of str to list
        The first and the last of the names, by order.
    warnings : tuple of str
    """

    rows: bytes
    tally: Tally
    keys: IntArray
    labels: str
    bounds: Mapping[str, Sequence[Any]]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimation:
    """How observations are read and estimated: the same for every piece, wherever it is done.

    Parameters
    ----------
    estimator : RangingEstimator
    level : float
        Of the intervals.
    scale, station, group_by, default_sigma
        As for `neoranging.read_tracklets`.
    form : {"csv", "parquet"}
        Of the rows.
    """

    estimator: RangingEstimator
    level: float = 0.68
    scale: str | None = None
    station: str | None = None
    group_by: tuple[str, ...] = GROUPS
    default_sigma: Any = None
    form: str = "parquet"

    def columns(self, tracklets: TrackletSet) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Plain columns of the estimates of tracklets, and how they were made."""
        size = self.estimator.chunk_size  # of posteriors, which are large, it is small
        parts = []
        for start in range(0, max(1, len(tracklets)), size):
            part = tracklets[start : start + size]
            rows = estimate_rows(part, self.estimator.estimate(part), self.level, with_ids=True)
            parts.append(plain_columns(rows))
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return joined, dict(rows.meta)

    def tracklets(self, source: Any, form: str | None = None) -> tuple[TrackletSet, Identities]:
        """Tracklets of a source in the order in which they begin there, and all groups in it."""
        read = {"scale": self.scale, "station": self.station, "default_sigma": self.default_sigma}
        part = parse_observations(source, format=form, **read)
        groups, identities = group_by_identity([part], self.group_by, KINDS, True, order="input")
        return TrackletSet(*groups), identities

    def answer(self, piece: Piece) -> PieceAnswer:
        """Estimate the tracklets of a piece."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tracklets, identities = self.tracklets(piece.open(), piece.form)
            columns, meta = self.columns(tracklets)
        texts = (str(one.message) for one in caught if issubclass(one.category, NeoRangingWarning))
        return PieceAnswer(
            FORMATS[self.form].encode(columns, meta),
            Tally.of(tracklets, columns["status"], piece),
            keys_of(identities),
            "\n".join(identities.label.tolist()),
            bounds_of(identities),
            tuple(dict.fromkeys(texts)),
        )


# Rows ---------------------------------------------------------------------------------------------


class Csv:
    """Rows as lines of CSV."""

    @staticmethod
    def encode(columns: Mapping[str, AnyArray], meta: Mapping[str, Any]) -> bytes:  # noqa: ARG004
        """Rows of a piece, below a line of names."""
        return csv_table(columns, missing="nan").encode()

    @staticmethod
    def join(parts: Sequence[Path], out: Path) -> None:
        """Write the rows of all pieces to a file."""
        with out.open("wb") as file:
            for k, part in enumerate(parts):
                with part.open("rb") as rows:
                    head = rows.readline()
                    if k == 0:
                        file.write(head)
                    shutil.copyfileobj(rows, file)


class Parquet:
    """Rows as groups of Parquet; those of a piece as a file of Arrow."""

    @staticmethod
    def encode(columns: Mapping[str, AnyArray], meta: Mapping[str, Any]) -> bytes:
        """Rows of a piece."""
        table = arrow_of(columns, meta)
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @staticmethod
    def join(parts: Sequence[Path], out: Path) -> None:
        """Write the rows of all pieces to a file."""
        import pyarrow as pa
        from pyarrow import feather, parquet

        waiting: list[Any] = []
        schema = feather.read_table(parts[0], memory_map=False).schema
        with parquet.ParquetWriter(out, schema) as writer:
            for k, part in enumerate(parts):
                waiting.append(feather.read_table(part, memory_map=False).cast(schema))
                n = sum(map(len, waiting))
                if n >= _ROW_GROUP or (k == len(parts) - 1 and n):
                    writer.write_table(pa.concat_tables(waiting), row_group_size=n)
                    waiting = []


FORMATS: Final[dict[str, type[Csv | Parquet]]] = {"csv": Csv, "parquet": Parquet}
"""Formats of output that can be written piece by piece."""


# The run ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """Rows of finished pieces in a folder."""

    folder: Path

    def rows(self, number: int) -> Path:
        """File of the rows of a piece."""
        return self.folder / f"{number:06d}.rows"

    def keys(self, number: int) -> IntArray:
        """Keys of a piece."""
        keys: IntArray = np.load(self.folder / f"{number:06d}.keys.npy")
        return keys

    def described(self) -> Iterator[dict[str, Any]]:
        """What is kept of each finished piece, in order."""
        number = 0
        while (path := self.folder / f"{number:06d}.json").exists():
            yield read_json(path)
            number += 1

    def keep(self, number: int, answer: PieceAnswer) -> None:
        """Write a piece; it is there once its description is."""
        with replacing(self.rows(number)) as path:
            path.write_bytes(answer.rows)
        with replacing(self.folder / f"{number:06d}.keys.npy") as path, path.open("wb") as file:
            np.save(file, answer.keys)
        described = {"tally": answer.tally.to_json(), "bounds": dict(answer.bounds)}
        write_json(self.folder / f"{number:06d}.json", described)

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Drop what is of another run."""
        path = self.folder / _SETTINGS
        if not path.exists() or read_json(path) != json.loads(json.dumps(settings)):
            self.clear()
            write_json(path, settings)

    def clear(self) -> None:
        """Remove all parts, and first what says that they are there."""
        for pattern in (_SETTINGS, "*.json", "*.npy", "*.rows", f".*{TEMPORARY}"):
            for path in sorted(self.folder.glob(pattern), reverse=True):
                path.unlink()


def estimate_files(
    paths: Sequence[Path],
    out: Path,
    estimation: Estimation,
    *,
    form: str | None = None,
    jobs: int = 1,
    size: int = RECORDS,
    progress: Callable[[float, int], object] = lambda *_: None,
) -> Tally:
    """Write the estimates of the tracklets in files, in memory that does not grow with them.

    What a run has done when it ends early stays in a folder beside ``out``; the same call goes on
    with it, and gives the same file.

    Parameters
    ----------
    paths : sequence of Path
        Files of observations, in which the records of a tracklet stand beside each other.
    out : Path
        File to write, whole or not at all.
    estimation : Estimation
    form : str, optional
        Format of the input; that of the content by default.
    jobs : int
        Worker processes, of one thread each; with 1 all is done in this one.
    size : int
        Records of a piece.
    progress : callable
        Called with the share of the input that is done, and the number of tracklets.

    Returns
    -------
    Tally

    Raises
    ------
    ObservationFormatError
        If a file cannot be read, or a tracklet is in several pieces.
    BusyFolderError
        If another process writes this output.
    """
    folder = out.with_name(out.name + TEMPORARY)
    parts, total = _Parts(folder), Tally()
    with FolderLock(folder):
        parts.begin(_settings(paths, estimation, form, size))
        seen, done = Seen(parts.keys), 0
        for kept in parts.described():
            total += Tally.from_json(kept["tally"])
            seen.add(done, parts.keys(done), kept["bounds"])
            done += 1
        shares: deque[float] = deque()  # of the pieces that are being worked on

        def pieces() -> Iterator[Piece]:
            for piece in islice(pieces_of(paths, form, size), done, None):
                shares.append(piece.share)
                yield piece

        said: set[str] = set()
        with closing(deal(estimation.answer, pieces(), jobs)) as answers:
            for number, answer in enumerate(answers, done):
                again = seen.add(number, answer.keys, answer.bounds)
                if again is not None:
                    raise ObservationFormatError(
                        f"observations of {answer.labels.splitlines()[again]} in one night stand "
                        "far apart in the input: sort it by tracklet, or by object and time, so "
                        "that those of a tracklet stand beside each other; or read it as a whole"
                    )
                for text in answer.warnings:
                    if text not in said:
                        warnings.warn(text, NeoRangingWarning, stacklevel=2)
                said.update(answer.warnings)
                parts.keep(number, answer)
                total += answer.tally
                progress(shares.popleft(), total.n_tracklets)
            n_parts = sum(1 for _ in parts.described())
        with replacing(out) as path:
            FORMATS[estimation.form].join([parts.rows(k) for k in range(n_parts)], path)
        parts.clear()
    with suppress(OSError):  # somebody put something else there
        folder.rmdir()
    return total


def _settings(
    paths: Sequence[Path], estimation: Estimation, form: str | None, size: int
) -> dict[str, Any]:
    """Everything that the rows depend on, as plain data."""
    estimator, states = estimation.estimator, [(path, path.stat()) for path in paths]
    calibration = json.dumps(plain(estimator.calibration and estimator.calibration.to_json()))
    return {
        "neoranging": __version__,
        "input": [[str(p.resolve()), s.st_size, s.st_mtime_ns] for p, s in states],
        "input_format": form,
        "records": size,
        "estimator": estimator.identity,
        "calibration": hashlib.sha256(calibration.encode()).hexdigest(),
        "options": {k: str(value) for k, value in vars(estimation).items() if k != "estimator"},
    }
