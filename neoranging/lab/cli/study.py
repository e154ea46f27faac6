"""``neoranging study``: judge methods on a set of labelled arcs, and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import echo
from neoranging.cli.options import (
    COUNT,
    COUNT_OR_NONE,
    data_option,
    folder_option,
    scheduler_option,
    seed_option,
)
from neoranging.tables import text_table

if TYPE_CHECKING:
    from neoranging.lab.study.run import Study


@click.command()
@data_option("A set of labelled arcs; see 'neoranging dataset'.")
@click.option(
    "--methods",
    required=True,
    metavar="LIST",
    help="Methods with commas between: [LABEL=]NAME[@OPTION][@ORIGIN], such as gauss, mlp@paper, "
    "systematic@catalogue or gauss@geocenter; NAME may be a FILE.safetensors.",
)
@click.option(
    "--split",
    default="test",
    show_default=True,
    metavar="LIST",
    help="Parts of the set with commas between, of test, unseen, val and train; 'all' for a set "
    "that is not divided. 'test,unseen' are the objects that no network of this division learnt "
    "from; a study of networks on objects that they learnt from is refused.",
)
@folder_option("Folder of the report.", default=Path("study"), show_default=True)
@click.option(
    "--cap",
    type=COUNT,
    metavar="N",
    help="At most N arcs of an object, drawn at random. Few objects own many arcs of real sets.",
)
@click.option(
    "--max-arcs",
    type=COUNT,
    metavar="N",
    help="At most N arcs in all, of whole objects drawn at random.",
)
@click.option("--close", is_flag=True, help="Also arcs resampled to pass near the Earth.")
@seed_option("Of what is drawn.")
@click.option(
    "--resamples",
    "n_boot",
    type=COUNT_OR_NONE,
    default=200,
    show_default=True,
    metavar="N",
    help="Of the bootstrap by object, for intervals of all figures.",
)
@click.option(
    "--geocentric/--no-geocentric",
    default=True,
    show_default=True,
    help="Ask the classical methods from the centre of the Earth as well.",
)
@click.option(
    "--allow-learnt",
    is_flag=True,
    help="Judge networks on objects that they learnt from, too; the report remarks it.",
)
@click.option(
    "--paper/--no-paper",
    default=True,
    show_default=True,
    help="Show the published figures of the literature below the table of methods, and intervals "
    "by its construction beside those of the package.",
)
@scheduler_option
@click.option("--resume", is_flag=True, help="Keep the predictions that are in the folder.")
@click.option("--overwrite", is_flag=True, help="Begin anew whatever study the folder holds.")
def study(
    data: Path,
    methods: str,
    split: str,
    out: Path,
    n_boot: int,
    geocentric: bool,
    allow_learnt: bool,
    paper: bool,
    scheduler: str | None,
    resume: bool,
    overwrite: bool,
    **selected: Any,
) -> None:
    """Judge methods on labelled arcs, as the literature does and beyond.

    Writes report.html, which needs nothing else to be read, study.json with every number, the
    tables as CSV and Markdown, and the figures as PNG and PDF. Predictions are kept: with --resume
    only methods that are new, or have changed, are asked.

    \b
    Examples:
      neoranging study --data twin --methods gauss,laplace,mlp,mlp@paper
      neoranging study --data twin --methods gauss,mlp=run/network.safetensors --out mine
      neoranging study --data real --split all --cap 20 --methods gauss,laplace
      neoranging study --data twin --split test,unseen --cap 2 --methods mlp,systematic@catalogue
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.files import FolderLock
    from neoranging.lab.sets.progress import progress_bar
    from neoranging.lab.study.figures.draw import draw_study, n_figures
    from neoranging.lab.study.folder import prepare, write_report, write_tables
    from neoranging.lab.study.methods import study_methods
    from neoranging.lab.study.run import run_study
    from neoranging.lab.study.selection import Selection

    names = [name.strip() for name in methods.split(",") if name.strip()]
    selection = Selection(split=None if split == "all" else split, **selected)
    chosen = study_methods(names)  # first, so that a wrong name costs no study that is there
    with FolderLock(out):
        prepare(out, resume=resume, overwrite=overwrite)
        judged = run_study(
            data,
            chosen,
            selection=selection,
            predictions=out / "predictions",
            geocentric=geocentric,
            allow_learnt=allow_learnt,
            n_boot=n_boot,
            scheduler=scheduler,
            bar=progress_bar,
        )
        write_tables(judged, out / "tables")
        with progress_bar(n_figures(judged), "drawing", "figure") as bar:
            pictures = draw_study(judged, out / "figures", progress=bar.update)
        page = write_report(judged, pictures, out, published=paper)
    _echo_headline(judged)
    echo(page)


def _echo_headline(judged: Study) -> None:
    """Write what is suspicious, the headline and interval scores, short enough for a terminal."""
    data = judged.data
    echo(f"{data['n_arcs']} {data['kind']} arcs of {data['n_objects']} objects")
    for label, text in data["learnt"].items():
        echo(f"Warning: {label}: {text}", err=True)
    for remark in judged.remarks:
        if remark.is_alarm:
            echo(f"probably broken: {remark.subject}: {remark.text}", err=True)
    heads = {
        "method": "method",
        "answers": "arcs",
        "solved": "answers [%]",
        "medae_rho": "medAE [au]",
        "median_log10_error": "median [dex]",
        "medae_rho_dot": "medAE [au/d]",
        "p_ar": "admissible [%]",
        "d_sh_pseudo": "median D_SH",
    }
    echo(text_table(judged.tables["headline"][list(heads)].rename(columns=heads)))
    scores = judged.tables["scores"]
    wide = scores.pivot(index="method", columns="metric", values="value")
    wide = wide.loc[scores["method"].unique()]
    columns: dict[tuple[str, str], Any] = {("", "method"): wide.index}
    for level in ("68", "95"):
        for name, head in {
            "inside": "inside [%]",
            "ratio": "upper / lower",
            "interval_score": "score [dex]",
        }.items():
            columns[f"{level} % intervals", head] = wide[f"{name}_{level}"]
    columns["", "CRPS [dex]"] = wide["crps"]
    echo("")
    echo(text_table(columns))
