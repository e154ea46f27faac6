"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neoranging.exceptions import DatasetError

__all__ = ["TEMPORARY", "read_json", "replacing", "write_json"]

TEMPORARY = ".unfinished"
"""Ending of files on the way to their name; leftovers of a killed run may be deleted."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path to write to, renamed to ``path`` when done and removed on failure.

    The rename is atomic and the content is on the disk before it: whatever instant the process
    or the machine dies at, ``path`` holds the old content or the new.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain data as indented JSON, whole or not at all."""
    with replacing(path) as temporary:
        text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises
    ------
    DatasetError
        If the file is not there or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(f"{path} is not there; is this the folder of a set?") from None
    except ValueError as error:
        raise DatasetError(f"{path} is no JSON: {error}; delete it or restore it") from error
