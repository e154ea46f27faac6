"""Estimates piece by piece: the same rows whatever the pieces, the processes, and who is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from simulated_survey import survey_table

import neoranging as nr
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.recurrence import Seen, bounds_of, keys_of
from neoranging.samples import sample
from neoranging.streaming import Estimation, Tally, estimate_files

pytest.importorskip("pyarrow")
M = 60


@pytest.fixture(scope="module")
def frame():
    """Observations of M tracklets with ids in no order of names or times."""
    return survey_table(M, seed=1, names=np.random.default_rng(3).permutation(M))


@pytest.fixture(scope="module")
def survey(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.parquet"
    frame.to_parquet(path)
    return path


def estimated(paths, out, *, form="csv", **options):
    estimation = Estimation(nr.get_estimator("gauss"), form=form)
    return estimate_files(paths, out, estimation, **options)


def test_rows_are_those_of_all_at_once_in_the_order_of_the_input(survey, frame, tmp_path):
    out = tmp_path / "out.parquet"
    tally = estimated([survey], out, form="parquet", size=40)
    rows = pd.read_parquet(out)
    ids = frame["tracklet"].drop_duplicates().tolist()
    assert rows["tracklet"].tolist() == ids
    whole = nr.read_tracklets(survey).estimate("gauss")
    table = whole.to_table().to_pandas().set_index("tracklet").loc[ids]
    assert np.allclose(rows["range_au"], table["range"], rtol=1e-9, equal_nan=True)
    assert np.allclose(rows["range_high_au"], table["range_high"], rtol=1e-9, equal_nan=True)
    assert rows["status"].tolist() == table["status"].tolist()
    assert tally.n_tracklets == M
    assert tally.statuses == table["status"].value_counts().to_dict()
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_do_not_depend_on_the_pieces(survey, tmp_path, form):
    outs = [tmp_path / f"{size}.{form}" for size in (30, 100, 10_000)]
    tallies = [estimated([survey], out, form=form, size=int(out.stem)) for out in outs]
    assert tallies[0] == tallies[1] == tallies[2]
    if form == "csv":
        assert len({out.read_bytes() for out in outs}) == 1
    else:
        first, *others = map(pd.read_parquet, outs)
        assert all(first.equals(other) for other in others)


def test_what_was_done_is_not_done_again(survey, tmp_path, monkeypatch):
    out, whole = tmp_path / "out.csv", tmp_path / "whole.csv"
    estimated([survey], whole, size=40)
    answered = []
    answer = Estimation.answer

    def failing(self, piece):
        if len(answered) == 3:
            raise KeyboardInterrupt
        answered.append(piece.number)
        return answer(self, piece)

    monkeypatch.setattr(Estimation, "answer", failing)
    with pytest.raises(KeyboardInterrupt):
        estimated([survey], out, size=40)
    assert not out.exists()
    assert answered == [0, 1, 2]

    def noted(self, piece):
        answered.append(piece.number)
        return answer(self, piece)

    monkeypatch.setattr(Estimation, "answer", noted)
    shares = []
    tally = estimated([survey], out, size=40, progress=lambda share, n: shares.append((share, n)))
    assert answered == list(range(answered[-1] + 1))
    assert out.read_bytes() == whole.read_bytes()
    assert shares[-1] == (1.0, M)
    assert tally.n_tracklets == M
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "whole.csv"]


@pytest.mark.parametrize("change", ["size", "method", "input", "level"])
def test_parts_of_another_run_are_dropped(survey, frame, tmp_path, monkeypatch, change):
    path, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    path.write_bytes(survey.read_bytes())
    answer = Estimation.answer

    def failing(self, piece):
        if piece.number == 2:
            raise KeyboardInterrupt
        return answer(self, piece)

    with monkeypatch.context() as patched:
        patched.setattr(Estimation, "answer", failing)
        with pytest.raises(KeyboardInterrupt):
            estimated([path], out, size=40)
    assert len(list((tmp_path / "out.csv.unfinished").glob("*.rows"))) == 2
    method, level, size = "gauss", 0.68, 40
    match change:
        case "size":
            size = 100
        case "method":
            method = "laplace"
        case "level":
            level = 0.9
        case "input":
            frame.iloc[::-1].to_parquet(path)
    estimation = Estimation(nr.get_estimator(method), level, form="csv")
    estimate_files([path], out, estimation, size=size)
    fresh = tmp_path / "fresh.csv"
    estimate_files([path], fresh, estimation, size=size)
    assert out.read_bytes() == fresh.read_bytes()


def test_a_tracklet_in_two_places_is_an_error_that_names_it(frame, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    first = frame["tracklet"] == frame["tracklet"].iloc[0]
    pd.concat([frame.iloc[1:], frame.iloc[:1]]).to_csv(path, index=False)
    assert first.sum() > 1
    name = frame["tracklet"].iloc[0]
    with pytest.raises(ObservationFormatError, match=f"observations of tracklet {name} in one"):
        estimated([path], out, size=30)
    estimated([path], out, size=100_000)  # within a piece it is no matter
    assert pd.read_csv(out)["n_observations"].sum() == len(frame)


def test_an_object_may_come_again_in_another_night(frame, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    later = frame.assign(
        obstime=(pd.to_datetime(frame["obstime"]) + pd.Timedelta(days=3)).dt.strftime(
            "%Y-%m-%dT%H:%M:%S.%f"
        )
    )
    both = pd.concat([frame, later]).rename(columns={"tracklet": "designation"})
    both.to_csv(path, index=False)
    assert estimated([path], out, size=30).n_tracklets == 2 * M


def test_records_are_accounted_for_over_all_pieces(frame, tmp_path):
    """As the readers do for a whole file, with lines of the file."""
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    bad = frame.copy()
    bad.loc[[5, 90, 200], "dec"] = np.nan
    bad.loc[len(bad)] = ["2021-01-01T00:00:00", 1.0, 2.0, "G96", "alone"]
    bad.to_csv(path, index=False)
    tally = estimated([path], out, size=40)
    report = nr.read_tracklets(path).report
    (count,) = tally.records.counts.values()
    assert (count.n_read, count.n_used) == (report.reading[0].n_read, report.reading[0].n_used)
    assert count.reasons == {"cannot be parsed": 3}
    assert tally.observations.reasons == report.reasons
    assert tally.n_tracklets == report.n_tracklets
    text = str(tally)
    for line in (7, 92, 202):
        assert f"in.csv, line {line}: no declination" in text
    assert "1 set aside: alone" in text
    assert Tally.from_json(tally.to_json()).headline() == tally.headline()


def test_warnings_of_pieces_are_given_once(frame, tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    frame.assign(station="QQQ").to_csv(path, index=False)
    with pytest.warns(NeoRangingWarning) as caught:
        estimated([path], out, size=40)
    texts = [str(one.message) for one in caught]
    assert any("QQQ" in text for text in texts)
    assert len(texts) == len(set(texts))


def test_several_files_of_several_formats(frame, tmp_path):
    n = int(np.flatnonzero(frame["tracklet"] != frame["tracklet"].shift())[20])
    frame.iloc[:n].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[n:].to_parquet(tmp_path / "b.parquet")
    paths = [tmp_path / "a.csv", tmp_path / "b.parquet", sample("impactors")]
    rows = estimated(paths, tmp_path / "out.csv", size=50).records.counts
    assert [count.n_read for count in rows.values()] == [n, len(frame) - n, 34]


# What is seen of the pieces ----------------------------------------------------------------------


def identities(labels, night=1):
    from neoranging.grouping import Identities

    n = len(labels)
    return Identities(np.array(labels), np.full(n, "G96"), np.full(n, night))


@pytest.mark.parametrize("names", [["a", "b", "c"], ["8", "9", "10"], ["t9", "t10", "t11"]])
def test_names_that_rise_need_no_memory(names):
    def keys_of_piece(number):
        raise AssertionError(f"the keys of piece {number} are not needed")

    seen = Seen(keys_of_piece)
    for number, name in enumerate(names):
        ones = identities([name])
        assert seen.add(number, keys_of(ones), bounds_of(ones)) is None


def test_every_group_is_found_again():
    rng = np.random.default_rng(0)
    pieces = [
        identities([f"{name:x}" for name in rng.choice(10**6, 50, replace=False) * 30 + k])
        for k in range(30)
    ]
    keys = [keys_of(one) for one in pieces]
    assert len(np.unique(np.concatenate(keys))) == 30 * 50
    seen = Seen(lambda number: keys[number])
    for number, one in enumerate(pieces):
        assert seen.add(number, keys[number], bounds_of(one)) is None
    for number in (0, 17, 29):
        again = identities(["new", pieces[number].label[7]])
        assert seen.add(30, keys_of(again), bounds_of(again)) == 1
        other = identities(["new", pieces[number].label[7]], night=2)
        assert seen.add(30, keys_of(other)[1:], bounds_of(other)) is None


def test_keys_are_the_same_whatever_stands_beside():
    one = keys_of(identities(["tracklet 7", "a"]))
    other = keys_of(identities(["a", "a much longer name than these", "tracklet 7"]))
    assert one[0] == other[2]
    assert one[1] == other[0]


# Ends that nobody wants --------------------------------------------------------------------------


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
import neoranging as nr
from neoranging.streaming import Estimation, estimate_files

class Slow(Estimation):
    def answer(self, piece):
        marks = Path({folder!r}) / "pids"
        with marks.open("a") as file:
            file.write(f"{{os.getpid()}} {{piece.number}}\\n")
        time.sleep({delay})
        return super().answer(piece)

if __name__ == "__main__":
    estimation = Slow(nr.get_estimator("gauss"), form={form!r})
    estimate_files([Path({survey!r})], Path({out!r}), estimation, jobs=2, size=40)
"""


def begin(folder, survey, out, form, delay):
    script = folder / "run.py"
    names = {"folder": str(folder), "survey": str(survey), "out": str(out)}
    script.write_text(SCRIPT.format(**names, form=form, delay=delay))
    return subprocess.Popen([sys.executable, script])


def pieces_begun(folder):
    marks = folder / "pids"
    lines = marks.read_text().splitlines() if marks.exists() else []
    return [tuple(map(int, line.split())) for line in lines if line.count(" ") == 1]


def wait_for(condition, process):
    end = time.monotonic() + 120.0
    while not condition():
        assert process.poll() is None, "the run has ended"
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_killed_worker_changes_no_row(survey, tmp_path, form):
    whole, out = tmp_path / f"whole.{form}", tmp_path / f"out.{form}"
    estimated([survey], whole, form=form, size=40)
    process = begin(tmp_path, survey, out, form, delay=0.5)
    wait_for(lambda: len(pieces_begun(tmp_path)) >= 3, process)
    pid, _ = pieces_begun(tmp_path)[-1]
    os.kill(pid, signal.SIGKILL)
    assert process.wait(timeout=120) == 0
    assert out.read_bytes() == whole.read_bytes()
    numbers = [number for _, number in pieces_begun(tmp_path)]
    assert len(numbers) == len(set(numbers)) + 1  # one was done again


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_killed_run_goes_on_to_the_same_bytes(survey, tmp_path, form):
    whole, out = tmp_path / f"whole.{form}", tmp_path / f"out.{form}"
    estimated([survey], whole, form=form, size=40)
    unfinished = tmp_path / f"out.{form}.unfinished"
    process = begin(tmp_path, survey, out, form, delay=0.3)
    wait_for(lambda: len(list(unfinished.glob("0*.json"))) >= 2, process)
    process.kill()
    process.wait()
    assert not out.exists()
    kept = len(list(unfinished.glob("0*.json")))
    (tmp_path / "pids").unlink()
    process = begin(tmp_path, survey, out, form, delay=0.0)
    assert process.wait(timeout=120) == 0
    assert out.read_bytes() == whole.read_bytes()
    assert min(number for _, number in pieces_begun(tmp_path)) == kept
    assert not unfinished.exists()
