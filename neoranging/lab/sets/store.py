"""Sets of arcs on disk: Parquet parts, a manifest, and the two CSV files of the literature.

A set is a folder::

    arcs/part-00000.parquet ...   the arcs, in chunks; each part carries its own account
    manifest.json                 how it was made, what was read, used and dropped
    observations.csv, ground_truth.csv   on demand, one row per arc in both

Parts appear by an atomic rename, and the set counts as a set only once its manifest says that it is
complete. A run that was killed goes on after the last whole part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from neoranging._version import __version__
from neoranging.exceptions import DatasetError
from neoranging.files import TEMPORARY, FolderLock, plain, read_json, replacing, write_json
from neoranging.lab.sets.parquet import append_csv, read_part, read_part_account, write_part
from neoranging.lab.sets.schema import COLUMNS, SPLITS, ArcTable
from neoranging.records import Account

MANIFEST: Final = "manifest.json"

_LEFT_OVER: Final = f"**/.*{TEMPORARY}"
"""Unfinished files of a run that was killed."""

_FOLLOWING: Final = ("scaling.json", "observations.csv", "ground_truth.csv")
"""Files that follow from the arcs, and are stale once these change."""

_TRIPLET = tuple(f"{name}_rad" for k in "123" for name in (f"ra{k}", f"dec{k}"))
_OBSERVATION_CSV: Final = (
    *("arc_id", "designation", "night", "station", "n_obs", "mag", "band"),
    *(f"t{k}_mjd_tdb" for k in "123"),
    *_TRIPLET,
    *("ra_rate_rad_d", "dec_rate_rad_d", "proper_motion_rad_d", "span_d", "split"),
)
_TRUTH_CSV: Final = (
    *("arc_id", "designation", "t2_mjd_tdb"),
    *("rho_geo_au", "rho_dot_geo_au_d", "rho_topo_au", "rho_dot_topo_au_d"),
    *("truth_residual_arcsec", "truth_dynamics", "q_au", "ecc", "inc_rad", "raan_rad", "argp_rad"),
    *("H_mag", "U", "pseudo_admissible", "split", "is_close", "is_simulated"),
)


def _part(folder: Path, number: int) -> Path:
    return folder / "arcs" / f"part-{number:05d}.parquet"


def _parts(folder: Path) -> list[Path]:
    """Parts without a gap from the first one on."""
    parts: list[Path] = []
    while (path := _part(folder, len(parts))).exists():
        parts.append(path)
    return parts


class ArcWriter:
    """Write a set part by part.

    Parameters
    ----------
    folder : path-like
        Made if need be.
    settings : mapping
        Whatever decides what the set holds (command, seed, options), as plain data. A run goes on
        only with the settings it began with.
    overwrite : bool
        Begin anew whatever the folder holds.

    Attributes
    ----------
    n_parts, n_arcs : int
        Written so far, in this run and in those before: a maker goes on with its chunk number
        ``n_parts``.
    account : Account
        Sum of the accounts of the parts.

    Raises
    ------
    DatasetError
        If the folder holds a complete set, or one of other settings.
    BusyFolderError
        If another process is writing there.

    Notes
    -----
    Nothing of the folder is touched before the first part is written: a maker that fails before
    leaves what was there.

    Examples
    --------
    ::

        with ArcWriter("twin", settings={"seed": 0}) as writer:
            for chunk in range(writer.n_parts, 100):
                writer.write(*make(chunk))
    """

    def __init__(
        self, folder: str | Path, *, settings: Mapping[str, Any], overwrite: bool = False
    ) -> None:
        self.folder = Path(folder)
        self._lock = FolderLock(self.folder)
        try:
            unfinished = None if overwrite else _unfinished(self.folder, settings)
            self._manifest = unfinished or _new_manifest(settings)
            self._is_begun = unfinished is not None
            parts = _parts(self.folder) if self._is_begun else []
            if self._is_begun:
                _clear(self.folder, _LEFT_OVER)
            found = [read_part_account(path) for path in parts]
        except BaseException:
            self._lock.release()
            raise
        self.n_parts, self.n_arcs = len(parts), sum(n for n, _ in found)
        self.account = Account.total(account for _, account in found)

    def _begin(self) -> None:
        """Make room for a new set, before anything of it is written."""
        if self._is_begun:
            return
        (self.folder / MANIFEST).unlink(missing_ok=True)
        _clear(self.folder, "arcs/part-*.parquet")
        _clear(self.folder, _LEFT_OVER)
        _drop_following(self.folder)
        write_json(self.folder / MANIFEST, self._manifest)
        self._is_begun = True

    def write(self, table: ArcTable, account: Account | None = None) -> None:
        """Write the next part; ``arc_id`` is set here, counting on from the part before.

        Parameters
        ----------
        table : ArcTable
            May be of no arcs.
        account : Account, optional
            What was read, used and dropped for this part; kept in it.
        """
        self._begin()
        account = account or Account()
        numbered = table.with_columns(arc_id=self.n_arcs + np.arange(len(table)))
        write_part(_part(self.folder, self.n_parts), numbered, account)
        self.n_parts += 1
        self.n_arcs += len(table)
        self.account += account

    def describe(self, **entries: Any) -> None:
        """Add plain data to the manifest, for example marginals."""
        self._manifest.update(entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Complete the set, unless the block failed."""
        try:
            if kind is None:
                self._begin()
                self._complete()
        finally:
            self._lock.release()

    def _complete(self) -> None:
        self._manifest.update(
            complete=True,
            n_arcs=self.n_arcs,
            n_objects=_count_objects(self.folder),
            n_parts=self.n_parts,
            account=self.account.to_json(),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_json(self.folder / MANIFEST, self._manifest)


def _count_objects(folder: Path) -> int:
    names: set[str] = set()
    for part in _parts(folder):
        names.update(np.unique(read_part(part, ("designation",))["designation"]).tolist())
    return len(names)


def _new_manifest(settings: Mapping[str, Any]) -> dict[str, Any]:
    # as it will be read, so that settings can be compared
    return {"neoranging": __version__, "complete": False, "settings": plain(settings)}


def _unfinished(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Manifest of a set to go on with; None if there is none, or none with parts."""
    if not (folder / MANIFEST).exists():
        return None
    manifest = _read(folder)
    if not manifest.get("complete") and not _parts(folder):
        return None
    if manifest.get("settings") != plain(settings):
        raise DatasetError(
            f"{folder} holds a set made with other settings ({manifest.get('settings')}); "
            "choose another folder, or overwrite it"
        )
    if manifest.get("complete"):
        raise DatasetError(f"{folder} is complete already; read it, or overwrite it")
    if "n_parts" in manifest:
        raise _half_changed(folder)
    return manifest


def _half_changed(folder: Path) -> DatasetError:
    return DatasetError(
        f"the set in {folder} is not finished: it was being divided when that was interrupted; "
        "divide it once more, or overwrite it"
    )


def _read(folder: Path) -> dict[str, Any]:
    manifest = read_json(folder / MANIFEST)
    needed = ("n_parts", "n_arcs", "n_objects") if _field(manifest, "complete") else ()
    if not isinstance(_field(manifest, "settings"), dict) or not all(
        type(manifest.get(name)) is int and manifest[name] >= 0 for name in needed
    ):
        raise DatasetError(f"{folder / MANIFEST} is no manifest of a set; restore it, or overwrite")
    return dict(manifest)


def _field(content: Any, name: str) -> Any:
    return content.get(name) if isinstance(content, dict) else None


def _clear(folder: Path, pattern: str) -> None:
    for path in list(folder.glob(pattern)):
        path.unlink()


def _drop_following(folder: Path) -> None:
    for name in _FOLLOWING:
        (folder / name).unlink(missing_ok=True)


def read_manifest(folder: str | Path, *, partial: bool = False) -> dict[str, Any]:
    """Manifest of a set.

    Parameters
    ----------
    folder : path-like
    partial : bool
        Take an unfinished set as well.

    Raises
    ------
    DatasetError
        If there is none, or it is of an unfinished set.
    """
    manifest = _read(Path(folder))
    n_parts = len(_parts(Path(folder)))
    whole = manifest.get("complete") and n_parts == manifest["n_parts"]
    if not whole and not partial:
        if not manifest.get("complete") and manifest.get("n_parts") == n_parts:
            raise _half_changed(Path(folder))
        raise DatasetError(
            f"the set in {folder} is not finished, or parts of it are gone; run the command that "
            "makes it once more"
        )
    return manifest


def read_account(folder: str | Path) -> Account:
    """What went into a set and what became of it."""
    return Account.from_json(read_manifest(folder).get("account", {}))


def iterate_arcs(
    folder: str | Path,
    columns: Collection[str] | None = None,
    split: str | Collection[str] | None = None,
    *,
    partial: bool = False,
) -> Iterator[ArcTable]:
    """Arcs of a set part by part; parameters are those of `read_arcs`."""
    read_manifest(folder, partial=partial)
    wanted = None if split is None else _checked_splits(split)
    names = tuple(COLUMNS) if columns is None else _checked_columns(columns)
    for path in _parts(Path(folder)):
        if wanted is None:
            yield read_part(path, names)
            continue
        mask = np.isin(read_part(path, ("split",))["split"], wanted)
        if mask.any():
            yield read_part(path, names).take(mask)


def read_arcs(
    folder: str | Path,
    columns: Collection[str] | None = None,
    split: str | Collection[str] | None = None,
    *,
    partial: bool = False,
) -> ArcTable:
    """Arcs of a set.

    Parameters
    ----------
    folder : path-like
    columns : collection of str, optional
        Names of ``COLUMNS``; all by default. Few columns of many arcs are fast.
    split : str or collection of str, optional
        ``"train"``, ``"val"``, ``"test"``, ``"unseen"``; all arcs by default.
    partial : bool
        Take an unfinished set as well.

    Raises
    ------
    DatasetError
        If the set is not there or not finished, or has no such column.
    MissingDependencyError
        Without pyarrow.
    """
    return ArcTable.concatenate(iterate_arcs(folder, columns, split, partial=partial))


def _checked_columns(columns: Collection[str]) -> tuple[str, ...]:
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        raise DatasetError(f"no column(s) {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    return tuple(columns)


def _checked_splits(split: str | Collection[str]) -> list[str]:
    wanted = [split] if isinstance(split, str) else list(split)
    if unknown := set(wanted) - {*SPLITS, ""}:
        raise DatasetError(f"no split {sorted(unknown)}; there are {', '.join(SPLITS)}")
    return wanted


def rewrite_arcs(
    folder: str | Path, change: Callable[[ArcTable], ArcTable], **entries: Any
) -> None:
    """Replace every part by what ``change`` makes of it; scaling and CSV files are removed.

    The set counts as unfinished meanwhile, so that no reader sees a mixture; a change that gives
    the same whenever it is applied can be repeated after a kill.

    Parameters
    ----------
    folder : path-like
    change : callable
        From table to table of the same arcs.
    **entries
        For the manifest.
    """
    path = Path(folder)
    with FolderLock(path):
        manifest = read_manifest(path, partial=True)
        if "n_parts" not in manifest:
            read_manifest(path)  # tells that it was never finished
        write_json(path / MANIFEST, {**manifest, "complete": False})
        _drop_following(path)
        for part in _parts(path):
            _, account = read_part_account(part)
            write_part(part, change(read_part(part, tuple(COLUMNS))), account)
        write_json(path / MANIFEST, {**manifest, **entries, "complete": True})


def write_csv(folder: str | Path) -> tuple[Path, Path]:
    """Write ``observations.csv`` and ``ground_truth.csv`` beside the parts.

    One row per arc in both, in the same order, with the key ``arc_id``; names, units and scales
    are those of the schema. Observations are the three of the triplet.

    Returns
    -------
    observations, ground_truth : Path
    """
    written = []
    for name, columns in (("observations", _OBSERVATION_CSV), ("ground_truth", _TRUTH_CSV)):
        target = Path(folder) / f"{name}.csv"
        with replacing(target) as temporary, temporary.open("wb") as file:
            for k, table in enumerate(iterate_arcs(folder, columns)):
                append_csv(file, table, columns, header=k == 0)
        written.append(target)
    return written[0], written[1]
