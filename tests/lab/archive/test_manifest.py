"""The manifest: what it holds after any kind of end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.exceptions import BusyFolderError, NeoRangingError
from neoranging.lab.archive.manifest import Entry, FileStore, Status, cache_folder, read_entries


def entry(key: str = "mpcobs/433.rwo", **changes) -> Entry:
    return Entry(**{"key": key, "name": "433", "status": Status.OK, "url": "http://x"} | changes)


def test_a_file_and_its_line(tmp_path):
    with FileStore(tmp_path) as store:
        made = store.put(entry(etag='"1"', attempts=2), b"abc\n")
        assert store.path(made.key).read_bytes() == b"abc\n"
        assert store.is_whole(made)
        assert made.size == 4
        assert made.time.endswith("+00:00")
        assert len(store) == 1
        assert list(store) == [made]
    with FileStore(tmp_path) as store:
        assert store.get(made.key) == made
        assert store.get("mpcobs/1.rwo") is None


def test_the_manifest_is_lines_of_json(tmp_path):
    with FileStore(tmp_path) as store:
        store.put(entry(), b"abc\n")
        store.record(entry("mpcobs/2.rwo", status=Status.ABSENT, reason="no such file"))
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["ok", "absent"]
    assert len(lines[0]["sha256"]) == 64
    assert lines[1]["reason"] == "no such file"
    assert "size" not in lines[1]


def test_the_last_line_about_a_file_holds(tmp_path):
    with FileStore(tmp_path) as store:
        store.record(entry(status=Status.FAILED, reason="503"))
        store.put(entry(), b"abc\n")
    assert read_entries(tmp_path)[entry().key].status is Status.OK


def test_what_is_set_aside_lies_apart(tmp_path):
    with FileStore(tmp_path) as store:
        store.put(entry(status=Status.SET_ASIDE, reason="a web page"), b"<html>")
    assert not (tmp_path / "mpcobs/433.rwo").exists()
    assert (tmp_path / "set_aside/mpcobs/433.rwo").read_bytes() == b"<html>"


def test_a_file_that_changed_is_noticed(tmp_path):
    with FileStore(tmp_path) as store:
        made = store.put(entry(), b"abc\n")
        store.path(made.key).write_bytes(b"abd\n")
        assert not store.is_whole(made)
        store.path(made.key).unlink()
        assert not store.is_whole(made)


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=0), n=st.integers(1, 5))
def test_half_a_last_line_is_forgotten_and_the_next_one_is_whole(tmp_path_factory, cut, n):
    folder = tmp_path_factory.mktemp("store")
    with FileStore(folder) as store:
        for number in range(n):
            store.record(entry(f"{number}.rwo", status=Status.ABSENT))
    path = folder / "manifest.jsonl"
    content = path.read_bytes()
    cut %= len(content) + 1
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    with FileStore(folder) as store:
        assert len(store) == whole
        store.record(entry("next.rwo", status=Status.ABSENT))
    assert list(read_entries(folder)) == [*(f"{k}.rwo" for k in range(whole)), "next.rwo"]


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    write = os.write
    with FileStore(tmp_path) as store:
        store.record(entry("a", status=Status.ABSENT))
        monkeypatch.setattr(os, "write", lambda fd, line: write(fd, line[:10]))
        with pytest.raises(OSError, match="10 of"):
            store.record(entry("b", status=Status.ABSENT))
        monkeypatch.undo()
        store.record(entry("c", status=Status.ABSENT))
        assert store.get("b") is None
    assert list(read_entries(tmp_path)) == ["a", "c"]


@pytest.mark.parametrize("damage", ["{", '{"key": "a"}', '{"key": "a", "status": "fine"}', "[1]"])
def test_a_damaged_line_is_an_error_with_its_number(tmp_path, damage):
    with FileStore(tmp_path) as store:
        store.record(entry(status=Status.ABSENT))
    path = tmp_path / "manifest.jsonl"
    path.write_text(path.read_text() + damage + "\n")
    with pytest.raises(NeoRangingError, match=r"line 2 .* remove that line"):
        read_entries(tmp_path)


def test_fields_of_later_versions_are_passed_over(tmp_path):
    (tmp_path / "manifest.jsonl").write_text('{"key": "a", "status": "ok", "mirror": 3}\n')
    assert read_entries(tmp_path)["a"].status is Status.OK


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "mpcobs/../../x"])
def test_no_file_outside_of_the_folder(tmp_path, key):
    with FileStore(tmp_path / "store") as store, pytest.raises(NeoRangingError, match="outside"):
        store.put(entry(key), b"x")


def test_left_overs_are_removed(tmp_path):
    (tmp_path / "mpcobs").mkdir()
    left_over = tmp_path / "mpcobs" / ".433.rwo.17.unfinished"
    left_over.write_text("half")
    FileStore(tmp_path).close()
    assert not left_over.exists()


@pytest.mark.skipif(os.name != "posix", reason="file locks of POSIX")
def test_one_process_at_a_time_and_the_lock_dies_with_it(tmp_path):
    script = (
        "import sys, time\n"
        "from neoranging.lab.archive.manifest import FileStore\n"
        "store = FileStore(sys.argv[1])\n"
        "print('locked', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(BusyFolderError, match="another process"):
            FileStore(tmp_path)
        process.kill()
        process.wait()
        FileStore(tmp_path).close()


def test_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("NEORANGING_CACHE", "/data/cache")
    assert cache_folder("neodys") == Path("/data/cache/neodys")
    monkeypatch.delenv("NEORANGING_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/a/cache")
    assert cache_folder("neodys") == Path("/home/a/cache/neoranging/neodys")
