"""The figures of a study, into a folder, each as PNG and PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from neoranging.exceptions import ConformalError, EvaluationError
from neoranging.files import replacing
from neoranging.lab.study.diurnal import diurnal_signal
from neoranging.lab.study.figures.classical import plot_classical, plot_collapse
from neoranging.lab.study.figures.estimates import plot_estimates
from neoranging.lab.study.figures.intervals import plot_half_widths, plot_reliability, plot_unseen
from neoranging.lab.study.figures.orbits import plot_orbits
from neoranging.lab.study.figures.population import plot_population
from neoranging.lab.study.figures.strata import plot_cross, plot_strata
from neoranging.lab.study.report import Picture
from neoranging.plotting import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from neoranging.lab.sets.schema import ArcTable
    from neoranging.lab.study.run import Study


RESOLUTION: Final = 160
"""Of PNG files [dots per inch]."""

# without dates, one study gives one file
_METADATA: Final[dict[str, dict[str, Any]]] = {"png": {}, "pdf": {"CreationDate": None}}


class _Drawing(NamedTuple):
    """A figure that is yet to be drawn."""

    name: str
    section: str
    caption: str
    draw: Callable[[], Figure]


def draw_study(
    study: Study, folder: Path, *, progress: Callable[[int], object] | None = None
) -> list[Picture]:
    """Draw every figure of a study.

    Parameters
    ----------
    study : Study
    folder : Path
        Where ``<name>.png`` and ``<name>.pdf`` go; made if need be.
    progress : callable, optional
        Called with 1 after each figure.

    Returns
    -------
    list of Picture
        In the order of the report. A figure that has nothing to show, because no answer is
        elliptic, say, is without a file, and its caption tells why.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    pictures = []
    for drawing in _drawings(study):
        pictures.append(_drawn(drawing, folder))
        if progress is not None:
            progress(1)
    return pictures


def n_figures(study: Study) -> int:
    """How many figures a study has."""
    return sum(1 for _ in _drawings(study))


def _drawn(drawing: _Drawing, folder: Path) -> Picture:
    plt = style.pyplot()
    try:
        figure = drawing.draw()
    except (EvaluationError, ConformalError) as error:
        told = f"{drawing.caption} Not drawn: {error}."
        return Picture(drawing.name, drawing.section, told, None)
    try:
        # laid out once, for both files: that takes longer than to draw it
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for ending, metadata in _METADATA.items():
            with replacing(folder / f"{drawing.name}.{ending}") as path:
                figure.savefig(path, format=ending, dpi=RESOLUTION, metadata=metadata)
    finally:
        plt.close(figure)
    return Picture(drawing.name, drawing.section, drawing.caption, folder / f"{drawing.name}.png")


def _drawings(study: Study) -> Iterator[_Drawing]:
    yield _Drawing(
        "population",
        "arcs",
        "Orbits of a sample of the objects, semi-major axis and eccentricity, and inclination.",
        lambda: plot_population(study.table),
    )
    yield _Drawing(
        "estimates",
        "estimates",
        "Predicted against true range and range-rate, with the distributions of both. Along the "
        "diagonal answers are right; a horizontal band is a method that answers the same to all.",
        lambda: plot_estimates(study.judged),
    )
    yield _Drawing(
        "orbits",
        "orbits",
        "Best and median orbit of each method by D_SH from the pseudo-true orbit. Each method has "
        "its own ranking: this is no comparison arc by arc.",
        lambda: plot_orbits(
            study.table, study.judged, [study.answers[label] for label in study.labels]
        ),
    )
    yield from _strata(study)
    yield from _classical(study)
    yield from _intervals(study)


def _strata(study: Study) -> Iterator[_Drawing]:
    yield _Drawing(
        "strata",
        "strata",
        "Admissible answers, distance of orbits and error of the range by terciles of proper "
        "motion, true range, inclination and length of arc; 95 % intervals of a bootstrap by "
        "object.",
        lambda: plot_strata(
            study.tables["strata"], metrics=("p_ar", "d_sh_pseudo", "median_log10_error")
        ),
    )
    rows = study.tables.get("cross", [])
    for k, (first, second) in enumerate(dict.fromkeys((r["first"], r["second"]) for r in rows)):
        mine = [row for row in rows if (row["first"], row["second"]) == (first, second)]
        yield _Drawing(
            f"cross-{k + 1}",
            "strata",
            f"{first} minus {second} on the cross of proper motion and true range, with the arcs "
            "that enter; bold where the 95 % interval leaves out zero.",
            lambda mine=mine: plot_cross(mine),  # type: ignore[misc]
        )


def _classical(study: Study) -> Iterator[_Drawing]:
    if not study.classical:
        return
    yield _Drawing(
        "classical",
        "classical",
        "Methods against the truth on the arcs that all classical methods of an origin solve: "
        "from the centre of the Earth, and with the observers where they stood.",
        lambda: plot_classical(study.classical, study.learned),
    )
    for twin in study.twins:
        here = next(
            s for s in study.judged if s.attrs["method"] == twin.label.removesuffix(" (geocentre)")
        )
        yield _collapse(study.table, study.scored[twin.label], here)


def _collapse(table: ArcTable, geocentric: pd.DataFrame, topocentric: pd.DataFrame) -> _Drawing:
    return _Drawing(
        f"collapse-{topocentric.attrs['method']}",
        "classical",
        f"{topocentric.attrs['method']} with the observer in the centre of the Earth and where it "
        "stood: "
        "diurnal parallax taken for orbital motion puts the root beside the observer.",
        lambda: plot_collapse(geocentric, topocentric, diurnal_signal(table)),
    )


def _intervals(study: Study) -> Iterator[_Drawing]:
    if study.coverage:
        yield _Drawing(
            "reliability",
            "intervals",
            "How often intervals hold the truth against how often they claim to, crosswise by "
            "object.",
            lambda: plot_reliability(study.coverage),
        )
        yield _Drawing(
            "half-widths",
            "intervals",
            "Half-width of 68 % intervals by decile of proper motion, in au and as a factor.",
            lambda: plot_half_widths(study.coverage),
        )
    cases = study.cases
    if cases is not None:
        yield _Drawing(
            "cases",
            "cases",
            "True range and estimates with 68 % intervals over the arcs of single objects.",
            lambda: plot_unseen(cases.table, cases.scored, objects=cases.objects),
        )
