"""The commands that look at a set, divide it and export it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.lab.sets.arcs import make_arcs
from neoranging.lab.sets.schema import COLUMNS
from neoranging.lab.sets.store import ArcWriter, read_arcs
from neoranging.records import Account, RecordCount

pytest.importorskip("pyarrow")


def run(*arguments):
    return CliRunner().invoke(main, ["dataset", *map(str, arguments)])


def good(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path, simulate):
    simulated = simulate(100, 0.05, seed=4)
    a = simulated.arcs
    table, _ = make_arcs(
        a.offsets, a.t, a.ra, a.dec, sigma_ra=a.sigma_ra, sigma_dec=a.sigma_dec,
        stations=simulated.station, designation=np.char.mod("S%d", np.arange(100) // 2),
        night=np.zeros(100, dtype=int),
    )  # fmt: skip
    table = table.with_columns(rho_geo_au=simulated.rho, rho_dot_geo_au_d=simulated.rho_dot)
    with ArcWriter(tmp_path / "set", settings={"seed": 4}) as writer:
        writer.write(table, Account({"arcs": RecordCount(101, 100, {"no longer than 0.001 d": 1})}))
    return tmp_path / "set"


def test_info_tells_what_there_is(folder):
    text = good("info", folder)
    assert "100 arcs of 50 objects" in text
    assert "seed: 4" in text
    assert "1 set aside: no longer than 0.001 d" in text


def test_split_divides(folder, tmp_path):
    never = tmp_path / "never.csv"
    never.write_text("designation\nS0\nS1\n")
    text = good("split", folder, "--seed", "5", "--never-train", never)
    assert "unseen        4 arcs of      2 objects" in text
    assert "2 of the 2 objects never to train on are in the set" in text
    stored = read_arcs(folder, ("designation", "split"))
    assert set(stored["split"][np.isin(stored["designation"], ["S0", "S1"])]) == {"unseen"}
    assert "train: " in good("info", folder)


def test_another_division_removes_the_csv_files(folder):
    good("csv", folder)
    good("split", folder)
    assert not (folder / "observations.csv").exists()


def test_csv_writes_both_files(folder):
    paths = good("csv", folder).split()
    heads = [Path(path).read_text(encoding="utf-8") for path in paths]
    assert len(paths) == 2
    assert all(head.startswith('"arc_id"') for head in heads)


def test_columns_lists_the_schema():
    text = good("columns")
    assert all(name in text for name in COLUMNS)


def test_a_folder_without_a_set_is_told_in_one_line(tmp_path):
    result = run("info", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "is this the folder of a set?" in result.stderr


def test_help_names_every_command():
    text = good("--help")
    assert all(name in text for name in ("neodys", "real", "twin", "split", "info", "csv"))
