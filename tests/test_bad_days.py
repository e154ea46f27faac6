"""The command line when it is interrupted, when nobody reads it, and when texts are hostile."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import os
import resource
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch
from astropy import units as u
from astropy.time import Time
from click.testing import CliRunner

import neoranging as nr
from neoranging.cli import main
from neoranging.cli.errors import in_options
from neoranging.cli.options import Number
from neoranging.display import spreadsheet_cell, visible
from neoranging.estimators import registry
from neoranging.estimators.gauss import GaussEstimator
from neoranging.exceptions import (
    BusyFolderError,
    EstimationError,
    UnknownMethodError,
    UnknownSampleError,
)
from neoranging.files import FolderLock, replacing
from neoranging.lab.training import fit
from neoranging.samples import sample
from neoranging.tables import csv_table, markdown_table, text_table

IMPACTORS = str(sample("impactors"))
COMMAND = [sys.executable, "-m", "neoranging"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


# Interrupts --------------------------------------------------------------------------------------


def _wait_until_ready(pid):
    """Return once a process catches SIGTERM, as the command does before it imports anything."""
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.002)


@pytest.fixture
def _heeds_interrupts():
    """Processes begun here heed SIGINT, which a shell has the jobs in its background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
@pytest.mark.slow
@pytest.mark.usefixtures("_heeds_interrupts")
@pytest.mark.parametrize("delay", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_command_in_a_word(tmp_path, number, delay):
    arguments = ["dataset", "twin", "--out", str(tmp_path / "twin"), "--workers", "2"]
    process = subprocess.Popen(
        [*COMMAND, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_until_ready(process.pid)
    time.sleep(delay)
    os.killpg(process.pid, number)
    try:
        _, told = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 128 + number
    assert "Traceback" not in told
    assert "Interrupted" in told


# Outputs that take nothing -----------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["methods"], ["estimate", IMPACTORS]])
def test_a_full_output_is_told_in_words(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@posix
def test_a_reader_that_left_is_no_error_to_talk_about():
    process = subprocess.Popen(
        [*COMMAND, "estimate", IMPACTORS, "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 1
    assert told == ""


@posix
@pytest.mark.parametrize(
    ("closing", "arguments", "told"),
    [(">&-", IMPACTORS, "standard output is closed"), ("<&-", "-", "is closed")],
)
def test_closed_streams(closing, arguments, told):
    line = f'"$0" -m neoranging estimate -q {arguments} {closing}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 3)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@posix
def test_devices_are_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as path:
        path.write_text("x")
    assert os.read(reader, 8) == b"x"
    os.close(reader)
    assert pipe.is_fifo()


@contextlib.contextmanager
def small_disk():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


@posix
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "rows.csv"
    target.write_text("old")
    with small_disk():
        result = run("estimate", IMPACTORS, "--out", target)
    assert result.exit_code == 1
    assert "cannot be written: File too large" in result.stderr
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@posix
def test_a_full_disk_ends_a_training_with_the_words_of_the_system(tmp_path):
    target = tmp_path / "state.pt"
    target.write_text("old")
    with small_disk(), pytest.raises(OSError, match="File too large"):
        fit._write_state({"x": torch.zeros(1_000)}, target)
    assert target.read_text() == "old"


# Two writers -------------------------------------------------------------------------------------


def test_a_folder_has_one_writer_and_no_trace_of_those_that_wrote_nothing(tmp_path):
    folder = tmp_path / "new"
    with FolderLock(folder) as lock:
        with pytest.raises(BusyFolderError, match="another process works in"):
            FolderLock(folder)
        lock.release()
        FolderLock(folder).release()
    assert not folder.exists()
    with FolderLock(folder):
        (folder / "x").write_text("x")
    assert [path.name for path in folder.iterdir()] == ["x"]


def test_a_set_that_could_not_be_begun_leaves_nothing_in_the_way(tmp_path):
    pytest.importorskip("pyarrow")
    table, out = tmp_path / "observations.csv", tmp_path / "set"
    table.write_text("nothing,of,use\n1,2,3\n")
    failed = run("dataset", "real", "--observations", table, "--out", out)
    assert failed.exit_code == 1
    assert not out.exists()
    table.write_text("designation,mjd_utc,ra_deg,dec_deg,station\n433,60000.0,1,2,G96\n")
    out.mkdir()
    (out / ".manifest.json.1.unfinished").write_text("of a run that was killed")
    made = run("dataset", "real", "--observations", table, "--out", out, "--gate", "inf", "--any-u")
    assert made.exit_code == 0, made.output
    assert sorted(path.name for path in out.iterdir()) == ["arcs", "manifest.json"]
    assert '"gate_arcsec": null' in (out / "manifest.json").read_text()


# Hostile texts -----------------------------------------------------------------------------------

EVIL = (
    "\x1b[31mred\x1b[0m",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM",
    "\tx",
    "\rx",
    "<script>x</script>",
)


def test_control_characters_are_shown():
    assert visible("a\x1b[31m\x9b\u202eb\nc") == "a\\x1b[31m\\x9b\\u202eb\nc"
    assert visible("a\nb", lines=False) == r"a\nb"
    assert visible("2024 YR4, å, 彗星") == "2024 YR4, å, 彗星"


@pytest.mark.parametrize("text", EVIL[1:7])
def test_formulas_are_text_in_csv(text):
    assert spreadsheet_cell(text).startswith("'")
    rows = list(csv.reader(io.StringIO(csv_table({"name": [text], "x": [-1.5]}))))
    assert rows[1][0].startswith("'")
    assert rows[1][1] == "-1.5"


def test_hostile_labels_in_tables():
    table = {"method": EVIL, "\x1b[31mx": [1.0] * len(EVIL)}
    assert "\x1b" not in text_table(table) + markdown_table(table)
    assert "<script" not in markdown_table(table)
    assert len(text_table(table).splitlines()) == 1 + len(EVIL)
    assert "\x1b" not in csv_table({"method": EVIL})


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """PSV of tracklets with hostile names, as far as that format lets them through."""
    head = "# version=2022\ntrkSub|mode|stn|obsTime|ra|dec|rmsRA|rmsDec|astCat\n"
    lines = [
        f"{name}|CCD|G96|2024-12-27T0{k}:00:00Z|{10 + 0.1 * k}|{5 + 0.05 * k}|0.2|0.2|Gaia2\n"
        for name in ("\x1b[31mX", "=1+1", "@SUM(A1)")
        for k in (4, 5, 6)
    ]
    path = tmp_path_factory.mktemp("hostile") / "night.psv"
    path.write_text(head + "".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_hostile_names_on_the_terminal(hostile, form):
    result = run("estimate", hostile, "--format", form)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout + result.stderr
    if form == "csv":
        names = [row["designation"] for row in csv.DictReader(io.StringIO(result.stdout))]
        assert len(names) == 3
        assert not any(name.startswith(tuple("=+-@")) for name in names)


def test_errors_and_file_names_do_not_reach_a_terminal_as_orders(tmp_path):
    path = tmp_path / "a\x1b[31mb.obs80"
    path.write_text("nothing")
    result = run("estimate", path)
    assert result.exit_code == 3
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("name", ["<script>x</script>", '"><img src=x onerror=x>', "</table><b>"])
def test_a_notebook_shows_hostile_labels(name):
    cls = type("Labelled", (GaussEstimator,), {"name": name})
    tracklets = nr.read_tracklets(IMPACTORS)
    for shown in (tracklets[0], tracklets):
        page = shown.estimate(cls())._repr_html_()
        assert name not in page


# Options, plugins and names ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x"])
def test_numbers_of_options_are_finite(text):
    result = run("estimate", IMPACTORS, "--sigma", text)
    assert result.exit_code == 2
    assert "--sigma" in result.stderr


def test_infinity_on_request():
    assert Number(min=0.0, infinite=True).convert("inf", None, None) == float("inf")


class BrokenEstimator(GaussEstimator):
    name = "broken"

    def _estimate(self, arcs, attributables):
        raise ZeroDivisionError("of mine")


class UnmakeableEstimator(GaussEstimator):
    name = "unmakeable"

    def __init__(self, **_):
        raise ValueError("no")


@pytest.mark.parametrize("cls", [BrokenEstimator, UnmakeableEstimator])
def test_plugins_that_fail_are_told_of(cls):
    nr.register_estimator(cls)
    try:
        result = run("estimate", IMPACTORS, "--method", cls.name)
    finally:
        nr.unregister_estimator(cls.name)
    assert result.exit_code == 1
    assert cls.name in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_failing_plugin_is_a_typed_error_with_its_cause():
    with pytest.raises(EstimationError, match="ZeroDivisionError: of mine") as caught:
        nr.read_tracklets(IMPACTORS).estimate(BrokenEstimator())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_plugin_that_cannot_be_loaded(monkeypatch):
    point = EntryPoint("absent", "no_such_package:Estimator", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {"absent": point})
    with pytest.raises(UnknownMethodError, match="No module named 'no_such_package'"):
        nr.get_estimator("absent")
    assert run("estimate", IMPACTORS, "--method", "absent").exit_code == 2


@pytest.mark.parametrize("name", ["gaus", "Gauss", "GAUSS ", "guass"])
def test_methods_that_were_meant(name):
    with pytest.raises(UnknownMethodError, match="did you mean 'gauss'"):
        nr.get_estimator(name)


def test_samples_that_were_meant():
    with pytest.raises(UnknownSampleError, match="did you mean 'impactors'"):
        sample("impactor")
    with pytest.raises(UnknownSampleError, match="choose one of"):
        sample(None)


def test_a_seed_serves_for_a_generator():
    region = nr.AdmissibleRegion(nr.read_tracklets(IMPACTORS)[0].attributable())
    one, other = region.sample(50, 7), region.sample(50, np.random.default_rng(7))
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_arguments_become_options():
    assert in_options("(method='pinn') or origin='geocenter'") == (
        "(--method pinn) or --origin geocenter"
    )
    assert "method='" not in run("estimate", IMPACTORS).output


# Hostile arcs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def soak_arcs():
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "soak_arcs.py"
    if not path.exists():
        pytest.skip("the benchmarks are not here")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gauss", "laplace", "laplace@geocenter", "mlp", "pinn paper"])
def test_hostile_arcs_have_no_faults(soak_arcs, method):
    for family in soak_arcs.FAMILIES:
        row = soak_arcs.soak(family, method, 60, seed=3)
        assert row.arcs == 60
        assert soak_arcs.faults(row) == {}, (family, row.messages)


@pytest.mark.filterwarnings("ignore:.*sigma.*:neoranging.exceptions.NeoRangingWarning")
@pytest.mark.parametrize("sigma", [1e-300, 1e-12, 1e6, 1e200])
@pytest.mark.parametrize("motion", [0.0, 0.1])
def test_errors_beyond_any_instrument_give_no_warning(sigma, motion):
    t = 60_000.0 + np.array([0.0, 0.05, 0.1, 0.15])
    tracklets = nr.TrackletSet.from_arrays(
        Time(t, format="mjd"),
        (10.0 + motion * (t - t[0])) * u.deg,
        np.full(4, 5.0) * u.deg,
        station="G96",
        sigma=sigma * u.arcsec,
        tracklet=np.zeros(4, dtype=int),
    )
    for method in ("gauss", "laplace"):
        estimate = tracklets.estimate(method)
        estimate.interval(0.68)
        assert not estimate.ok.any() or np.isfinite(estimate.range[estimate.ok]).all()


@pytest.mark.filterwarnings("ignore:.*sigma.*:neoranging.exceptions.NeoRangingWarning")
def test_errors_that_differ_by_hundreds_of_decades_have_no_negative_variance():
    rng = np.random.default_rng(8)
    n = 2_000
    t = 60_000.0 + np.sort(rng.uniform(0.0, 0.25, (n, 4)), axis=1)
    rate, bend = 10.0 ** rng.uniform(-2.0, 1.0, (2, n, 1))
    since = t - t[:, :1]
    tracklets = nr.TrackletSet.from_arrays(
        Time(t.ravel(), format="mjd"),
        (rng.uniform(0.0, 360.0, (n, 1)) + rate * since).ravel() * u.deg,
        (rng.uniform(-60.0, 60.0, (n, 1)) + bend * since**2).ravel() * u.deg,
        station="G96",
        sigma=10.0 ** rng.choice([-300.0, -150.0, 0.0, 150.0], 4 * n) * u.arcsec,
        tracklet=np.repeat(np.arange(n), 4),
    )
    # the root of a negative variance would warn here
    candidates = tracklets.estimate("laplace").candidates
    for column in ("range_error", "range_rate_error"):
        assert np.isfinite(candidates[column]).sum() > 100
