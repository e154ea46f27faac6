"""Work dealt to several processes, none of which outlives the one that deals it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from neoranging.exceptions import DatasetError

T = TypeVar("T")
Result = TypeVar("Result")

_TASK: dict[str, Callable[[Any], Any]] = {}


def in_processes(
    task: Callable[[T], Result], items: Iterable[T], workers: int
) -> Generator[Result, None, None]:
    """Results of a task for each item, in order, a few at a time.

    Parameters
    ----------
    task : callable
        Sent once to each process.
    items : iterable
    workers : int
        Processes. They end when the generator is closed, when this process is interrupted, and
        when it is killed.

    Raises
    ------
    DatasetError
        If a process was killed.
    """
    context = multiprocessing.get_context("spawn")
    # its other end closes with this process, whatever ends it: then the workers end as well
    lifeline, own_end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(lifeline, task))
    try:
        # few at a time: results that wait to be taken are memory
        running: deque[Future[Result]] = deque()
        for item in items:
            with _undisturbed():
                running.append(pool.submit(_work, item))
            if len(running) > workers + 1:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    except BrokenProcessPool as error:
        raise DatasetError(
            "a worker was killed, perhaps for want of memory; what is written is kept: give the "
            "command once more to go on, with fewer workers"
        ) from error
    finally:
        own_end.close()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold signals back while processes start; these begin, and stay, deaf to an interrupt.

    A terminal sends its interrupt to all processes of a command, and this one ends the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(lifeline: Connection, task: Callable[[Any], Any]) -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _TASK["task"] = task
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """Wait for the end of the process that holds the other end of a pipe, and end then."""
    try:
        lifeline.poll(None)
    finally:
        os._exit(1)


def _work(item: Any) -> Any:
    return _TASK["task"](item)
