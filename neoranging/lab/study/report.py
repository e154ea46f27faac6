"""The page of a study: HTML that needs nothing else, from the template ``report.html.j2``.

What a reader must see first stands first: which arcs these are, what is suspicious, and the table
of all methods. The page has its figures inside; it prints as it reads.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pandas as pd
from markupsafe import Markup, escape

from neoranging.lab.study.checks import Remark
from neoranging.lab.study.half_widths import side_by_side as half_widths
from neoranging.lab.study.metrics import DENSITY_FLOOR
from neoranging.lab.study.published import SOURCE
from neoranging.lab.study.run import Study
from neoranging.lab.study.strata import AXES
from neoranging.lab.study.tables import side_by_side, with_interval
from neoranging.tables import number
from neoranging.webpage import environment

SECTIONS: Final[Mapping[str, str]] = {
    "arcs": "The arcs",
    "estimates": "Estimates against the truth",
    "orbits": "Orbits",
    "strata": "Where a method is good",
    "classical": "Classical methods",
    "intervals": "Intervals",
    "posteriors": "Posteriors",
    "cases": "Single objects",
    "figures": "All figures of merit",
    "made": "How this was made",
}
"""Sections of the page, in order."""


class Picture(NamedTuple):
    """A figure of a report."""

    name: str
    """Name of its files, without ending."""
    section: str
    """Key in `SECTIONS`."""
    caption: str
    path: Path | None
    """PNG file; None where it could not be drawn, for the reason that the caption gives."""

    @property
    def source(self) -> str:
        """Content of the file as an address."""
        content = self.path.read_bytes() if self.path else b""
        return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def render(study: Study, pictures: Sequence[Picture] = (), *, published: bool = True) -> str:
    """Page of a study as text.

    Parameters
    ----------
    study : Study
    pictures : sequence of Picture
        As of ``neoranging.lab.study.figures.draw.draw_study``.
    published : bool
        Show the figures of the literature below the methods.
    """
    bodies = _bodies(study)
    bodies["half_widths"] = half_widths(study.tables["half_widths"], published=published)
    by_section = {name: [p for p in pictures if p.section == name] for name in SECTIONS}
    templates = environment(
        "neoranging.lab.study",
        # D_SH and P_AR get their subscripts
        markup=lambda text: Markup(
            re.sub(r"\b([DP])_(SH|AR)\b", r"\1<sub>\2</sub>", str(escape(text)))
        ),
        setting=_setting,
        # columns of words are set left
        words=lambda column: any(text[:1].isalpha() for text in column),
    )
    return templates.get_template("page/report.html.j2").render(
        study=study,
        data=study.data,
        selection=study.data["selection"],
        alarms=_by_subject(remark for remark in study.remarks if remark.is_alarm),
        notes=_by_subject(remark for remark in study.remarks if not remark.is_alarm),
        groups=_COLUMNS,
        lines=list(_headline(study, published)),
        published=SOURCE if published else "",
        sections={
            name: head
            for name, head in SECTIONS.items()
            if bodies.get(name) is not None or by_section[name] or name == "intervals"
        },
        bodies=bodies,
        floor=DENSITY_FLOOR,
        pictures=by_section,
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _setting(value: Any) -> str:
    """Setting as text."""
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def _by_subject(remarks: Iterator[Remark]) -> dict[str, list[str]]:
    by_subject: dict[str, list[str]] = {}
    for remark in remarks:
        by_subject.setdefault(remark.subject, []).append(remark.text)
    return by_subject


# ---------------------------------------------------------------------- the table of methods

_COLUMNS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "answers": {"solved": ("any [%]", "high"), "ok": ("OK [%]", "")},
    "range": {
        "mae_rho": ("MAE [au]", "low"),
        "medae_rho": ("medAE [au]", "low"),
        "median_relative_error": ("relative", "low"),
        "median_relative_error_by_object": ("relative, by object", "low"),
        "median_log10_error": ("dex", "low"),
        "corr_rho": ("corr.", "high"),
        "spread_rho": ("spread ratio", ""),
    },
    "range-rate": {
        "mae_rho_dot": ("MAE [au/d]", "low"),
        "medae_rho_dot": ("medAE [au/d]", "low"),
        "corr_rho_dot": ("corr.", "high"),
        "spread_rho_dot": ("spread ratio", ""),
    },
    "admissible": {"p_ar": ("P_AR [%]", "high")},
    "D_SH to pseudo-truth": {
        "d_sh_pseudo": ("median", "low"),
        "d_sh_pseudo_below": ("< 0.2 [%]", "high"),
    },
    "near root": {"collapsed": ("< 0.001 au [%]", "")},
}
"""Heads of the columns, and where good values lie, by group and figure of merit."""


class _Cell(NamedTuple):
    """A cell with something small below."""

    text: str = ""
    small: str = ""
    is_bold: bool = False


class _Line(NamedTuple):
    """A row of the table of methods: its head, the arcs, and a cell for each figure."""

    head: _Cell
    arcs: _Cell
    cells: list[_Cell]
    kind: str = ""


def _headline(study: Study, published: bool) -> Iterator[_Line]:
    """Rows of all methods, and of the literature below them if asked for."""
    headline = study.tables["headline"]
    columns = {name: group for group, names in _COLUMNS.items() for name in names}
    best = _best(headline)
    for row in headline.to_dict("records"):
        is_all = row["answers"] == "all"
        pace = f", {row['n_arcs'] / row['seconds']:,.0f} arcs/s" if row["seconds"] > 0.0 else ""
        counts = f"{row['n_answered']:,}" + (f" of {row['n_arcs']:,}" if is_all else "")
        yield _Line(
            _Cell(row["method"], row["origin"] + pace, is_bold=True)
            if is_all
            else _Cell(f"{row['method']}, OK only"),
            _Cell(counts, f"{row['n_objects']:,} objects"),
            [
                _figure(row, name, is_all and row[name] == best.get(name))
                if is_all or group != "answers"
                else _Cell()
                for name, group in columns.items()
            ],
        )
    literature = study.tables["published"].drop_duplicates("method")
    for row in literature.to_dict("records") if published else ():
        yield _Line(
            _Cell(row["method"], SOURCE),
            _Cell(f"{row['n_arcs']:,}"),
            [_Cell(number(row[name])) if pd.notna(row.get(name)) else _Cell() for name in columns],
            "published",
        )


def _best(headline: pd.DataFrame) -> dict[str, float]:
    """Best value of each figure among the methods that answer nearly always, if there are some."""
    rivals = headline[(headline["answers"] == "all") & (headline["solved"] >= 95.0)]
    best = {}
    for names in _COLUMNS.values():
        for name, (_, better) in names.items():
            if better and rivals[name].count() >= 2:
                best[name] = rivals[name].max() if better == "high" else rivals[name].min()
    return best


def _figure(row: Mapping[Any, Any], name: str, is_best: bool) -> _Cell:
    """Figure with what its value must be read with."""
    value, low, high, n = (row[f"{name}{end}"] for end in ("", "_low", "_high", "_n_arcs"))
    bounds = [number(low, 2), number(high, 2)]
    small = [] if bounds[0] == bounds[1] else ["–".join(bounds)]
    if n not in (row["n_answered"], row["n_arcs"]):
        small.append(f"n {n:,}")
    if name == "p_ar":
        small.append(f"truth {number(row['p_ar_truth'])}")
    return _Cell(number(value), "\n".join(small), is_best)


# ---------------------------------------------------------------------- tables of the sections


def _with_count(row: Any) -> str:
    """Value of a row of figures; in a second line its interval and the arcs that enter."""
    bounds = with_interval(row).partition(" ")[2]
    return f"{number(row.value)}\n{bounds} n {row.n_arcs:,}"


def _bodies(study: Study) -> dict[str, Any]:
    """Tables by section: a frame, two of them, or frames by title; None of no numbers."""
    data, tables, methods = study.data, study.tables, study.settings["methods"]
    arcs = {
        "arcs": f"{data['n_arcs']:,}",
        "objects": f"{data['n_objects']:,}",
        "observations": f"{int(study.table.counts.sum()):,}",
        "object with most arcs": f"{data['largest']} ({data['n_largest']:,} arcs)",
        "nights, MJD": f"{data['first_night']:.0f} to {data['last_night']:.0f}",
    }
    strata = tables["strata"]
    strata = strata[strata["metric"].isin(["median_log10_error", "p_ar", "d_sh_pseudo"])]
    ends = zip(strata["lower"], strata["upper"], strata["axis_unit"], strict=True)
    bounds = [f"{number(low)} – {number(high)} {unit}" for low, high, unit in ends]
    index = ("axis", "stratum", "bounds", "label", "unit")
    classical = None
    if "classical" in tables:
        classical = {}
        for subset, rows in tables["classical"].groupby("subset", sort=False):
            arcs_of = f"Arcs that all classical methods {str(subset).replace('solved', 'solve', 1)}"
            title = "All arcs" if subset == "all" else arcs_of
            classical[title] = side_by_side(rows, cell=_with_count)
    status = tables["status"]
    by_status = {
        "method": status["method"],
        "status": status["status"],
        "arcs": status["n_arcs"].map("{:,}".format),
        "[%]": status["percent"].map("{:.2f}".format),
        "with a range": status["n_answered"].map("{:,}".format),
        "meaning": status["meaning"],
    }
    settings = [
        ", ".join(f"{name} {_setting(value)}" for name, value in identity.items())
        for identity in methods.values()
    ]
    return {
        "arcs": pd.DataFrame({"": arcs.keys(), "value": arcs.values()}),
        "strata": side_by_side(strata.assign(bounds=bounds), index, _with_count),
        "classical": classical,
        "scores": side_by_side(tables["scores"], cell=_with_count),
        "intervals": _intervals(tables["coverage"]),
        "posteriors": _posteriors(tables["posteriors"]),
        "cases": _cases(tables["cases"]),
        "figures": (side_by_side(tables["figures"], cell=_with_count), pd.DataFrame(by_status)),
        "made": pd.DataFrame({"method": methods.keys(), "what it is": settings}),
    }


def _intervals(coverage: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Coverage of all arcs, and by bin; a row has the values of all levels."""
    if coverage.empty:
        return None
    key = ["method", "source", "stratum", "bin"]
    levels = [rows for _, rows in coverage.groupby("level", sort=False)]
    wide = levels[0][[*key, "n_arcs", "n_objects"]]
    for rows in levels:
        percent = f"{100.0 * rows['level'].iloc[0]:g} %"
        columns: dict[str, Any] = {
            f"{percent}: inside, per arc [%]": [f"{100.0 * x:.1f}" for x in rows["per_arc"]],
            f"{percent}: per object [%]": [f"{100.0 * x:.1f}" for x in rows["per_object"]],
            f"{percent}: median width [au]": rows["median_width_au"].map(number),
            f"{percent}: median upper / lower": rows["median_ratio"].map(number),
        }
        wide = wide.merge(rows[key].assign(**columns), on=key, how="left")
    of_all = wide["stratum"].isin(["all", "answered"])
    of_all |= (wide["stratum"] == "verdict") & (wide["source"] == "crosswise")
    bins = wide["bin"].astype(str)
    arcs = bins.where(wide["stratum"] == bins, wide["stratum"] + ": " + bins)
    counts = {name: wide[name].map("{:,}".format) for name in ("n_arcs", "n_objects")}
    wide = wide.assign(stratum=arcs, **counts).drop(columns="bin").fillna("")
    wide = wide.rename(
        columns={
            "source": "calibration",
            "stratum": "arcs",
            "n_arcs": "n arcs",
            "n_objects": "n objects",
        }
    )
    return wide[of_all], wide[~of_all]


_POSTERIORS: Final[Mapping[str, str]] = {
    "inside_68": "68 %: equal tails [%]",
    "region_68": "68 %: densest [%]",
    "inside_95": "95 %: equal tails [%]",
    "region_95": "95 %: densest [%]",
    "median_relative_error": "median relative error",
    "ratio_68": "68 %: upper / lower",
    "interval_score_95": "interval score, 95 % [dex]",
    "crps": "CRPS [dex]",
    "nats": "−ln p [nat]",
    "floored": "off it [%]",
}
"""Heads of the columns by figure of merit."""


def _posteriors(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Figures of posteriors by stratum, and in bins of the true range; a line for each bin."""
    if rows.empty:
        return None
    lines: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for key, of_bin in rows.groupby(["method", "axis", "stratum"], sort=False):
        method, axis, stratum = map(str, cast("tuple[Any, ...]", key))
        label = "" if axis == "all" else f"{AXES[axis].label}: "
        unit = f" {AXES[axis].unit}" if axis in ("median", "rho") else ""
        line = {"method": method, "arcs": f"{label}{stratum}{unit}"}
        line["n"] = f"{of_bin['n_arcs'].max():,}"
        row: Any
        for row in of_bin[of_bin["metric"].isin(_POSTERIORS)].itertuples():
            value, _, bounds = with_interval(row).partition(" ")
            line[_POSTERIORS[row.metric]] = f"{value}\n{bounds}" if bounds else value
        lines[bool(of_bin["is_judged"].all())].append(line)
    judged, by_truth = (pd.DataFrame(of_kind) for of_kind in lines.values())
    return judged, by_truth


def _cases(rows: pd.DataFrame) -> pd.DataFrame | None:
    """Counts of the true ranges of single objects within their intervals."""
    if rows.empty:
        return None
    groups = rows.groupby(["method", "designation"], sort=False)
    counts = groups.agg(
        n=("rho_true_au", "size"),
        answered=("rho_au", "count"),
        bounded=("low_au", "count"),
        inside=("inside", "sum"),
    ).reset_index()
    return pd.DataFrame(
        {
            "method": counts["method"],
            "object": counts["designation"],
            "arcs": counts["n"].map("{:,}".format),
            "answered": counts["answered"].map("{:,}".format),
            "truth in the 68 % interval": [
                f"{inside} of {n}" for inside, n in zip(counts.inside, counts.bounded, strict=True)
            ],
        }
    )
