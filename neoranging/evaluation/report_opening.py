"""The first screen of a report: which arcs, what is suspicious, and the table of all methods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from neoranging.evaluation.checks import Remark
from neoranging.evaluation.page import Cell, markup, number
from neoranging.evaluation.published import SOURCE
from neoranging.evaluation.study import Study

__all__ = ["headline", "plain", "remarks", "what"]


def what(study: Study) -> str:
    """The arcs in one line."""
    data, selection = study.data, study.data["selection"]
    kind = data["kind"]
    told = [
        f"<b>{data['n_arcs']:,}</b> arcs of <b>{data['n_objects']:,}</b> objects",
        f"set <b>{escape(data['set'])}</b>, "
        + (f"split <b>{escape(selection['split'])}</b>" if selection["split"] else "all splits"),
        f"of {data['n_in_set']:,} arcs",
    ]
    if selection["cap"]:
        told.append(f"at most <b>{selection['cap']}</b> arcs of an object, drawn at random")
    if selection["max_arcs"]:
        told.append(f"at most {selection['max_arcs']:,} arcs, of whole objects drawn at random")
    if data["n_close"]:
        told.append(f"{data['n_close']:,} of them resampled to pass near the Earth")
    settings = ", ".join(f"{k} {plain(v)}" for k, v in data["settings"].items() if k != "kind")
    badge = f'<span class="badge {kind.split()[0]}">{escape(kind.upper())} DATA</span>'
    return (
        f'<p class="what">{badge} {"; ".join(told)}</p>\n<p class="settings">{escape(settings)}</p>'
    )


def plain(value: Any) -> str:
    """Setting as text."""
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def remarks(study: Study) -> str:
    """Alarms and remarks, a line for each subject."""
    alarms, notes = (
        [r for r in study.remarks if r.is_alarm is is_alarm] for is_alarm in (True, False)
    )
    found = [
        f'<div class="{kind}" role="note"><b>{title}</b><ul>{_by_subject(mine)}</ul></div>'
        for kind, title, mine in (
            ("alarm", "&#9888; Probably broken", alarms),
            ("note", "Read the figures with this in mind", notes),
        )
        if mine
    ]
    if not alarms:
        found.insert(
            0,
            '<div class="fine">No sign of swapped units, shifted labels, constant answers or '
            "answers without information.</div>",
        )
    return "\n".join(found)


def _by_subject(remarks: Iterable[Remark]) -> str:
    by_subject: dict[str, list[str]] = {}
    for remark in remarks:
        by_subject.setdefault(remark.subject, []).append(escape(remark.text))
    return "".join(
        f"<li><b>{escape(subject)}</b>: {'; '.join(texts)}</li>"
        for subject, texts in by_subject.items()
    )


class _Column(NamedTuple):
    group: str
    head: str
    metric: str
    better: str = ""


_COLUMNS: Final = (
    _Column("answers", "any [%]", "solved", "high"),
    _Column("answers", "OK [%]", "ok"),
    _Column("range", "medAE [au]", "medae_rho", "low"),
    _Column("range", "relative", "median_relative_error", "low"),
    _Column("range", "relative, by object", "median_relative_error_by_object", "low"),
    _Column("range", "dex", "median_log10_error", "low"),
    _Column("range", "corr.", "corr_rho", "high"),
    _Column("range", "spread", "spread_rho"),
    _Column("range-rate", "medAE [au/d]", "medae_rho_dot", "low"),
    _Column("admissible", "P_AR [%]", "p_ar", "high"),
    _Column("admissible", "truth [%]", "p_ar_truth"),
    _Column("D_SH to pseudo-truth", "elliptic [%]", "elliptic_pseudo"),
    _Column("D_SH to pseudo-truth", "median", "d_sh_pseudo", "low"),
    _Column("D_SH to pseudo-truth", "< 0.2 [%]", "d_sh_pseudo_below", "high"),
    _Column("roots", "< 0.001 au [%]", "collapsed"),
)

_HEADLINE_NOTE: Final = (
    "Small: 95 % interval of a bootstrap by object, or the number of arcs a figure stands on where "
    "that is not the number answered. Errors are medians of |estimate - truth|, of answered arcs "
    "whatever their status; D_SH is of arcs on which both orbits are elliptic. Each truth counts "
    "from the origin of its method. Bold: best of the methods that answer at least 95 % of the "
    f"arcs. Grey rows ({SOURCE}): other arcs, real ones, from the geocentre; classical errors of "
    "the 23,298 arcs that both classical methods solve. For orientation, not for ranking."
)


def headline(study: Study, published: bool) -> str:
    """Table of all methods, and of the literature below them if asked for."""
    rows = study.tables["headline"]
    best = {column.metric: _best(rows, column) for column in _COLUMNS if column.better}
    lines = [_headline_row(row, best) for row in rows]
    if published:
        lines += [_published_row(row) for row in study.tables["published"]]
    groups = [("method", 1), ("arcs", 1)]
    for column in _COLUMNS:
        if groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    top = "".join(f'<th colspan="{n}">{escape(name)}</th>' for name, n in groups)
    heads = ["", "answered / asked", *(column.head for column in _COLUMNS)]
    below = "".join(f"<th>{markup(head)}</th>" for head in heads)
    return (
        '<div class="wide"><table class="headline"><thead>'
        f'<tr class="groups">{top}</tr><tr>{below}</tr></thead><tbody>'
        f"{''.join(lines)}</tbody></table></div>\n"
        f'<p class="small">{markup(_HEADLINE_NOTE)}</p>'
    )


def _best(rows: Sequence[Mapping[str, Any]], column: _Column) -> float:
    """Best value of the methods that answer nearly always."""
    values = [
        row[column.metric]
        for row in rows
        if row["solved"] >= 95.0 and not math.isnan(row[column.metric])
    ]
    if len(values) < 2:
        return math.nan
    return max(values) if column.better == "high" else min(values)


def _headline_row(row: Mapping[str, Any], best: Mapping[str, float]) -> str:
    cells = []
    for column in _COLUMNS:
        name = column.metric
        value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
        n = row[f"{name}_n_arcs"]
        small = "" if math.isnan(low) else f"{number(low)} – {number(high)}"
        if n not in (row["n_answered"], row["n_arcs"]):
            small += f"{'; ' if small else ''}n {n:,}"
        bold = value == best.get(name)
        cells.append(Cell(number(value), small, bold).html())
    speed = row["arcs_per_s"]
    pace = "" if math.isnan(speed) else f", {speed:,.0f} arcs/s"
    small = f"from the {row['origin']}{pace}"
    asked = f"{row['n_answered']:,} / {row['n_arcs']:,}"
    heads = (
        Cell(row["method"], small, True).html("th"),
        Cell(asked, f"{row['n_objects']:,} objects").html(),
    )
    return f"<tr>{''.join(heads)}{''.join(cells)}</tr>"


def _published_row(row: Mapping[str, Any]) -> str:
    cells = [
        Cell(number(row[column.metric]) if column.metric in row else "", "").html()
        for column in _COLUMNS
    ]
    heads = (Cell(row["method"], SOURCE).html("th"), Cell(f"{row['n_arcs']:,}").html())
    return f'<tr class="published">{"".join(heads)}{"".join(cells)}</tr>'
