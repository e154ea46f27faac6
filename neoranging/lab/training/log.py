"""The course of a training, one row per epoch: as CSV, and for TensorBoard."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from neoranging.exceptions import extra

Row = Mapping[str, float]


def event_writer() -> Callable[..., Any]:
    """Class of tensorboardX that writes events of TensorBoard.

    Raises
    ------
    MissingDependencyError
        If tensorboardX is not installed.
    """
    with extra("lab", "events of TensorBoard", "read log.csv instead"):
        from tensorboardX import SummaryWriter
    writer: Callable[..., Any] = SummaryWriter
    return writer


class RunLog:
    """``log.csv`` in the folder of a run, and events of TensorBoard if a writer is given.

    Both are written anew from the epochs that are done and then grow, so that a run that goes on
    after a kill shows no epoch twice.

    Parameters
    ----------
    folder : path-like
    history : sequence of mapping
        Rows of the epochs that are done; each has ``epoch``.
    open_events : callable, optional
        Result of `event_writer`.
    """

    def __init__(
        self,
        folder: str | Path,
        history: Sequence[Row] = (),
        open_events: Callable[..., Any] | None = None,
    ) -> None:
        self._csv = (Path(folder) / "log.csv").open("w", newline="", encoding="utf-8")
        self._writer: csv.DictWriter[str] | None = None
        if open_events or not history:
            for events in Path(folder).glob("events.out.tfevents.*"):
                events.unlink()
        self._events = open_events(str(folder)) if open_events else None
        for row in history:
            self.add(row)

    def add(self, row: Row) -> None:
        """Write the row of one epoch; the first row decides the columns."""
        if self._writer is None:
            self._writer = csv.DictWriter(self._csv, list(row), lineterminator="\n")
            self._writer.writeheader()
        self._writer.writerow(dict(row))
        self._csv.flush()
        if self._events is None:
            return
        for name, value in row.items():
            # TensorBoard groups by the word before the slash: ``val_total`` is ``val/total``
            part, _, rest = name.partition("_")
            tag = f"{part}/{rest}" if part in {"train", "val"} else f"run/{name}"
            if name != "epoch":
                self._events.add_scalar(tag, value, int(row["epoch"]))
        self._events.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._csv.close()
        if self._events is not None:
            self._events.close()
