"""Setting of the C library for the memory that a step of training frees."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Names of two settings of ``mallopt`` in glibc's ``malloc.h``."""


def keep_freed_memory() -> bool:
    """Let the process keep what it frees, for the next step to use.

    Every step frees a hundred megabytes of activations. By default glibc gives them back to the
    system, which hands them out again page by page and cleared: up to a sixth of the time of a
    step. What is asked for in blocks of 32 MB and more is still given back.

    Returns
    -------
    bool
        True if the setting was made; False where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None:
        return False
    settings = {_TRIM_THRESHOLD: 2**31 - 1, _MMAP_THRESHOLD: 2**25}
    return all(mallopt(name, value) == 1 for name, value in settings.items())
