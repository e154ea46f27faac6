"""Files that are there whole or not at all, folders with one writer, and JSON for any reader."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from neoranging.exceptions import BusyFolderError, DatasetError

TEMPORARY: Final = ".unfinished"
"""Ending of files on the way to their name; leftovers of a killed run may be deleted."""

_LOCK: Final = ".lock"
_LONGEST_INTEGER: Final = 300
"""Digits of integers in JSON; more do not fit into a double."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path to write to, renamed to ``path`` when done and removed on failure.

    The rename is atomic and the content is on the disk before it: whatever instant the process
    or the machine dies at, ``path`` holds the old content or the new. A device or a pipe, such as
    ``/dev/stdout``, is written to as it is.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class FolderLock:
    """Claim of one process on a folder, until `release` or its end, however that comes.

    Parameters
    ----------
    folder : Path
        Made if it is not there, and removed on release if nothing came into it.

    Raises
    ------
    BusyFolderError
        If another process, or another part of this one, has the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._is_new = folder, not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _locked(folder)

    def release(self) -> None:
        """Give the folder free; may be repeated."""
        if self._file.closed:
            return
        (self._folder / _LOCK).unlink(missing_ok=True)
        self._file.close()
        if self._is_new:
            with suppress(OSError):  # there is something in it, as there should
                self._folder.rmdir()

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _locked(folder: Path) -> IO[str]:
    """Lock file of a folder, held."""
    while True:
        file = (folder / _LOCK).open("w")
        try:
            _lock(file.fileno(), folder)
            # who held it before may have removed it since it was opened
            if (folder / _LOCK).exists() and os.path.samestat(
                os.fstat(file.fileno()), (folder / _LOCK).stat()
            ):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows: there the user sees to it
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise BusyFolderError(
            f"another process works in {folder}; wait for it, or take another folder"
        ) from error


def write_json(path: Path, content: Any) -> None:
    """Write plain data as indented JSON, whole or not at all.

    Numbers that are not finite, which JSON does not know, become null.
    """
    text = json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    write_file(path, text + "\n")


def write_file(path: Path, text: str) -> None:
    """Write text to a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def plain(content: Any) -> Any:
    """Plain data as a reader of its JSON gets it: lists for tuples, None for no finite number."""
    if isinstance(content, Mapping):
        return {str(name): plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def parse_json(text: str | bytes) -> Any:
    """Plain data of JSON.

    Raises
    ------
    ValueError
        If it is no JSON, is nested beyond measure, or has numbers that no double holds.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(digits)} digits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is not finite")
    return value


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises
    ------
    DatasetError
        If the file is not there or is no JSON.
    """
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(f"{path} is not there; is this the folder of a set?") from None
    except ValueError as error:
        raise DatasetError(f"{path} is no JSON: {error}; delete it or restore it") from error
