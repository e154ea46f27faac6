"""Ranges and their distributions by other programs and by neoranging, on the same real arcs.

    python benchmarks/peers/ranging.py --set FOLDER --work FOLDER --out FOLDER

FOLDER of ``--set`` holds real arcs with their truth by n-body orbits (``neoranging dataset real
--group-by night --dynamics nbody``). Two samples are taken of it: *typical*, at most two arcs of
three observations of an object; and *near*, arcs of true ranges below 0.1 au with at most 30
observations, at most ten of an object. An arc is chosen by chance from a seed.

kete is asked in an environment of its own in the folder of ``--work``, built if it is not there.
What it draws stays in ``--out``, arc by arc, so that a second call asks only for the rest; without
``--work`` the draws that are there are judged. Quantiles of every method are written to
``answers.csv`` beside them, and ``--table`` writes the part of a page.

kete as it comes divides chi2 by a temperature of 10. The other row is its likelihood as it is, and
draws of orbits that are bound to the Sun only. Its prior is uniform in range, and in range-rate
uniform over the cells of each row of its grid, whose width varies with the range; beyond the
parabola it decreases, near the Earth it is not cut. So the row that is alike among ours is the
uniform prior. Its range is that of the reference epoch of its attributable; the draws are
propagated to that of ours before they are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from environments import Work, prepared, script
from nights import write_states

from neoranging.constants import C_AU_PER_DAY
from neoranging.core.answers import Answers
from neoranging.core.arcs import Arcs
from neoranging.core.kepler import orbital_energy
from neoranging.core.prediction import sight
from neoranging.estimators import RangingEstimator, available_methods, get_estimator
from neoranging.lab.sets import ArcTable, read_arcs, to_core

LEVELS = (0.68, 0.95)
SAMPLES = ("typical", "near")
QUANTILES = {"lower95": 0.025, "lower68": 0.16, "median": 0.5, "upper68": 0.84, "upper95": 0.975}
TEMPERATURES = (10, 1)
OURS = {
    "neoranging: gauss": ("gauss", {}),
    "neoranging: mlp": ("mlp", {}),
    "neoranging: pinn": ("pinn", {}),
    **{
        f"neoranging: systematic, {prior}": ("systematic", {"prior": prior})
        for prior in ("near-earth", "population", "catalogue", "uniform", "log-uniform")
    },
}
KETE = {
    10: "kete, as it comes (temperature 10)",
    1: "kete, temperature 1, bound draws",
}


def selected(table: ArcTable, sample: str, most: int, seed: int = 0) -> np.ndarray:
    """Arcs of a sample, by chance, in order of the table."""
    n, rho = table["n_obs"], table["rho_topo_au"]
    fits, of_object = {
        "typical": (n == 3, 2),
        "near": ((rho < 0.1) & (n >= 3) & (n <= 30), 10),
    }[sample]
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(fits))
    rank = pd.Series(table["designation"][rows]).groupby(table["designation"][rows]).cumcount()
    return np.sort(rows[rank < of_object][:most])


def kete_answers(
    folder: Path, arcs: Arcs, rows: np.ndarray, temperature: int
) -> Iterator[dict[str, float]]:
    """Quantiles of the ranges that kete drew, one row for each arc that it was asked for."""
    for k, row in enumerate(rows):
        path = folder / f"{row}.npz"
        if not path.exists():
            continue
        kept = np.load(path)
        answer = {"cpu_ms": 1e3 * float(kept["seconds"]), "warned": bool(kept["warning"])}
        if len(kept["draws"]):
            one, epoch = arcs.chunk(k, k + 1), float(kept["epoch"])
            r, v = kept["draws"][:, :3], kept["draws"][:, 3:]
            # a draw stands where its light left, the light path before the reference epoch
            at = int(np.argmin(np.abs(one.t - epoch)))
            assert abs(one.t[at] - epoch) < 1e-6
            rho = np.linalg.norm(r - one.position[at], axis=1)
            middle = np.full(len(r), one.triplet[0, 1])
            state = one.position[middle], one.velocity[middle]
            rho = sight(r, v, epoch - rho / C_AU_PER_DAY, one.t[middle], *state).rho
            bound = orbital_energy(r, v) < 0.0
            answer["unbound"] = 1.0 - bound.mean()
            if temperature == 1:
                rho = rho[bound]
            if len(rho):
                quantiles = np.nanquantile(rho, list(QUANTILES.values()))
                answer |= dict(zip(QUANTILES, quantiles, strict=True))
        yield {"arc": row, **answer}


def our_answers(method: RangingEstimator, arcs: Arcs, rows: np.ndarray) -> pd.DataFrame:
    """Ranges and intervals of one of our methods, arc by arc, one core."""
    method._solve(arcs.chunk(0, 1), arcs.chunk(0, 1))  # weights are read, kernels compiled
    answers = []
    for k, row in enumerate(rows):
        one = arcs.chunk(k, k + 1)
        begin = time.process_time()
        solved = method._solve(one, one)
        cpu = 1e3 * (time.process_time() - begin)
        answer = {"arc": row, "cpu_ms": cpu, "median": solved.rho[0], "status": solved.status[0]}
        for level in LEVELS:
            lower, upper = interval(method, solved, one, level)
            answer |= {f"lower{100 * level:.0f}": lower, f"upper{100 * level:.0f}": upper}
        answers.append(answer)
    return pd.DataFrame(answers)


def interval(
    method: RangingEstimator, solved: Answers, arc: Arcs, level: float
) -> tuple[float, float]:
    """Interval of one arc: of its posterior, with equal tails; else that of the calibration."""
    if (posterior := getattr(solved, "posterior", None)) is not None:
        return tuple(posterior.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level])[0])
    if method.calibration is None:
        return np.nan, np.nan
    return tuple(method.calibration.bounds(solved, arc.span, solved.limits, level)[0])


def judged(answers: pd.DataFrame, truth: np.ndarray) -> dict[str, float]:
    """Figures of one method: errors of the median, intervals that hold, and their score.

    The interval score at 95 % is that of Gneiting & Raftery (2007, J. Am. Stat. Assoc. 102, 359,
    eq. 43) in log10 of the range: width, and 2/0.05 of what an interval misses.
    """
    error = answers["median"] / truth - 1.0
    figures = {"arcs": len(answers), "answered": int(answers["median"].notna().sum())}
    figures["median relative error"] = np.nanmedian(np.abs(error))
    for level in LEVELS:
        low, high = (answers[f"{side}{100 * level:.0f}"] for side in ("lower", "upper"))
        given = low.notna() & high.notna()
        held = ((low <= truth) & (truth <= high))[given]
        figures[f"{100 * level:.0f} % held"] = 100.0 * held.mean()
        if level == LEVELS[0]:
            figures["68 % width"] = np.nanmedian(high / low)
    low, high, x = (np.log10(values[given]) for values in (low, high, truth))
    outside = np.maximum(low - x, 0.0) + np.maximum(x - high, 0.0)
    figures["interval score"] = (high - low + 2.0 / (1.0 - LEVELS[1]) * outside).mean()
    figures["CPU ms"] = answers["cpu_ms"].median()
    return figures


def page_part(title: str, rows: pd.DataFrame) -> str:
    heads = "arcs", "median rel. error", "68 / 95 % held", "68 % width", "IS95", "CPU ms"
    lines = [
        ".. made by benchmarks/peers/ranging.py; do not edit",
        "",
        f".. csv-table:: {title}",
        "   :header-rows: 1",
        "   :class: numbers",
        "",
        "   " + ", ".join(f'"{head}"' for head in ("", *heads)),
    ]
    for method, row in rows.iterrows():
        cells = (
            method,
            f"{row['arcs']:.0f}",
            f"{row['median relative error']:.3f}",
            f"{row['68 % held']:.0f} / {row['95 % held']:.0f}",
            f"{row['68 % width']:.1f}",
            f"{row['interval score']:.2f}",
            f"{row['CPU ms']:.2g}" if row["CPU ms"] < 10 else f"{row['CPU ms']:.0f}",
        )
        lines.append("   " + ", ".join(f'"{cell}"' for cell in cells))
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", type=Path, required=True, help="real arcs with their truth")
    parser.add_argument("--out", type=Path, required=True, help="folder for answers")
    parser.add_argument("--work", type=Path, help="folder of environments, for kete")
    parser.add_argument("--arcs", type=int, default=200, help="arcs of a sample, at most")
    parser.add_argument("--table", type=Path, help="also write a part of a page")
    options = parser.parse_args()
    table = read_arcs(options.set)
    parts, everything = [], []
    for sample in SAMPLES:
        rows = selected(table, sample, options.arcs)
        some = table.take(rows)
        arcs, truth = to_core(some), some["rho_topo_au"]
        folder = options.out / sample
        folder.mkdir(parents=True, exist_ok=True)
        write_states(arcs, rows, folder / "observations.csv")
        answers: dict[str, pd.DataFrame] = {}
        for temperature in TEMPERATURES:
            draws = folder / f"kete-{temperature}"
            if options.work:
                work = Work(options.work.resolve())
                ask_kete(work, folder / "observations.csv", draws, temperature)
            kept = pd.DataFrame(list(kete_answers(draws, arcs, rows, temperature)))
            if len(kept):
                answers[KETE[temperature]] = kept
        for label, (name, settings) in OURS.items():
            if name not in available_methods():
                print(f"{label}: no such method")
                continue
            answers[label] = our_answers(get_estimator(name, **settings), arcs, rows)
        common = set(rows).intersection(*(kept["arc"] for kept in answers.values()))
        figures = {}
        for label, kept in answers.items():
            whole = kept.reindex(columns=["arc", *QUANTILES, "cpu_ms", "warned", "status"])
            # all on the arcs that were asked of every peer that is here
            whole = whole[whole["arc"].isin(common)]
            true = truth[np.searchsorted(rows, whole["arc"])]
            figures[label] = judged(whole, true)
            everything.append(whole.assign(sample=sample, method=label, truth=true))
        summary = pd.DataFrame(figures).T
        judged_rows = np.isin(rows, list(common))
        objects = len(np.unique(some["designation"][judged_rows]))
        title = f"{sample.capitalize()}: {judged_rows.sum()} arcs of {objects} objects"
        print(f"{title}\n{summary.round(3).to_string()}\n", flush=True)
        parts.append(page_part(title, summary))
    pd.concat(everything).to_csv(options.out / "answers.csv", index=False, float_format="%.6g")
    if options.table:
        options.table.write_text("\n".join(parts))


def ask_kete(work: Work, table: Path, draws: Path, temperature: int) -> None:
    """Let kete draw, in its own environment, for the arcs that have no draws yet."""
    prepared("kete", work)
    command = [work.python("kete"), script("kete_ranging.py"), table, draws]
    command += ["--kernels", work.environment("kete"), "--temperature", temperature]
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main()
