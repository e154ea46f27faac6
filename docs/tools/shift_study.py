"""Ask methods for arcs that differ from their training in one thing, and count if anyone notices.

Run ``python docs/tools/shift_study.py WORK --twin TWIN --real REAL``: it simulates sets that differ
from the twin in the population, in the errors or in the cadence, in the folder WORK, asks each
method for them, and writes the tables and the figure of the guide's page on shifted populations.
TWIN is the divided set that the networks learnt from, REAL are real nights, of ``neoranging dataset
real --group-by night``.

The sets are those of ``shifted_sets.py``. They and the answers are kept in WORK, so that an
interrupted run goes on where it was, and one with other weights asks only these.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from next_night import as_tracklets
from next_night import table as csv_table
from shifted_sets import SHIFTS, read_set, stored

from neoranging import Calibration, available_methods
from neoranging.core.answers import Answers
from neoranging.core.status import RangeStatus
from neoranging.estimators import LearnedEstimator
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.files import replacing
from neoranging.lab.sets import ArcTable, to_core
from neoranging.lab.study import CalibrationSample, Selection, StudyMethod
from neoranging.lab.study.methods import ask, study_methods
from neoranging.lab.study.posteriors import PosteriorScores
from neoranging.lab.study.scores import ArcTruth
from neoranging.lab.study.selection import fingerprint
from neoranging.plotting import style
from neoranging.tables import number
from neoranging.typing import FloatArray, StrArray

GUIDE: Final = Path(__file__).resolve().parents[1] / "guide"
METHODS: Final = ("gauss", "laplace", "mlp", "pinn", "posterior", "systematic")
"""Methods that are asked by default, as far as they are registered."""

REAL: Final = "real nights"
LEVELS: Final = (0.68, 0.95)
DOMAIN_LEVELS: Final = (0.0001, 0.001, 0.01, 0.1)
DIGEST: Final = 8
"""Digits by which weights are told apart."""

ARCS: Final = 2000
POSTERIOR_ARCS: Final = 600
"""Arcs of a set that methods with posteriors are asked for, which take some 20 ms each."""

TWIN_ARCS: Final = 20_000
"""Arcs of the twin that the domain is judged by."""


# ---------------------------------------------------------------------- answers


class Share(NamedTuple):
    """Share of some arcs."""

    value: float
    error: float
    """Standard error, objects taken for independent, and at least that of independent arcs."""
    n: int

    @classmethod
    def of(cls, flags: Any, objects: StrArray, among: Any = True) -> Share:
        """Share of the arcs ``among`` which have a flag."""
        rows = np.broadcast_to(among, np.shape(flags))
        flags, objects = np.asarray(flags, dtype=np.float64)[rows], objects[rows]
        n = len(flags)
        if not n:
            return cls(np.nan, np.nan, 0)
        off = np.bincount(np.unique(objects, return_inverse=True)[1], flags - flags.mean())
        # where none or all have it, half an arc more
        p = (flags.sum() + 0.5) / (n + 1.0)
        error = max(np.sqrt(np.sum(off**2)) / n, np.sqrt(p * (1.0 - p) / n))
        return cls(float(flags.mean()), float(error), n)

    def __str__(self) -> str:
        if self.n < LEAST:
            return ""
        digits = 0 if self.value > 0.0995 else 1 if self.value > 0.00995 else 2
        value, error = (f"{100.0 * x:.{digits}f}" for x in (self.value, self.error))
        return f"{value} \N{PLUS-MINUS SIGN} {error}"


LEAST: Final = 20
"""Arcs of which a share is told."""


class Row(NamedTuple):
    """Answers of one method to one set."""

    name: str
    method: str
    is_learned: bool
    n: int
    error: float
    """Median relative error of the answers."""
    answered: Share
    usable: Share
    ok: Share
    misfit: Share
    outside: Share
    """Status OUTSIDE_TRAINING_DOMAIN."""
    no_neo: Share
    """Posterior probability of a near-Earth object below one half."""
    inside: dict[float, Share]
    """Truth in the interval, of arcs with an answer, by level."""
    ratio: dict[float, float]
    """Median of the upper by the lower bound, by level."""
    kept: dict[float, Share]
    """Truth in the interval, of usable answers."""
    trusted: dict[float, Share]
    """The same, of answers without the status OUTSIDE_TRAINING_DOMAIN."""
    own: dict[float, Share]
    """Truth in the interval by the network's own estimate of its errors."""


def judged(
    name: str,
    method: StudyMethod,
    answers: Answers,
    posteriors: PosteriorScores | None,
    truth: ArcTruth,
    calibration: Calibration | None,
    neo: FloatArray,
) -> Row:
    """Figures of the answers of a method; ``neo`` are probabilities of the first arcs, or none."""
    objects, rho = truth.designation, truth.rho
    answered = answers.answered & (answers.rho > 0.0)
    ratio = np.where(answered, answers.rho, np.nan) / rho
    status = {each: answers.status == each.code for each in RangeStatus}
    outside = status[RangeStatus.OUTSIDE_TRAINING_DOMAIN]
    inside, ratios, kept, trusted, own = {}, {}, {}, {}, {}
    with np.errstate(invalid="ignore"):
        off, deviation = np.abs(np.log(ratio)), answers.rho_error / answers.rho
    for level in LEVELS:
        if posteriors is not None:
            low, high = posteriors.intervals(truth.limits)[level].T
        elif calibration is not None:
            bounds = calibration.bounds(answers, truth.span, truth.limits, level, too_few="limits")
            low, high = bounds.T
        else:
            low = high = np.full(len(rho), np.nan)
        has_interval = answered & np.isfinite(low)
        flags = (low <= rho) & (rho <= high)
        inside[level] = Share.of(flags, objects, has_interval)
        some = has_interval.any()
        ratios[level] = float(np.median((high / low)[has_interval])) if some else np.nan
        kept[level] = Share.of(flags, objects, has_interval & answers.usable)
        trusted[level] = Share.of(flags, objects, has_interval & ~outside)
        # the law that the second output is learnt by is Laplace's, of the logarithm of the range
        half = np.sqrt(0.5) * deviation * np.log(1.0 / (1.0 - level))
        has_own = answered & np.isfinite(half) & _is_learned(method) & (posteriors is None)
        own[level] = Share.of(off <= half, objects, has_own)
    return Row(
        name=name,
        method=method.label,
        is_learned=_is_learned(method),
        n=len(rho),
        error=float(np.nanmedian(np.abs(ratio - 1.0))) if answered.any() else np.nan,
        answered=Share.of(answered, objects),
        usable=Share.of(answers.usable, objects),
        ok=Share.of(answers.ok, objects),
        misfit=Share.of(status[RangeStatus.MISFIT], objects),
        outside=Share.of(outside, objects),
        no_neo=Share.of(neo < 0.5, objects[: len(neo)]),
        inside=inside,
        ratio=ratios,
        kept=kept,
        trusted=trusted,
        own=own,
    )


def _is_learned(method: StudyMethod) -> bool:
    return bool(method.estimator.is_learned)


def rows_of(
    name: str, table: ArcTable, methods: Sequence[StudyMethod], work: Path, options: Any
) -> Iterator[Row]:
    """Figures of all methods on the arcs of a set, whose answers are kept."""
    for method in methods:
        some = table
        if method.estimator.gives_posterior and len(table) > options.posterior_arcs:
            some = Selection(None, max_arcs=options.posterior_arcs).of(table)
        origins = {"topocenter", method.estimator.origin}
        arcs = {origin: to_core(some, origin) for origin in origins}
        truths = {origin: ArcTruth.of(some, origin, arcs[origin]) for origin in origins}
        begin = time.monotonic()
        folder = work / "answers" / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        answers, posteriors = ask(method, some, truths, arcs, folder)
        neo = np.zeros(0)
        if posteriors is not None:
            neo = near_earth(method, some.take(slice(options.posterior_arcs // 2)), folder)
        calibration = calibration_of(method, work, options.twin)
        truth = truths[method.estimator.origin]
        yield judged(name, method, answers, posteriors, truth, calibration, neo)
        seconds = time.monotonic() - begin
        print(f"  {name}: {method.label}, {len(some)} arcs, {seconds:.0f} s", flush=True)


def near_earth(method: StudyMethod, table: ArcTable, folder: Path) -> FloatArray:
    """Posterior probabilities of near-Earth objects, of a file if they are there."""
    identity = json.dumps([method.estimator.identity, fingerprint(table)])
    path = folder / f"{method.slug}-near-earth.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            if file["identity"].item() == identity:
                return np.asarray(file["probability"])
    probability = as_tracklets(table).estimate(method.estimator).probability("neo")
    with replacing(path) as temporary, temporary.open("wb") as out:
        np.savez(out, identity=identity, probability=probability)
    return np.asarray(probability)


def calibration_of(method: StudyMethod, work: Path, twin: Path | None) -> Calibration | None:
    """Calibration that comes with a method, or one by the part ``test`` of a set."""
    estimator = method.estimator
    if estimator.calibration is not None or estimator.gives_posterior or twin is None:
        return estimator.calibration
    path = work / "calibrations" / f"{method.slug}.json"
    if path.exists() and (made := Calibration.read(path)).matches(estimator.identity):
        return made
    path.parent.mkdir(parents=True, exist_ok=True)
    table = read_set(twin, "test")
    calibration = CalibrationSample.of(estimator, [table]).calibration()
    calibration.write(path)
    return calibration


# ---------------------------------------------------------------------- the domain


def alarms(method: StudyMethod, table: ArcTable) -> list[Share]:
    """Shares of arcs that are outside: by the range of a feature, and by the density at levels."""
    estimator = method.estimator
    assert isinstance(estimator, LearnedEstimator)
    arcs, network = to_core(table, estimator.origin), estimator.network
    inputs = arc_inputs(arcs, root=network.config.root)
    shown = network.features.show(inputs)
    by_range = network.features.outside(shown, estimator.slack).any(axis=1)
    compared, present = network.features.compared(shown.raw), shown.present > 0.0
    by_density = [network.domain.outside(compared, present, level) for level in DOMAIN_LEVELS]
    return [Share.of(flags, table["designation"]) for flags in (by_range, *by_density)]


def domain_table(methods: Sequence[StudyMethod], sets: dict[str, ArcTable]) -> str:
    """How often arcs are called outside, beside the share that is asked for."""
    # networks that learnt from the same arcs have one domain
    domains: dict[bytes, list[StudyMethod]] = {}
    for method in methods:
        estimator = method.estimator
        if isinstance(estimator, LearnedEstimator) and estimator.network.domain.is_fitted:
            key = estimator.network.domain.quantiles.tobytes()
            domains.setdefault(key, []).append(method)
    header = [
        *("networks", "set", "a feature beyond its range"),
        *(f"density, level {100.0 * level:g} %" for level in DOMAIN_LEVELS),
    ]
    rows = [
        (", ".join(one.label for one in same) if k == 0 else "", name, *map(str, shares))
        for same in domains.values()
        for k, (name, table) in enumerate(sets.items())
        for shares in [alarms(same[0], table)]
    ]
    return csv_table("Arcs outside the domain [%]", header, rows) if rows else ""


# ---------------------------------------------------------------------- page


ANSWERS: Final = (
    *("set", "method", "arcs", "median relative error", "answered [%]", "usable [%]", "OK [%]"),
    *("misfit [%]", "outside domain [%]", "no near-Earth object [%]"),
)
INTERVALS: Final = (
    *("set", "method", "68 % holds [%]", "of usable [%]", "of those in the domain [%]"),
    *("own scale, 68 % [%]", "68 %, upper / lower", "95 % holds [%]", "of usable [%]"),
    *("of those in the domain [%]", "own scale, 95 % [%]", "95 %, upper / lower"),
)


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Answers and intervals of each group of sets."""
    groups = {name: shift.group for name, shift in SHIFTS.items()} | {REAL: "real"}
    titles = {
        "population": "population",
        "noise": "errors",
        "cadence": "cadence",
        "real": "real nights",
    }
    for group, title in titles.items():
        part = [row for row in rows if groups[row.name] == group]
        if not part:
            continue
        yield f".. part {group}\n"
        first = {row.name: row.method for row in reversed(part)}
        names = [row.name if first[row.name] == row.method else "" for row in part]
        yield csv_table(
            f"Answers, {title}",
            ANSWERS,
            [
                (
                    *(name, row.method, str(row.n), _error(row), str(row.answered)),
                    *(str(row.usable), str(row.ok), str(row.misfit)),
                    *(str(row.outside) if row.is_learned else "", str(row.no_neo)),
                )
                for name, row in zip(names, part, strict=True)
            ],
        )
        yield csv_table(
            f"Truth within intervals, {title}",
            INTERVALS,
            [
                (name, row.method, *(cell for level in LEVELS for cell in _intervals(row, level)))
                for name, row in zip(names, part, strict=True)
            ],
        )


def _error(row: Row) -> str:
    return number(row.error) if np.isfinite(row.error) else ""


def _intervals(row: Row, level: float) -> tuple[str, ...]:
    trusted = str(row.trusted[level]) if row.is_learned else ""
    ratio = number(row.ratio[level]) if np.isfinite(row.ratio[level]) else ""
    return str(row.inside[level]), str(row.kept[level]), trusted, str(row.own[level]), ratio


def legend(sets: dict[str, ArcTable]) -> str:
    """What each set is."""
    words = {name: shift.words for name, shift in SHIFTS.items()} | {REAL: "as observed"}
    rows = [
        (
            name,
            words[name],
            str(len(table)),
            str(len(np.unique(table["designation"]))),
            f"{np.median(table['rho_topo_au']):.3f}",
            f"{1440.0 * np.median(to_core(table).span):.0f}",
        )
        for name, table in sets.items()
    ]
    header = ("set", "arcs are", "arcs", "objects", "median range [au]", "median length [min]")
    return csv_table("Sets", header, rows)


@style.print_size()
def figure(rows: Sequence[Row]) -> Any:
    """Coverage and alarms by set, a mark for each method."""
    names = list(dict.fromkeys(row.name for row in rows))
    labels = list(dict.fromkeys(row.method for row in rows))
    groups = {name: shift.group for name, shift in SHIFTS.items()} | {REAL: "real"}
    fig = style.new_figure(style.TWO_COLUMNS, 6.4)
    axes = fig.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.0, 1.0))
    for k, (method, mark) in enumerate(style.marks(labels).items()):
        own = [row for row in rows if row.method == method]
        x = np.array([names.index(row.name) for row in own])
        x = x + 0.7 * ((k + 0.5) / len(labels) - 0.5)
        drawn: list[tuple[Any, list[Share], str]] = [
            (axes[0], [row.inside[0.68] for row in own], mark.color),
            (axes[1], [row.inside[0.95] for row in own], mark.color),
        ]
        drawn.append((axes[2], [row.misfit for row in own], "white"))
        if own[0].is_learned:
            drawn.append((axes[2], [row.outside for row in own], mark.color))
        for ax, shares, face in drawn:
            value, error = 100.0 * np.array([(s.value, s.error) for s in shares]).T
            ax.errorbar(
                *(x, value, error),
                fmt=mark.marker,
                color=mark.color,
                markerfacecolor=face,
                markersize=3.5,
                elinewidth=0.7,
                label=method if ax is axes[0] else None,
            )
    for ax, level in zip(axes, LEVELS, strict=False):
        ax.axhline(100.0 * level, color=style.BLACK, linewidth=0.8, linestyle="--")
    for ax in axes:
        for k in range(1, len(names)):
            if groups[names[k]] != groups[names[k - 1]]:
                ax.axvline(k - 0.5, color=style.GREY, linewidth=0.8)
    style.dress(axes[0], ylabel="68 % intervals hold [%]")
    style.dress(axes[1], ylabel="95 % intervals hold [%]")
    style.dress(axes[2], ylabel="status [%]", xlim=(-0.6, len(names) - 0.4))
    axes[2].set_yscale("symlog", linthresh=1.0)
    axes[2].set(ylim=(-0.3, 100.0))
    axes[2].set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    style.note(axes[2], "filled: outside the training domain; hollow: misfit", (0.01, 0.9))
    axes[2].set_xticks(range(len(names)), names, rotation=35.0, ha="right")
    style.figure_legend(fig, axes[0], "outside upper center")
    return fig


def weights(methods: Sequence[StudyMethod]) -> str:
    """Weights of the networks by the first digits of their SHA-256."""
    identities = {method.label: method.estimator.identity for method in methods}
    digests = [
        f"``{label}`` ``{identity['weights_sha256'][:DIGEST]}``"
        for label, identity in identities.items()
        if "weights_sha256" in identity
    ]
    return f"Weights: {', '.join(digests)}.\n" if digests else ""


def main(arguments: list[str] | None = None) -> None:
    """Write the page part and the figure."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("work", type=Path, help="folder of the sets and the answers")
    registered = [name for name in METHODS if name in available_methods()]
    parser.add_argument("--methods", nargs="+", default=registered, help="[LABEL=]NAME or weights")
    parser.add_argument(
        "--weights", nargs="*", default=[], metavar="LABEL=FILE", help="in place of a method"
    )
    parser.add_argument("--sets", nargs="+", default=list(SHIFTS), choices=list(SHIFTS))
    parser.add_argument("--real", type=Path, help="set of real nights")
    parser.add_argument("--arcs", type=int, default=ARCS, help="of each set")
    parser.add_argument("--posterior-arcs", type=int, default=POSTERIOR_ARCS)
    parser.add_argument(
        "--twin",
        type=Path,
        help="divided twin: its part test shows how often the domain errs, and calibrates methods "
        "that come without a calibration",
    )
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--output", type=Path, default=GUIDE, help="folder of the page part")
    options = parser.parse_args(arguments)
    own = dict(text.split("=", 1) for text in options.weights)
    named = [f"{name}={own.pop(name)}" if name in own else name for name in options.methods]
    methods = study_methods(named + [f"{label}={file}" for label, file in own.items()])
    sets, rows = {}, []
    for k, name in enumerate(options.sets):
        print(f"{k + 1} of {len(options.sets)}: {name}", file=sys.stderr, flush=True)
        path = options.work / "sets" / f"{name.replace(' ', '-')}.npz"
        sets[name] = stored(path, name, options.arcs, options.seed)
        rows += rows_of(name, sets[name], methods, options.work, options)
    if options.real is not None:
        sets[REAL] = read_set(options.real)
        rows += rows_of(REAL, sets[REAL], methods, options.work, options)
    of_domain = dict(sets)
    if options.twin is not None:
        of_domain = {"twin, part test": read_set(options.twin, "test", TWIN_ARCS), **sets}
    parts = [
        ".. made by docs/tools/shift_study.py; do not edit\n",
        weights(methods),
        ".. part sets\n",
        legend(sets),
        ".. part domain\n",
        domain_table(methods, of_domain),
        *tables(rows),
    ]
    text = "\n".join(part for part in parts if part)
    (options.output / "shift.inc").write_text(text, encoding="utf-8")
    drawing = figure(rows)
    drawing.savefig(options.output / "shift.png", dpi=160, metadata={"Software": None})


if __name__ == "__main__":
    main()
