"""The report: what stands on its first screen, that it needs nothing else, and its numbers."""

import csv
import json
import re

import numpy as np
import pytest
from html_pages import Checked

from neoranging.lab.study.folder import write_report, write_tables
from neoranging.lab.study.methods import StudyMethod
from neoranging.lab.study.report import Picture, render
from neoranging.lab.study.run import run_study
from neoranging.lab.study.selection import Selection
from neoranging.tables import number

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)
"""The smallest PNG file."""


def first_screen(page):
    """What stands above the list of sections: text without marks."""
    return re.sub(r"<[^>]+>", " ", page.split("<nav>")[0].split("</style>")[1])


@pytest.fixture
def pictures(tmp_path):
    path = tmp_path / "population.png"
    path.write_bytes(PIXEL)
    return [
        Picture("population", "arcs", "Orbits <of> all.", path),
        Picture("orbits", "orbits", "Best orbits. Not drawn: none is elliptic.", None),
    ]


def test_the_page_is_whole_and_needs_nothing_else(study, pictures):
    page = render(study, pictures)
    checked = Checked(page)
    assert len(checked.fetched) == 1
    assert checked.fetched[0].startswith("data:image/png;base64,")
    assert not re.search(r"https?://|@import|url\(|<script", page)
    assert set(checked.links) == {f"#{name}" for name in checked.ids}
    assert "Orbits &lt;of&gt; all." in page
    assert "Not drawn: none is elliptic." in page


def test_the_first_screen_tells_data_methods_and_literature(study):
    page = render(study)
    seen = first_screen(page)
    assert "SIMULATED DATA" in seen
    assert f"{len(study.table):,}" in seen
    assert "split  test" in seen
    for label in study.labels:
        assert label in seen
    assert seen.count("published, NEODyS") == 5  # four methods and the note
    assert "No sign of swapped units" in seen
    assert "published, NEODyS" not in render(study, published=False)


def test_a_cap_and_real_data_stand_in_the_headline(folder, arcs, oracle, noisy):
    study = run_study(
        folder,
        [oracle(arcs, noisy)],
        selection=Selection(split=None, cap=5, max_arcs=100),
        n_boot=0,
        folds=4,
    )
    study.data["kind"] = "real"
    seen = first_screen(render(study))
    assert "REAL DATA" in seen
    assert re.search(r"at most\s+5\s+arcs of an object", seen)
    assert "at most 100 arcs" in seen


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (lambda r, v: (np.roll(r, 1), np.roll(v, 1)), "are shifted"),
        (lambda r, v: (1.496e8 * r, 1.496e8 * v), "units look swapped (kilometres)"),
        (lambda r, v: (0.3 + 0.0 * r, 0.0 * v), "nearly constant ranges"),
        (lambda r, v: (np.where(np.arange(len(r)) % 2, 1.01 * r, np.nan), v), "its errors are"),
    ],
)
def test_a_planted_error_is_seen_on_the_first_screen(folder, arcs, oracle, noisy, plant, text):
    sound = StudyMethod("sound", oracle(arcs, noisy))
    broken = StudyMethod("broken", oracle(arcs, lambda r, v: plant(*noisy(r, v))))
    study = run_study(folder, [sound, broken], n_boot=0, folds=4)
    page = render(study)
    seen = re.sub(r"\s+", " ", first_screen(page))
    assert re.search(rf"broken : [^:]*{re.escape(text)}|broken : .*{re.escape(text)}", seen), seen
    is_alarm = "its errors" not in text
    assert ("Probably broken" in seen) is is_alarm
    assert "sound :" not in seen


def test_bold_marks_the_best_of_those_that_answer(study, folder, arcs, oracle, noisy):
    worse = StudyMethod("worse", oracle(arcs, lambda r, v: (2.0 * noisy(r, v)[0], v)))
    both = run_study(folder, [StudyMethod("good", oracle(arcs, noisy)), worse], n_boot=0, folds=4)
    good, bad = (
        re.search(rf"<tr><th><b>{label}</b>.*?</tr>", render(both)).group()
        for label in ("good", "worse")
    )
    headline = both.tables["headline"].set_index("method")
    value = headline["medae_rho"]["good"]
    assert f"<td><b>{number(value)}</b>" in good
    assert bad.count("<b>") < good.count("<b>")


def test_every_number_is_in_the_files(study, pictures, tmp_path):
    page = write_report(study, pictures, tmp_path)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    content = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    assert content["data"]["n_arcs"] == len(study.table)
    assert set(content["tables"]) == set(study.tables)
    assert [each["name"] for each in content["figures"]] == ["population", "orbits"]
    written = write_tables(study, tmp_path / "tables")
    assert {path.suffix for path in written} == {".csv", ".md"}
    with (tmp_path / "tables" / "figures.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kept = [row for row in rows if (row["method"], row["metric"]) == ("honest", "medae_rho")]
    headline = study.tables["headline"].set_index("method").loc["honest"]
    assert float(kept[0]["value"]) == headline["medae_rho"]
    assert int(kept[0]["n_arcs"]) == headline["medae_rho_n_arcs"]
    rows = [row for row in content["tables"]["cases"] if row["method"] == "gauss"]
    assert {row["inside"] for row in rows} <= {True, False}
    missing = study.tables["cases"].query("method == 'gauss'")["rho_au"].isna()
    assert [row["rho_au"] is None for row in rows] == missing.tolist()
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".unfinished")]
