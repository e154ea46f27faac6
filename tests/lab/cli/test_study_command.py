"""``neoranging study``: from a stored set to a report."""

import json

import pytest
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.lab.sets.splits import split_set
from neoranging.lab.simulation.twin import Twin, make_twin


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """A small simulated set, divided."""
    folder = tmp_path_factory.mktemp("twin") / "set"
    make_twin(folder, Twin(objects=40), workers=1)
    split_set(folder, ratios=(0.3, 0.1, 0.6), seed=0, never_train=[f"S{k}" for k in range(8)])
    return folder


def run(*arguments):
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


@pytest.fixture(scope="module")
def report(twin, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "out"
    done = run("--data", twin, "--methods", "gauss, laplace", "--out", out, "--resamples", 10)
    assert done.exit_code == 0, done.output
    return done.output, out


def test_it_writes_page_tables_figures_and_numbers(report):
    told, out = report
    assert "simulated arcs of" in told
    assert "68 % intervals" in told
    assert "the median range, always" in told
    assert str(out / "report.html") in told
    content = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert {row["method"] for row in content["tables"]["headline"]} == {"gauss", "laplace"}
    drawn = [each["name"] for each in content["figures"]]
    assert {"population", "estimates", "orbits", "strata", "classical", "reliability"} <= set(drawn)
    assert "interval-scores" in drawn
    for name in drawn:
        if (out / "figures" / f"{name}.png").exists():
            assert (out / "figures" / f"{name}.pdf").stat().st_size > 1000
    assert len(list((out / "figures").glob("*.png"))) >= 6
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(list((out / "figures").glob("*.png")))
    assert (out / "tables" / "coverage.csv").exists()


def test_it_goes_on_or_begins_anew_only_when_asked(report, twin, monkeypatch):
    _, out = report
    common = ("--data", twin, "--out", out, "--resamples", 0)
    refused = run(*common, "--methods", "gauss")
    assert refused.exit_code == 1
    assert "holds a study: resume it" in refused.output
    before = (out / "predictions" / "gauss.npz").stat().st_mtime_ns
    monkeypatch.setattr(
        "neoranging.lab.study.figures.draw.draw_study", lambda *_, **__: []
    )  # takes long
    assert run(*common, "--methods", "gauss", "--resume", "--no-paper").exit_code == 0
    assert (out / "predictions" / "gauss.npz").stat().st_mtime_ns == before
    assert "NEODyS" not in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--methods", "kepler"), 2, "no method 'kepler'"),
        (("--methods", ","), 1, "no method to judge"),
        (("--methods", "net=none.safetensors"), 1, "no weights at none.safetensors"),
        (("--methods", "gauss,gauss"), 1, "several methods are called"),
        (("--methods", "gauss", "--split", "test,tset"), 1, "no split 'tset'"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(twin, tmp_path, options, code, text):
    done = run("--data", twin, "--out", tmp_path / "out", *options)
    assert done.exit_code == code
    assert text in done.output
    assert "Traceback" not in done.output


def test_a_folder_that_is_no_set(tmp_path):
    done = run("--data", tmp_path, "--methods", "gauss", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "manifest.json" in done.output
