"""The log of a run: a table, and events that tensorboardX can read again."""

import builtins

import pytest

from neoranging.exceptions import MissingDependencyError
from neoranging.lab.training.log import RunLog, event_writer

ROWS = [{"epoch": k, "seconds": 1.5, "train_total": 0.1 * k} for k in (1, 2, 3)]


def events(folder):
    """Scalars of the one file of events, by step."""
    from tensorboardX.proto.event_pb2 import Event

    (path,) = folder.glob("events.out.tfevents.*")
    content, at, found = path.read_bytes(), 0, {}
    while at < len(content):
        # a record: length, its checksum, content, its checksum
        length = int.from_bytes(content[at : at + 8], "little")
        event = Event.FromString(content[at + 12 : at + 12 + length])
        for value in event.summary.value:
            found.setdefault(event.step, {})[value.tag] = value.simple_value
        at += 16 + length
    return found


def test_a_log_begins_with_what_is_done(tmp_path):
    pytest.importorskip("tensorboardX")
    with RunLog(tmp_path, (), event_writer()) as log:
        for row in ROWS:
            log.add(row)
    with RunLog(tmp_path, ROWS[:2], event_writer()) as log:
        log.add(ROWS[2])
    assert (tmp_path / "log.csv").read_text().splitlines() == [
        "epoch,seconds,train_total",
        "1,1.5,0.1",
        "2,1.5,0.2",
        f"3,1.5,{0.1 * 3}",
    ]
    scalars = events(tmp_path)
    assert sorted(scalars) == [1, 2, 3]
    assert scalars[2] == {"run/seconds": 1.5, "train/total": pytest.approx(0.2)}


def test_no_events_unless_asked_for(tmp_path):
    with RunLog(tmp_path) as log:
        log.add(ROWS[0])
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_missing_package_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name == "tensorboardX":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"tensorboardX.*\[lab\]"):
        event_writer()
