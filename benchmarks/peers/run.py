"""All times of the page of performance, of this package and of others, by one command.

    python benchmarks/peers/run.py --work FOLDER [--cases gauss,nights,...] [--tables docs/guide]

FOLDER holds the environments of the other programs (``environments.py``, which builds what is not
there), the tracklets that all are given, and ``results``. A case that is run again replaces its
result; ``--tables`` writes the parts of the page from all that are there, and with
``--cases none`` only that.

``gauss``   Gauss's method on simulated nights of three observations, beside layup and adam_core
``nights``  posteriors and classes of three real nights, beside kete, digest2 and find_orb
``calls``   one answer at a time, in units of a loop of Python
``cost``    CPU time and memory by the number of tracklets
``shares``  where the time of an answer goes

Programs take turns: in each round every case runs once, in a process of its own that stays, on one
core, and what is counted is the CPU time of that process. The first round is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nights
import numpy as np
import page
from environments import BUILDERS, GITHUB, UnavailableError, Work, one_thread, prepared, script

import neoranging as nr

OURS = "neoranging"
MANY = 4000
"""Simulated nights for Gauss's method; where an answer takes longer, the first `FEW` of them."""

FEW = 400
SINGLES = 20
COPIES = 32
"""Copies of a real night in a batch."""

FIND_ORB_COPIES = 10
ROUNDS = {"gauss": 7, "nights": 5, "calls": 7}
FEW_NUMBERS = 1, 10, 100, 1000
"""Numbers of tracklets that share a process; larger ones have their own, for the memory."""

MANY_NUMBERS = 10**4, 10**5, 10**6
LONGEST = 40.0
"""CPU seconds; a number of tracklets that would take more, by that before it, is not begun."""

SHARES = tuple((method, n) for n in (1, 4000) for method in ("gauss", "laplace", "mlp", "pinn"))
SHARES += (("posterior", 1), ("systematic", 1), ("posterior", 400), ("systematic", 200))
DISTINCT = 100_000

Asked = Callable[[], float]
"""CPU seconds of a case for each tracklet."""


class Program:
    """A program that waits and runs a case when asked (``serve.py``)."""

    def __init__(self, command: Iterable[object], log: Path) -> None:
        self.log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=one_thread(),
            )
        self._answer()

    def ask(self, case: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{case}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("cpu "):  # what else the program prints is no answer
                return line.removeprefix("cpu ")
        words = self.log.read_text(errors="replace").strip().splitlines() or ["no word"]
        self.close()
        raise UnavailableError(f"ended with {self.process.returncode}: {words[-1]} ({self.log})")

    def close(self) -> None:
        self.process.communicate()


class Run:
    """Programs and cases of one table."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.cases: dict[str, Asked] = {}
        self.missing: dict[str, str] = {}
        self.programs: list[Program] = []

    def start(self, peer: str, cases: Iterable[str], *command: object) -> None:
        """Add the cases of a program; one that cannot be had is noted instead."""
        try:
            if peer != OURS:
                prepared(peer, self.work)
            program = Program(command, self.work.folder / f"{peer}.log")
        except UnavailableError as problem:
            self.missing[peer] = str(problem)
            print(f"{peer} cannot be had: {problem}", file=sys.stderr)
            return
        self.programs.append(program)
        for case in cases:
            self.cases[f"{peer} {case}"] = lambda case=case: program.ask(case)

    def ours(self, family: str, n: int, cases: Iterable[str]) -> None:
        self.start(OURS, ["loop", *cases], sys.executable, script("ours.py"), family, n)

    def seconds(self, rounds: int) -> dict[str, list[float]]:
        """CPU seconds for each tracklet, of each case in each round."""
        taken: dict[str, list[float]] = {case: [] for case in self.cases}
        for k in range(-1, rounds):
            for case, ask in list(self.cases.items()):
                try:
                    value = ask()
                except (UnavailableError, BrokenPipeError) as problem:
                    self.missing[case] = str(problem)
                    print(f"{case}: {problem}", file=sys.stderr)
                    del self.cases[case], taken[case]
                    continue
                if k >= 0:
                    taken[case].append(value)
        for program in self.programs:
            program.close()
        return taken


def gauss(work: Work) -> dict[str, Any]:
    arcs = nights.simulated(MANY).arcs
    files = work.folder / "many.csv", work.folder / "few.csv"
    nights.write_states(arcs, np.arange(MANY), files[0])
    nights.write_states(arcs.chunk(0, FEW), np.arange(FEW), files[1])
    run = Run(work)
    run.ours("gauss", MANY, ["whole", "interval", "known", "orbits", "single"])
    run.start("layup", ["gauss"], work.environment("layup") / "layup_gauss", files[0])
    adam_core = work.python("adam_core"), script("adam_core_gauss.py"), files[1]
    run.start("adam_core", ["whole", "kernel"], *adam_core)
    return {"seconds": run.seconds(ROUNDS["gauss"]), "missing": run.missing, "n": MANY}


def real_nights(work: Work) -> dict[str, Any]:
    counts = sorted(nights.REAL)
    tracklets = nr.TrackletSet.from_tracklets([nights.real(n) for n in counts])
    folder = work.folder / "nights"
    sky = nights.write_sky(tracklets, np.array(counts), folder)
    states = folder / "states.csv"
    nights.write_states(tracklets.arcs(), np.array(counts), states)
    run = Run(work)

    def each(*cases: str) -> list[str]:
        return [f"{case} {n}" for n in counts for case in cases]

    ours = [
        f"{method} {form} {what}"
        for method in ("systematic", "posterior")
        for form in ("one", "many")
        for what in ("answer", "draws", "neo")
    ]
    run.ours("nights", COPIES, each(*ours))
    kete = work.python("kete"), script("kete_times.py"), states, work.environment("kete")
    run.start("kete", each("ranging", "orbit"), *kete)
    digest2 = work.python("digest2"), script("digest2_times.py"), *sky
    run.start("digest2", each("all", "neo"), *digest2)
    try:
        prepared("find_orb", work)
    except UnavailableError as problem:
        run.missing["find_orb"] = str(problem)
    else:
        for n in counts:
            for copies in (1, FIND_ORB_COPIES):
                path = folder / f"{n}-{copies}.obs80"
                nights.write_obs80(nights.real(n), copies, path)
                name = "one" if copies == 1 else "more"
                run.cases[f"find_orb {name} {n}"] = lambda p=path, c=copies: find_orb(work, p) / c
    return {"seconds": run.seconds(ROUNDS["nights"]), "missing": run.missing, "n": COPIES}


def find_orb(work: Work, path: Path) -> float:
    """CPU seconds of its console program on a file, reading of its own files included."""
    home = work.environment("find_orb")
    process = subprocess.Popen(
        [str(home / "find_orb" / "fo"), str(path)],
        cwd=home,
        env=one_thread(HOME=str(home)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UnavailableError(f"fo ended with {process.returncode} on {path}")
    return usage.ru_utime + usage.ru_stime


def calls(work: Work) -> dict[str, Any]:
    run = Run(work)
    cases = [f"{method} {form}" for method in page.METHODS for form in ("made", "again")]
    run.ours("calls", SINGLES, cases)
    return {"seconds": run.seconds(ROUNDS["calls"]), "missing": run.missing}


def simulated_set(work: Work) -> Path:
    """Pickled set of simulated nights of three to seven observations, made once."""
    path = work.folder / f"set-{nr.__version__}.pickle"
    tracklets = nights.simulated(DISTINCT, (3, 8), seed=5).tracklets()
    path.write_bytes(pickle.dumps(tracklets))
    return path


def lines(*command: object) -> list[dict[str, Any]]:
    words = [sys.executable, *(str(word) for word in command)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, env=one_thread())
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def cost(work: Work) -> dict[str, Any]:
    data = simulated_set(work)
    laws: dict[str, list[dict[str, Any]]] = {}
    for method in page.METHODS:
        law = lines(script("cost.py"), method, data, *FEW_NUMBERS)
        for n in MANY_NUMBERS:
            if min(law[-1]["seconds"]) * n / law[-1]["n"] < LONGEST:
                law += lines(script("cost.py"), method, data, n)
        laws[method] = law
    return {"laws": laws}


def shares(work: Work) -> dict[str, Any]:
    data = simulated_set(work)
    rows = [
        {"method": method, "n": n, **lines(script("shares.py"), method, data, n)[0]}
        for method, n in SHARES
    ]
    return {"rows": rows}


CASES: dict[str, Callable[[Work], dict[str, Any]]] = {
    "gauss": gauss,
    "nights": real_nights,
    "calls": calls,
    "cost": cost,
    "shares": shares,
}


def machine() -> dict[str, Any]:
    """Processor and versions."""
    path = Path("/proc/cpuinfo")
    model = [row for row in path.read_text().splitlines() if row.startswith("model name")]
    packages = {name: __import__(name).__version__ for name in ("numpy", "numba")}
    return {
        "processor": model[0].partition(": ")[2] if model else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **packages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder of environments")
    parser.add_argument("--cases", default=",".join(CASES), help='by commas; "none" for none')
    parser.add_argument("--tables", type=Path, help="folder for the parts of the page")
    parser.add_argument("--git", default=GITHUB, help="where repositories are")
    options = parser.parse_args()
    work = Work(options.work.resolve(), options.git)
    work.folder.mkdir(parents=True, exist_ok=True)
    chosen = [] if options.cases == "none" else options.cases.split(",")
    if wrong := set(chosen) - set(CASES):
        parser.error(f"no case {', '.join(sorted(wrong))}: choose of {', '.join(CASES)}")
    files = {case: work.folder / "results" / f"{case}.json" for case in CASES}
    files["gauss"].parent.mkdir(exist_ok=True)
    for case in chosen:
        begin = time.monotonic()
        result = CASES[case](work) | {"date": time.strftime("%Y-%m-%d"), "machine": machine()}
        files[case].write_text(json.dumps(result, indent=1))
        print(f"{case}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    results = {case: json.loads(file.read_text()) for case, file in files.items() if file.exists()}
    results["peers"] = {name: version(name, work) for name in BUILDERS}
    for name, part in page.parts(results).items():
        print(part)
        if options.tables:
            (options.tables / name).write_text(part)


def version(name: str, work: Work) -> str | None:
    """Version of a peer that stands ready."""
    note = work.environment(name) / "ready"
    return note.read_text() if note.exists() else None


if __name__ == "__main__":
    main()
