"""A folder of downloaded files and the account of each, safe against a kill at any instant.

A file is written beside its place, brought to disk and moved there; only then one line about it is
appended to ``manifest.jsonl``. So a file in place is whole, and a line in the manifest speaks of a
file in place. What a kill can leave is a file without a line (it is fetched again), an
unfinished file (removed) or half a last line (ignored, and the next one starts afresh).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from neoranging.exceptions import NeoRangingError
from neoranging.files import TEMPORARY, FolderLock, parse_json, replacing

CACHE_VARIABLE: Final = "NEORANGING_CACHE"
MANIFEST: Final = "manifest.jsonl"
SET_ASIDE: Final = "set_aside"


class Status(StrEnum):
    """What became of a file."""

    OK = "ok"
    ABSENT = "absent"  # the server has no such file
    SET_ASIDE = "set aside"  # it arrived, and is not what it should be
    FAILED = "failed"  # it did not arrive


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the manifest; of several about a file the last one holds.

    Attributes
    ----------
    key : str
        Path of the file, relative to the folder, with slashes.
    name : str
        Object it belongs to, "" if to none.
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
        Why it is not OK.
    attempts : int
        Requests it took.
    etag, last_modified : str
        The server's name for this version.
    """

    key: str
    status: Status
    name: str = ""
    url: str = ""
    time: str = ""
    size: int = 0
    sha256: str = ""
    reason: str = ""
    attempts: int = 0
    etag: str = ""
    last_modified: str = ""


_FIELDS: Final = frozenset(field.name for field in fields(Entry))


class FileStore:
    """Files in a folder with their manifest; one process at a time, any number of threads.

    Parameters
    ----------
    folder : path-like
        Made if it is not there.

    Raises
    ------
    BusyFolderError
        If another process works in the folder.

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
            self._remove_left_overs()
            self._entries = read_entries(self.folder)
            self._manifest = _open_for_lines(self.folder / MANIFEST)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder free."""
        os.close(self._manifest)
        self._lock.release()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def get(self, key: str) -> Entry | None:
        """Return the entry of a file, None if there is none."""
        return self._entries.get(key)

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

    def is_whole(self, entry: Entry) -> bool:
        """Whether the file of an entry is there with the size and checksum it came with."""
        path = self.path(entry.key)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size == entry.size:
                return hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
        return False

    def put(self, entry: Entry, content: bytes) -> Entry:
        """Write a file, then its line in the manifest; what is not OK goes beside the rest."""
        self.write(entry, content)
        digest = hashlib.sha256(content).hexdigest()
        return self.record(replace(entry, size=len(content), sha256=digest))

    def write(self, entry: Entry, content: bytes) -> None:
        """Write a file alone: in its place if it is OK, else among those set aside."""
        ok = entry.status is Status.OK
        path = self.path(entry.key if ok else f"{SET_ASIDE}/{entry.key}")
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    def record(self, entry: Entry) -> Entry:
        """Append a line to the manifest and bring it to disk."""
        entry = replace(entry, time=datetime.now(UTC).isoformat(timespec="milliseconds"))
        content = {key: value for key, value in asdict(entry).items() if value not in ("", 0)}
        line = (json.dumps(content, ensure_ascii=False) + "\n").encode()
        with self._writing:
            _append(self._manifest, line)
            self._entries[entry.key] = entry
        return entry

    def _remove_left_overs(self) -> None:
        for path in self.folder.rglob(f".*{TEMPORARY}"):
            path.unlink(missing_ok=True)


def read_entries(folder: Path) -> dict[str, Entry]:
    """Read the last entry of each file; half a last line, left by a kill, does not count.

    Raises
    ------
    NeoRangingError
        If another line is damaged.
    """
    path = folder / MANIFEST
    lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
    entries: dict[str, Entry] = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            content = parse_json(line)
            known = {name: value for name, value in content.items() if name in _FIELDS}
            entry = Entry(**known | {"status": Status(known["status"])})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NeoRangingError(
                f"{path}, line {number} is no entry of a manifest ({error}); remove that line, and "
                "the file it speaks of is fetched again"
            ) from error
        entries[entry.key] = entry
    return entries


def cache_folder(name: str) -> Path:
    """Folder for downloads: in ``$NEORANGING_CACHE``, else in the user's cache folder."""
    if own := os.environ.get(CACHE_VARIABLE):
        return Path(own).expanduser() / name
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "neoranging" / name


def _open_for_lines(path: Path) -> int:
    """Open the manifest for appending, at the start of a line."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        if end and file.read(1) != b"\n":
            _drop_last_line(file.fileno(), path.read_bytes())
    return os.open(path, os.O_WRONLY | os.O_APPEND)


def _append(descriptor: int, line: bytes) -> None:
    """Append a line and bring it to disk, all of it or nothing."""
    end = os.fstat(descriptor).st_size
    try:
        # one call for the whole line: the system does not split it when the process is killed
        written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(errno.ENOSPC, f"{written} of {len(line)} bytes written", MANIFEST)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, end)  # the disk is full, say: no half line before the next one
        raise


def _drop_last_line(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, content.rfind(b"\n") + 1)
    os.fsync(descriptor)
