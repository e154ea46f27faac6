"""``neoranging impact``: a row for every tracklet, with the chance, the place and the advice."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from astropy.table import Table
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.samples import sample

IMPACTORS, YR4, MESSY = (str(sample(name)) for name in ("impactors", "2024YR4", "messy"))
EK68, TC3, SHORT, SHORTER, AA = range(5)


def run(*arguments):
    return CliRunner().invoke(main, ["impact", *map(str, arguments)])


def good(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def document():
    return json.loads(good(IMPACTORS, "--draws", 1000, "--format", "json").stdout)


def test_both_priors_with_their_errors(document):
    rows = document["tracklets"]
    assert document["draws"] == 1000
    assert document["within_d"] == 30.0
    for mark in ("", "log_uniform_"):
        chances = [row[f"{mark}probability"] for row in rows]
        assert chances[TC3] == chances[AA] == 1.0
        assert chances[EK68] == 0.0
        assert rows[TC3][f"{mark}lower_limit"] == pytest.approx(0.997, abs=1e-4)
        assert rows[EK68][f"{mark}upper_limit"] == pytest.approx(0.003, abs=1e-4)
    assert rows[SHORT]["probability"] < 0.01
    assert 0.03 < rows[SHORT]["log_uniform_probability"] < 0.12
    assert 0.004 < rows[SHORT]["log_uniform_error"] < 0.011


def test_when_where_and_what_to_do(document):
    rows = document["tracklets"]
    assert [row["advice"] for row in rows] == [
        "NOT SEEN",
        "REPORT",
        "LONGER ARC",
        "LONGER ARC",
        "REPORT",
    ]
    assert rows[TC3]["time_low"] < "2008-10-07T04:00" < rows[TC3]["time_high"]
    assert rows[AA]["longitude_deg"] == pytest.approx(-31.0, abs=3.0)
    assert rows[AA]["latitude_deg"] == pytest.approx(13.6, abs=0.5)
    assert rows[EK68]["longitude_deg"] is None
    assert rows[EK68]["time_low"] == rows[EK68]["falls_under"] == ""
    assert rows[SHORTER]["falls_under"] == "log-uniform"


def test_the_table_is_to_be_read():
    text = good(IMPACTORS, "--draws", 1000).stdout
    _, _, ek68, tc3, *_, shorter, _ = text.split("\n\n")[0].splitlines()
    assert "< 0.003" in ek68
    assert "NOT SEEN" in ek68
    assert "> 0.997" in tc3
    assert "2008-10-07 03:" in tc3
    assert "km" in tc3
    assert " m " in tc3
    # falls under the prior of alarm alone stand in brackets
    assert "[2008-10-06" in shorter
    assert "REPORT: A possible impactor" in text
    assert "LONGER ARC: The night does not exclude" in text
    assert "NO ANSWER" not in text


def test_no_answer_keeps_its_row_and_says_why():
    result = good(MESSY, "--draws", 400)
    assert result.stdout.count("NRtest1") == 2
    assert "NO ANSWER  UNKNOWN_OBSERVER" in result.stdout
    assert "NO ANSWER: Nothing follows from this tracklet" in result.stdout
    assert "UNKNOWN_OBSERVER: The position of an observer is not known" in result.stdout


def test_few_draws_exclude_nothing():
    text = good(YR4, "--draws", 5).stdout
    assert "NOT SEEN" not in text
    assert "MORE DRAWS: No draw falls" in text


def test_without_magnitudes_the_size_is_unknown(tmp_path):
    night = tmp_path / "night.obs80"
    rows = Path(IMPACTORS).read_text().splitlines(keepends=True)
    lines = [row[:65] + " " * 6 + row[71:] for row in rows if "K14A00A" in row]
    night.write_text("".join(lines))
    assert "unknown, no magnitude" in good(night, "--draws", 200).stdout


def test_options_reach_the_draws(tmp_path):
    out = tmp_path / "impacts.csv"
    good(IMPACTORS, "--draws", 100, "--within", 0.3, "--seed", 3, "--out", out)
    rows = Table.read(out)
    assert (rows["probability"] == 0.0).all()
    assert (rows["nearest_distance_au"] < 0.5).all()
    result = run(IMPACTORS, "--method", "gauss")
    assert result.exit_code == 2
    assert "take systematic" in result.stderr
    assert run(IMPACTORS, "--within", 0).exit_code == 2


def test_without_the_extra_an_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "assist", None)
    result = run(IMPACTORS, "--dynamics", "nbody", "--draws", 10)
    assert result.exit_code == 1
    assert "nbody" in result.stderr
