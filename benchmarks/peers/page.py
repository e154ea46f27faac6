"""Parts of the page of performance, from the results of ``run.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

HEAD = ".. made by benchmarks/peers/run.py; do not edit"
METHODS = "gauss", "laplace", "mlp", "pinn", "posterior", "systematic"
NIGHTS = 3, 7, 8
ABSENT = "cannot be had"

GAUSS = {
    "neoranging whole": "neoranging, batch: observers, fit, orbits, verdict",
    "neoranging interval": "the same and the 68 % interval",
    "neoranging known": "the same without observers, which are known",
    "neoranging orbits": "neoranging, orbits alone, with light time and covariance",
    "neoranging single": "neoranging, one call",
    "layup gauss": "layup {layup}, its C++ alone: series, observers given",
    "adam_core whole": "adam_core {adam_core}, ``gaussIOD``: observers given",
    "adam_core kernel": "adam_core, its compiled part alone",
}
REAL = {
    "neoranging systematic one answer": "systematic, one call",
    "neoranging systematic one draws": "systematic, one call, 1000 orbits drawn",
    "neoranging systematic one neo": "systematic, one call, probability of a near-Earth object",
    "neoranging systematic many answer": "systematic, batch",
    "neoranging systematic many draws": "systematic, batch, 1000 orbits drawn of each",
    "neoranging systematic many neo": "systematic, batch, probability of a near-Earth object",
    "neoranging posterior one answer": "posterior, one call",
    "neoranging posterior one draws": "posterior, one call, 1000 orbits drawn",
    "neoranging posterior one neo": "posterior, one call, probability of a near-Earth object",
    "neoranging posterior many answer": "posterior, batch",
    "neoranging posterior many draws": "posterior, batch, 1000 orbits drawn of each",
    "neoranging posterior many neo": "posterior, batch, probability of a near-Earth object",
    "kete ranging": "kete {kete}, ``fit_orbit_ranging``, 1000 draws",
    "kete orbit": "kete, ``initial_orbit_determination``",
    "digest2 all": "digest2 {digest2}, all classes",
    "digest2 neo": "digest2, near-Earth objects alone",
    "find_orb one": "find_orb, a file of one object",
    "find_orb more": "find_orb, a file of 10 objects, of each",
}
RATIOS = [
    ("kete ranging", f"neoranging {method} {form}")
    for method in ("systematic", "posterior")
    for form in ("one draws", "many draws", "one answer", "many answer")
]
RATIOS += [
    ("kete orbit", "neoranging systematic one answer"),
    ("digest2 neo", "neoranging systematic one neo"),
    ("digest2 neo", "neoranging systematic many neo"),
    ("digest2 neo", "neoranging posterior many neo"),
    ("find_orb one", "neoranging systematic one draws"),
    ("find_orb more", "neoranging systematic many draws"),
]
"""Whose time is divided by whose, of real nights."""

CALL_AIMS_MS = {"gauss": 1.5, "pinn": 2.5, "systematic": 6.0}
LOOP_MS = 0.4
"""The loop on the machine of the aims, while nothing else ran; it turns aims into loops."""

Seconds = Mapping[str, Sequence[float]]


def number(value: float) -> str:
    """Three digits, and no more than the integer of a large number."""
    if value >= 100.0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10.0 else f"{value:.1f}"


def times(seconds: Seconds, case: str, unit: float) -> str:
    """Least and median."""
    if case not in seconds:
        return ABSENT
    values = np.array(seconds[case]) / unit
    return f"{number(values.min())} / {number(float(np.median(values)))}"


def ratio(seconds: Seconds, case: str, other: str) -> np.ndarray | None:
    """Times of a case in those of another, round by round."""
    if case not in seconds or other not in seconds:
        return None
    return np.array(seconds[case]) / np.array(seconds[other])


def ratios(seconds: Seconds, case: str, other: str) -> str:
    """Median of the rounds, and least and largest."""
    values = ratio(seconds, case, other)
    if values is None:
        return ABSENT
    if case == other:
        return "1"
    low, high = (number(float(value)) for value in (values.min(), values.max()))
    return f"{number(float(np.median(values)))} ({low} to {high})"


def csv_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers"
) -> str:
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (head, *rows)]
    return "\n".join(
        [
            f".. csv-table:: {title}",
            "   :header-rows: 1",
            f"   :class: {kind}",
            "",
            *(f"   {line}" for line in lines),
            "",
        ]
    )


def gauss(results: Mapping[str, Any]) -> str:
    seconds, versions = results["gauss"]["seconds"], results["peers"]
    rows = [
        (
            label.format(**versions),
            times(seconds, case, 1e-6),
            *(
                ratios(seconds, case, f"neoranging {other}")
                for other in ("orbits", "whole", "single")
            ),
        )
        for case, label in GAUSS.items()
    ]
    ours = (f"in times of {name}" for name in ("our orbits alone", "our batch", "our one call"))
    head = "", "CPU µs per tracklet", *ours
    return csv_table("Gauss's method on simulated nights of three observations", head, rows)


def nights(results: Mapping[str, Any]) -> str:
    seconds, versions = results["nights"]["seconds"], results["peers"]
    heads = [f"{n} observations" for n in NIGHTS]
    rows = [
        (label.format(**versions), *(times(seconds, f"{case} {n}", 1e-3) for n in NIGHTS))
        for case, label in REAL.items()
    ]
    table = csv_table("Real nights, CPU ms per tracklet", ("", *heads), rows)
    rows = [
        (
            REAL[case].format(**versions),
            REAL[other],
            *(ratios(seconds, f"{case} {n}", f"{other} {n}") for n in NIGHTS),
        )
        for case, other in RATIOS
    ]
    head = "time of", "in times of ours", *heads
    return "\n".join(
        [table, csv_table("How many times as long others take", head, rows, "compared")]
    )


def calls(results: Mapping[str, Any]) -> str:
    seconds = results["calls"]["seconds"]
    rows = [
        (
            f"``{method}``",
            times(seconds, f"neoranging {method} made", 1e-3),
            ratios(seconds, f"neoranging {method} made", "neoranging loop"),
            times(seconds, f"neoranging {method} again", 1e-3),
            ratios(seconds, f"neoranging {method} again", "neoranging loop"),
        )
        for method in METHODS
    ]
    rows.append(("the loop", times(seconds, "neoranging loop", 1e-3), "1", "", ""))
    head = "", "made and asked [ms]", "in loops", "asked again [ms]", "in loops"
    return csv_table("One night of five observations, one call", head, rows)


def cost(results: Mapping[str, Any]) -> str:
    laws = results["cost"]["laws"]
    numbers = [row["n"] for row in laws["gauss"]]
    cells: dict[str, dict[int, tuple[str, str]]] = {}
    for method, law in laws.items():
        cells[method] = {}
        for row in law:
            n, seconds = row["n"], {method: row["seconds"]}
            cells[method][n] = (
                times(seconds, method, 1e-6 * n),
                f"{row['peak'] - row['before']:,.0f} / {row['peak']:,.0f}",
            )

    def table(title: str, part: int, least: int) -> str:
        rows = [
            (f"{n:,}", *(cells[method].get(n, ("", ""))[part] for method in METHODS))
            for n in numbers
            if n >= least
        ]
        return csv_table(title, ("tracklets", *(f"``{method}``" for method in METHODS)), rows)

    return "\n".join(
        [
            table("CPU µs per tracklet, least / median", 0, 1),
            table("Memory of an answer, and peak of the whole process [MB]", 1, 10_000),
        ]
    )


def shares(results: Mapping[str, Any]) -> str:
    rows = [
        (
            f"``{row['method']}``",
            f"{row['n']:,}",
            number(row["calls"]),
            ", ".join(f"{name} {100 * part:.0f}" for name, part in row["shares"].items()),
        )
        for row in results["shares"]["rows"]
    ]
    head = "", "tracklets in a call", "function calls per tracklet", "own time of modules [%]"
    return csv_table("Where the time goes", head, rows, "compared")


def targets(results: Mapping[str, Any]) -> str:
    """What was aimed at, and what was reached in this run."""
    seconds = {case: results.get(case, {}).get("seconds", {}) for case in ("gauss", "nights")}
    rows: list[tuple[str, str, str, str]] = []

    def row(what: str, limit: str, value: np.ndarray | None, met: Callable[[float], bool]) -> None:
        if value is None:
            rows.append((what, limit, ABSENT, ""))
            return
        middle = float(np.median(value))
        reached = number(middle)
        if len(value) > 1:
            reached += f" ({number(value.min())} to {number(value.max())})"
        rows.append((what, limit, reached, "yes" if met(middle) else "no"))

    of_gauss = seconds["gauss"]
    if of_gauss:
        layup = ratio(of_gauss, "layup gauss", "neoranging whole")
        row("layup's C++ in times of our batch", "at least 6", layup, lambda x: x >= 6)
        adam = ratio(of_gauss, "adam_core whole", "neoranging single")
        row("adam_core in times of our single call", "at least 1", adam, lambda x: x >= 1)
    if seconds["nights"]:
        for other in ("systematic one answer", "posterior many answer", "posterior many draws"):
            of_nights = [
                ratio(seconds["nights"], f"kete ranging {n}", f"neoranging {other} {n}")
                for n in NIGHTS
            ]
            there = [part for part in of_nights if part is not None]
            least = min(there, key=lambda part: float(np.median(part)), default=None)
            name = REAL[f"neoranging {other}"]
            what = f"kete's ranging in times of ours, on the night of least: {name}"
            row(what, "at least 100", least, lambda x: x >= 100)
    if "calls" in results:
        of_calls = results["calls"]["seconds"]
        for method, limit in CALL_AIMS_MS.items():
            value = ratio(of_calls, f"neoranging {method} again", "neoranging loop")
            most = limit / LOOP_MS
            aim = f"at most {number(most)} ({limit} ms where a loop takes {LOOP_MS} ms)"
            what = f"``estimate({method})`` again [loops]"
            row(what, aim, value, lambda x, most=most: x <= most)
    if "cost" in results:
        last = results["cost"]["laws"]["gauss"][-1]
        peak = np.array([last["peak"]])
        row(f"peak of {last['n']:,} by ``gauss`` [MB]", "below 1000", peak, lambda x: x < 1000)
    return csv_table("Aims", ("", "aim", "reached", "met"), rows, "compared")


def machine(results: Mapping[str, Any]) -> str:
    """Sentences on where and with what the tables were made."""
    made: dict[str, list[str]] = {}
    for case, part in results.items():
        if case in PARTS:
            here = part["machine"]
            where = f"{here['processor']}, {here['cores']} cores, Python {here['python']}, "
            where += f"numpy {here['numpy']}, numba {here['numba']}, on {part['date']}"
            made.setdefault(where, []).append(case)
    one = len(made) == 1
    sentences = [
        f"{'All' if one else ', '.join(cases).capitalize()}: {where}."
        for where, cases in made.items()
    ]
    others = [
        f"{name} {version}" if version else f"{name} ({ABSENT} here)"
        for name, version in results["peers"].items()
    ]
    return " ".join([*sentences, f"Other programs: {', '.join(others)}.\n"])


PARTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "gauss": gauss,
    "nights": nights,
    "calls": calls,
    "cost": cost,
    "shares": shares,
}


def parts(results: Mapping[str, Any]) -> dict[str, str]:
    """Text of each file that there are results for."""
    made = {name: part(results) for name, part in PARTS.items() if name in results}
    if not made:
        return {}
    made |= {"targets": targets(results), "machine": machine(results)}
    return {f"performance_{name}.inc": f"{HEAD}\n\n{text}" for name, text in made.items()}
