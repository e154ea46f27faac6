"""The manifest: what it holds after any kind of end."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.exceptions import BusyFolderError, NeoRangingError
from neoranging.lab.archive.manifest import FileRecord, FileStore, Status, read_manifest


def record(key: str = "mpcobs/433.rwo", **changes) -> FileRecord:
    return FileRecord(**{"key": key, "status": Status.OK, "url": "http://x"} | changes)


def put(store: FileStore, record: FileRecord, content: bytes) -> FileRecord:
    return store.append(store.write(record, content))


def test_a_file_and_its_line(tmp_path):
    with FileStore(tmp_path) as store:
        made = put(store, record(etag='"1"', attempts=2), b"abc\n")
        assert store.path(made.key).read_bytes() == b"abc\n"
        assert store.is_whole(made)
        assert made.size == 4
        assert made.time.endswith("+00:00")
        assert store.records == {made.key: made}
    with FileStore(tmp_path) as store:
        assert store.records.get(made.key) == made
        assert store.records.get("mpcobs/1.rwo") is None


def test_the_manifest_is_lines_of_json(tmp_path):
    with FileStore(tmp_path) as store:
        put(store, record(), b"abc\n")
        store.append(record("mpcobs/2.rwo", status=Status.ABSENT, reason="no such file"))
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["ok", "absent"]
    assert len(lines[0]["sha256"]) == 64
    assert lines[1]["reason"] == "no such file"
    assert "size" not in lines[1]


def test_the_last_line_about_a_file_holds(tmp_path):
    with FileStore(tmp_path) as store:
        store.append(record(status=Status.FAILED, reason="503"))
        put(store, record(), b"abc\n")
    assert read_manifest(tmp_path)[record().key].status is Status.OK


def test_what_is_set_aside_lies_apart(tmp_path):
    with FileStore(tmp_path) as store:
        put(store, record(status=Status.SET_ASIDE, reason="a web page"), b"<html>")
    assert not (tmp_path / "mpcobs/433.rwo").exists()
    assert (tmp_path / "set_aside/mpcobs/433.rwo").read_bytes() == b"<html>"


def test_a_file_that_changed_is_noticed(tmp_path):
    with FileStore(tmp_path) as store:
        made = put(store, record(), b"abc\n")
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
            store.append(record(f"{number}.rwo", status=Status.ABSENT))
    path = folder / "manifest.jsonl"
    content = path.read_bytes()
    cut %= len(content) + 1
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    with FileStore(folder) as store:
        assert len(store.records) == whole
        store.append(record("next.rwo", status=Status.ABSENT))
    assert list(read_manifest(folder)) == [*(f"{k}.rwo" for k in range(whole)), "next.rwo"]


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_a_full_disk_leaves_no_half_line(tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with FileStore(tmp_path) as store:
        store.append(record("a", status=Status.ABSENT))
        full = (tmp_path / "manifest.jsonl").stat().st_size + 10
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, limits[1]))
        try:
            with pytest.raises(OSError, match="10 of"):
                store.append(record("b", status=Status.ABSENT))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        store.append(record("c", status=Status.ABSENT))
        assert store.records.get("b") is None
    assert list(read_manifest(tmp_path)) == ["a", "c"]


@pytest.mark.parametrize("damage", ["{", '{"key": "a"}', '{"key": "a", "status": "fine"}', "[1]"])
def test_a_damaged_line_is_an_error_with_its_number(tmp_path, damage):
    with FileStore(tmp_path) as store:
        store.append(record(status=Status.ABSENT))
    path = tmp_path / "manifest.jsonl"
    path.write_text(path.read_text() + damage + "\n")
    with pytest.raises(NeoRangingError, match=r"line 2 .* remove that line"):
        read_manifest(tmp_path)


def test_fields_of_later_versions_are_passed_over(tmp_path):
    (tmp_path / "manifest.jsonl").write_text('{"key": "a", "status": "ok", "mirror": 3}\n')
    assert read_manifest(tmp_path)["a"].status is Status.OK


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "mpcobs/../../x"])
def test_no_file_outside_of_the_folder(tmp_path, key):
    with FileStore(tmp_path / "store") as store, pytest.raises(NeoRangingError, match="outside"):
        put(store, record(key), b"x")


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
