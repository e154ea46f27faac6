"""Print how often the verdict is OK, and how far such ranges are off.

Run ``python docs/tools/verdict_profile.py SET --split test --cap 2``: the folder of a set whose
ranges are known. For each method it prints the share of arcs with the status OK, how many of these
are off by more than a factor of 1.3 and of 2, and the share of them within the intervals that the
propagated errors give (``calibrated=False``); networks have no errors of their own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from neoranging.estimators import get_estimator
from neoranging.lab.sets import to_core
from neoranging.lab.study import Selection
from neoranging.lab.study.predictions import ask_arcs

LEVELS = (0.68, 0.95, 0.99)
FACTORS = (1.3, 2.0)


def main() -> None:
    """Print one line for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", type=Path)
    parser.add_argument("--split", help="part of the set; all of it by default")
    parser.add_argument("--cap", type=int, help="arcs of an object at most")
    parser.add_argument("--methods", nargs="+", default=["gauss", "laplace", "mlp", "pinn"])
    options = parser.parse_args()
    table = Selection(options.split, cap=options.cap).read(options.set)
    arcs, rho = to_core(table), table["rho_topo_au"]
    print(f"{len(table)} arcs of {len(np.unique(table['designation']))} objects")
    for name in options.methods:
        answers = ask_arcs(get_estimator(name), arcs, arcs)
        ok = answers.ok
        off = np.abs(np.log(answers.rho[ok] / rho[ok]))
        factors = ", ".join(f"{np.sum(off > np.log(f))} beyond {f:g}" for f in FACTORS)
        error = np.abs(answers.rho - rho)[ok]
        inside = ""
        if np.isfinite(answers.rho_error[ok]).any():
            shares = (np.mean(error <= answers.error_quantile(level)[ok]) for level in LEVELS)
            inside = "; " + ", ".join(
                f"{100 * share:.1f} of {100 * level:g} %"
                for share, level in zip(shares, LEVELS, strict=True)
            )
        objects = len(np.unique(table["designation"][ok]))
        print(
            f"{name:8} {ok.sum():5d} OK ({100 * ok.mean():.2f} %) of {objects} objects, "
            f"{factors}{inside}"
        )


if __name__ == "__main__":
    main()
