"""The figures of a study, into a folder, each as PNG and PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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
from neoranging.lab.study.figures.posteriors import plot_interval_scores, plot_pit
from neoranging.lab.study.figures.strata import plot_cross, plot_strata
from neoranging.lab.study.report import Picture
from neoranging.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neoranging.lab.study.run import Study


RESOLUTION: Final = 160
"""Resolution of PNG files [dots per inch]."""

# without dates, one study gives one file
_METADATA: Final[dict[str, dict[str, Any]]] = {"png": {}, "pdf": {"CreationDate": None}}


class _Drawing(NamedTuple):
    """A figure that is yet to be drawn."""

    section: str
    name: str
    draw: Callable[[], Figure]
    caption: str


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
        pictures.append(_picture(drawing, folder))
        if progress is not None:
            progress(1)
    return pictures


def n_figures(study: Study) -> int:
    """Number of figures of a study."""
    return sum(1 for _ in _drawings(study))


def _picture(drawing: _Drawing, folder: Path) -> Picture:
    plt = style.pyplot()
    try:
        figure = drawing.draw()
    except (EvaluationError, ConformalError) as error:
        caption = f"{drawing.caption} Not drawn: {error}."
        return Picture(drawing.name, drawing.section, caption, None)
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
    """Figures in the order of the report."""
    yield _Drawing(
        "arcs",
        "population",
        partial(plot_population, study.table),
        "Orbits of a sample of the objects, semi-major axis and eccentricity, and inclination.",
    )
    yield _Drawing(
        "estimates",
        "estimates",
        partial(plot_estimates, study.judged),
        "Predicted against true range and range-rate, with the distributions of both. Along the "
        "diagonal answers are right; a horizontal band is a method that answers the same to all.",
    )
    answers = [study.answers[label] for label in study.labels]
    yield _Drawing(
        "orbits",
        "orbits",
        partial(plot_orbits, study.table, study.judged, answers),
        "Best and median orbit of each method by D_SH from the pseudo-true orbit. Each method has "
        "its own ranking: this is no comparison arc by arc.",
    )
    metrics = ("p_ar", "d_sh_pseudo", "median_log10_error")
    yield _Drawing(
        "strata",
        "strata",
        partial(plot_strata, study.tables["strata"], metrics=metrics),
        "Admissible answers, distance of orbits and error of the range by terciles of proper "
        "motion, true range, inclination and length of arc; 95 % intervals of a bootstrap by "
        "object.",
    )
    if "cross" in study.tables:
        pairs = study.tables["cross"].groupby(["first", "second"], sort=False)
        for k, ((first, second), differences) in enumerate(pairs):
            yield _Drawing(
                "strata",
                f"cross-{k + 1}",
                partial(plot_cross, differences),
                f"{first} minus {second} on the cross of proper motion and true range, with the "
                "arcs that enter; bold where the 95 % interval leaves out zero.",
            )
    yield from _classical(study)
    yield from _intervals(study)


def _classical(study: Study) -> Iterator[_Drawing]:
    """Figures of classical methods beside others."""
    if study.classical:
        yield _Drawing(
            "classical",
            "classical",
            partial(plot_classical, study.classical, study.learned),
            "Methods against the truth on the arcs that all classical methods of an origin solve: "
            "from the centre of the Earth, and with the observers where they stood.",
        )
    for method in study.geocentric:
        label = method.label.removesuffix(" (geocentre)")
        yield _Drawing(
            "classical",
            f"collapse-{label}",
            partial(_collapse, study, method.label, label),
            f"{label} with the observer in the centre of the Earth and where it stood: diurnal "
            "parallax taken for orbital motion puts the root beside the observer.",
        )


def _intervals(study: Study) -> Iterator[_Drawing]:
    """Figures of intervals and posteriors, and of single objects."""
    yield _Drawing(
        "intervals",
        "interval-scores",
        partial(plot_interval_scores, study.tables["scores"]),
        "Interval scores of log10 rho, smaller is better: the width, and what the truth is outside "
        "times 2 / (1 - level); 95 % intervals of a bootstrap by object.",
    )
    if study.coverage:
        yield _Drawing(
            "intervals",
            "reliability",
            partial(plot_reliability, study.coverage),
            "How often intervals hold the truth against how often they claim to: those of "
            "posteriors as they are, all others crosswise by object.",
        )
        yield _Drawing(
            "intervals",
            "half-widths",
            partial(plot_half_widths, study.coverage),
            "Half-width of 68 % intervals by decile of proper motion, in au and as a factor.",
        )
    if study.posteriors:
        yield _Drawing(
            "posteriors",
            "pit",
            partial(plot_pit, study.tables["pit"], [study.scored[k] for k in study.posteriors]),
            "Where true ranges fall in their posteriors: left by decile, with the interval of a "
            "bootstrap by object, right how much more often than their level equal-tailed "
            "intervals and regions of highest density hold them. Grey: where 95 % of calibrated "
            "posteriors are, if arcs are independent.",
        )
    if (cases := study.cases) is not None:
        yield _Drawing(
            "cases",
            "cases",
            partial(plot_unseen, cases.table, cases.scored, cases.objects),
            "True range and estimates with 68 % intervals over the arcs of single objects.",
        )


def _collapse(study: Study, geocentric: str, topocentric: str) -> Figure:
    signal = diurnal_signal(study.table)  # takes long: not before it is drawn
    return plot_collapse(study.scored[geocentric], study.scored[topocentric], signal)
