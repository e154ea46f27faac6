"""Estimates of tables of Dask: the same rows as of one table, in the same order."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from simulated_survey import survey_table

import neoranging as nr
from neoranging.exceptions import ObservationFormatError, UnknownMethodError

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask itself
M = 40


@pytest.fixture(scope="module")
def frame():
    return survey_table(M, seed=4).assign(flag=0)


@pytest.fixture(scope="module")
def expected(frame):
    """Rows of all of it in one partition."""
    return nr.estimate_partitions(dd.from_pandas(frame, npartitions=1, sort=False)).compute()


def same(rows, expected):
    pd.testing.assert_frame_equal(
        rows.reset_index(drop=True), expected.reset_index(drop=True), check_dtype=False
    )


def divided(frame, *bounds):
    """Table with partitions that end at these rows."""
    edges = [0, *bounds, len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(edges)]
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=frame.iloc[:0])


def test_rows_are_those_of_estimates(frame, expected):
    tracklets = nr.read_tracklets(frame)
    table = tracklets.estimate("gauss").to_table().to_pandas().set_index("tracklet")
    table = table.loc[expected["tracklet"]]
    assert len(expected) == len(table)
    assert np.allclose(expected["range_au"], table["range"], rtol=1e-9, equal_nan=True)
    assert expected["status"].tolist() == table["status"].tolist()


@pytest.mark.parametrize("npartitions", [2, 5, 9])
def test_a_border_divides_no_tracklet(frame, expected, npartitions):
    bounds = np.linspace(0, len(frame), npartitions + 1).astype(int)[1:-1]
    ranges = nr.estimate_partitions(divided(frame, *bounds))
    assert ranges.npartitions == npartitions
    rows = ranges.compute(scheduler="synchronous")
    same(rows, expected)


def test_nothing_is_read_before_it_is_asked_for(frame):
    read = []

    def part(k):
        read.append(k)
        return frame

    ranges = nr.estimate_partitions(dd.from_map(part, [0, 1], meta=frame.iloc[:0]))
    assert read == []
    assert list(ranges.columns)[:4] == ["tracklet", "designation", "stations", "epoch_utc"]
    computed = ranges.partitions[0].compute(scheduler="synchronous")
    assert [str(t) for t in computed.dtypes] == [str(t) for t in ranges.dtypes]
    assert read


def test_files_of_parquet_and_an_index_of_ids(frame, expected, tmp_path):
    dd.from_pandas(frame, npartitions=4, sort=False).to_parquet(tmp_path / "in")
    same(nr.estimate_partitions(tmp_path / "in").compute(scheduler="synchronous"), expected)
    indexed = dd.from_pandas(frame.set_index("tracklet"), npartitions=4)
    assert indexed.known_divisions
    same(nr.estimate_partitions(indexed).compute(scheduler="synchronous"), expected)


def test_rows_in_any_order_are_shuffled_before(frame, expected):
    mixed = dd.from_pandas(frame.sample(frac=1.0, random_state=1), npartitions=4, sort=False)
    ranges = nr.estimate_partitions(mixed.shuffle("tracklet"))
    rows = ranges.compute(scheduler="synchronous").sort_values("tracklet")
    same(rows, expected)


def test_partitions_that_tell_nothing_are_refused(frame):
    for bounds in ([50, 50], [50, 51, 52]):
        border = int(frame.index[frame["tracklet"] == frame["tracklet"].iloc[50]][0]) + 1
        table = divided(frame, *(border + bound - 50 for bound in bounds))
        with pytest.raises(ObservationFormatError, match="is empty, or of one object alone"):
            nr.estimate_partitions(table).compute(scheduler="synchronous")
    ends_empty = divided(frame, len(frame))
    assert len(nr.estimate_partitions(ends_empty).compute(scheduler="synchronous"))


def test_mistakes_are_said_at_once(frame):
    table = dd.from_pandas(frame, npartitions=2, sort=False)
    with pytest.raises(ObservationFormatError, match="got DataFrame: neoranging"):
        nr.estimate_partitions(frame)
    with pytest.raises(ObservationFormatError, match="lacks the column"):
        nr.estimate_partitions(table.drop(columns="ra"))
    with pytest.raises(UnknownMethodError):
        nr.estimate_partitions(table, method="none")
    with pytest.raises(ObservationFormatError, match="group_by takes"):
        nr.estimate_partitions(table, group_by="week")


def dying(frame, marks):
    """Partition whose first worker is killed over it."""
    if not Path(marks).exists():
        Path(marks).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.filterwarnings("ignore")  # of sockets and loops of the cluster
def test_a_killed_worker_of_a_cluster_changes_no_row(frame, expected, tmp_path):
    table = divided(frame, *range(30, len(frame), 30))
    mark = str(tmp_path / "killed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        pids = {worker.pid for worker in cluster.workers.values()}
        ranges = nr.estimate_partitions(table.map_partitions(dying, mark, meta=frame.iloc[:0]))
        rows = ranges.compute()
        assert {worker.pid for worker in cluster.workers.values()} != pids
    same(rows, expected)
