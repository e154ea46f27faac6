"""Turn studies into the tables of the guide, as page parts.

The tables of ``docs/guide/study.rst`` and ``docs/guide/intervals.rst``, and those of the paper's
networks in ``docs/guide/differences.rst``, come from nothing but the
``study.json`` of folders that ``neoranging study`` wrote, the first of them the one to read first::

    python docs/tools/study_tables.py study-twin study-real --posteriors posteriors-twin

Posteriors take a thousand times as long as networks: they have studies of fewer arcs of an object.
Above each table stand the arcs, the command, and the weights of networks by the first digits of
their SHA-256, so that nobody takes numbers of other weights for those of these.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from neoranging.estimators import LearnedEstimator, SystematicRangingEstimator
from neoranging.estimators.learned import default_weights
from neoranging.lab.study import strata as evaluation
from neoranging.lab.study.half_widths import side_by_side
from neoranging.lab.study.published import SOURCE
from neoranging.nn.features import FEATURES
from neoranging.tables import number

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
MINUS = "\N{MINUS SIGN}"
DIGEST = 8
"""Digits by which weights are told apart."""

DEFAULT_PRIOR = SystematicRangingEstimator().prior

Row = Mapping[str, Any]

CLASSICAL_METHODS = ("Gauss", "Laplace")
HEADLINE = {
    "solved": "arcs with an answer [%]",
    "ok": "status OK [%]",
    "mae_rho": "range, mean error [au]",
    "medae_rho": "range, median error [au]",
    "median_relative_error": "range, median relative error",
    "median_relative_error_by_object": "the same, by object",
    "median_log10_error": "range, median error [dex]",
    "corr_rho": "range, correlation",
    "spread_rho": "range, spread ratio",
    "mae_rho_dot": "range-rate, mean error [au/d]",
    "medae_rho_dot": "range-rate, median error [au/d]",
    "corr_rho_dot": "range-rate, correlation",
    "spread_rho_dot": "range-rate, spread ratio",
    "p_ar": "P_AR [%]",
    "p_ar_truth": "P_AR of the truth [%]",
    "elliptic_pseudo": "both orbits elliptic [%]",
    "d_sh_pseudo": "D_SH, median",
    "d_sh_pseudo_below": "D_SH < 0.2 [%]",
    "collapsed": "range < 0.001 au [%]",
}
CLASSICAL = {
    "solved": "arcs with an answer [%]",
    "ok": "status OK [%]",
    "collapsed": "range < 0.001 au [%]",
    "p_ar": "P_AR [%]",
    "mae_rho": "range, mean error [au]",
    "medae_rho": "range, median error [au]",
    "median_log10_error": "range, median error [dex]",
    "corr_rho": "range, correlation",
    "spread_rho": "range, spread ratio",
    "median_rho": "median range [au]",
    "median_rho_true": "median true range [au]",
    "d_sh_pseudo": "D_SH, median",
}
STRATA = {
    "median_log10_error": "range [dex]",
    "p_ar": "P_AR [%]",
    "d_sh_pseudo": "D_SH",
}
AXES = {
    "eta": "proper motion",
    "rho": "true range",
    "inc": "incl.",
    "span": "arc",
}
CROSS = {
    "p_ar": "P_AR [%]",
    "d_sh_pseudo": "D_SH",
    "median_relative_error": "relative error",
    "medae_rho": "range [au]",
}
SUBSETS = {
    "all": "All arcs",
    "solved from the geocenter": "Arcs that both classical methods solve from the geocentre",
    "solved from the topocenter": "Arcs that both classical methods solve from the topocentre",
}
SOURCES = {
    "crosswise": "of other folds",
    "of the method": "of the package",
    "posterior": "none: posterior",
}
SCORES = {
    "median_relative_error": "median relative error",
    "inside_68": "68 %: inside [%]",
    "inside_95": "95 %: inside [%]",
    "ratio_68": "68 %: upper / lower",
    "ratio_95": "95 %: upper / lower",
    "interval_score_68": "interval score, 68 % [dex]",
    "interval_score_95": "interval score, 95 % [dex]",
    "crps": "CRPS [dex]",
}
POSTERIORS = {
    "inside_68": "68 %: equal tails [%]",
    "region_68": "68 %: densest [%]",
    "inside_95": "95 %: equal tails [%]",
    "region_95": "95 %: densest [%]",
    "median_relative_error": "median relative error",
    "interval_score_95": "interval score, 95 % [dex]",
    "crps": "CRPS [dex]",
    "nats": f"{MINUS}ln p [nat]",
    "floored": "truth off it [%]",
    "nodes_admissible": "admissible [%]",
}
POSTERIOR_AXES = {"eta": "motion", "span": "arc", "median": "posterior median", "rho": "true range"}


class Study(NamedTuple):
    """Content of ``study.json``."""

    data: dict[str, Any]
    settings: dict[str, Any]
    remarks: list[dict[str, Any]]
    tables: dict[str, list[dict[str, Any]]]

    @classmethod
    def read(cls, folder: Path) -> Study:
        """Study of a folder."""
        content = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        return cls(*(content[name] for name in cls._fields))

    @property
    def title(self) -> str:
        """Number and kind of the arcs."""
        return f"{self.data['n_arcs']:,} {self.data['kind']} arcs"

    @property
    def command(self) -> str:
        """Command that makes the study again."""
        selection = self.data["selection"]
        methods = ",".join(self._argument(label) for label in self.labels)
        words = ["neoranging", "study", "--data", self.data["set"], "--methods", methods]
        words += ["--split", selection["split"] or "all"]
        for name in ("cap", "max_arcs"):
            if selection[name]:
                words += [f"--{name.replace('_', '-')}", str(selection[name])]
        words += ["--seed", str(selection["seed"])] if selection["seed"] else []
        return shlex.join(words)

    @property
    def labels(self) -> list[str]:
        """Labels of the methods, in order of the headline."""
        return list(dict.fromkeys(row["method"] for row in self.tables["headline"]))

    def is_classical(self, label: str) -> bool:
        """Flag of a method that solves for the roots of a polynomial."""
        return self.settings["methods"][label]["method"] in map(str.lower, CLASSICAL_METHODS)

    def _argument(self, label: str) -> str:
        """A method as the command takes it; weights that do not ship go by a file of their name."""
        identity = self.settings["methods"][label]
        argument, native = identity["method"], "topocenter"
        if (representation := identity.get("representation")) is not None:
            shipped = _sha256(default_weights(argument, representation))
            native = FEATURES[representation].origin
            if identity["weights_sha256"] != shipped:
                argument += f"-{representation}.safetensors"
            elif representation != LearnedEstimator.representations[0]:
                argument += f"@{representation}"
        if (prior := identity.get("prior", DEFAULT_PRIOR)) != DEFAULT_PRIOR:
            argument += f"@{prior}"
        if identity["origin"] != native:
            argument += f"@{identity['origin']}"
        return argument if label == argument else f"{label}={argument}"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---------------------------------------------------------------------- pieces of pages


def csv_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One table in reStructuredText."""
    lines = [", ".join(f'"{cell}"' for cell in row) for row in (header, *rows)]
    body = "\n".join(f"   {line}" for line in lines)
    return f".. csv-table:: {title}\n   :header-rows: 1\n   :class: numbers\n\n{body}\n"


def description(study: Study) -> str:
    """The arcs, the weights and the command."""
    data, selection = study.data, study.data["selection"]
    cap = f"at most {selection['cap']} of an object, " if selection["cap"] else ""
    part = f"its part ``{selection['split']}``" if selection["split"] else "all of it"
    nights = f"MJD {data['first_night']:.0f} to {data['last_night']:.0f}"
    text = (
        f"**{study.title.capitalize()}** of {data['n_objects']:,} objects: set ``{data['set']}`` "
        f"of {data['n_in_set']:,} arcs, {part}; {cap}{nights}; most of one object: "
        f"{data['largest']}, {data['n_largest']:,}."
    )
    return f"{text}{_weights(study)}\n\n.. code-block:: console\n\n   $ {study.command}\n"


def _weights(study: Study) -> str:
    methods = study.settings["methods"].items()
    digests = [
        f"``{label}`` ``{identity['weights_sha256'][:DIGEST]}``"
        for label, identity in methods
        if "weights_sha256" in identity
    ]
    return f" Weights: {', '.join(digests)}." if digests else ""


def remarks(study: Study) -> str:
    """Remarks that the report of the study makes before any figure."""
    if not study.remarks:
        return ""
    lines = [
        f"- {'**Probably broken.** ' * remark['is_alarm']}{remark['subject']}: {remark['text']}"
        for remark in study.remarks
    ]
    return "The report remarks:\n\n" + "\n".join(lines) + "\n"


def figure(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Cell of a value with its interval below."""
    if value is None:
        return ""
    text = number(value).replace("-", MINUS) if -1.0 < value < 0.0 else number(value)
    if low is None or high is None or bound(low) == bound(high):
        return text
    return f"| {text}\n   | {bound(low)} – {bound(high)}"


def bound(value: float) -> str:
    """End of an interval, in two digits without an exponent where that is short."""
    if not 1e-5 <= abs(value) < 99.5:
        return number(value)
    text = np.format_float_positional(float(f"{abs(value):.2g}"), trim="-")
    return MINUS + text if value < 0.0 else text


# ---------------------------------------------------------------------- headline


def headline(study: Study) -> Iterable[str]:
    """Networks and classical methods beside those of the literature, a table for each kind."""
    rows, published = study.tables["headline"], _published_headline(study)
    for kind, is_classical in (("Classical methods", True), ("Networks and others", False)):
        ours = [row for row in rows if study.is_classical(row["method"]) is is_classical]
        theirs = [row for row in published if (row["method"] in CLASSICAL_METHODS) is is_classical]
        if ours:
            yield _headline(f"{kind}, {study.title}", ours, theirs)


def _headline(title: str, rows: Sequence[Row], published: Sequence[Row]) -> str:
    """One row for each figure, one column for each method."""
    names = [f"{row['method']}, OK" if row["answers"] == "OK" else row["method"] for row in rows]
    header = ["", *names, *(_published(row) for row in published)]
    counts = [row["n_answered"] for row in rows] + [row["n_arcs"] for row in published]
    lines = [["arcs that errors are of", *(f"{n:,}" for n in counts)]]
    lines.append(["origin", *(_origin(row) for row in (*rows, *published))])
    for name, label in HEADLINE.items():
        cells = [_headline_cell(row, name) for row in rows]
        lines.append([label, *cells, *(figure(row.get(name)) for row in published)])
    return csv_table(title, header, lines)


def _published_headline(study: Study) -> list[Row]:
    """First published row of each method."""
    rows: dict[str, Row] = {}
    for row in study.tables["published"]:
        rows.setdefault(row["method"], row)
    return list(rows.values())


def _published(row: Row) -> str:
    return f"{row['method']}, published"


def _origin(row: Row) -> str:
    return {"topocenter": "topocentre", "geocenter": "geocentre"}[row["origin"]]


def _headline_cell(row: Row, name: str) -> str:
    if row["answers"] == "OK" and name in ("solved", "ok"):
        return ""
    return figure(row[name], row[f"{name}_low"], row[f"{name}_high"])


# ---------------------------------------------------------------------- classical methods


def classical(study: Study) -> Iterable[str]:
    """Who answers at all, and the figures where all classical methods do, by origin."""
    rows = study.tables.get("classical", [])
    for subset in dict.fromkeys(row["subset"] for row in rows):
        yield _alike(study, subset, [row for row in rows if row["subset"] == subset])


def _alike(study: Study, subset: str, rows: Sequence[Row]) -> str:
    by_figure = {(row["method"], row["metric"]): row for row in rows}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    published = study.tables["published"]
    beside = [row for row in published if row["subset"] == subset != "all"]
    lines = []
    for name, label in CLASSICAL.items():
        values = [by_figure.get((method, name)) for method in methods]
        if any(values):
            cells = [figure(row["value"], row["low"], row["high"]) if row else "" for row in values]
            lines.append([label, *cells, *(figure(row.get(name)) for row in beside)])
    n_arcs = max(row["n_arcs"] + row["n_without"] for row in rows)
    header = ["", *methods, *(_published(row) for row in beside)]
    return csv_table(f"{SUBSETS[subset]}: {n_arcs:,}, {study.data['kind']}", header, lines)


# ---------------------------------------------------------------------- strata


def strata(study: Study) -> str:
    """Figures by tercile of what is true of an arc."""
    rows = study.tables["strata"]
    cells = [
        key for key in dict.fromkeys((r["axis"], r["stratum"]) for r in rows) if key[0] in AXES
    ]
    values = {(r["metric"], r["method"], r["axis"], r["stratum"]): r["value"] for r in rows}
    where = {(r["axis"], r["stratum"]): r for r in rows}
    units = {r["axis"]: r["axis_unit"] for r in rows}
    header = ["", "method", *(f"{AXES[axis]} [{units[axis]}]: {name}" for axis, name in cells)]
    lines = [["bounds", "", *(_bounds(where[cell]) for cell in cells)]]
    for metric, label in STRATA.items():
        for k, method in enumerate(dict.fromkeys(r["method"] for r in rows)):
            figures = [figure(values[metric, method, *cell]) for cell in cells]
            lines.append([label if k == 0 else "", method, *figures])
    return csv_table(f"By tercile, {study.data['kind']} arcs", header, lines)


def _bounds(row: Row) -> str:
    return f"| {number(row['lower'], 2)} –\n   | {number(row['upper'], 2)}"


def cross(study: Study, representation: str) -> str:
    """Two networks of a form on the cross of proper motion and true range, and its margins.

    A cell has the figure of both, of the arcs that enter it under both, and the interval of the
    difference.
    """
    methods = study.settings["methods"]
    of_form = [k for k in methods if methods[k].get("representation") == representation]
    pairs = (row for row in study.tables.get("cross", []))
    rows = [row for row in pairs if row["first"] in of_form and row["second"] in of_form]
    if not rows:
        return ""
    first, second = rows[0]["first"], rows[0]["second"]
    rows = [row for row in rows if (row["first"], row["second"]) == (first, second)]
    lines = []
    for cell in dict.fromkeys((r["eta"], r["rho"], r["n_cell"]) for r in rows):
        by_metric = {r["metric"]: r for r in rows if (r["eta"], r["rho"], r["n_cell"]) == cell}
        figures = [_both(by_metric[name]) for name in CROSS]
        lines.append([cell[0], cell[1], f"{cell[2]:,}", *figures])
    header = ["motion", "true range", "arcs", *CROSS.values()]
    kind = study.data["kind"]
    title = f"{second} → {first}, and the interval of the difference; {kind} arcs"
    return csv_table(title, header, lines)


def _both(row: Row) -> str:
    """Cell of the figures of two methods, with the interval of their difference below."""
    if row["difference"] is None:
        return number(float("nan"))
    text = f"| {number(row['value_second'])} → {number(row['value_first'])}"
    if row["low"] is None or row["low"] == row["high"]:
        return text
    # with the signs of a difference
    ends = (f"{'+' * (end > 0.0)}{bound(end)}" for end in (row["low"], row["high"]))
    return f"{text}\n   | {' … '.join(ends)}"


# ---------------------------------------------------------------------- the networks of the paper


def paper(study: Study) -> Iterable[str]:
    """Networks in the form of the paper beside the paper's: its table, and its cross."""
    methods = study.settings["methods"]
    of_form = [k for k in methods if methods[k].get("representation") == "paper"]
    headline_rows = study.tables["headline"]
    rows = [r for r in headline_rows if r["method"] in of_form and r["answers"] == "all"]
    published = [row for row in study.tables["published"] if row["subset"] == "all"]
    if not rows:
        return
    yield description(study)
    yield _headline(f"Networks in the form of the paper, {study.title}", rows, published)
    yield cross(study, "paper")


# ---------------------------------------------------------------------- intervals


def coverage(study: Study) -> str:
    """How often the truth was inside, and how wide intervals are."""
    rows = [row for row in _independent(study) if _is_listed(row, study)]
    places = dict.fromkeys((row["method"], row["source"], row["bin"]) for row in rows)
    by_level = {(r["method"], r["source"], r["bin"], r["level"]): r for r in rows}
    levels = sorted({row["level"] for row in rows})
    header = ["method", "calibration", "arcs", "n", "objects"]
    for level in levels:
        header += [f"{100.0 * level:g} %: inside, per arc", "per object", "upper / lower"]
    lines = []
    for method, source, label in places:
        coverages = [by_level[method, source, label, level] for level in levels]
        counts = [f"{coverages[0][name]:,}" for name in ("n_arcs", "n_objects")]
        cells = [
            cell
            for row in coverages
            for cell in (
                f"{100.0 * row['per_arc']:.1f}",
                f"{100.0 * row['per_object']:.1f}",
                number(row["median_ratio"]),
            )
        ]
        lines.append([method, SOURCES[source], label, *counts, *cells])
    return csv_table(f"Inside the interval [%], {study.data['kind']} arcs", header, lines)


def coverage_by_tercile(study: Study) -> str:
    """How often the truth was inside among the slow and fast, the short and long, the near and far.

    Calibrations know motion and length of an arc, not its range.
    """
    rows = _independent(study)
    by_bin = {(r["method"], r["source"], r["level"], r["stratum"], r["bin"]): r for r in rows}
    places = dict.fromkeys((row["method"], row["source"], row["level"]) for row in rows)
    strata_of_rows = {row["stratum"] for row in rows}
    axes = [axis for axis in ("eta", "span", "rho") if f"{axis} tercile" in strata_of_rows]
    cells = [(axis, name) for axis in axes for name in evaluation.AXES[axis].names]
    header = ["method", "calibration", "level", *(f"{AXES[axis]}: {name}" for axis, name in cells)]
    lines = []
    for place in places:
        method, source, level = place
        shares = [by_bin[(*place, f"{axis} tercile", name)]["per_arc"] for axis, name in cells]
        percents = [f"{100.0 * share:.1f}" for share in shares]
        lines.append([method, SOURCES[source], f"{100.0 * level:g} %", *percents])
    return csv_table(f"Inside by tercile [%], per arc, {study.data['kind']} arcs", header, lines)


def half_widths(study: Study) -> str:
    """Half widths by tercile of motion, by the construction of the package and of the paper."""
    rows = pd.DataFrame(study.tables.get("half_widths", []))
    if rows.empty:  # of a former version
        return ""
    frame = side_by_side(rows)
    title = f"Mean half widths of 68 % intervals, {study.data['kind']} arcs"
    return csv_table(title, list(frame), frame.to_numpy().tolist())


def scores(study: Study) -> Iterable[str]:
    """Interval scores of every method, beside how often and how wide its intervals are."""
    kind = study.data["kind"]
    yield _scores(f"Interval scores, {kind} arcs", study.tables.get("scores", []))
    near = study.tables.get("near", [])
    for limit in dict.fromkeys(row["below_au"] for row in near):
        rows = [row for row in near if row["below_au"] == limit]
        n = max(row["n_arcs"] for row in rows)
        title = f"For information: the {n:,} {kind} arcs of a true range below {limit} au"
        yield _scores(title, rows)


def _scores(title: str, rows: Sequence[Row]) -> str:
    """One row for each method, one column for each score."""
    by_figure = {(row["method"], row["metric"]): row for row in rows}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = (by_figure[method, name] for name in SCORES)
        lines.append([method, *(figure(row["value"], row["low"], row["high"]) for row in cells)])
    return csv_table(title, ["method", *SCORES.values()], lines) if lines else ""


def posteriors(study: Study) -> Iterable[str]:
    """Figures of posteriors by stratum, by decile, and for information by true range."""
    rows = study.tables.get("posteriors", [])
    header = ["method", "arcs", "n", *POSTERIORS.values()]
    titles = {True: "Posteriors", False: "For information: posteriors in bins of the true range"}
    for is_judged, title in titles.items():
        lines = []
        some = [row for row in rows if row["is_judged"] is is_judged]
        for cell in dict.fromkeys((row["method"], row["axis"], row["stratum"]) for row in some):
            method, axis, stratum = cell
            by_metric = {
                row["metric"]: row
                for row in some
                if (row["method"], row["axis"], row["stratum"]) == cell
            }
            unit = " au" if axis in ("median", "rho") else ""
            arcs = f"{POSTERIOR_AXES[axis]}: {stratum}{unit}" if axis != "all" else "all"
            figures = (by_metric[name] for name in POSTERIORS)
            cells = [figure(row["value"], row["low"], row["high"]) for row in figures]
            lines.append([method, arcs, f"{by_metric['crps']['n_arcs']:,}", *cells])
        if lines:
            yield csv_table(f"{title}, {study.data['kind']} arcs", header, lines)
    pit = study.tables.get("pit", [])
    lines = [
        [method, *(figure(r["percent"], r["low"], r["high"]) for r in pit if r["method"] == method)]
        for method in dict.fromkeys(row["method"] for row in pit)
    ]
    if lines:
        title = f"True ranges by decile of their posterior [%], {study.data['kind']} arcs"
        yield csv_table(title, ["method", *map(str, range(1, 11))], lines)


def statuses(study: Study) -> str:
    """Shares of the arcs by status of their answer."""
    rows = study.tables["status"]
    names = list(dict.fromkeys(row["status"] for row in rows))
    share = {(row["method"], row["status"]): number(row["percent"]) for row in rows}
    methods = dict.fromkeys(row["method"] for row in rows)
    lines = [[method, *(share.get((method, name), "") for name in names)] for method in methods]
    return csv_table(f"Status [%], {study.data['kind']} arcs", ["method", *names], lines)


def _independent(study: Study) -> list[Row]:
    """Rows of coverage, but for calibrations of the package on arcs that they may be made of."""
    simulated = study.data["kind"] == "simulated"
    rows = study.tables["coverage"]
    return [row for row in rows if not (simulated and row["source"] == "of the method")]


def _is_listed(row: Row, study: Study) -> bool:
    """Flag of a row of all arcs with an answer, or of a verdict where there are some of both."""
    if row["stratum"] != "verdict":
        return bool(row["stratum"] == "answered")
    answered = next(
        other["n_arcs"]
        for other in study.tables["coverage"]
        if other["stratum"] == "answered"
        and (other["method"], other["source"]) == (row["method"], row["source"])
    )
    return row["bin"] != "no answer" and 30 <= row["n_arcs"] <= answered - 30


# ---------------------------------------------------------------------- files


def parts(studies: Sequence[Study], of_posteriors: Sequence[Study]) -> dict[str, list[str]]:
    """Page parts by name of their file."""
    pieces = {
        "study_headline": [
            piece for s in studies for piece in (description(s), *headline(s), remarks(s))
        ],
        "study_classical": [piece for s in studies for piece in classical(s)],
        "study_strata": [*(strata(s) for s in studies), cross(studies[0], "invariant")],
        "study_paper": [piece for s in studies for piece in paper(s)],
        "study_coverage": [
            piece
            for s in studies
            for piece in (description(s), coverage(s), coverage_by_tercile(s), half_widths(s))
        ],
    }
    if of_posteriors:
        pieces["study_posterior"] = [
            piece
            for s in of_posteriors
            for piece in (description(s), *scores(s), statuses(s), *posteriors(s))
        ]
    return pieces


def main() -> None:
    """Write the page parts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("studies", nargs="+", type=Path, metavar="STUDY")
    parser.add_argument("--posteriors", nargs="+", default=[], type=Path, metavar="STUDY")
    parser.add_argument("--output", type=Path, default=GUIDE)
    arguments = parser.parse_args()
    studies = [Study.read(folder) for folder in arguments.studies]
    of_posteriors = [Study.read(folder) for folder in arguments.posteriors]
    for study in (*studies, *of_posteriors):
        published = study.tables["published"][0]
        if published["source"] != SOURCE or "subset" not in published:
            parser.error("a study of another version: make it anew")
    for name, pieces in parts(studies, of_posteriors).items():
        path = arguments.output / f"{name}.inc"
        head = ".. made by docs/tools/study_tables.py; do not edit\n"
        path.write_text("\n".join([head, *filter(None, pieces)]), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
