"""``neoranging study``: judge methods on a set of labelled arcs, and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neoranging.cli.errors import echo

if TYPE_CHECKING:
    from neoranging.lab.study.run import Study


@click.command()
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A set of labelled arcs; see 'neoranging dataset'.",
)
@click.option(
    "--methods",
    required=True,
    metavar="LIST",
    help="Methods with commas between: [LABEL=]NAME[@REPRESENTATION][@ORIGIN], such as gauss, "
    "mlp@paper or gauss@geocenter; NAME may be a FILE.safetensors.",
)
@click.option(
    "--split",
    type=click.Choice(["test", "unseen", "val", "train", "all"]),
    default="test",
    show_default=True,
    help="Which part of the set; 'all' for one that is not divided. For networks of the package "
    "take 'unseen': objects of any other part may be known to them.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("study"),
    show_default=True,
    metavar="DIR",
    help="Folder of the report.",
)
@click.option(
    "--cap",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N arcs of an object, drawn at random. Few objects own many arcs of real sets.",
)
@click.option(
    "--max-arcs",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N arcs in all, of whole objects drawn at random.",
)
@click.option("--close", is_flag=True, help="Also arcs resampled to pass near the Earth.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is drawn."
)
@click.option(
    "--resamples",
    "n_boot",
    type=click.IntRange(min=0),
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
    "--paper/--no-paper",
    default=True,
    show_default=True,
    help="Show the published figures of the literature below the table of methods.",
)
@click.option("--resume", is_flag=True, help="Keep the predictions that are in the folder.")
@click.option("--overwrite", is_flag=True, help="Begin anew whatever study the folder holds.")
def study(
    data: Path,
    methods: str,
    split: str,
    out: Path,
    n_boot: int,
    geocentric: bool,
    paper: bool,
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
    """  # noqa: D301 (the character by which click keeps lines apart)
    from neoranging.files import FolderLock
    from neoranging.lab.sets.progress import progress_bar
    from neoranging.lab.study.folder import begin
    from neoranging.lab.study.methods import contenders
    from neoranging.lab.study.run import run_study
    from neoranging.lab.study.selection import Selection

    names = [name.strip() for name in methods.split(",") if name.strip()]
    selection = Selection(split=None if split == "all" else split, **selected)
    chosen = contenders(names)  # first, so that a wrong name costs no study that is there
    with FolderLock(out):
        begin(out, resume=resume, overwrite=overwrite)
        found = run_study(
            data,
            chosen,
            selection=selection,
            kept=out / "predictions",
            geocentric=geocentric,
            n_boot=n_boot,
            bar=progress_bar,
        )
        page = _write(found, out, paper)
    _tell(found, page)


def _write(found: Study, out: Path, published: bool) -> Path:
    from neoranging.lab.sets.progress import progress_bar
    from neoranging.lab.study.figures.draw import draw_study, n_figures
    from neoranging.lab.study.report import write_report, write_tables

    write_tables(found, out / "tables")
    with progress_bar(n_figures(found), "drawing", "figure") as bar:
        pictures = draw_study(found, out / "figures", progress=bar.update)
    return write_report(found, pictures, out, published=published)


def _tell(found: Study, page: Path) -> None:
    """The headline, short enough for a terminal."""
    from neoranging.lab.study.tables import as_text

    data = found.data
    echo(f"{data['n_arcs']} {data['kind']} arcs of {data['n_objects']} objects")
    for remark in found.remarks:
        if remark.is_alarm:
            echo(f"probably broken: {remark.subject}: {remark.text}", err=True)
    columns = {
        "method": "method",
        "answers": "arcs",
        "solved": "answers [%]",
        "medae_rho": "medAE [au]",
        "median_log10_error": "median [dex]",
        "medae_rho_dot": "medAE [au/d]",
        "p_ar": "admissible [%]",
        "d_sh_pseudo": "median D_SH",
    }
    rows = [{head: row[name] for name, head in columns.items()} for row in found.tables["headline"]]
    echo(as_text(rows), nl=False)
    echo(str(page))
