"""Work dealt to several processes, in order, none of which outlives the one that deals it.

A process that is killed costs nothing but time: its item is given to another.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Final, TypeVar

from neoranging.exceptions import NeoRangingError, extra

T = TypeVar("T")
Result = TypeVar("Result")

TRIES: Final = 3
"""Processes that may be lost over one item."""

_THREADS: Final = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")]
"""Variables from which numerical libraries take their number of threads when they are loaded."""


def deal(
    task: Callable[[T], Result],
    items: Iterable[T],
    workers: int = 1,
    scheduler: str | None = None,
) -> Generator[Result, None, None]:
    """Results of a task for each item, in order: here, in processes, or on a cluster.

    Parameters
    ----------
    task : callable
        Pure: an item may be worked on more than once.
    items : iterable
    workers : int
        Processes; 1 works in this one.
    scheduler : str, optional
        Address of a scheduler of Dask, whose workers do the work instead.
    """
    if scheduler is not None:
        return on_cluster(task, items, scheduler)
    if workers > 1:
        return in_processes(task, items, workers)
    return (task(item) for item in items)


# Processes of this machine ------------------------------------------------------------------------


@dataclass
class _Job:
    """An item on its way through a worker."""

    number: int
    item: Any
    losses: int = 0


class _Worker:
    """A process that waits for items, and this end of the pipe to it."""

    def __init__(self, task: Callable[[Any], Any], lifeline: Connection) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.job: _Job | None = None
        arguments = (other, lifeline, task)
        self.process = context.Process(target=_serve, args=arguments, daemon=True)
        with _undisturbed(), _of_one_thread():
            self.process.start()
        other.close()

    def begin(self, job: _Job) -> None:
        """Send an item, to a process that may be gone already."""
        self.job = job
        # a broken pipe has an end, which the next look at it finds
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(job.item)

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join()
        self.process.close()


def in_processes(
    task: Callable[[T], Result], items: Iterable[T], workers: int
) -> Generator[Result, None, None]:
    """Results of a task for each item, in order, a few at a time.

    Parameters
    ----------
    task : callable
        Sent once to each process. Pure: the item of a process that is lost is done again.
    items : iterable
        An item of which ``str`` says in words what it is, is called so in errors.
    workers : int
        Processes, of one thread each. They end when the generator is closed, when this process is
        interrupted, and when it is killed.

    Raises
    ------
    NeoRangingError
        If several processes were lost over one item.
    """
    # its other end closes with this process, whatever ends it: then the workers end as well
    lifeline, own_end = multiprocessing.get_context("spawn").Pipe(duplex=False)
    jobs = (_Job(number, item) for number, item in enumerate(items))
    ready: deque[_Job] = deque()  # read ahead, and those to be done again
    done: dict[int, Result] = {}  # results that wait for one before them
    pool: list[_Worker] = []
    n_read = due = 0
    try:
        while True:
            # few at a time: items and results that wait are memory
            room = min(workers - len(ready), due + 3 * workers - n_read)
            ready.extend(islice(jobs, max(0, room)))
            n_read = max([n_read, *(job.number + 1 for job in ready)])
            idle = [worker for worker in pool if worker.job is None]
            while ready and (idle or len(pool) < workers):
                if not idle:
                    idle = [_Worker(task, lifeline)]
                    pool += idle
                idle.pop().begin(ready.popleft())
            busy = {worker.connection: (worker, worker.job) for worker in pool if worker.job}
            if not busy:
                return
            for connection in wait(list(busy)):
                worker, job = busy[connection]  # type: ignore[index]
                worker.job = None
                try:
                    succeeded, result = worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    pool.remove(worker)
                    ready.appendleft(_lost(worker, job))
                    continue
                if not succeeded:
                    raise result
                done[job.number] = result
            while due in done:
                yield done.pop(due)
                due += 1
    finally:
        own_end.close()
        for worker in pool:
            worker.end()
        lifeline.close()


def _lost(worker: _Worker, job: _Job) -> _Job:
    """Job of a process that is gone, to be done by another; an error after several of them."""
    worker.process.join()
    code = worker.process.exitcode
    worker.end()
    if job.losses + 1 < TRIES:
        return _Job(job.number, job.item, job.losses + 1)
    by = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    raise NeoRangingError(
        f"{TRIES} worker processes ended {by} over {job.item}, perhaps for want of memory; what is "
        "written is kept: give the command once more to go on, with fewer workers"
    )


@contextmanager
def _of_one_thread() -> Iterator[None]:
    """Environment in which processes that start have one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold signals back while processes start; these begin, and stay, deaf to an interrupt.

    A terminal sends its interrupt to all processes of a command, and this one ends the others.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    # beside the first process Python starts one of its own, and then lets signals through again
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, lifeline: Connection, task: Callable[[Any], Any]) -> None:
    """Work on items until there are no more."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            answer = True, task(item)
        except Exception as error:  # to be raised where the results are read
            answer = False, error
        try:
            connection.send(answer)
        except (TypeError, AttributeError, ValueError) as error:  # what no pipe carries
            connection.send((False, NeoRangingError(f"{answer[1]!r} cannot be sent: {error}")))


def _end_with(lifeline: Connection) -> None:
    """Wait for the end of the process that holds the other end of a pipe, and end then."""
    try:
        lifeline.poll(None)
    finally:
        os._exit(1)


# A cluster ----------------------------------------------------------------------------------------


def on_cluster(
    task: Callable[[T], Result], items: Iterable[T], scheduler: str
) -> Generator[Result, None, None]:
    """Results of a task for each item, in order, from the workers of a cluster of Dask.

    Parameters
    ----------
    task : callable
        Sent with each item, so that it should be small. Workers import this package.
    items : iterable
    scheduler : str
        Address, such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    MissingDependencyError
        Without the extra ``dask``.
    NeoRangingError
        If no scheduler answers there.
    """
    with extra("dask", "clusters"):
        from distributed import Client
    try:
        client = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NeoRangingError(
            f"no scheduler of Dask answers at {scheduler!r} ({error}): start one with `dask "
            "scheduler`, workers with `dask worker ADDRESS`, and give its address"
        ) from error
    with client:
        running: deque[Any] = deque()
        for item in items:
            # each submission is a task of its own, even of equal items
            running.append(client.submit(task, item, pure=False))
            if len(running) > 2 * max(1, sum(client.nthreads().values())):
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
