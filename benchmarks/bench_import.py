"""Cost of `import neoranging` beside that of the parts of astropy it stands on.

Each import runs in fresh interpreters, the two kinds in turn, and the best of each is printed: the
first runs fill the disk cache, and what else the machine does only ever adds. The limit is 1.3.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

BASE, OURS = "import astropy.coordinates, astropy.table", "import neoranging"
LIMIT = 1.3


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=7, help="runs of each")
    n = parser.parse_args().n
    runs = [(seconds("pass"), seconds(BASE), seconds(OURS)) for _ in range(n)]
    bare, base, ours = (min(column) for column in zip(*runs, strict=True))
    ratio = (ours - bare) / (base - bare)
    print(f"interpreter alone                           {bare:6.3f} s")
    print(f"{BASE:44}{base - bare:6.3f} s")
    print(f"{OURS:44}{ours - bare:6.3f} s")
    print(f"ratio {ratio:.2f} (limit {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
