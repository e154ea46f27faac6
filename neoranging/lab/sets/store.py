"""Sets of arcs on disk: Parquet parts, a manifest, and the two CSV files of the literature.

A set is a folder::

    arcs/part-00000.parquet ...   the arcs, in chunks; each part carries its own account
    manifest.json                 how it was made, what was read, used and dropped
    observations.csv, ground_truth.csv   on demand, one row per arc in both

Parts appear by an atomic rename, and the folder counts as a set only once its manifest says that
it is complete. A run that was killed goes on after the last whole part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Self

import numpy as np

from neoranging._version import __version__
from neoranging.display import spreadsheet_cell
from neoranging.exceptions import DatasetError, extra
from neoranging.files import (
    TEMPORARY,
    FolderLock,
    parse_json,
    plain,
    read_json,
    replacing,
    write_json,
)
from neoranging.lab.sets.schema import COLUMNS, SPLITS, ArcTable
from neoranging.records import Account

MANIFEST: Final = "manifest.json"
ACCOUNT_KEY: Final = b"neoranging.account"
"""Key of the account in the metadata of a part."""

_LEFT_OVER: Final = f"**/.*{TEMPORARY}"
"""Pattern of the unfinished files of a run that was killed."""

_CSV_COLUMNS: Final = {
    "observations.csv": (
        *("arc_id", "designation", "night", "station", "n_obs", "mag", "band"),
        *("t1_mjd_tdb", "t2_mjd_tdb", "t3_mjd_tdb"),
        *("ra1_rad", "dec1_rad", "ra2_rad", "dec2_rad", "ra3_rad", "dec3_rad"),
        *("ra_rate_rad_d", "dec_rate_rad_d", "proper_motion_rad_d", "span_d", "split"),
    ),
    "ground_truth.csv": (
        *("arc_id", "designation", "t2_mjd_tdb"),
        *("rho_geo_au", "rho_dot_geo_au_d", "rho_topo_au", "rho_dot_topo_au_d"),
        *("truth_residual_arcsec", "truth_dynamics"),
        *("q_au", "ecc", "inc_rad", "raan_rad", "argp_rad", "H_mag", "U"),
        *("pseudo_admissible", "split", "is_close", "is_simulated"),
    ),
}
"""Columns of the files that follow from the arcs, and are removed when these change."""

_TEXTS: Final = [name for name, c in COLUMNS.items() if c.dtype == "str" and not c.per_observation]


def _arrow() -> ModuleType:
    with extra("data", "stored sets of arcs"):
        import pyarrow as pa
        from pyarrow import csv, parquet  # noqa: F401 (reached as attributes)
    return pa


def _arrow_type(pa: ModuleType, name: str) -> Any:
    dtype = COLUMNS[name].dtype
    return pa.string() if dtype == "str" else pa.from_numpy_dtype(np.dtype(dtype))


def write_part(path: Path, table: ArcTable, account: Account) -> None:
    """Write a table with every column of the schema, whole or not at all."""
    pa = _arrow()
    offsets = pa.array(table.offsets, type=pa.int32())
    arrays, fields = [], []
    for name, column in COLUMNS.items():
        if name == "stations":
            array = _station_lists(pa, table)
        elif column.per_observation:
            array = pa.ListArray.from_arrays(offsets, pa.array(table[name]))
        else:
            array = pa.array(table[name], type=_arrow_type(pa, name))
        metadata = {"unit": column.unit, "meaning": column.meaning}
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=metadata))
    schema = pa.schema(fields, metadata={ACCOUNT_KEY: json.dumps(account.to_json())})
    with replacing(path) as temporary:
        pa.parquet.write_table(
            pa.Table.from_arrays(arrays, schema=schema),
            temporary,
            compression="zstd",
            use_dictionary=_TEXTS,
            write_page_checksum=True,
        )


def _station_lists(pa: ModuleType, table: ArcTable) -> Any:
    """Codes by observation of the arcs of several stations, null for arcs of one."""
    mixed = table["station"] == ""
    if mixed.any() and "stations" not in table:
        raise DatasetError("arcs without a code in 'station' need the column 'stations'")
    codes = table["stations"][np.repeat(mixed, table.counts)] if mixed.any() else []
    offsets = np.concatenate([[0], np.cumsum(table.counts * mixed)])
    return pa.ListArray.from_arrays(
        pa.array(offsets, type=pa.int32()), pa.array(codes, type=pa.string()), mask=pa.array(~mixed)
    )


def read_part(path: Path, names: Collection[str]) -> ArcTable:
    """Table of some columns of a part; one that the part was stored without has its fill value."""
    pa = _arrow()
    needed = {*names, "n_obs", *(("station",) if "stations" in names else ())}
    try:
        # asked before, since pyarrow refuses a whole part for one column that it lacks
        present = needed.intersection(pa.parquet.read_schema(path).names)
        stored = pa.parquet.read_table(
            path,
            columns=[name for name in COLUMNS if name in present],
            read_dictionary=[name for name in _TEXTS if name in present],
            page_checksum_verification=True,
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {error}; make the set anew") from error
    if missing := sorted(name for name in needed - present if COLUMNS[name].fill is None):
        raise DatasetError(f"{path} lacks the column(s) {', '.join(missing)}; make the set anew")
    columns = {}
    for name in present - {"stations"}:
        array = stored.column(name).combine_chunks()
        if name in _TEXTS:
            # few different texts: spread them by their codes instead of making each anew
            texts = np.array(array.dictionary.to_pylist() or [""], dtype=np.str_)
            columns[name] = texts[array.indices.to_numpy()]
        elif COLUMNS[name].per_observation:
            columns[name] = array.flatten().to_numpy()
        else:
            columns[name] = array.to_numpy(zero_copy_only=False)
    counts = columns["n_obs"].astype(np.int64)
    table = ArcTable(np.concatenate([[0], np.cumsum(counts)]), columns)
    if "stations" in present and (mixed := table["station"] == "").any():
        codes = table["stations"].astype("U8")
        lists = stored.column("stations").combine_chunks()
        codes[np.repeat(mixed, counts)] = lists.flatten().to_numpy(zero_copy_only=False)
        columns["stations"] = codes
    # codes by observation are worked out from 'station' when asked for, where no arc has several
    served = [name for name in names if name != "stations" or name in columns]
    return ArcTable(table.offsets, {name: table[name] for name in served})


def read_part_account(path: Path) -> tuple[int, Account]:
    """Number of arcs of a part and the account it carries."""
    pa = _arrow()
    try:
        metadata = pa.parquet.read_metadata(path)
        content = parse_json((metadata.metadata or {}).get(ACCOUNT_KEY, b"{}"))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {error}; delete it and go on") from error
    return metadata.num_rows, Account.from_json(content)


def _part(folder: Path, number: int) -> Path:
    return folder / "arcs" / f"part-{number:05d}.parquet"


def _parts(folder: Path) -> list[Path]:
    """Parts without a gap from the first one on."""
    parts: list[Path] = []
    while (path := _part(folder, len(parts))).exists():
        parts.append(path)
    return parts


def _remove(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in list(folder.glob(pattern)):
            path.unlink()


class ArcWriter:
    """Write a set part by part.

    Parameters
    ----------
    folder : path-like
        Made if need be.
    settings : mapping
        Everything that decides on the arcs of the set (command, seed, options), as plain data. A
        run goes on only with the settings it began with.
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
            self._is_begun = unfinished is not None
            # settings as they will be read, so that they can be compared
            self._manifest = unfinished or {
                "neoranging": __version__,
                "complete": False,
                "settings": plain(settings),
            }
            parts = _parts(self.folder) if self._is_begun else []
            if self._is_begun:
                _remove(self.folder, _LEFT_OVER)
            accounts = [read_part_account(path) for path in parts]
        except BaseException:
            self._lock.release()
            raise
        self.n_parts, self.n_arcs = len(parts), sum(n for n, _ in accounts)
        self.account = Account.total(account for _, account in accounts)

    def _begin(self) -> None:
        """Make room for a new set, before anything of it is written."""
        if not self._is_begun:
            _remove(self.folder, MANIFEST, "arcs/part-*.parquet", _LEFT_OVER, *_CSV_COLUMNS)
            write_json(self.folder / MANIFEST, self._manifest)
            self._is_begun = True

    def write(self, table: ArcTable, account: Account | None = None) -> None:
        """Write the next part; ``arc_id`` is set here, counting on from the part before.

        Parameters
        ----------
        table : ArcTable
            May be of no arcs.
        account : Account, optional
            Counts of the records read, used and dropped for this part; stored in it.
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Complete the set, unless the block failed."""
        try:
            if kind is None:
                self._begin()
                objects: set[str] = set()
                for part in iterate_arcs(self.folder, ("designation",), partial=True):
                    objects.update(np.unique(part["designation"]).tolist())
                self._manifest.update(
                    complete=True,
                    n_arcs=self.n_arcs,
                    n_objects=len(objects),
                    n_parts=self.n_parts,
                    account=self.account.to_json(),
                    finished=datetime.now(UTC).isoformat(timespec="seconds"),
                )
                write_json(self.folder / MANIFEST, self._manifest)
        finally:
            self._lock.release()


def _unfinished(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Manifest of a set to go on with; None if there is none, or none with parts."""
    if not (folder / MANIFEST).exists():
        return None
    manifest = _read_manifest(folder)
    if not manifest.get("complete") and not _parts(folder):
        return None
    asked, made = plain(settings), manifest["settings"]
    if made != asked:
        differing = ", ".join(
            f"{name}: {made.get(name)!r}"
            for name in {**asked, **made}
            if made.get(name) != asked.get(name)
        )
        raise DatasetError(
            f"{folder} holds a set made with other settings ({differing}); give these, choose "
            "another folder, or overwrite it"
        )
    if manifest.get("complete"):
        raise DatasetError(f"{folder} is complete already; read it, or overwrite it")
    if "n_parts" in manifest:  # it was complete, and parts of it are rewritten
        raise _not_finished(folder)
    return manifest


def _not_finished(folder: Path) -> DatasetError:
    return DatasetError(
        f"the set in {folder} is not finished, or parts of it are gone; run the command that makes "
        "it once more, or divide it once more if that was interrupted"
    )


def _read_manifest(folder: Path) -> dict[str, Any]:
    content = read_json(folder / MANIFEST)
    manifest = content if isinstance(content, dict) else {}
    needed = ("n_parts", "n_arcs", "n_objects") if manifest.get("complete") else ()
    if not isinstance(manifest.get("settings"), dict) or not all(
        type(manifest.get(name)) is int and manifest[name] >= 0 for name in needed
    ):
        raise DatasetError(f"{folder / MANIFEST} is no manifest of a set; restore it, or overwrite")
    return manifest


def read_manifest(folder: str | Path, *, partial: bool = False) -> dict[str, Any]:
    """Manifest of a set; ``partial`` takes an unfinished set as well.

    Raises
    ------
    DatasetError
        If there is none, or it is of an unfinished set.
    """
    manifest = _read_manifest(Path(folder))
    if not partial and not (
        manifest.get("complete") and manifest["n_parts"] == len(_parts(Path(folder)))
    ):
        raise _not_finished(Path(folder))
    return manifest


def read_account(folder: str | Path) -> Account:
    """Counts of the records that were read, used and dropped for a set."""
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
    names = tuple(COLUMNS if columns is None else columns)
    if unknown := [name for name in names if name not in COLUMNS]:
        raise DatasetError(f"no column(s) {', '.join(unknown)}; there are {', '.join(COLUMNS)}")
    splits = [split] if isinstance(split, str) else list(split or ())
    if unknown := sorted(set(splits) - {*SPLITS, ""}):
        raise DatasetError(f"no split {unknown}; there are {', '.join(SPLITS)}")
    for path in _parts(Path(folder)):
        if split is None:
            yield read_part(path, names)
            continue
        mask = np.isin(read_part(path, ("split",))["split"], splits)
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


def rewrite_arcs(
    folder: str | Path, change: Callable[[ArcTable], ArcTable], **entries: Any
) -> None:
    """Replace every part by what ``change`` makes of it; CSV files are removed.

    The set counts as unfinished meanwhile, so that no reader sees a mixture; a change that gives
    the same whenever it is applied can be repeated after a kill.

    ``change`` turns a table into one of the same arcs; entries are for the manifest.
    """
    path = Path(folder)
    with FolderLock(path):
        manifest = _read_manifest(path)
        if "n_parts" not in manifest:
            raise _not_finished(path)
        write_json(path / MANIFEST, {**manifest, "complete": False})
        _remove(path, *_CSV_COLUMNS)
        for part in _parts(path):
            _, account = read_part_account(part)
            write_part(part, change(read_part(part, tuple(COLUMNS))), account)
        write_json(path / MANIFEST, {**manifest, **entries, "complete": True})


def write_csv(folder: str | Path) -> list[Path]:
    """Write ``observations.csv`` and ``ground_truth.csv`` beside the parts.

    One row per arc in both, in the same order, with the key ``arc_id``; names, units and scales
    are those of the schema. Observations are the three of the triplet. Numbers have all their
    digits, NaN is an empty cell, and text that a spreadsheet takes for a formula has an apostrophe
    before it (`neoranging.display.spreadsheet_cell`).

    Returns
    -------
    list of Path
        Of the observations and of the truth.
    """
    pa = _arrow()
    for file_name, columns in _CSV_COLUMNS.items():
        with replacing(Path(folder) / file_name) as temporary, temporary.open("wb") as file:
            for k, table in enumerate(iterate_arcs(folder, columns)):
                arrays = []
                for name in columns:
                    values = table[name]
                    if values.dtype.kind == "U":
                        texts, where = np.unique(values, return_inverse=True)
                        cells = [spreadsheet_cell(text) for text in texts.tolist()]
                        values = np.array(cells, dtype=np.str_)[where]
                    kind = _arrow_type(pa, name)
                    arrays.append(pa.array(values, type=kind, from_pandas=True))
                options = pa.csv.WriteOptions(include_header=k == 0, quoting_style="needed")
                pa.csv.write_csv(pa.Table.from_arrays(arrays, names=list(columns)), file, options)
    return [Path(folder) / file_name for file_name in _CSV_COLUMNS]
