"""The tables of a report, section by section."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from neoranging.lab.study.cases import Cases
from neoranging.lab.study.page import number, table_of
from neoranging.lab.study.report_opening import plain
from neoranging.lab.study.run import Study
from neoranging.lab.study.tables import pivot, with_interval


def arcs(study: Study) -> str:
    """What the arcs are, in numbers."""
    data = study.data
    rows = [
        {"": "arcs", "value": f"{data['n_arcs']:,}"},
        {"": "objects", "value": f"{data['n_objects']:,}"},
        {"": "observations", "value": f"{int(study.table.counts.sum()):,}"},
        {"": "object with most arcs", "value": f"{data['largest']} ({data['n_largest']:,} arcs)"},
        {
            "": "nights, MJD",
            "value": f"{data['first_night']:.0f} to {data['last_night']:.0f}",
        },
    ]
    return table_of(rows)


def strata(study: Study) -> str:
    """Figures of merit by stratum."""
    kept = [
        row | {"bounds": f"{number(row['lower'])} – {number(row['upper'])} {row['axis_unit']}"}
        for row in study.tables["strata"]
        if row["metric"] in ("median_log10_error", "p_ar", "d_sh_pseudo")
    ]
    index = ("axis", "stratum", "bounds", "label", "unit")
    shown = pivot(kept, index, value=_with_count)
    return _details("Numbers by stratum, with arcs that enter", table_of(shown))


def _with_count(row: Mapping[str, Any]) -> str:
    bounds = with_interval(row).partition(" ")[2]
    return f"{number(row['value'])}\n{bounds} n {row['n_arcs']:,}"


def classical(study: Study) -> str:
    """Classical methods on all arcs, and all methods on those solved alike."""
    rows = study.tables.get("classical", [])
    tables = []
    for subset in dict.fromkeys(row["subset"] for row in rows):
        mine = [row for row in rows if row["subset"] == subset]
        shown = pivot(mine, value=_with_count)
        title = "All arcs" if subset == "all" else f"Arcs that all classical methods {subset}"
        tables.append(f"<h3>{escape(title.replace('methods solved', 'methods solve'))}</h3>")
        tables.append(table_of(shown))
    return "".join(tables)


_INTERVALS_NOTE: Final = (
    "Crosswise: objects are dealt into folds and each fold has its intervals from the arcs of all "
    "other objects. Per arc is what the intervals promise; per object counts every object once. "
    "Intervals are clipped to the admissible range; arcs without an answer have all of it and "
    "count under 'all'. 'Of the method' is the calibration that comes with it, which may have been "
    "made of these very arcs."
)


def intervals(study: Study) -> str:
    """Whether intervals hold, and how wide they are."""
    rows = _by_level(study.tables["coverage"])
    if not rows:
        return "<p>No method has intervals.</p>"
    main = [
        row
        for row in rows
        if row["stratum"] in ("all", "answered")
        or (row["stratum"] == "verdict" and row["source"] == "crosswise")
    ]
    rest = [row for row in rows if row not in main]
    return (
        f'<p class="small">{escape(_INTERVALS_NOTE)}</p>'
        + table_of([_coverage_row(row) for row in main])
        + _details(
            "By decile and tercile of proper motion, by tercile of arc length and of true range",
            table_of([_coverage_row(row) for row in rest]),
        )
    )


def _by_level(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one division with the coverage at every level."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("method", "source", "stratum", "bin"))
        found.setdefault(key, {**row, "levels": {}})["levels"][row["level"]] = row
    return list(found.values())


def _coverage_row(row: Mapping[str, Any]) -> dict[str, str]:
    told = {
        "method": row["method"],
        "calibration": row["source"],
        "arcs": row["bin"] if row["stratum"] == row["bin"] else f"{row['stratum']}: {row['bin']}",
        "n arcs": f"{row['n_arcs']:,}",
        "n objects": f"{row['n_objects']:,}",
    }
    for level, each in row["levels"].items():
        percent = f"{100.0 * level:g} %"
        told |= {
            f"{percent}: inside, per arc [%]": f"{100.0 * each['per_arc']:.1f}",
            f"{percent}: per object [%]": f"{100.0 * each['per_object']:.1f}",
            f"{percent}: median width [au]": number(each["median_width_au"]),
            f"{percent}: median upper / lower": number(each["median_ratio"]),
        }
    return told


def cases(study: Study) -> str:
    """How often single objects lie in their intervals."""
    shown = study.cases
    if shown is None:
        return ""
    which = (
        "drawn at random from the part of the set that nothing was trained, chosen or calibrated on"
        if shown.are_unseen
        else "drawn at random from the arcs of the study, with crosswise intervals"
    )
    rows = [
        _case(shown, each.attrs["method"], name) for each in shown.scored for name in shown.objects
    ]
    return f"<p>Objects {which}.</p>" + _details("Counts by object", table_of(rows))


def _case(shown: Cases, method: str, name: str) -> dict[str, str]:
    mine = [row for row in shown.rows if (row["method"], row["designation"]) == (method, name)]
    given = [row for row in mine if not math.isnan(row["low_au"])]
    answered = sum(not math.isnan(row["rho_au"]) for row in mine)
    return {
        "method": method,
        "object": name,
        "arcs": f"{len(mine):,}",
        "answered": f"{answered:,}",
        "truth in the 68 % interval": f"{sum(row['inside'] for row in given)} of {len(given)}",
    }


def figures(study: Study) -> str:
    """Every figure of merit, and the status of the answers."""
    return (
        '<p class="small">Value, 95 % interval of a bootstrap by object, and the number of arcs '
        "that enter.</p>"
        + table_of(pivot(study.tables["figures"], value=_with_count))
        + "<h3>Status of the answers</h3>"
        + table_of(
            [
                {
                    "method": row["method"],
                    "status": row["status"],
                    "arcs": f"{row['n_arcs']:,}",
                    "[%]": f"{row['percent']:.2f}",
                    "with a range": f"{row['n_answered']:,}",
                    "meaning": row["meaning"],
                }
                for row in study.tables["status"]
            ]
        )
    )


def made(study: Study) -> str:
    """What it takes to make the study again."""
    rows = [
        {"method": label, "what it is": ", ".join(f"{k} {plain(v)}" for k, v in identity.items())}
        for label, identity in study.settings["methods"].items()
    ]
    s, selection = study.settings, study.data["selection"]
    told = (
        f"neoranging {s['neoranging']}; {s['n_boot']} resamples by object for 95 % intervals; "
        f"{s['folds']} folds by object for crosswise intervals; seed {selection['seed']}. Every "
        "number is in study.json and tables/, every figure as PNG and PDF in figures/."
    )
    return f"<p>{escape(told)}</p>" + table_of(rows)


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
