"""The first screen of a report: which arcs, what is suspicious, and the table of all methods."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from neoranging.lab.study.checks import Remark
from neoranging.lab.study.page import Cell, markup, number
from neoranging.lab.study.published import SOURCE
from neoranging.lab.study.run import Study


def what(study: Study) -> str:
    """The arcs in one line."""
    data, selection = study.data, study.data["selection"]
    kind = data["kind"]
    told = [
        f"<b>{data['n_arcs']:,}</b> arcs of <b>{data['n_objects']:,}</b> objects",
        f"set <b>{escape(data['set'])}</b>, "
        + (f"split <b>{escape(selection['split'])}</b>" if selection["split"] else "all splits")
        + f" ({data['n_in_set']:,} arcs in the set)",
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
    _Column("range", "spread ratio", "spread_rho"),
    _Column("range-rate", "medAE [au/d]", "medae_rho_dot", "low"),
    _Column("admissible", "P_AR [%]", "p_ar", "high"),
    _Column("D_SH to pseudo-truth", "median", "d_sh_pseudo", "low"),
    _Column("D_SH to pseudo-truth", "< 0.2 [%]", "d_sh_pseudo_below", "high"),
    _Column("near root", "< 0.001 au [%]", "collapsed"),
)

_NOTE: Final = (
    "Small: 95 % interval of a bootstrap by object; number of arcs where it is not that of the "
    "answers; P_AR of the true range on the same arcs. Errors are medians of |estimate - truth| "
    "over answered arcs whatever their status; 'OK only' are the answers that a method vouches "
    "for. D_SH is of arcs on which both orbits are elliptic. Each truth counts from the origin of "
    "its method. Bold: best of the methods that answer at least 95 % of the arcs."
)

_PUBLISHED_NOTE: Final = (
    f" Grey rows ({SOURCE}): other arcs, real ones, from the geocentre; classical errors there are "
    "of the 23,298 arcs that both classical methods solve. For orientation, not for ranking."
)


def headline(study: Study, published: bool) -> str:
    """Table of all methods, and of the literature below them if asked for."""
    rows = study.tables["headline"]
    best = {column.metric: _best(rows, column) for column in _COLUMNS if column.better}
    lines = [_headline_row(row, best) for row in rows]
    if published:
        lines += [_published_row(row) for row in study.tables["published"]]
    note = _NOTE + _PUBLISHED_NOTE * published
    groups = [("method", 1), ("arcs", 1)]
    for column in _COLUMNS:
        if groups[-1][0] == column.group:
            groups[-1] = (column.group, groups[-1][1] + 1)
        else:
            groups.append((column.group, 1))
    top = "".join(f'<th colspan="{n}">{markup(name)}</th>' for name, n in groups)
    heads = ["", "answered / asked", *(column.head for column in _COLUMNS)]
    below = "".join(f"<th>{markup(head)}</th>" for head in heads)
    return (
        '<div class="wide"><table class="headline"><thead>'
        f'<tr class="groups">{top}</tr><tr>{below}</tr></thead><tbody>'
        f"{''.join(lines)}</tbody></table></div>\n"
        f'<p class="small">{markup(note)}</p>'
    )


def _best(rows: Sequence[Mapping[str, Any]], column: _Column) -> float:
    """Best value of the methods that answer nearly always."""
    values = [
        row[column.metric]
        for row in rows
        if row["answers"] == "all" and row["solved"] >= 95.0 and not math.isnan(row[column.metric])
    ]
    if len(values) < 2:
        return math.nan
    return max(values) if column.better == "high" else min(values)


def _headline_row(row: Mapping[str, Any], best: Mapping[str, float]) -> str:
    is_whole = row["answers"] == "all"
    cells = [
        _figure(row, column.metric, best) if is_whole or column.group != "answers" else Cell("")
        for column in _COLUMNS
    ]
    asked = f"{row['n_answered']:,}" + (f" of {row['n_arcs']:,}" if is_whole else "")
    who = Cell(row["method"], f"{row['origin']}{_pace(row)}", True)
    if not is_whole:
        who = Cell(f"{row['method']}, OK only")
    heads = (who.html("th"), Cell(asked, f"{row['n_objects']:,} objects").html())
    return f"<tr>{''.join(heads)}{''.join(cell.html() for cell in cells)}</tr>"


def _pace(row: Mapping[str, Any]) -> str:
    return f", {row['n_arcs'] / row['seconds']:,.0f} arcs/s" if row["seconds"] > 0.0 else ""


def _figure(row: Mapping[str, Any], name: str, best: Mapping[str, float]) -> Cell:
    value, low, high, n = (row[f"{name}{end}"] for end in ("", "_low", "_high", "_n_arcs"))
    bounds = [number(low, 2), number(high, 2)]
    small = [] if bounds[0] == bounds[1] else ["–".join(bounds)]
    if n not in (row["n_answered"], row["n_arcs"]):
        small.append(f"n {n:,}")
    if name == "p_ar":
        small.append(f"truth {number(row['p_ar_truth'])}")
    return Cell(
        number(value), "\n".join(small), row["answers"] == "all" and value == best.get(name)
    )


def _published_row(row: Mapping[str, Any]) -> str:
    cells = [
        Cell(number(row[column.metric]) if column.metric in row else "", "").html()
        for column in _COLUMNS
    ]
    heads = (Cell(row["method"], SOURCE).html("th"), Cell(f"{row['n_arcs']:,}").html())
    return f'<tr class="published">{"".join(heads)}{"".join(cells)}</tr>'
