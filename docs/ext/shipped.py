"""Networks and calibrations of the package, as tables made of the very files.

``.. model-cards::``
    A section for each network: what it is, how far off it is, which arcs it knows.
``.. calibrations::``
    A row for each calibration: what it was made of, and how wide its intervals are.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import statistics
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import neoranging
from neoranging import Calibration
from neoranging.lab.study import METRICS
from neoranging.tables import number

DATA = Path(neoranging.__file__).parent / "data"
FIGURES = "value, low, high"
LEVELS = (0.68, 0.95)
ENDS = ("slow, short", "fast, long")


class ModelCards(SphinxDirective):
    """Sections of all networks of the package."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each model card."""
        cards = sorted((DATA / "weights").glob("*.json"))
        if not cards:
            text = "No weights come with this version of the package."
            return [nodes.paragraph(text=text)]
        for path in cards:
            self.env.note_dependency(str(path))
        text = "\n".join(_section(path) for path in cards)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Calibrations(SphinxDirective):
    """Table of all calibrations of the package."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        files = sorted((DATA / "calibration").glob("*.json"))
        for path in files:
            self.env.note_dependency(str(path))
        rows = [row for path in files for row in _calibrated(path)]
        header = ["calibration", "of", "arcs", "n", "bins", "half width in"]
        header += [f"{100.0 * x:g} %: {end}" for x in LEVELS for end in ENDS]
        origins = {_made_of(Calibration.read(path).description) for path in files}
        text = "\n".join([_table("", header, rows), *(f"Made of {origin}." for origin in origins)])
        return self.parse_text_to_nodes(text)


# ---------------------------------------------------------------------- model cards


def _section(path: Path) -> str:
    card = json.loads(path.read_text(encoding="utf-8"))
    weights = path.with_suffix(".safetensors")
    title = f"``{path.stem}``"
    parts = [
        f"{title}\n{'-' * len(title)}",
        _table("What it is", ["", ""], _facts(card, weights)),
        *_figures(card["metrics"]),
        *_seeds(card),
        _domain(card["domain"]),
    ]
    return "\n\n".join(parts)


def _facts(card: Mapping[str, Any], weights: Path) -> Iterable[Sequence[str]]:
    network, config = card["config"]["network"], card["config"]
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    trunk = network["trunk"]
    if trunk == "residual":
        trunk = f"residual, {network['blocks']} blocks of {network['width']}"
    else:
        trunk = "-".join(map(str, network["widths"]))
    yield "model", f"{card['model']}, representation {card['representation']}"
    yield (
        "ranges count from",
        {"topocenter": "the observer", "geocenter": "the geocentre"}[card["origin"]],
    )
    yield (
        "network",
        f"{trunk}, {network['activation']}; output {network['output']}; "
        f"{_n_parameters(weights):,} parameters",
    )
    yield "trained on", _arcs(card["train"])
    yield "chosen by", _arcs(card["validation"])
    if "command" in card:
        yield "made by", f"``{_without_places(card['command'])}``"
    yield "recipe", _recipe(config)
    yield (
        "epochs",
        f"{card['epochs_done']} of at most {config['epochs']}, the best {card['best_epoch']}; "
        f"{card['seconds'] / 60.0:.0f} min on {card['device']}; {card['finished'][:10]}",
    )
    yield "versions", f"neoranging {card['neoranging']}, torch {card['torch']}"
    if (history := weights.with_suffix(".csv")).exists():
        yield "history", f":download:`{history.name} </../neoranging/data/weights/{history.name}>`"
    yield (
        "file",
        f"{weights.name}, {weights.stat().st_size / 1e6:.1f} MB, SHA-256 ``{digest[:16]}``",
    )


def _n_parameters(weights: Path) -> int:
    """Numbers in a file of safetensors, by its own head."""
    with weights.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(size))
    return sum(math.prod(x["shape"]) for name, x in head.items() if name != "__metadata__")


def _arcs(part: Mapping[str, Any]) -> str:
    return f"{part['n_arcs']:,} arcs of {part['n_objects']:,} objects of {_set(part['settings'])}"


def _set(settings: Mapping[str, Any]) -> str:
    options = {k: v for k, v in settings.items() if v not in (None, [], "") and k != "kind"}
    return f"a {settings.get('kind', 'set')} ({_listed(options)})"


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())


def _recipe(config: Mapping[str, Any]) -> str:
    apart = ("model", "network", "epochs", "weights")
    options = {name: value for name, value in config.items() if name not in apart}
    terms = _listed(config["weights"]) if config["model"] == "pinn" else ""
    return _listed(options) + (f"; terms of the loss: {terms}" if terms else "")


def _without_places(command: str) -> str:
    """Drop from paths what belongs to the machine that trained."""
    return shlex.join(Path(word).name if "/" in word else word for word in shlex.split(command))


def _figures(metrics: Mapping[str, Any]) -> Iterable[str]:
    """Figures on arcs never trained on; below, those that the best epoch was chosen by."""
    tests = {name: part for name, part in metrics.items() if FIGURES in part}
    if tests:
        yield _table("How far off it is", ["", *tests], _test_rows(tests))
    rows = [
        (name, figure.replace("_", " "), number(value))
        for name, part in metrics.items()
        if name not in tests and name != "train"
        for figure, value in part.items()
    ]
    if rows:
        yield _table("By which its epoch was chosen", ["arcs", "figure", "value"], rows)


def _test_rows(tests: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    yield ["arcs", *(f"{part['n_arcs']:,}" for part in tests.values())]
    yield ["objects", *(f"{part['n_objects']:,}" for part in tests.values())]
    yield ["at most of one object", *(str(part["cap"] or "all") for part in tests.values())]
    for name in dict.fromkeys(name for part in tests.values() for name in part[FIGURES]):
        yield [_label(name), *(_interval(f[FIGURES].get(name)) for f in tests.values())]


def _seeds(card: Mapping[str, Any]) -> Iterable[str]:
    """Figures of all trainings that differ in their seed, and their standard deviation."""
    entries = card.get("seeds", {})
    if len(entries) < 2:
        return
    shipped = str(card["config"]["seed"])
    names = [f"seed {seed}{' (shipped)' * (seed == shipped)}" for seed in entries]
    rows = [["best epoch", *(str(entry["best_epoch"]) for entry in entries.values()), ""]]
    columns = [
        {"validation loss": entry["validation_loss"]} | entry.get("twin, test", {})
        for entry in entries.values()
    ]
    for name in columns[0]:
        values = [column[name] for column in columns]
        label = _label(name) if name in METRICS else name
        spread = number(statistics.stdev(values), 2)
        rows.append([label, *(number(value, 4) for value in values), spread])
    yield _table("Spread over seeds", ["", *names, "standard deviation"], rows)


def _label(figure: str) -> str:
    metric = METRICS[figure]
    unit = f" [{metric.unit}]" if metric.unit else ""
    return metric.label.replace("|", r"\|") + unit  # not a substitution


def _interval(figure: Sequence[float] | None) -> str:
    if figure is None:
        return ""
    value, low, high = figure
    if number(low) == number(high):
        return number(value)
    return f"| {number(value)}\n   | {number(low)} – {number(high)}"


def _domain(domain: Mapping[str, Sequence[float]]) -> str:
    rows = [(f"``{name}``", f"{low:.4g}", f"{high:.4g}") for name, (low, high) in domain.items()]
    return _table("Which arcs it knows", ["feature", "from", "to"], rows)


# ---------------------------------------------------------------------- calibrations


def _calibrated(path: Path) -> Iterable[Sequence[str]]:
    calibration = Calibration.read(path)
    content = calibration.to_json()
    for of in calibration.quantities:
        for group in content["groups"]:
            counts = group["n_arcs"]
            if sum(counts) >= 30:
                ok = group["verdict"] == "ok"
                unit = _unit(calibration.score, ok, of)
                yield (
                    path.stem,
                    of.replace("_", "-"),
                    "OK" if ok else "not OK",
                    *(f"{sum(counts):,}", str(len(counts)), unit),
                    *(_width(w, unit) for w in _widths(calibration, group, ok, of)),
                )


def _widths(
    calibration: Calibration, group: Mapping[str, Any], ok: bool, of: str
) -> Iterable[float]:
    """Half widths at each level: shortest arcs of the slowest bin, longest of the fastest."""
    from astropy import units as u

    edges = group["proper_motion_edges_rad_d"] or [1.0]
    motion, length = [0.5 * edges[0], 2.0 * edges[-1]] * u.rad / u.d, [0.0, 1e3] * u.d
    widths = (calibration.half_width(motion, length, ok, level, of=of) for level in LEVELS)
    return (x for row in widths for x in row.tolist())


def _unit(score: str, ok: bool, of: str) -> str:
    if ok and "standard" in score:
        return "relative errors" if of == "range" and score[:3] == "log" else "standard errors"
    if of == "range_rate":
        return "au/d"
    return "au" if score == "absolute" else "factor"


def _width(value: float, unit: str) -> str:
    return number(math.exp(value)) if unit == "factor" else number(value)


def _made_of(description: Mapping[str, Any]) -> str:
    counts = f"{description['n_arcs']:,} arcs of {description['n_objects']:,} objects"
    return f"{counts}, the part ``{description['split']}`` of {_set(description['set'])}"


# ---------------------------------------------------------------------- pages


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    named = any(header)
    lines = [
        ", ".join(f'"{cell}"' for cell in row) for row in ([header] if named else []) + [*rows]
    ]
    head = "   :header-rows: 1\n" if named else "   :widths: 16 84\n"
    kind = "   :class: numbers\n" if named else ""
    body = "\n".join(f"   {line}" for line in lines)
    return f".. csv-table:: {title}\n{head}{kind}\n{body}\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("model-cards", ModelCards)
    app.add_directive("calibrations", Calibrations)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
