"""Client of NEODyS-2: objects, observation files and orbits, fetched politely and kept.

Files lie in the cache under the paths they have on the portal, so that a folder copied from there
serves as well. Which paths these are is the table `neoranging.lab.archive.portal.Portal`.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from neoranging.exceptions import (
    CorruptFileError,
    DownloadError,
    NeoRangingWarning,
    ResourceNotFoundError,
)
from neoranging.lab.archive.http import Politeness, Reply, Transport
from neoranging.lab.archive.manifest import Entry, FileStore, Status, cache_folder
from neoranging.lab.archive.portal import (
    Epoch,
    Kind,
    Portal,
)
from neoranging.lab.archive.validation import check_orbit, check_rwo
from neoranging.records import Counts

if TYPE_CHECKING:
    from astropy.table import QTable

    from neoranging.lab.archive.oef import OrbitRecord


N_SHOWN: Final = 10  # files that the printed report names


class Job(NamedTuple):
    """One file to fetch."""

    key: str
    name: str
    check: Callable[[bytes], None]


class Outcome(NamedTuple):
    """What became of a job."""

    entry: Entry
    is_new: bool = False
    failed: bool = False


@dataclass(frozen=True)
class DownloadReport:
    """What became of every file that was asked for.

    Attributes
    ----------
    entries : tuple of Entry
        One per file, in the order asked for.
    n_new : int
        Files that this call fetched; the others had been there.
    """

    entries: tuple[Entry, ...]
    n_new: int

    @property
    def counts(self) -> Counts:
        """Files asked for, at hand, and missing by reason."""
        dropped = Counter(_category(entry) for entry in self.problems)
        return Counts(len(self.entries), len(self.entries) - len(self.problems), dropped)

    @property
    def problems(self) -> tuple[Entry, ...]:
        """Entries of files that are not at hand."""
        return tuple(entry for entry in self.entries if entry.status is not Status.OK)

    @property
    def n_failed(self) -> int:
        """Number of files that did not arrive, and may at another time."""
        return sum(entry.status is Status.FAILED for entry in self.entries)

    def __str__(self) -> str:
        lines = [f"files: {self.counts}", f"  {self.n_new:8d} asked for now, the rest was settled"]
        shown = self.problems[:N_SHOWN]
        lines += [f"    {entry.key}: {entry.reason}" for entry in shown]
        if len(self.problems) > len(shown):
            lines.append(f"    ... and {len(self.problems) - len(shown)} more, see manifest.jsonl")
        return "\n".join(lines)


class NeodysClient:
    """Objects, observations and orbits of the portal, each fetched once.

    Parameters
    ----------
    folder : path-like, optional
        Where files are kept; the cache folder of the user by default, see
        ``neoranging.lab.archive.manifest.cache_folder``.
    portal : Portal or str, optional
        Where they come from, or the base address alone.
    politeness : Politeness, optional
        Rates, limits and patience.
    transport : Transport, optional
        In place of one made from ``politeness``.

    Raises
    ------
    MissingDependencyError
        If requests is not installed (extra ``remote``).
    BusyFolderError
        If another process works in the folder.

    Examples
    --------
    ::

        with NeodysClient() as neodys:
            table = neodys.observations("2024 YR4")
            orbit = neodys.orbit("2024 YR4")
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        portal: Portal | str | None = None,
        politeness: Politeness | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.portal = portal if isinstance(portal, Portal) else Portal(base_url=portal or "")
        self._transport = transport or Transport(politeness)
        self.store = FileStore(folder or cache_folder("neodys"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and give the folder free."""
        self._transport.close()
        self.store.close()

    # One file ------------------------------------------------------------------------------------

    def catalogue(self, *, refresh: bool = False) -> QTable:
        """Orbits of all objects near the present, as ``archive.oef.read_catalogue`` reads them.

        Parameters
        ----------
        refresh : bool
            Ask the portal whether it has a newer version than the one at hand.

        Raises
        ------
        DownloadError
            If it cannot be had.
        CorruptFileError
            If something else came.
        """
        from neoranging.lab.archive.oef import read_catalogue

        return read_catalogue(self._one(Job(self.portal.catalogue, "", check_orbit), refresh))

    def observations(self, designation: str, *, refresh: bool = False) -> QTable:
        """Observation table of one object, see `neoranging.observations.rwo.read.read_rwo`.

        Raises
        ------
        ResourceNotFoundError
            If the portal does not have the object.
        DownloadError, CorruptFileError
            As for the catalogue.
        """
        from neoranging.observations.rwo.read import read_rwo

        return read_rwo(self._one(self._observation_job(designation), refresh))

    def orbit(
        self,
        designation: str,
        *,
        kind: Kind = "keplerian",
        epoch: Epoch = "present",
        refresh: bool = False,
    ) -> OrbitRecord:
        """Orbit of one object with its covariance, see `neoranging.lab.archive.oef.OrbitRecord`.

        Parameters
        ----------
        designation : str
        kind : {"keplerian", "equinoctial"}
        epoch : {"present", "middle"}
            Near today, or in the middle of the observed arc.
        refresh : bool
            As for the catalogue.

        Raises
        ------
        ResourceNotFoundError, DownloadError, CorruptFileError
            As for the observations.
        """
        from neoranging.lab.archive.oef import read_orbit

        job = self._orbit_job(designation, kind, epoch)
        return read_orbit(self._one(job, refresh), url=self.portal.url(job.key))

    def _one(self, job: Job, refresh: bool) -> Path:
        """Path of a file, fetched if need be."""
        entry = self._fetch(job, refresh=refresh, again=True).entry
        if entry.status is Status.OK:
            if entry.reason:
                warnings.warn(f"{job.key} is {entry.reason}", NeoRangingWarning, stacklevel=3)
            return self.store.path(entry.key)
        what = f"{entry.url}: {entry.reason}"
        if entry.status is Status.SET_ASIDE:
            raise CorruptFileError(f"{what}; kept in {self.store.folder / 'set_aside'} to look at")
        if entry.status is Status.ABSENT:
            raise ResourceNotFoundError(f"{what}; check the name", entry.url, 404)
        raise DownloadError(what, entry.url, attempts=entry.attempts)

    # Many files ----------------------------------------------------------------------------------

    def names(self, *, refresh: bool = False) -> list[str]:
        """Designations of all objects, in the order of the catalogue."""
        return list(self.catalogue(refresh=refresh)["designation"])

    def observation_files(self, designations: Iterable[str]) -> list[Job]:
        """What to fetch for the observations of objects."""
        return [self._observation_job(name) for name in designations]

    def orbit_files(
        self, designations: Iterable[str], kind: Kind = "keplerian", epoch: Epoch = "middle"
    ) -> list[Job]:
        """What to fetch for the orbits of objects."""
        return [self._orbit_job(name, kind, epoch) for name in designations]

    def download(
        self,
        jobs: Sequence[Job],
        *,
        refresh: bool = False,
        again: bool = False,
        max_failures: int = 5,
        on_step: Callable[[int], Any] = lambda _: None,
    ) -> DownloadReport:
        """Fetch many files; what is at hand already is not fetched again.

        Parameters
        ----------
        jobs : sequence of Job
            From `observation_files` and `orbit_files`.
        refresh : bool
            Ask for newer versions of files at hand.
        again : bool
            Also retry what the portal did not have, and what was set aside as corrupt. What failed
            to arrive is always tried again.
        max_failures : int
            Files in a row that fail before the portal is taken to be down.
        on_step : callable
            Called with 1 after each file, in this thread; for a progress bar.

        Raises
        ------
        DownloadError
            If the portal is down. All that came is kept: call again to go on.
        """
        jobs = list({job.key: job for job in jobs}.values())
        outcomes: dict[str, Outcome] = {}
        failures = 0
        self._transport.start()
        with ThreadPoolExecutor(self._transport.politeness.concurrency) as pool:
            futures = [pool.submit(self._fetch, job, refresh=refresh, again=again) for job in jobs]
            try:
                for future in as_completed(futures):
                    outcome = future.result()
                    outcomes[outcome.entry.key] = outcome
                    failures = 0 if outcome.is_new else failures + outcome.failed
                    if failures >= max_failures:
                        raise _portal_down(outcome.entry, failures, len(outcomes), len(jobs))
                    on_step(1)
            except BaseException:
                self._transport.stop()
                _cancel(futures)
                raise
        return DownloadReport(
            tuple(outcomes[job.key].entry for job in jobs),
            sum(outcome.is_new for outcome in outcomes.values()),
        )

    # The parts -----------------------------------------------------------------------------------

    def _observation_job(self, designation: str) -> Job:
        return Job(self.portal.observation_path(designation), designation, check_rwo)

    def _orbit_job(self, designation: str, kind: Kind, epoch: Epoch) -> Job:
        return Job(self.portal.orbit_path(designation, kind, epoch), designation, check_orbit)

    def _fetch(self, job: Job, *, refresh: bool, again: bool) -> Outcome:
        """Have one file at hand, and its line in the manifest."""
        old = self.store.get(job.key)
        at_hand = old is not None and old.status is Status.OK and self.store.is_whole(old)
        if old and at_hand and not refresh:
            return Outcome(old)
        if old and old.status in (Status.ABSENT, Status.SET_ASIDE) and not (again or refresh):
            return Outcome(old)
        version = (old.etag, old.last_modified) if old and at_hand else ("", "")
        entry, content = self._ask(job, version)
        if old and at_hand and entry.status is not Status.OK:
            return self._keep_old(old, entry, content)
        if old and at_hand and content is None:
            return Outcome(self.store.record(replace(old, attempts=entry.attempts)))
        if content is None:
            failed = entry.status is Status.FAILED
            return Outcome(self.store.record(entry), is_new=not failed, failed=failed)
        return Outcome(self.store.put(entry, content), is_new=True)

    def _keep_old(self, old: Entry, entry: Entry, content: bytes | None) -> Outcome:
        """What is at hand stays, whatever became of the attempt to renew it."""
        if content is not None:
            self.store.write(entry, content)
        kept = replace(old, reason=f"not renewed: {entry.reason}")
        return Outcome(kept, failed=entry.status is Status.FAILED)

    def _ask(self, job: Job, version: tuple[str, str]) -> tuple[Entry, bytes | None]:
        """Ask the portal; the content is None where there is none, or none that is new."""
        url = self.portal.url(job.key)
        entry = Entry(key=job.key, name=job.name, url=url, status=Status.OK)
        try:
            reply = self._transport.get(url, etag=version[0], last_modified=version[1])
        except ResourceNotFoundError:
            return replace(entry, status=Status.ABSENT, reason="the portal has no such file"), None
        except DownloadError as error:
            reason = str(error).removeprefix(f"{url}: ")
            failed = replace(entry, status=Status.FAILED, reason=reason, attempts=error.attempts)
            return failed, None
        return _checked(job, entry, reply)


def _category(entry: Entry) -> str:
    """What went wrong, without the details that differ from file to file."""
    if entry.status is Status.SET_ASIDE:
        return f"set aside, {entry.reason.split(':')[0]}"
    return "not on the portal" if entry.status is Status.ABSENT else "did not arrive"


def _checked(job: Job, entry: Entry, reply: Reply) -> tuple[Entry, bytes | None]:
    entry = replace(
        entry, attempts=reply.attempts, etag=reply.etag, last_modified=reply.last_modified
    )
    if reply.not_modified:
        return entry, None
    try:
        job.check(reply.content)
    except CorruptFileError as error:
        return replace(entry, status=Status.SET_ASIDE, reason=str(error)), reply.content
    return entry, reply.content


def _portal_down(entry: Entry, failures: int, done: int, total: int) -> DownloadError:
    return DownloadError(
        f"the last {failures} files did not arrive ({entry.url}: {entry.reason}); {done} of "
        f"{total} were dealt with and are kept: run the same command again to go on from there",
        entry.url,
        attempts=entry.attempts,
    )


def _cancel(futures: Iterable[Future[Outcome]]) -> None:
    for future in futures:
        future.cancel()
