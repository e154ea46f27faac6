"""The command ``neoranging``, also as ``python -m neoranging``."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

from neoranging import _interrupts


def run() -> NoReturn:
    """Run the command; by an interrupt (SIGINT, SIGTERM) it ends with 128 + the signal's number."""
    from neoranging.cli import main

    _interrupts.raise_interrupts()
    try:
        main(prog_name="neoranging")
    except BaseException as error:
        if not _interrupts.arrived:
            raise
        _interrupts.restore()
        # a late import that is interrupted may end as any error
        if not isinstance(error, SystemExit):
            sys.stderr.write("\nInterrupted\n")
    if _interrupts.arrived:
        # one that came while compiled code ran Python, as some imports do, would make the
        # interpreter end by the signal after all
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + _interrupts.arrived[0])
    sys.exit(0)


if __name__ == "__main__":
    run()
