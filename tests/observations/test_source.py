"""Bytes of a source: unpacked in steps, never more than allowed, damage told."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import threading
import zipfile

import pytest
from click.testing import CliRunner

import neoranging as nr
from neoranging.cli import main
from neoranging.exceptions import ObservationFormatError
from neoranging.observations.source import LIMIT_VARIABLE, Text, is_text, read_source

CONTENT = b"".join(
    line
    for line in nr.sample("impactors").read_bytes().splitlines(True)
    if b"K08T03C" in line and b"G96" in line
)
MAKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}

by_kind = pytest.mark.parametrize("kind", MAKERS)


@by_kind
def test_compressed_content(kind, tmp_path):
    packed = MAKERS[kind](CONTENT)
    path = tmp_path / f"night.{kind}"
    path.write_bytes(packed)
    for source in (path, str(path), packed, io.BytesIO(packed)):
        assert read_source(source).content == CONTENT
    assert read_source(path).name == path.name


@by_kind
@pytest.mark.parametrize("share", [0.1, 0.5, 0.98])
def test_a_truncated_file_is_damaged(kind, share, tmp_path):
    packed = MAKERS[kind](CONTENT)
    path = tmp_path / f"cut.{kind}"
    path.write_bytes(packed[: int(share * len(packed))])
    with pytest.raises(ObservationFormatError, match="damaged"):
        nr.read_tracklets(path)
    result = CliRunner().invoke(main, ["estimate", str(path)])
    assert result.exit_code == 3
    assert "damaged" in result.output


@by_kind
def test_a_bomb_is_stopped(kind, monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, str(10**6))
    with pytest.raises(ObservationFormatError, match=f"larger than 1000000.*{LIMIT_VARIABLE}"):
        read_source(MAKERS[kind](b" " * 10**7))
    monkeypatch.delenv(LIMIT_VARIABLE)
    with pytest.raises(ObservationFormatError, match="zero bytes"):
        read_source(MAKERS[kind](b"\0" * 10**7))


def test_the_limit_is_a_number(monkeypatch):
    monkeypatch.setenv(LIMIT_VARIABLE, "2 GB")
    with pytest.raises(ObservationFormatError, match="number of bytes, got '2 GB'"):
        read_source(io.BytesIO(CONTENT))


def archives():
    tar, zipped = io.BytesIO(), io.BytesIO()
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w", format=form) as archive:
            info = tarfile.TarInfo("night.obs80")
            info.size = len(CONTENT)
            archive.addfile(info, io.BytesIO(CONTENT))
        yield "tar", tar.getvalue()
        yield "tar", gzip.compress(tar.getvalue())
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("night.obs80", CONTENT)
    yield "zip", zipped.getvalue()
    yield "7z", b"7z\xbc\xaf\x27\x1c\0\4"
    yield "zstd", b"\x28\xb5\x2f\xfd\0"


@pytest.mark.parametrize(("kind", "content"), list(archives()))
def test_archives_are_named(kind, content):
    with pytest.raises(ObservationFormatError, match=rf"\b{kind}.*unpack it"):
        nr.read_tracklets(content)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(CONTENT,))
    writer.start()
    assert nr.read_tracklets(path).report.n_used == 8
    writer.join()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_devices():
    with pytest.raises(ObservationFormatError, match="zero bytes"):
        nr.read_tracklets("/dev/zero")
    with pytest.raises(ObservationFormatError, match="empty"):
        nr.read_tracklets("/dev/null")


def test_a_folder_and_a_wrong_encoding(tmp_path):
    with pytest.raises(ObservationFormatError, match="folder"):
        read_source(tmp_path)
    path = tmp_path / "latin"
    path.write_bytes(b"\xe9" + CONTENT)
    with (
        path.open(encoding="utf-8") as file,
        pytest.raises(ObservationFormatError, match="binary mode"),
    ):
        read_source(file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("night.obs80", False),
        ("/data/2024 12 27/night.txt", False),
        ("2024 12 27.5 night.obs80", False),
        ("[old] night.txt", False),
        ("a\nb", True),
        ("<ades version='2022'>", True),
        ('[{"OBS80": ""}]', True),
        (CONTENT.decode().splitlines()[0], True),
        (CONTENT.decode().splitlines()[0].strip(), True),
        ("2024 YR4|CCD|W68|2024-12-27T05:42:49Z|1|2", True),
    ],
)
def test_text_and_paths(text, expected):
    assert is_text(text) == expected


def test_what_was_read_passes_through():
    text = Text(CONTENT, "night")
    assert read_source(text) is text
