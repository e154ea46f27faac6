"""``neoranging estimate --jobs``: what it takes, says and writes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.samples import sample

IMPACTORS, YR4, MESSY = (str(sample(name)) for name in ("impactors", "2024YR4", "messy"))


def run(*arguments):
    return CliRunner().invoke(main, ["estimate", *map(str, arguments)])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_those_of_the_command_without_it(tmp_path, ending):
    pytest.importorskip("pyarrow")
    whole, pieces = tmp_path / f"whole.{ending}", tmp_path / f"pieces.{ending}"
    assert run(IMPACTORS, "--out", whole).exit_code == 0
    result = run(IMPACTORS, "--out", pieces, "--jobs", "1", "--chunk", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "impactors.obs80: 34 records, 34 used, 0 set aside" in result.stderr
    assert "5 tracklets of 34 observations" in result.stderr
    assert "100% of the input, 5 tracklets" in result.stderr
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending]
    columns = ["designation", "stations", "epoch_utc"]
    rows = read(pieces).sort_values(columns, ignore_index=True)
    expected = read(whole).sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(rows.drop(columns="tracklet"), expected)


def test_report_accounts_for_every_record(tmp_path):
    result = run(MESSY, "--out", tmp_path / "out.csv", "--jobs", "1", "--report")
    assert result.exit_code == 0
    assert "messy.obs80: 15 records" in result.stderr
    assert "messy.obs80, line" in result.stderr
    assert run(MESSY, "--out", tmp_path / "out.csv", "--jobs", "1", "-q").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([YR4], "name it with --out"),
        ([YR4, "--out", "ranges.json"], "CSV or Parquet"),
        (["-", "--out", "ranges.csv"], "give no '-'"),
    ],
)
def test_wrong_usage(arguments, told):
    result = run(*arguments, "--jobs", "2")
    assert result.exit_code == 2
    assert told in result.stderr


def test_exit_codes(tmp_path):
    out = tmp_path / "out.csv"
    assert run(tmp_path / "none.csv", "--out", out, "--jobs", "1").exit_code == 3
    assert run(YR4, "--out", tmp_path / "none" / "out.csv", "--jobs", "1").exit_code == 1
    strict = run(IMPACTORS, "--out", out, "--jobs", "1", "--strict")
    assert strict.exit_code == 5
    assert "of 5 tracklets have another status than OK" in strict.stderr
    alone = tmp_path / "alone.obs80"
    alone.write_text(Path(YR4).read_text().splitlines()[0] + "\n")
    result = run(alone, "--out", out, "--jobs", "1")
    assert result.exit_code == 4
    assert "no tracklet" in result.stderr


def test_a_busy_output_is_said(tmp_path):
    from neoranging.files import FolderLock

    with FolderLock(tmp_path / "out.csv.unfinished"):
        result = run(YR4, "--out", tmp_path / "out.csv", "--jobs", "1")
    assert result.exit_code == 1
    assert "another process works in" in result.stderr
