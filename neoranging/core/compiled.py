"""Compiled functions: numba's, with a cache on disk that is right and a first compile that is said.

Numba keeps machine code beside the module, or where that folder is read-only in the user's cache
folder; ``NUMBA_CACHE_DIR`` names another. It does three things that a library cannot leave to it:

- it takes code for fresh as long as the module of the function is as it was, though functions and
  constants of other modules are compiled into it: after an upgrade, old code would run on;
- it refuses to import a module for which no folder at all can be written, as in many containers;
- it fails where a result cannot be kept, on a disk that is full.

Importing this module imports numba, half a second, which every estimate needs and `import
neoranging` does not: nothing that the latter loads may import it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event
from numba.core.caching import FunctionCache
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_IMPORT: Final = re.compile(r"^from (neoranging[.\w]*) import \(?([\w,\s]+?)(?:\)|$)", re.MULTILINE)
"""An import of the package at the margin of a module: where from, and all that it names."""

_LOG: Final = logging.getLogger("neoranging")

REGISTER: Final[list[Any]] = []
"""All compiled functions of the modules that are imported."""

_announced: dict[Any, tuple[str, int]] = {}
"""Subject and seconds of the announcement, by compiled function that has one."""


def compiled(function: Function) -> Function:
    """Function compiled at its first call, once for all processes.

    Division by zero gives an infinity or NaN as in numpy, and no order of operations is changed:
    NaN stays NaN, and two machines differ by rounding of the elementary functions alone. The lock
    of the interpreter is released while it runs.
    """
    return _kept(function)


def inner(function: Function) -> Function:
    """Compiled function that others call, and that makes no arrays: views of those it is given.

    The references to these are not counted, which is half the time of a function with many.
    """
    return _kept(function, _nrt=False)


def inlined(function: Function) -> Function:
    """Part of the one or two compiled functions that call it, and compiled in their place.

    A call hands over every array of its arguments anew, and the code of a function by itself is
    compiled once more with each one that calls its callers.
    """
    return numba.njit(inline="always", error_model="numpy")(function)


def _kept(function: Function, **options: Any) -> Function:
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if hasattr(dispatcher, "stats"):  # a plain function where NUMBA_DISABLE_JIT is set
        REGISTER.append(dispatcher)
        try:
            dispatcher._cache = _Cache(function)
        except RuntimeError:
            _LOG.debug("no folder to keep compiled code of %s", function.__name__)
    return dispatcher


def formula(function: Function) -> Function:
    """Arithmetic that stands in one place: of arrays where Python calls it, of numbers in kernels.

    It may use operators and functions of numpy that go element by element, ``np.where`` included.
    """
    return register_jitable(function)


def plain(values: npt.ArrayLike, dtype: type[np.generic] = np.float64) -> npt.NDArray[Any]:
    """Array as compiled functions take it; another layout, or one to read only, compiles anew."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.writeable else array.copy()


def announced(subject: str, seconds: int) -> Callable[[Function], Function]:
    """Decorator for a compiled function that Python calls: its first compile is said in one line.

    The line is a record at level INFO of the logger ``neoranging``; where a program has set up no
    logging, as the command line, it goes to standard error. It is never a warning.

    Parameters
    ----------
    subject : str
        The thing compiled: "the kernel of systematic ranging".
    seconds : int
        Time that it takes on a usual machine.
    """

    def remember(function: Function) -> Function:
        _announced[function] = subject, seconds
        return function

    return remember


def subject(dispatcher: Any) -> str:
    """Thing that a compiled function is announced as, else its name."""
    name = f"{dispatcher.__module__.removeprefix('neoranging.')}.{dispatcher.__name__}"
    return _announced[dispatcher][0] if dispatcher in _announced else name


@contextmanager
def compilations() -> Iterator[list[tuple[Any, float]]]:
    """Context that lists what is compiled in it, with the seconds that it took.

    What is compiled as a part of another function, and what comes from the disk, is not listed.
    """
    finished: list[tuple[Any, float]] = []
    with event.install_recorder("numba:compile") as recorder:
        yield finished
    begun: list[float] = []
    for moment, report in recorder.buffer:
        if report.is_start:
            begun.append(moment)
        elif len(begun) == 1:
            finished.append((report.data["dispatcher"], moment - begun.pop()))
        else:
            begun.pop()


class _Cache(FunctionCache):
    """Numba's cache, fresh only while all sources that are compiled together are as they were."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file = self._cache_file
        file._source_stamp = file._source_stamp, _digest_of_sources(function.__module__)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code where that is possible; without, it is compiled again next time."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _LOG.info("compiled code of %s is not kept: %s", self._py_func.__name__, error)


@cache
def _digest_of_sources(module: str) -> str:
    """Digest of all sources of the package that compiled code of a module may hold.

    These are the module, what it imports of the package, and what that imports in turn.
    """
    pending, sources = [module], dict[str, bytes]()
    while pending:
        name = pending.pop()
        if name in sources or name not in sys.modules:
            continue
        source = sources[name] = Path(str(sys.modules[name].__file__)).read_bytes()
        for package, parts in _IMPORT.findall(source.decode()):
            # what stands behind "import" may be a module or a name in one
            pending += [
                package,
                *(f"{package}.{part.split()[0]}" for part in parts.split(",") if part.strip()),
            ]
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(name.encode() + sources[name])
    return digest.hexdigest()


class _Announcer(event.Listener):
    """Listener to numba, which reports what it compiles and not what it takes from the disk."""

    def on_start(self, report: Any) -> None:
        """Announce a function that says how long it takes."""
        dispatcher = report.data["dispatcher"]
        if dispatcher not in _announced:
            return
        subject, seconds = _announced[dispatcher]
        folder = dispatcher.stats.cache_path
        line = f"compiling {subject}, about {seconds} s; " + (
            f"once, it is kept in {folder}"
            if folder
            else "in every process, as no cache folder can be written: let NUMBA_CACHE_DIR name one"
        )
        if _LOG.hasHandlers():
            _LOG.info(line)
        elif sys.stderr is not None:  # as under pythonw
            sys.stderr.write(f"neoranging: {line}\n")
            sys.stderr.flush()

    def on_end(self, report: Any) -> None:
        """Nothing: the result itself tells that it is done."""


event.register("numba:compile", _Announcer())
