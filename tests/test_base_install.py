"""The package without its extras: see ``base_install.py``, which ``make base`` runs in earnest."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("base_install.py")


def test_all_methods_answer_without_any_extra():
    done = subprocess.run(
        [sys.executable, PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "agg"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith("all methods and commands answer")
