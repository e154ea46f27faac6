"""From a portal to a set of labelled arcs, and the command that makes it."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from click.testing import CliRunner

from neoranging import ephemeris
from neoranging.cli import main
from neoranging.core.elements import elements_to_state
from neoranging.core.geometry import ecliptic_to_equatorial, radec
from neoranging.core.kepler import true_anomaly
from neoranging.core.prediction import sight
from neoranging.exceptions import DatasetError, ObservationFormatError
from neoranging.lab.archive import NeodysClient, Politeness
from neoranging.lab.archive.oef import read_catalogue, read_orbit
from neoranging.lab.sets import from_neodys
from neoranging.lab.sets.from_neodys import NeodysSet, catalogue_of
from neoranging.observations import observatories
from neoranging.observations.rwo.read import read_rwo
from neoranging.observations.rwo.write import format_rwo

pytest.importorskip("pyarrow")
pytest.importorskip("requests")

EPOCH = 60_000.0
# a [au], e, i, node, argument of perihelion, mean anomaly [deg]: made up
ORBITS = {
    "433": (1.4582, 0.2227, 10.828, 304.296, 178.897, 250.0),
    "2023 AB1": (1.9, 0.45, 6.0, 170.0, 30.0, 350.0),
    "2023 CD2": (1.2, 0.30, 20.0, 100.0, 80.0, 10.0),
    "2023 EF3": (2.4, 0.60, 3.0, 200.0, 310.0, 5.0),
}
NIGHTS, EXPOSURES = 3, 4


def state(elements):
    a, ecc, *angles = (np.array([x]) for x in elements)
    inc, raan, argp, mean = map(np.radians, angles)
    r, v = elements_to_state(a * (1.0 - ecc), ecc, inc, raan, argp, true_anomaly(mean, ecc))
    return ecliptic_to_equatorial(r), ecliptic_to_equatorial(v)


@functools.cache
def observed(name: str):
    """Noise-free observations from Tucson, and the true range at each."""
    start = EPOCH - 8.0 + 5.0 * np.arange(NIGHTS) + 0.3
    time = Time((start[:, None] + 0.012 * np.arange(EXPOSURES)).ravel(), format="mjd", scale="utc")
    t = np.asarray(time.tdb.mjd)
    itrf = observatories.itrf_positions(np.full(len(t), "703"))
    r, v = (np.repeat(x, len(t), axis=0) for x in state(ORBITS[name]))
    epoch = np.full(len(t), Time(EPOCH, format="mjd", scale="tt").tdb.mjd)
    seen = sight(r, v, epoch, t, *ephemeris.observer_state(itrf, t))
    ra, dec = radec(seen.direction)
    table = QTable(
        {
            "designation": np.full(len(t), name),
            "obstime": time,
            "ra": ra << u.rad,
            "dec": dec << u.rad,
            "sigma_ra": np.full(len(t), 0.2) << u.arcsec,
            "sigma_dec": np.full(len(t), 0.2) << u.arcsec,
            "station": np.full(len(t), "703"),
            "mag": np.full(len(t), 20.1),
            "band": np.full(len(t), "V"),
        }
    )
    return table, t, seen.rho


@pytest.fixture
def stocked(portal, make_orbit, make_catalogue):
    """Portal of four objects, one of whose observations is rejected by its fit."""
    for name, elements in ORBITS.items():
        table = observed(name)[0].copy()
        table["selected"] = np.arange(len(table)) != 5
        short = name.replace(" ", "")
        portal.put(f"mpcobs/{short}.rwo", format_rwo(table, version=3))
        portal.put(f"epoch/{short}.ke0", make_orbit(short, elements, epoch=EPOCH))
    names = {name.replace(" ", ""): elements for name, elements in ORBITS.items()}
    portal.put("neodys.cat", make_catalogue(names, epoch=EPOCH))
    return portal


@pytest.fixture
def client(tmp_path, stocked, fast):
    with NeodysClient(tmp_path / "cache", portal=stocked.url, politeness=fast) as neodys:
        yield neodys


def made(client, folder, **options):
    plan = NeodysSet(designations=list(ORBITS), **options)
    client.download(plan.files(client), again=True)
    return plan.make(client, folder)


def read(folder):
    from neoranging.lab.sets.store import read_arcs

    return read_arcs(folder)


@pytest.mark.parametrize("orbits", ["middle", "catalogue"])
def test_ranges_are_the_true_ones(client, tmp_path, orbits):
    account = made(client, tmp_path / "set", orbits=orbits)
    table = read(tmp_path / "set")
    assert len(table) == NIGHTS * len(ORBITS)
    for name in ORBITS:
        _, t, rho = observed(name)
        rows = table["designation"] == name
        assert rows.sum() == NIGHTS
        true = np.interp(table["t2_mjd_tdb"][rows], t, rho)
        # the .rwo file rounds epochs to 1e-10 d at best
        assert np.allclose(table["rho_topo_au"][rows], true, rtol=0, atol=1e-9)
    assert table["truth_residual_arcsec"].max() < 0.05  # 0.001 s of right ascension
    assert table["pseudo_admissible"].all()
    assert set(table["truth_dynamics"]) == {"kepler"}
    counts = account.counts
    assert (counts["objects"].n_read, counts["objects"].n_used) == (4, 4)
    assert counts["records"].n_used == counts["observations"].n_read == 4 * NIGHTS * EXPOSURES
    assert counts["observations"].reasons == {"rejected from its orbit by the file": 4}
    assert counts["labels"].n_read == counts["arcs"].n_used == len(table)


def test_observations_are_filed_under_the_name_of_the_portal(client, stocked, tmp_path):
    text = stocked.files["mpcobs/433.rwo"].replace(b" 433 ".ljust(11), b" 1898DQ ".ljust(11))
    assert b"1898DQ" in text
    stocked.put("mpcobs/433.rwo", text)
    made(client, tmp_path / "set")
    assert (read(tmp_path / "set")["designation"] == "433").sum() == NIGHTS


def test_labels_of_another_object_are_stopped(client, stocked, tmp_path):
    first, second = "epoch/433.ke0", "epoch/2023AB1.ke0"
    stocked.files[first], stocked.files[second] = stocked.files[second], stocked.files[first]
    account = made(client, tmp_path / "set")
    assert set(read(tmp_path / "set")["designation"]) == {"2023 CD2", "2023 EF3"}
    assert sum(account.counts["labels"].reasons.values()) == 2 * NIGHTS


def test_without_a_gate_labels_are_kept_with_what_they_miss_by(client, stocked, tmp_path):
    first, second = "epoch/433.ke0", "epoch/2023AB1.ke0"
    stocked.files[first], stocked.files[second] = stocked.files[second], stocked.files[first]
    made(client, tmp_path / "set", gate=np.inf)
    table = read(tmp_path / "set")
    wrong = np.isin(table["designation"], ("433", "2023 AB1"))
    assert wrong.sum() == 2 * NIGHTS
    assert table["truth_residual_arcsec"][wrong].min() > 1000.0
    assert table["truth_residual_arcsec"][~wrong].max() < 0.05


def test_every_object_that_is_missing_has_a_reason(client, stocked, tmp_path, mishaps):
    del stocked.files["mpcobs/433.rwo"]
    stocked.put("epoch/2023AB1.ke0", "<html>\n")
    stocked.goes_wrong("mpcobs/2023CD2.rwo", *[mishaps.cut()] * 3)
    account = made(client, tmp_path / "set")
    objects = account.counts["objects"]
    assert (objects.n_read, objects.n_used) == (4, 1)
    assert objects.reasons == {
        "no observation file: absent": 1,
        "no orbit file: set aside": 1,
        "no observation file: failed": 1,
    }


def test_a_file_that_the_reader_refuses_is_counted(client, stocked, tmp_path, monkeypatch):
    def reading(path):
        if path.name == "433.rwo":
            raise ObservationFormatError("no format that is known")
        return read_rwo(path)

    monkeypatch.setattr(from_neodys, "read_rwo", reading)
    account = made(client, tmp_path / "set")
    assert account.counts["objects"].reasons == {"observation file that cannot be read": 1}


def test_no_object_at_all(client, stocked, tmp_path):
    stocked.files.clear()
    account = made(client, tmp_path / "set")
    assert account.counts["objects"].n_used == 0
    assert len(read(tmp_path / "set")) == 0


def test_a_set_is_not_gone_on_with_after_a_renewal(client, stocked, tmp_path, monkeypatch):
    monkeypatch.setattr("neoranging.lab.sets.from_neodys.OBJECTS_PER_PART", 1)

    class KilledError(Exception):
        pass

    def die(_: int) -> None:
        raise KilledError

    plan = NeodysSet(designations=list(ORBITS))
    client.download(plan.files(client))
    with pytest.raises(KilledError):
        plan.make(client, tmp_path / "a", on_step=die)
    steps: list[int] = []
    plan.make(client, tmp_path / "a", on_step=steps.append)
    assert sum(steps) == 4
    assert len(read(tmp_path / "a")) == NIGHTS * 4
    with pytest.raises(KilledError):
        plan.make(client, tmp_path / "b", on_step=die)
    stocked.put("mpcobs/433.rwo", stocked.files["mpcobs/433.rwo"] + b"! more\n")
    client.download(plan.files(client), refresh=True)
    with pytest.raises(DatasetError, match="other settings"):
        plan.make(client, tmp_path / "b")


def test_plans_that_make_no_sense():
    with pytest.raises(DatasetError, match="2024YR4 is named twice"):
        NeodysSet(designations=["433", "2024 YR4", "2024YR4"])
    with pytest.raises(DatasetError, match="orbits must be one of"):
        NeodysSet(designations=["433"], orbits="future")
    with pytest.raises(DatasetError, match="dynamics must be one of"):
        NeodysSet(designations=["433"], dynamics="magic")


def test_columns_of_orbits_are_the_same_from_both_kinds_of_files(stocked):
    short = [name.replace(" ", "") for name in ORBITS]
    records = [read_orbit(stocked.files[f"epoch/{name}.ke0"]) for name in short]
    one, other = catalogue_of(records), catalogue_of(read_catalogue(stocked.files["neodys.cat"]))
    assert list(one.designation) == list(other.designation) == list(ORBITS)
    for name in ("epoch_mjd_tdb", "q_au", "ecc", "inc_rad", "raan_rad", "mean_anomaly_rad"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.allclose(one.states()[0], np.concatenate([state(e)[0] for e in ORBITS.values()]))
    assert one.epoch_mjd_tdb[0] != EPOCH  # TT in the file
    assert len(catalogue_of([])) == 0


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, stocked, monkeypatch):
    monkeypatch.setenv("NEORANGING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NEORANGING_NEODYS_URL", stocked.url)

    def run(*arguments):
        fast = ("--rate", "5000") if "--rate" not in arguments else ()
        return CliRunner().invoke(main, ["dataset", "neodys", *fast, *map(str, arguments)])

    return run


def test_the_whole_catalogue(run, stocked, tmp_path):
    out = tmp_path / "set"
    result = run("--all", "--out", out)
    assert result.exit_code == 0, result.output
    assert ": 4 records, 4 used, 0 set aside" in result.stdout.splitlines()[0]
    assert "8 files, 8 used" in result.stdout
    assert "4 objects, 4 used" in result.stdout
    assert "4 set aside: rejected from its orbit by the file" in result.stdout
    assert f"12 labelled arcs in {out}" in result.stdout
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    assert settings["source"].startswith(stocked.url)
    # files are kept: nothing is asked for again, and the set is there already
    n = len(stocked.requests)
    again = run("--all", "--out", out)
    assert again.exit_code == 1
    assert "complete already" in again.stderr
    assert run("--all", "--out", out, "--overwrite").exit_code == 0
    assert len(stocked.requests) == n


def test_damaged_lines_of_the_catalogue_are_told(run, stocked, tmp_path):
    stocked.files["neodys.cat"] += b"'2024ZZ' 61000.0 1.0\n"
    result = run("--all", "--download-only")
    assert result.exit_code == 0, result.output
    assert "5 records, 4 used, 1 set aside" in result.stdout


def test_a_folder_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("--objects", "433", "--out", tmp_path / "file" / "set")
    assert result.exit_code == 1
    assert "give the command again" in result.stderr


def test_some_objects(run, stocked, tmp_path):
    result = run("--objects", "433, 2023AB1", "--out", tmp_path / "set", "--orbits", "catalogue")
    assert result.exit_code == 0, result.output
    assert set(read(tmp_path / "set")["designation"]) == {"433", "2023 AB1"}
    assert set(stocked.asked) == {"neodys.cat", "mpcobs/433.rwo", "mpcobs/2023AB1.rwo"}


def test_objects_in_a_file(run, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# mine\n2023 CD2\n\n433\n433\n")
    result = run("--objects", f"@{names}", "--download-only")
    assert result.exit_code == 0, result.output
    assert "4 files, 4 used" in result.stdout


def test_another_address_and_cache(run, stocked, tmp_path, monkeypatch):
    monkeypatch.setenv("NEORANGING_NEODYS_URL", "http://127.0.0.1:9")
    options = ("--objects", "433", "--download-only", "--cache", tmp_path / "mine")
    assert run(*options, "--base-url", stocked.url).exit_code == 0
    assert (tmp_path / "mine" / "mpcobs" / "433.rwo").exists()


def test_files_that_did_not_arrive_stop_the_set_unless_one_says_so(run, stocked, tmp_path, mishaps):
    stocked.goes_wrong("mpcobs/433.rwo", *[mishaps.status(403)] * 2)
    options = ("--objects", "433,2023 CD2", "--out", tmp_path / "set")
    result = run(*options)
    assert result.exit_code == 1
    assert "1 files did not arrive" in result.stderr
    assert "HTTP 403" in result.stdout
    result = run(*options, "--partial")
    assert result.exit_code == 0
    assert "1 set aside: no observation file: failed" in result.stdout
    assert run(*options, "--overwrite").exit_code == 0
    assert len(read(tmp_path / "set")) == 2 * NIGHTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--all"),
        (("--all", "--objects", "433", "--out", "x"), "--all"),
        (("--all",), "--out"),
        (("--objects", " , ", "--out", "x"), "no object"),
        (("--objects", "@/nowhere", "--out", "x"), "No such file"),
        (("--objects", "../433", "--out", "x"), "no name of an object"),
    ],
)
def test_wrong_usage(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code in {1, 2}
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_the_portal_is_not_there(run, tmp_path, monkeypatch):
    hasty = functools.partial(Politeness, backoff_s=1e-3)
    monkeypatch.setattr("neoranging.lab.archive.http.Politeness", hasty)
    result = run("--objects", "433", "--out", tmp_path / "set", "--base-url", "http://127.0.0.1:9")
    assert result.exit_code == 1
