"""Sets on disk: round trip, interruption, refusal of what is not whole."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import COLUMNS, ArcTable
from neoranging.lab.sets.store import (
    ArcWriter,
    iterate_arcs,
    read_account,
    read_arcs,
    read_manifest,
    rewrite_arcs,
    write_csv,
)
from neoranging.records import Account, RecordCount

pytest.importorskip("pyarrow")


def random_arcs(m: int, seed: int = 0) -> ArcTable:
    """Table of every column filled with anything, every fourth arc of two stations."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 9, m))])
    n = int(offsets[-1])
    columns = {}
    for name, column in COLUMNS.items():
        length = n if column.per_observation else m
        if column.dtype == "str":
            columns[name] = rng.choice(["2024 YR4", "99942", "é"], length)
        elif column.dtype == "bool":
            columns[name] = rng.random(length) < 0.5
        elif column.dtype.startswith("int"):
            columns[name] = rng.integers(0, 9, length)
        else:
            columns[name] = rng.standard_normal(length)
    columns["n_obs"] = np.diff(offsets)
    columns["station"] = np.where(np.arange(m) % 4, "G96", "")
    mixed = np.repeat(columns["station"] == "", columns["n_obs"])
    columns["stations"] = np.where(mixed, rng.choice(["703", "I41"], n), "G96")
    return ArcTable.make(offsets, **columns)


def write(folder, *tables: ArcTable, account: Account | None = None) -> None:
    with ArcWriter(folder, settings={"seed": 0}) as writer:
        for table in tables:
            writer.write(table, account)


def drop_columns(folder, *names: str) -> None:
    """Turn the first part into one that was stored when the schema had fewer columns."""
    path = folder / "arcs" / "part-00000.parquet"
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pq.read_table(path).drop_columns(list(names)), path)


def assert_same(a: ArcTable, b: ArcTable) -> None:
    np.testing.assert_array_equal(a.offsets, b.offsets)
    for name in COLUMNS:
        if name != "arc_id":
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_round_trip_keeps_every_bit_of_every_column(tmp_path):
    one, two = random_arcs(50), random_arcs(30, seed=1)
    write(tmp_path, one, ArcTable.empty(), two)
    back = read_arcs(tmp_path)
    assert_same(back, ArcTable.concatenate([one, two]))
    assert back["arc_id"].tolist() == list(range(80))
    assert {name: back[name].dtype.kind for name in COLUMNS} == {
        name: "U" if c.dtype == "str" else np.dtype(c.dtype).kind for name, c in COLUMNS.items()
    }


def test_arcs_of_one_station_need_no_codes_by_observation(tmp_path):
    table = random_arcs(20).take(np.arange(20) % 4 > 0)
    write(tmp_path, table)
    assert "stations" not in read_arcs(tmp_path)
    assert_same(read_arcs(tmp_path), table)


def test_mixed_arcs_without_codes_are_refused(tmp_path):
    table = random_arcs(4)
    columns = {name: values for name, values in table.columns.items() if name != "stations"}
    with pytest.raises(DatasetError, match="need the column 'stations'"):
        write(tmp_path, ArcTable(table.offsets, columns))


def test_few_columns_and_one_split(tmp_path):
    split = np.where(np.arange(40) % 3, "train", "test")
    table = random_arcs(40).with_columns(split=split)
    write(tmp_path, table)
    read = read_arcs(tmp_path, ("H_mag", "ra_rad"), split="test")
    assert set(read.columns) == {"H_mag", "ra_rad"}
    np.testing.assert_array_equal(read["ra_rad"], table.take(split == "test")["ra_rad"])
    assert len(read_arcs(tmp_path, ("H_mag",), split=("train", "test"))) == 40
    assert len(read_arcs(tmp_path, ("H_mag",), split="val")) == 0
    with pytest.raises(DatasetError, match="no split"):
        read_arcs(tmp_path, split="training")
    with pytest.raises(DatasetError, match="no column"):
        read_arcs(tmp_path, ("rho",))


def test_units_stand_in_the_files(tmp_path):
    import pyarrow.parquet as pq

    write(tmp_path, random_arcs(4))
    schema = pq.read_schema(tmp_path / "arcs" / "part-00000.parquet")
    assert schema.names == list(COLUMNS)
    assert schema.field("rho_geo_au").metadata[b"unit"] == b"au"
    assert str(schema.field("ra_rad").type).startswith("list<")


def test_accounts_of_the_parts_add_up_in_the_manifest(tmp_path):
    account = Account({"arcs": RecordCount(5, 4, {"slow": 1})})
    write(tmp_path, random_arcs(4), random_arcs(4), account=account)
    assert read_account(tmp_path).counts["arcs"] == RecordCount(10, 8, {"slow": 2})
    manifest = read_manifest(tmp_path)
    assert (manifest["n_arcs"], manifest["n_parts"], manifest["n_objects"]) == (8, 2, 3)


def test_a_failed_run_is_no_set_and_goes_on(tmp_path):
    one, two = random_arcs(10), random_arcs(5, seed=1)
    with pytest.raises(DatasetError, match="no column"):
        write(tmp_path, one, ArcTable.make([0, 3]))
    with pytest.raises(DatasetError, match="not finished"):
        read_arcs(tmp_path)
    assert_same(read_arcs(tmp_path, partial=True), one)
    with ArcWriter(tmp_path, settings={"seed": 0}) as writer:
        assert (writer.n_parts, writer.n_arcs) == (1, 10)
        writer.write(two)
        writer.describe(marginals={"rho": 0.3})
    assert_same(read_arcs(tmp_path), ArcTable.concatenate([one, two]))
    assert read_manifest(tmp_path)["marginals"] == {"rho": 0.3}


def test_other_settings_or_a_complete_set_are_not_written_over_by_chance(tmp_path):
    write(tmp_path, random_arcs(10))
    with pytest.raises(DatasetError, match="other settings"):
        ArcWriter(tmp_path, settings={"seed": 1})
    with pytest.raises(DatasetError, match="complete already"):
        ArcWriter(tmp_path, settings={"seed": 0})
    with ArcWriter(tmp_path, settings={"seed": 1}, overwrite=True) as writer:
        assert writer.n_parts == 0
    assert len(read_arcs(tmp_path)) == 0


def test_a_set_stored_before_a_column_was_is_read_with_its_fill_value(tmp_path):
    arcs = random_arcs(20)
    write(tmp_path, arcs)
    drop_columns(tmp_path, "U", "band", "truth_residual_arcsec", "split")
    back = read_arcs(tmp_path)
    assert back["U"].tolist() == [-1] * 20
    assert back["band"].tolist() == [""] * 20
    assert np.isnan(back["truth_residual_arcsec"]).all()
    assert back.to_frame().columns.tolist() == arcs.to_frame().columns.tolist()
    np.testing.assert_array_equal(back["ra_rad"], arcs["ra_rad"])
    np.testing.assert_array_equal(back["stations"], arcs["stations"])
    rewrite_arcs(tmp_path, lambda table: table.with_columns(split="train"))
    assert read_arcs(tmp_path, ("U",), "train")["U"].tolist() == [-1] * 20


def test_a_set_without_a_column_that_has_no_fill_value_is_refused(tmp_path):
    write(tmp_path, random_arcs(20))
    drop_columns(tmp_path, "night", "ra_rad", "U")
    with pytest.raises(DatasetError, match=r"part-00000.parquet lacks .* night, ra_rad; make"):
        read_arcs(tmp_path)
    assert len(read_arcs(tmp_path, ("designation",))) == 20


def test_a_lost_part_and_a_broken_part_are_noticed(tmp_path):
    write(tmp_path, random_arcs(10), random_arcs(10))
    part = tmp_path / "arcs" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DatasetError, match=r"part-00001\.parquet cannot be read"):
        read_arcs(tmp_path)
    part.unlink()
    with pytest.raises(DatasetError, match="parts of it are gone"):
        read_arcs(tmp_path)


def test_a_folder_that_is_no_set(tmp_path):
    with pytest.raises(DatasetError, match="folder of a set"):
        read_arcs(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(DatasetError, match="no JSON"):
        read_arcs(tmp_path)


WRITES_FOR_EVER = """
import sys, numpy as np
from neoranging.lab.sets.schema import ArcTable, COLUMNS
from neoranging.lab.sets.store import ArcWriter
needed = {name: c for name, c in COLUMNS.items() if c.fill is None and name != "n_obs"}
values = {name: "G96" if c.dtype == "str" else 0 for name, c in needed.items()}
one = ArcTable.make(np.arange(0, 3001, 3), **values)
with ArcWriter(sys.argv[1], settings={}) as writer:
    while True:
        writer.write(one.with_columns(night=writer.n_parts))
"""


@pytest.mark.slow
def test_killed_at_any_instant_it_goes_on_with_nothing_lost_or_twice(tmp_path):
    rng = np.random.default_rng(0)
    code = textwrap.dedent(WRITES_FOR_EVER)
    before = 0
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
        while not (tmp_path / "arcs" / f"part-{before:05d}.parquet").exists():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        table = read_arcs(tmp_path, ("arc_id", "night"), partial=True)
        np.testing.assert_array_equal(table["arc_id"], np.arange(len(table)))
        np.testing.assert_array_equal(table["night"], np.arange(len(table)) // 1000)
        assert len(table) > before * 1000
        before = len(table) // 1000
    with ArcWriter(tmp_path, settings={}) as writer:
        assert writer.n_parts == before
    assert not [p for p in (tmp_path / "arcs").iterdir() if p.suffix != ".parquet"]


def test_rewritten_parts_keep_their_accounts(tmp_path):
    account = Account({"arcs": RecordCount(10, 10)})
    write(tmp_path, random_arcs(10), account=account)
    rewrite_arcs(tmp_path, lambda table: table.with_columns(U=7), note="seven")
    assert read_arcs(tmp_path, ("U",))["U"].tolist() == [7] * 10
    assert read_account(tmp_path) == account
    assert read_manifest(tmp_path)["note"] == "seven"


def test_an_interrupted_rewriting_is_no_set_until_it_is_repeated(tmp_path):
    write(tmp_path, random_arcs(10), random_arcs(10))

    def fail(table):
        if table["arc_id"][0]:
            raise KeyboardInterrupt
        return table.with_columns(U=7)

    with pytest.raises(KeyboardInterrupt):
        rewrite_arcs(tmp_path, fail)
    with pytest.raises(DatasetError, match="not finished"):
        read_arcs(tmp_path)
    rewrite_arcs(tmp_path, lambda table: table.with_columns(U=7))
    assert set(read_arcs(tmp_path, ("U",))["U"].tolist()) == {7}


def test_both_csv_files_share_their_rows(tmp_path):
    table = random_arcs(12)
    write(tmp_path, table.take(np.arange(6)), table.take(np.arange(6, 12)))
    texts = [path.read_text(encoding="utf-8") for path in write_csv(tmp_path)]
    observed, truth = (list(csv.DictReader(text.splitlines())) for text in texts)
    assert [row["arc_id"] for row in observed] == [row["arc_id"] for row in truth]
    assert len(observed) == 12
    assert [float(row["ra2_rad"]) for row in observed] == table["ra2_rad"].tolist()
    assert [float(row["rho_geo_au"]) for row in truth] == table["rho_geo_au"].tolist()
    assert observed[0]["designation"] == table["designation"][0]


def test_iterates_part_by_part(tmp_path):
    write(tmp_path, random_arcs(10), random_arcs(5))
    assert [len(table) for table in iterate_arcs(tmp_path, ("H_mag",))] == [10, 5]
