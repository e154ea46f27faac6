"""Client of NEODyS-2: objects, observation files and orbits, fetched politely and kept.

Files lie in the cache under the paths they have on the portal, so that a folder copied from there
serves as well. Which paths these are is the table ``archive.portal.Portal``.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from neoranging.exceptions import (
    CorruptFileError,
    DownloadError,
    NeoRangingWarning,
    ResourceNotFoundError,
)
from neoranging.lab.archive.http import Politeness, Transport
from neoranging.lab.archive.manifest import SET_ASIDE, FileRecord, FileStore, Status
from neoranging.lab.archive.oef import OrbitRecord, read_catalogue, read_orbit
from neoranging.lab.archive.portal import Epoch, Kind, Portal, RemoteFile
from neoranging.observations.rwo.read import read_rwo
from neoranging.records import RecordCount

if TYPE_CHECKING:
    from astropy.table import QTable


N_SHOWN: Final = 10  # files that the printed report names
NOT_ARRIVED: Final = "did not arrive"
CACHE_VARIABLE: Final = "NEORANGING_CACHE"


@dataclass(frozen=True)
class DownloadReport:
    """Account of the files that a download was asked for.

    Attributes
    ----------
    files : tuple of FileRecord
        One per file, in the order asked for.
    n_asked : int
        Files that the portal was asked for by this call; of the others the answer was at hand.
    """

    files: tuple[FileRecord, ...]
    n_asked: int

    @property
    def problems(self) -> tuple[FileRecord, ...]:
        """Files that are not at hand."""
        return tuple(file for file in self.files if file.status is not Status.OK)

    @property
    def count(self) -> RecordCount:
        """Number of files asked for, at hand, and missing by reason."""
        words = {Status.ABSENT: "not on the portal", Status.FAILED: NOT_ARRIVED}
        reasons = Counter(
            # the details behind the colon differ from file to file
            words.get(file.status) or f"not what it should be, {file.reason.split(':')[0]}"
            for file in self.problems
        )
        return RecordCount(len(self.files), len(self.files) - len(self.problems), reasons)

    @property
    def n_failed(self) -> int:
        """Number of files that did not arrive, and may at another time."""
        return self.count.reasons.get(NOT_ARRIVED, 0)

    def __str__(self) -> str:
        problems = self.problems
        lines = [
            self.count.headline("file"),
            *self.count.reason_lines(),
            f"  {self.n_asked:6d} asked for now, the rest was settled",
            *(f"    {file.key}: {file.reason}" for file in problems[:N_SHOWN]),
        ]
        if len(problems) > N_SHOWN:
            lines.append(f"    ... and {len(problems) - N_SHOWN} more, see manifest.jsonl")
        return "\n".join(lines)


class NeodysClient:
    """Objects, observations and orbits of the portal, each fetched once.

    Parameters
    ----------
    folder : path-like, optional
        Where files are kept; by default ``neodys`` in ``$NEORANGING_CACHE``, or in the cache folder
        of the user.
    portal : Portal or str, optional
        Where they come from, or the base address alone.
    politeness : Politeness, optional
        Rates, limits and patience.

    Raises
    ------
    MissingDependencyError
        If requests is not installed (extra ``lab``).
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
    ) -> None:
        self.portal = portal if isinstance(portal, Portal) else Portal(base_url=portal or "")
        self._transport = Transport(politeness)
        self.store = FileStore(folder or cache_folder())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        return read_catalogue(self._path(self.portal.catalogue_file(), refresh))

    def observations(self, designation: str, *, refresh: bool = False) -> QTable:
        """Observation table of one object, as for every reader.

        Raises
        ------
        ResourceNotFoundError
            If the portal does not have the object.
        DownloadError, CorruptFileError
            As for the catalogue.
        """
        return read_rwo(self._path(self.portal.observation_file(designation), refresh))

    def orbit(
        self,
        designation: str,
        *,
        kind: Kind = "keplerian",
        epoch: Epoch = "present",
        refresh: bool = False,
    ) -> OrbitRecord:
        """Orbit of one object with its covariance.

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
        file = self.portal.orbit_file(designation, kind, epoch)
        return read_orbit(self._path(file, refresh), url=self.portal.url(file.key))

    def _path(self, file: RemoteFile, refresh: bool) -> Path:
        """Path of a file, fetched if need be."""
        record, _ = self._fetch(file, refresh, again=True)
        if record.status is Status.OK:
            if record.reason:
                warnings.warn(f"{file.key} is {record.reason}", NeoRangingWarning, stacklevel=3)
            return self.store.path(file.key)
        msg = f"{record.url}: {record.reason}"
        if record.status is Status.SET_ASIDE:
            raise CorruptFileError(f"{msg}; kept in {self.store.folder / SET_ASIDE} to look at")
        if record.status is Status.ABSENT:
            raise ResourceNotFoundError(msg, record.url, 404)
        raise DownloadError(msg, record.url, attempts=record.attempts)

    # Many files ----------------------------------------------------------------------------------

    def names(self, *, refresh: bool = False) -> list[str]:
        """Designations of all objects, in the order of the catalogue."""
        return self.catalogue(refresh=refresh)["designation"].tolist()

    def observation_files(self, designations: Iterable[str]) -> list[RemoteFile]:
        """Files with the observations of objects, for `download`."""
        return [self.portal.observation_file(name) for name in designations]

    def orbit_files(
        self, designations: Iterable[str], kind: Kind = "keplerian", epoch: Epoch = "middle"
    ) -> list[RemoteFile]:
        """Files with the orbits of objects, for `download`."""
        return [self.portal.orbit_file(name, kind, epoch) for name in designations]

    def download(
        self,
        files: Iterable[RemoteFile],
        *,
        refresh: bool = False,
        again: bool = False,
        max_failures: int = 5,
        on_step: Callable[[int], Any] = lambda _: None,
    ) -> DownloadReport:
        """Fetch many files; what is at hand already is not fetched again.

        Parameters
        ----------
        files : iterable of RemoteFile
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
        files = list(dict.fromkeys(files))
        records: dict[RemoteFile, FileRecord] = {}
        n_asked = failures = 0
        with ThreadPoolExecutor(self._transport.politeness.concurrency) as pool:
            futures = {pool.submit(self._fetch, file, refresh, again): file for file in files}
            try:
                for future in as_completed(futures):
                    record, answer = future.result()
                    records[futures[future]] = record
                    if answer is not None:
                        n_asked += 1
                        failures = failures + 1 if answer is Status.FAILED else 0
                    if failures >= max_failures:
                        raise DownloadError(
                            f"the last {failures} files did not arrive ({record.url}: "
                            f"{record.reason}); {len(records)} of {len(files)} were dealt with "
                            "and are kept: run the same command again to go on from there",
                            record.url,
                            attempts=record.attempts,
                        )
                    on_step(1)
            except BaseException:
                self._transport.stopped.set()
                pool.shutdown(cancel_futures=True)
                self._transport.stopped.clear()
                raise
        return DownloadReport(tuple(records[file] for file in files), n_asked)

    def _fetch(
        self, file: RemoteFile, refresh: bool, again: bool
    ) -> tuple[FileRecord, Status | None]:
        """Record of a file, fetched if need be, and how the portal answered if it was asked."""
        old = self.store.records.get(file.key)
        at_hand = old if old and old.status is Status.OK and self.store.is_whole(old) else None
        is_refused = old and old.status in (Status.ABSENT, Status.SET_ASIDE) and not again
        if old and (at_hand or is_refused) and not refresh:
            return old, None
        url = self.portal.url(file.key)
        record, content = FileRecord(key=file.key, url=url, status=Status.OK), None
        version = (at_hand.etag, at_hand.last_modified) if at_hand else ("", "")
        try:
            content, etag, last_modified, attempts = self._transport.get(url, *version)
            record = replace(record, etag=etag, last_modified=last_modified, attempts=attempts)
            if content is not None:
                file.check(content)
        except CorruptFileError as error:
            record = replace(record, status=Status.SET_ASIDE, reason=str(error))
        except DownloadError as error:
            is_absent = isinstance(error, ResourceNotFoundError)
            record = replace(
                record,
                status=Status.ABSENT if is_absent else Status.FAILED,
                reason=str(error).removeprefix(f"{url}: "),
                attempts=error.attempts,
            )
        if content is not None:
            record = self.store.write(record, content)
        if at_hand and record.status is not Status.OK:
            # the file at hand stays, and so does its record
            return replace(at_hand, reason=f"not renewed: {record.reason}"), record.status
        if at_hand and content is None:  # the portal has none that is newer
            record = replace(at_hand, attempts=record.attempts)
        return self.store.append(record), record.status


def cache_folder() -> Path:
    """Folder for the files: in ``$NEORANGING_CACHE``, else in the user's cache folder."""
    if own := os.environ.get(CACHE_VARIABLE):
        return Path(own).expanduser() / "neodys"
    base = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "neoranging" / "neodys"
