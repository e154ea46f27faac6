"""Event files, checked record by record against the published formats."""

import struct

import pytest

from neoranging.lab.training.log import RunLog
from neoranging.lab.training.tensorboard import EventFile, _checksum


def test_the_checksum_of_the_standard():
    """CRC-32C of "123456789" is e3069283 (RFC 3720, B.4 gives 32 zero bytes: 8a9136aa)."""
    for content, plain in ((b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)):
        masked = ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert _checksum(content) == struct.pack("<I", masked)


def records(path):
    content, at = path.read_bytes(), 0
    while at < len(content):
        head = content[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        assert content[at + 8 : at + 12] == _checksum(head)
        body = content[at + 12 : at + 12 + length]
        assert content[at + 12 + length : at + 16 + length] == _checksum(body)
        yield fields(body)
        at += 16 + length


def fields(body):
    """Fields of a protocol buffer, by number; repeated ones as lists."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(body):
        key = varint()
        size = {0: None, 1: 8, 5: 4}.get(key & 7, -1)
        if size is None:
            value = varint()
        else:
            size = varint() if size < 0 else size
            value, at = body[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def scalars(record):
    values = (fields(value) for value in fields(record[5][0])[1])
    return {v[1][0].decode(): struct.unpack("<f", v[2][0])[0] for v in values}


def test_events(tmp_path):
    path = tmp_path / "events.out.tfevents.x"
    with EventFile(path) as events:
        events.add({"train/total": 0.5, "val/total": -2.0}, 1)
        events.add({"train/total": 0.25}, 300)
    version, first, second = records(path)
    assert version[3] == [b"brain.Event:2"]
    assert first[2] == [1]
    assert scalars(first) == {"train/total": 0.5, "val/total": -2.0}
    assert second[2] == [300]
    assert scalars(second) == {"train/total": 0.25}
    assert struct.unpack("<d", first[1][0])[0] > 1.7e9


def test_a_log_begins_with_what_is_done(tmp_path):
    rows = [{"epoch": k, "seconds": 1.5, "train_total": 0.1 * k} for k in (1, 2, 3)]
    with RunLog(tmp_path) as log:
        for row in rows:
            log.add(row)
    with RunLog(tmp_path, rows[:2]) as log:
        log.add(rows[2])
    assert (tmp_path / "log.csv").read_text().splitlines() == [
        "epoch,seconds,train_total",
        "1,1.5,0.1",
        "2,1.5,0.2",
        f"3,1.5,{0.1 * 3}",
    ]
    _, *told = records(tmp_path / "events.out.tfevents.training")
    assert [record[2] for record in told] == [[1], [2], [3]]
    assert scalars(told[1]) == {"run/seconds": 1.5, "train/total": pytest.approx(0.2)}
