"""A folder of downloaded files and the record of each, safe against a kill at any instant.

A file is written beside its place, brought to disk and moved there; only then one line about it is
appended to ``manifest.jsonl``. So a file in place is whole, and a line in the manifest speaks of a
file in place. What a kill can leave is a file without a line (it is fetched again), an
unfinished file (removed) or half a last line (removed).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import threading
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from neoranging.exceptions import NeoRangingError
from neoranging.files import TEMPORARY, FolderLock, parse_json, replacing

MANIFEST: Final = "manifest.jsonl"
SET_ASIDE: Final = "set_aside"


class Status(StrEnum):
    """State of a file that was asked for."""

    OK = "ok"
    ABSENT = "absent"  # the server has no such file
    SET_ASIDE = "set aside"  # it arrived, and is not what it should be
    FAILED = "failed"  # it did not arrive


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One line of the manifest; of several about a file the last one holds.

    Attributes
    ----------
    key : str
        Path of the file, relative to the folder, with slashes.
    status : Status
    url : str
        Where it came from.
    time : str
        When this was written, UTC, ISO 8601.
    size : int
        Bytes, 0 where there is no file.
    sha256 : str
        Checksum, "" where there is no file.
    reason : str
        Why it is not OK; of a file at hand, why it could not be renewed.
    attempts : int
        Requests it took.
    etag, last_modified : str
        The server's name for this version.
    """

    key: str
    status: Status
    url: str = ""
    time: str = ""
    size: int = 0
    sha256: str = ""
    reason: str = ""
    attempts: int = 0
    etag: str = ""
    last_modified: str = ""


class FileStore:
    """Files in a folder with their manifest; one process at a time, any number of threads.

    Parameters
    ----------
    folder : path-like
        Made if it is not there.

    Attributes
    ----------
    records : dict of str to FileRecord
        Last record of each file by its key.

    Raises
    ------
    BusyFolderError
        If another process works in the folder.
    NeoRangingError
        If the manifest is damaged.

    Notes
    -----
    Use it as a context manager. The lock is the operating system's and goes with the process,
    however that ends.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._lock = FolderLock(self.folder)
        self._writing = threading.Lock()
        try:
            for left_over in self.folder.rglob(f".*{TEMPORARY}"):
                left_over.unlink(missing_ok=True)
            self.records = read_manifest(self.folder)
            self._manifest = (self.folder / MANIFEST).open("ab", buffering=0)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder free."""
        self._manifest.close()
        self._lock.release()

    def path(self, key: str) -> Path:
        """Path of a file.

        Raises
        ------
        NeoRangingError
            If the key leads out of the folder.
        """
        path = self.folder / key
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise NeoRangingError(f"{key!r} lies outside of {self.folder}; check the object's name")
        return path

    def is_whole(self, record: FileRecord) -> bool:
        """Tell whether a file is there with the size and checksum that it came with."""
        path = self.path(record.key)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size == record.size:
                return hashlib.sha256(path.read_bytes()).hexdigest() == record.sha256
        return False

    def write(self, record: FileRecord, content: bytes) -> FileRecord:
        """Write a file: in its place if it is OK, else among those set aside."""
        is_ok = record.status is Status.OK
        path = self.path(record.key if is_ok else f"{SET_ASIDE}/{record.key}")
        with replacing(path) as temporary:
            temporary.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        return replace(record, size=len(content), sha256=digest)

    def append(self, record: FileRecord) -> FileRecord:
        """Append a record to the manifest, with the time, and bring it to disk."""
        record = replace(record, time=datetime.now(UTC).isoformat(timespec="milliseconds"))
        content = {name: value for name, value in asdict(record).items() if value not in ("", 0)}
        line = (json.dumps(content, ensure_ascii=False) + "\n").encode()
        with self._writing:
            end = self._manifest.seek(0, os.SEEK_END)
            try:
                # one call for the whole line: a kill of the process does not split it
                written = self._manifest.write(line)
                if written != len(line):
                    raise OSError(errno.ENOSPC, f"{written} of {len(line)} bytes", MANIFEST)
                os.fsync(self._manifest.fileno())
            except OSError:
                self._manifest.truncate(end)  # no half line before the next one
                raise
            self.records[record.key] = record
        return record


def read_manifest(folder: Path) -> dict[str, FileRecord]:
    """Last record of each file by its key; half a last line, left by a kill, is cut off.

    Raises
    ------
    NeoRangingError
        If another line is damaged.
    """
    path = folder / MANIFEST
    content = path.read_bytes() if path.exists() else b""
    *lines, rest = content.split(b"\n")
    if rest:
        os.truncate(path, len(content) - len(rest))
    names = {field.name for field in fields(FileRecord)}
    records: dict[str, FileRecord] = {}
    for number, line in enumerate(lines, 1):
        try:
            values = parse_json(line)
            values["status"] = Status(values["status"])
            # lines of another version of the package may say more
            record = FileRecord(**{name: value for name, value in values.items() if name in names})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NeoRangingError(
                f"{path}, line {number} is no record of a file ({error}); remove that line, and "
                "the file it speaks of is fetched again"
            ) from error
        records[record.key] = record
    return records
