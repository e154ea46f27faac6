"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable, Table
from astropy.time import Time
from click.testing import CliRunner

import neoranging
from neoranging.calibration import default_calibration
from neoranging.cli import main
from neoranging.ephemeris import states as ephemeris
from neoranging.estimators import SystematicRangingEstimator, registry
from neoranging.samples import sample

IMPACTORS = str(sample("impactors"))
YR4 = str(sample("2024YR4"))
MESSY = str(sample("messy"))


def run(*arguments, **options):
    return CliRunner().invoke(main, [str(a) for a in arguments], **options)


def good(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


# Help and version --------------------------------------------------------------------------------


COMMANDS = [
    (),
    *((name,) for name in main.list_commands(None)),
    *(("dataset", name) for name in main.get_command(None, "dataset").list_commands(None)),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_explains_itself(command, flag):
    text = good(*command, flag).stdout
    assert "Usage:" in text
    assert "\\b" not in text  # click's mark for kept lines, lost in a raw docstring


@pytest.mark.parametrize("command", ["estimate", "region", "report"])
def test_help_teaches_by_examples_and_exit_codes(command):
    text = good(command, "--help").stdout
    assert f"neoranging {command} night.obs80" in text
    assert "Exit codes:" in text
    assert "  3  a file cannot be read" in text


def test_version():
    assert neoranging.__version__ in good("--version").stdout


# estimate: what is printed -----------------------------------------------------------------------


def test_a_row_per_tracklet_and_the_account_on_standard_error():
    result = good("estimate", IMPACTORS)
    rows = result.stdout.split("\n\n")[0].splitlines()
    assert len(rows) == 2 + 5
    assert rows[-1].split()[:6] == ["2014", "AA", "G96", "2014-01-01", "06:45:44", "7"]
    assert rows[-1].endswith("OK")
    assert "impactors.obs80: 34 records, 34 used, 0 set aside" in result.stderr
    assert "5 tracklets of 34 observations" in result.stderr


def test_what_is_not_determined_stands_in_parentheses_and_is_explained():
    text = good("estimate", IMPACTORS).stdout
    row = next(line for line in text.splitlines() if line.startswith("2008 EK68"))
    assert "(0.01114)" in row
    assert text.count("UNDETERMINED: ") == 1


def test_quiet_and_report():
    assert good("estimate", IMPACTORS, "--quiet").stderr == ""
    details = good("estimate", MESSY, "--report").stderr
    assert "line 7: right ascension in columns 33-44 cannot be read" in details
    assert "--report for details" in good("estimate", MESSY).stderr


def test_a_calibration_that_knows_no_range_rates_says_so(tmp_path):
    """Files of former versions have the range alone."""
    content = default_calibration("gauss").to_json()
    for group in content["groups"]:
        group.pop("range_rate_half_widths", None)
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    command = ("estimate", IMPACTORS, "--calibration", path, "--format", "json")
    result = good(*command)
    assert "Warning: range_rate_low and range_rate_high stay empty" in result.stderr
    assert "calibrate anew with true range-rates" in result.stderr
    for row in json.loads(result.stdout)["tracklets"]:
        assert row["range_rate_low_au_d"] is None
        assert row["range_low_au"] is None or row["range_low_au"] < row["range_high_au"]
    assert good(*command, "--quiet").stderr == ""


def test_lines_that_are_no_records_are_counted(tmp_path):
    path = tmp_path / "night.obs80"
    path.write_text(sample("impactors").read_text() + "garbage line\n")
    told = "34 records, 34 used, 0 set aside, 1 line that is no record"
    assert told in good("estimate", path).stderr
    assert told in good("estimate", path, "--report").stderr


def test_warnings_are_told_in_one_line():
    warning = good("estimate", MESSY).stderr.splitlines()[0]
    assert warning.startswith("Warning: no list of observatories has ZZZ: 2 observations")


def test_old_dates_bring_no_warnings_about_functions_of_a_library(tmp_path, monkeypatch):
    monkeypatch.setattr(ephemeris, "_WARNED", set())  # it is told once in a process
    old = tmp_path / "old.obs80"
    line = "00433         A1898 08 14.{}  21 31 50.8  -05 57 43            11.0   AN147548\n"
    old.write_text(line.format("9672") + line.format("9872"))
    stderr = good("estimate", old).stderr
    assert "DE440" in stderr
    assert "ERFA" not in stderr


def test_several_files_and_standard_input():
    assert "10 tracklets" in good("estimate", IMPACTORS, YR4).stderr
    text = sample("impactors").read_text()
    assert (
        good("estimate", "-", "-q", input=text).stdout == good("estimate", IMPACTORS, "-q").stdout
    )
    packed = gzip.compress(text.encode())
    assert "34 records" in good("estimate", "-", input=packed).stderr
    assert run("estimate", "-", input=packed[:99]).exit_code == 3


def test_observer_and_method_reach_the_estimator():
    meta = json.loads(
        good(
            "estimate", IMPACTORS, "--origin", "geocenter", "--method", "laplace",
            "--format", "json", "--level", "0.95",
        ).stdout
    )  # fmt: skip
    assert (meta["method"], meta["origin"], meta["confidence_level"]) == (
        "laplace",
        "geocenter",
        0.95,
    )


def test_level_widens_the_interval():
    def width(level):
        table = good("estimate", IMPACTORS, "--level", level, "--format", "csv").stdout
        rows = Table.read(table, format="ascii.csv")
        return (rows["range_high_au"] - rows["range_low_au"])[rows["status"] == "OK"]

    assert np.all(width(0.95) > 1.5 * width(0.68))


def test_grouping_and_sigma_reach_the_reader():
    # two stations saw 2008 TC3 in one night, a third in the night of its own longitude
    grouped = json.loads(
        good("estimate", IMPACTORS, "--group-by", "night", "--format", "json").stdout
    )
    assert "G96,854" in [row["stations"] for row in grouped["tracklets"]]
    errors = [
        json.loads(good("estimate", YR4, "--sigma", s, "--format", "json").stdout)
        for s in ("0.5", "1")  # so large that nothing else contributes
    ]
    # three observations: their scatter does not tell how large their errors are
    small, large = (e["tracklets"][1]["range_error_au"] for e in errors)
    assert large == pytest.approx(2.0 * small, rel=0.05)


# estimate: formats -------------------------------------------------------------------------------


def test_csv_is_a_table_with_units_in_its_names():
    rows = Table.read(good("estimate", YR4, "--format", "csv").stdout, format="ascii.csv")
    assert len(rows) == 5
    assert {"range_au", "range_error_au", "range_rate_au_d", "arc_h"} < set(rows.colnames)
    assert np.isnan(rows["range_au"][-1])
    assert Time(rows["epoch_utc"][1], scale="utc").isot == "2024-12-27T05:46:04.858"


def test_ecsv_gives_the_quantities_back():
    rows = QTable.read(good("estimate", YR4, "--format", "ecsv").stdout, format="ascii.ecsv")
    estimate = neoranging.read_tracklets(YR4).estimate("gauss")
    assert u.allclose(rows["range"], estimate.range, rtol=1e-12, equal_nan=True)
    assert isinstance(rows["epoch"], Time)
    assert rows["epoch"].scale == "utc"
    assert rows.meta["method"] == "gauss"


def test_json_has_null_where_there_is_no_number():
    document = json.loads(
        good("estimate", YR4, "--format", "json").stdout,
        parse_constant=lambda name: pytest.fail(f"{name} is no JSON"),
    )
    assert document["neoranging"] == neoranging.__version__
    last = document["tracklets"][-1]
    assert last["status"] == "TOO_FEW_OBSERVATIONS"
    assert last["range_au"] is None
    assert last["range_high_au"] == pytest.approx(0.95, abs=0.01)


def test_advice_of_machine_formats_goes_to_standard_error():
    result = good("estimate", IMPACTORS, "--format", "csv")
    assert "UNDETERMINED: " in result.stderr
    assert "UNDETERMINED: " not in result.stdout


@pytest.mark.parametrize("ending", ["csv", "ecsv", "json", "txt"])
def test_ending_of_the_output_chooses_its_format(tmp_path, ending):
    path = tmp_path / f"ranges.{ending}"
    path.write_text("old")
    assert good("estimate", IMPACTORS, "--out", path).stdout == ""
    form = "table" if ending == "txt" else ending
    printed = good("estimate", IMPACTORS, "--format", form).stdout
    assert path.read_text().rstrip("\n") == printed.rstrip("\n")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("command", ["estimate", "region"])
def test_unknown_ending_of_the_output_needs_a_format(tmp_path, command):
    path = tmp_path / "ranges.xlsx"
    result = run(command, "missing.obs80", "--out", path)  # refused before anything is read
    assert result.exit_code == 2
    assert "ending .xlsx" in result.stderr
    assert ".txt, .csv, .ecsv, .json" in result.stderr
    assert not path.exists()
    good(command, YR4, "--out", path, "--format", "csv")
    assert path.read_text().startswith("designation,")
    good(command, YR4, "--out", tmp_path / "ranges")
    assert (tmp_path / "ranges").read_text().startswith("designation ")


def test_output_that_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "ranges.csv"
    path.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", _full_disk)
    result = run("estimate", IMPACTORS, "--out", path)
    assert result.exit_code == 1
    assert "ranges.csv cannot be written: No space left" in result.stderr
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def _full_disk(*_):
    raise OSError(28, "No space left on device")


# estimate: what goes wrong -----------------------------------------------------------------------


def test_unknown_method_names_the_others():
    result = run("estimate", IMPACTORS, "--method", "guess")
    assert result.exit_code == 2
    assert "gauss, laplace" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--level", "1", YR4),
        ("--format", "xls", YR4),
        ("--sigma", "0", YR4),
        ("--nonsense", YR4),
    ],
)
def test_wrong_usage(arguments):
    result = run("estimate", *arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert result.stdout == ""


def test_files_that_cannot_be_read(tmp_path):
    text = tmp_path / "letter.txt"
    text.write_text("Dear colleague,\n")
    (empty := tmp_path / "empty.obs80").touch()
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    for path, reason in (
        (tmp_path / "missing.obs80", "No such file"),
        (tmp_path, "is a folder"),
        (empty, "is empty"),
        (text, "no line looks like a record"),
        (table, "lacks"),
    ):
        result = run("estimate", IMPACTORS, path)
        assert result.exit_code == 3, path
        assert result.stderr.startswith(f"Error: {path}: ")
        assert reason in result.stderr
        assert result.stdout == ""
    result = run("estimate", IMPACTORS, "--input-format", "ades.psv")
    assert result.exit_code == 3
    assert "standard input: the content is empty" in run("estimate", "-", input="").stderr


def test_observations_that_form_no_tracklet(tmp_path):
    path = tmp_path / "one.obs80"
    path.write_text(sample("2024YR4").read_text().splitlines()[0] + "\n")
    result = run("estimate", path)
    assert result.exit_code == 4
    assert "two observations of one object in one night" in result.stderr


def test_strict_is_content_with_ok_alone(tmp_path):
    result = run("estimate", IMPACTORS, "--strict")
    assert result.exit_code == 5
    assert "3 of 5 tracklets" in result.stderr
    assert "2014 AA" in result.stdout
    path = tmp_path / "aa.obs80"
    lines = sample("impactors").read_text().splitlines()
    path.write_text("\n".join(line for line in lines if "K14A00A" in line) + "\n")
    assert good("estimate", path, "--strict").stdout.rstrip().endswith("OK")


# region, methods, demo ---------------------------------------------------------------------------


def test_region_gives_limits_for_two_observations_too():
    document = json.loads(good("region", YR4, "--format", "json").stdout)
    assert len(document["tracklets"]) == 5
    for row in document["tracklets"]:
        assert 0.0 < row["range_low_au"] < row["range_high_au"] < 1.0
        assert row["range_rate_low_au_d"] < 0.0 < row["range_rate_high_au_d"]
    tighter = json.loads(good("region", YR4, "--a-max", "1.5", "--format", "json").stdout)
    assert tighter["tracklets"][0]["range_high_au"] < document["tracklets"][0]["range_high_au"]
    assert good("region", YR4).stdout.count("2024 YR4") == 5


@pytest.mark.filterwarnings("ignore::neoranging.exceptions.NeoRangingWarning")
def test_region_says_where_there_is_none():
    result = good("region", MESSY, "--format", "json")
    assert json.loads(result.stdout)["tracklets"][-1]["range_low_au"] is None
    assert "Warning: 2025-03-01T07:30:00.000: " in result.stderr


def test_methods_are_listed_with_what_they_need():
    lines = good("methods").stdout.splitlines()
    gauss = next(line for line in lines if line.startswith("gauss"))
    assert gauss.split()[1:4] == ["3", "epochs", "no"]
    needs = {line.split()[0]: line.split()[1] for line in lines if " epochs " in line}
    assert (needs["mlp"], needs["mlp@paper"], needs["pinn@paper"]) == ("2", "3", "3")
    priors = {name.partition("@")[2] for name in needs if name.startswith("systematic@")}
    assert priors == set(SystematicRangingEstimator.priors[1:])
    assert gauss.endswith(
        "Gauss's method on the first, middle and last observation of each tracklet."
    )


def test_methods_of_other_packages_are_listed_and_broken_ones_do_no_harm(monkeypatch):
    laplace = "neoranging.estimators.laplace:LaplaceEstimator"
    points = {
        "elsewhere": EntryPoint("elsewhere", laplace, registry.GROUP),
        "broken": EntryPoint("broken", "no_such_package:Estimator", registry.GROUP),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    result = good("methods")
    assert "elsewhere" in result.stdout
    assert "broken" not in result.stdout
    assert "Warning: the method 'broken' cannot be loaded from" in result.stderr
    assert "No module named" in result.stderr


@pytest.fixture(scope="module")
def demo():
    return good("demo").stdout


def test_demo_shows_regions_beside_the_truth(demo):
    inside = 0
    rows = re.findall(r"^20\d\d \w+ +\w{3} .*$", demo, re.MULTILINE)
    for row in rows:
        true = float(re.search(r"\d +(0\.\d+) ", row)[1])
        pieces = re.findall(r"(\S+) to ([\d.]+)", row)
        inside += any(float(low) <= true <= float(high) for low, high in pieces)
    assert len(rows) == 10
    assert f"holds the true range of {inside} of 10 tracklets" in demo
    assert max(map(len, demo.splitlines())) <= 100
    assert "nan" not in demo


def test_readme_shows_the_beginning_of_the_demo(demo):
    readme = (Path(neoranging.__file__).parents[1] / "README.md").read_text()
    table = re.search(r"```console\n(object.*?)```", readme, re.DOTALL)[1]
    assert table in demo


def test_demo_says_what_falls_and_where(demo):
    for name in ("2008 TC3   G96", "2014 AA    G96"):
        row = next(line for line in demo.splitlines() if line.startswith(name))
        assert row.endswith("100.0  100.0  100.0")
    passed = next(line for line in demo.splitlines() if line.startswith("2008 EK68"))
    assert passed.endswith("100.0    0.0    0.0")
    assert re.search(
        r"2014 AA as seen from G96 falls.* 2014-01-0[12] \d\d:\d\d.*Atlantic", demo, re.DOTALL
    )
    assert "errors up to 2.7 %" in demo  # 2008 TC3 0.7, 2014 AA 2.7


def test_demo_tells_a_command_that_works_from_here(tmp_path, monkeypatch):
    script = tmp_path / ".venv/bin/neoranging"
    script.parent.mkdir(parents=True)
    script.touch()
    monkeypatch.setattr("sys.executable", str(script.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert ".venv/bin/neoranging estimate FILE" in good("demo").stdout
    script.unlink()
    assert "python -m neoranging estimate FILE" in good("demo").stdout


# Commands of other packages ----------------------------------------------------------------------


@pytest.fixture
def with_plugins():
    """The main group with commands of other packages, of which only one is sound."""
    group = "neoranging.commands"
    points = [
        EntryPoint("sound", "neoranging.cli.methods:methods", group),
        EntryPoint("gone", "no_such_package:command", group),
        EntryPoint("wrong", "neoranging.cli.methods:NOTE", group),
        EntryPoint("estimate", "neoranging.cli.methods:methods", group),
    ]
    return type(main)("neoranging", commands=main.commands, entry_points=points)


def test_commands_of_other_packages_are_listed_and_broken_ones_do_no_harm(with_plugins):
    result = CliRunner().invoke(with_plugins, ["--help"])
    assert result.exit_code == 0
    listed = re.findall(r"^  ([\w-]+)  ", result.stdout.split("Commands:")[1], re.MULTILINE)
    assert listed == sorted([*main.commands, "sound"])
    gone, wrong = result.stderr.splitlines()
    assert gone.startswith("Warning: the command 'gone' cannot be loaded from no_such_package:")
    assert "No module named 'no_such_package'" in gone
    assert wrong.startswith("Warning: the command 'wrong' cannot be loaded from neoranging.cli")


def test_a_broken_command_is_no_command_and_no_end_of_others(with_plugins):
    def call(*arguments):
        return CliRunner().invoke(with_plugins, arguments)

    broken = call("gone")
    assert broken.exit_code == 2
    assert "Warning: the command 'gone' cannot be loaded" in broken.stderr
    assert "No such command 'gone'" in broken.stderr
    assert call("sound").stdout == call("methods").stdout
    assert call("methods").stderr == ""
    assert "2008 TC3" in call("estimate", IMPACTORS).stdout  # never that of another package


# As a process ------------------------------------------------------------------------------------


def test_module_runs_and_loads_nothing_heavy():
    code = (
        "import sys; from neoranging.cli import main\n"
        f"main(['estimate', {YR4!r}, '-q'], standalone_mode=False)\n"
        "heavy = ('torch', 'boinor', 'matplotlib', 'astroquery', 'jinja2', 'neoranging.lab')\n"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"
    missing = subprocess.run(
        [sys.executable, "-m", "neoranging", "estimate", "missing.obs80"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 3
    assert missing.stderr == "Error: missing.obs80: No such file or directory\n"


# Tables in and out -------------------------------------------------------------------------------


@pytest.fixture
def night(tmp_path):
    """2008 TC3 in a table with a tracklet id."""
    table = QTable.read(IMPACTORS)
    table = table[(table["designation"] == "2008 TC3") & (table["station"] == "G96")]
    path = tmp_path / "night.csv"
    rows = zip(
        table["obstime"].isot,
        table["ra"].value.tolist(),
        table["dec"].value.tolist(),
        strict=True,
    )
    lines = [f"{time}Z,{ra!r},{dec!r},G96,tc3-1" for time, ra, dec in rows]
    path.write_text("\n".join(["obsTime,ra,dec,stn,trkSub", *lines]) + "\n")
    return path


def test_a_table_as_file_and_as_standard_input(night):
    for result in (good("estimate", night), good("estimate", "-", input=night.read_text())):
        row = result.stdout.splitlines()[2]
        assert "0.003114" in row
        assert row.endswith("OK")


def test_faults_of_a_table_name_the_file_and_the_way_out(night):
    text = night.read_text()
    night.write_text(text.replace("obsTime", "mjd").replace("2008-", "54745.2#"))
    assert run("estimate", night).exit_code == 3
    night.write_text("mjd,ra,dec,stn\n54745.3,1,2,G96\n54745.4,1,2,G96\n")
    error = run("estimate", night)
    assert error.exit_code == 3
    assert error.stderr.startswith(f"Error: {night}: the column mjd holds numbers")
    assert "--scale" in error.stderr
    assert error.stderr.count("night.csv") == 1


def test_scale_and_station_of_a_table(tmp_path):
    path = tmp_path / "night.csv"
    path.write_text(
        "mjd,ra,dec,designation\n54745.3,10.0,5.0,x\n54745.31,10.1,5.0,x\n54745.32,10.2,5.0,x\n"
    )
    rows = good("estimate", path, "--scale", "tai", "--station", "G96", "--format", "csv").stdout
    assert "2008-10-06T07:25:51.000,3" in rows  # 33 s of TAI before 07:26:24
    assert ",G96," in rows


@pytest.mark.parametrize("ending", ["csv", "ecsv", "json", "parquet", "vot", "fits"])
def test_every_format_of_output_carries_the_id_of_the_tracklet(night, tmp_path, ending):
    out = tmp_path / f"ranges.{ending}"
    good("estimate", night, "--out", out)
    if ending == "json":
        (row,) = json.loads(out.read_text())["tracklets"]
    elif ending == "parquet":
        (row,) = pytest.importorskip("pandas").read_parquet(out).to_dict(orient="records")
    else:
        (row,) = Table.read(out, format={"vot": "votable", "ecsv": "ascii.ecsv"}.get(ending))
    assert row["tracklet"] == "tc3-1"
    range_au = row["range" if ending in ("ecsv", "vot", "fits") else "range_au"]
    assert float(range_au) == pytest.approx(0.003114, abs=1e-6)


def test_binary_output_goes_through_a_pipe(night):
    assert good("estimate", night, "--format", "fits").stdout_bytes.startswith(b"SIMPLE  =")
