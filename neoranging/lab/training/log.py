"""The course of a training, one row per epoch: as CSV, and for TensorBoard."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from neoranging.lab.training.tensorboard import EventFile

Row = Mapping[str, float]


class RunLog:
    """``log.csv`` and a file of events in the folder of a run.

    Both are written anew from the epochs that are done and then grow, so that a run that goes on
    after a kill tells of no epoch twice.

    Parameters
    ----------
    folder : path-like
    history : sequence of mapping
        Rows of the epochs that are done; each has ``epoch``.
    """

    def __init__(self, folder: str | Path, history: Sequence[Row] = ()) -> None:
        self._csv = (Path(folder) / "log.csv").open("w", newline="", encoding="utf-8")
        self._events = EventFile(Path(folder) / "events.out.tfevents.training")
        self._writer: csv.DictWriter[str] | None = None
        for row in history:
            self.add(row)

    def add(self, row: Row) -> None:
        """Write the row of one epoch; the first row decides the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._csv, list(row), lineterminator="\n")
            self._writer.writeheader()
        self._writer.writerow(dict(row))
        self._csv.flush()
        told = {_tag(name): value for name, value in row.items() if name != "epoch"}
        self._events.add(told, int(row["epoch"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._csv.close()
        self._events.close()


def _tag(column: str) -> str:
    """``val_total`` as ``val/total``: TensorBoard groups by what stands before the slash."""
    for part in ("train", "val"):
        if column.startswith(f"{part}_"):
            return column.replace("_", "/", 1)
    return f"run/{column}"
