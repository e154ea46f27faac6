"""SIGINT and SIGTERM of the command line: no traceback, and 128 + the signal's number in the end.

Modules take a second to load, and an interrupt may come meanwhile. So the package looks first of
all whether it is run as a command; in any other process no signal is touched.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # typing takes a moment to load, in which an interrupt may come
if TYPE_CHECKING:
    from types import FrameType


arrived: list[int] = []
"""Numbers of the signals that came."""

_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


def is_command() -> bool:
    """True if this process is the command ``neoranging`` or ``python -m neoranging``."""
    if not sys.argv or "--multiprocessing-fork" in sys.orig_argv:
        return False
    name = sys.argv[0]
    if name == "-m":  # as long as Python looks for the module that it is to run
        return "neoranging" in sys.orig_argv
    return os.path.splitext(os.path.basename(name))[0] == "neoranging"


def end_at_once() -> None:
    """Let signals end the process on the spot, as long as there is nothing to tidy up."""
    for number, handler in _USUAL.items():
        if signal.getsignal(number) == handler:  # what a shell ignores on our behalf stays ignored
            signal.signal(number, _end)


def raise_interrupts() -> None:
    """Let signals raise `KeyboardInterrupt`, after `end_at_once`; a second one ends on the spot."""
    for number in _USUAL:
        if signal.getsignal(number) == _end:
            signal.signal(number, _raise)


def restore() -> None:
    """Leave signals to the system, for the end of the process."""
    for number in _USUAL:
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: FrameType | None) -> None:
    os.write(2, b"\nInterrupted\n")
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if arrived:  # somebody insists
        _end(number, frame)
    arrived.append(number)
    raise KeyboardInterrupt(number)
