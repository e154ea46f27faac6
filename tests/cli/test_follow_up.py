"""The command follow-up: rows, fields, and answers to what cannot be."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time
from click.testing import CliRunner

import neoranging as nr
from neoranging.cli import main
from neoranging.samples import sample

YR4, IMPACTORS, MESSY = (str(sample(name)) for name in ("2024YR4", "impactors", "messy"))


def run(*arguments):
    return CliRunner().invoke(main, ["follow-up", *map(str, arguments), "--draws", "200"])


def good(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def records(*arguments):
    return json.loads(good(*arguments, "--format", "json"))["tracklets"]


@pytest.fixture(scope="module")
def one_night(tmp_path_factory):
    """The second night of 2024 YR4, of three observations."""
    lines = Path(YR4).read_text().splitlines()[3:6]
    path = tmp_path_factory.mktemp("night") / "night.obs80"
    path.write_text("\n".join(lines) + "\n")
    return path


def without_magnitude(path, to):
    lines = path.read_text().splitlines()
    to.write_text("".join(f"{line[:65]}      {line[71:]}\n" for line in lines))
    return to


def test_rows_are_those_of_the_library(one_night):
    rows = QTable.read(
        good(one_night, "--at", "2024-12-28T06:00", "--station", "G96", "--format", "ecsv"),
        format="ascii.ecsv",
    )
    estimate = nr.read_tracklets(one_night).estimate(method="systematic")
    expected = estimate.ephemeris(Time("2024-12-28T06:00"), "G96", n=200).to_table()
    for name in ("ra", "dec", "magnitude", "area_95", "altitude", "sun_altitude"):
        assert u.allclose(rows[name], expected[name]), name
    assert rows.meta["draws"] == 200


def test_the_worth_is_that_of_the_ranking(one_night):
    at = ("--at", "2024-12-28T06:00", "--station", "W68")
    (row,) = records(one_night, *at)
    estimate = nr.read_tracklets(one_night).estimate(method="systematic")
    (expected,) = estimate.priority(Time("2024-12-28T06:00"), "W68", n=200)
    for name in ("neo", "bits", "worth"):
        assert row[name] == pytest.approx(expected[name]), name
    (wide,) = records(one_night, *at, "--field", "3deg", "--coverage", "0.01")
    assert wide["worth"] > row["worth"]


def test_defaults_are_a_day_later_from_the_own_station():
    tracklets = nr.read_tracklets(YR4)
    rows = records(YR4)
    for row, tracklet, station in zip(rows, tracklets, tracklets.stations, strict=True):
        later = Time(row["time_utc"], scale="utc") - tracklet.obstime[-1]
        assert later.to_value(u.hr) == pytest.approx(24.0, abs=1e-5)
        assert row["observer"] == station


@pytest.mark.parametrize(("at", "hours"), [("+90min", 1.5), ("+2d", 48.0), ("-12h", -12.0)])
def test_times_may_be_relative(one_night, at, hours):
    (row,) = records(one_night, "--at", at)
    last = nr.read_tracklets(one_night)[0].obstime[-1]
    later = Time(row["time_utc"], scale="utc") - last
    assert later.to_value(u.hr) == pytest.approx(hours, abs=1e-5)


def test_the_table_is_to_read(one_night):
    text = good(one_night, "--field", "2deg")
    assert "K24Y04R" in text or "2024 YR4" in text
    assert "POPULATION" in text
    assert re.search(r"^Fields of 2 deg$", text, re.MULTILINE)
    rows = [line for line in text.splitlines() if re.search(r"  0\.\d{3}  +[01]\.\d{3}$", line)]
    shares = [float(line.split()[-1]) for line in rows]
    assert shares[-1] >= 0.95
    assert shares == sorted(shares)


def test_fields_are_rows_of_files(one_night):
    rows = records(one_night, "--field", "30arcmin", "--coverage", "0.5")
    assert [row["field"] for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row["field_probability"] for row in rows) >= 0.5
    assert rows[0]["ra_deg"] == rows[-1]["ra_deg"]
    assert rows[0]["field_ra_deg"] == pytest.approx(rows[0]["ra_deg"], abs=1.0)


def test_a_wide_cloud_says_so_and_stays(one_night):
    rows = records(one_night, "--at", "+5d", "--field", "0.2arcmin")
    assert "too wide: " in rows[0]["remarks"]
    assert "too wide" in good(one_night, "--at", "+5d", "--field", "0.2arcmin")


def test_seeds_repeat_themselves(one_night):
    assert good(one_night, "--seed", 3) == good(one_night, "--seed", 3)
    assert good(one_night, "--seed", 3) != good(one_night, "--seed", 4)


def test_remarks_say_what_an_observer_meets(one_night):
    (row,) = records(one_night, "--at", "2024-12-28T20:00", "--station", "G96")
    assert row["altitude_deg"] < 0.0 < row["sun_altitude_deg"]
    assert row["remarks"] == "below the horizon; daylight"


def test_a_fallen_object_keeps_its_row():
    rows = records(IMPACTORS, "--at", "+36h")
    (fallen,) = (row for row in rows if row["designation"] == "2014 AA")
    assert fallen["remarks"] == "all of its orbits have met the Earth"
    assert fallen["ra_deg"] is None
    assert len(rows) == 5


def test_without_a_magnitude_the_size_is_unknown(one_night, tmp_path):
    path = without_magnitude(one_night, tmp_path / "dark.obs80")
    (row,) = records(path)
    assert row["magnitude_mag"] is None
    assert "no magnitude, size unknown" in row["remarks"]
    assert row["area_95_arcmin2"] > 0.0


def test_what_has_no_ephemeris_says_why():
    rows = records(MESSY, "--field", "1deg")
    without = [row for row in rows if row["observer"] == "500"]
    assert len(without) == 1
    assert without[0]["remarks"] == "no ephemeris: UNKNOWN_OBSERVER"
    assert without[0]["field"] == 0
    text = good(MESSY, "--field", "1deg")
    assert "UNKNOWN_OBSERVER: The position of an observer is not known" in text


def test_a_misfit_has_a_row_and_a_reason(one_night, tmp_path):
    lines = one_night.read_text().splitlines()
    middle = lines[1]
    seconds = float(middle[38:44])
    lines[1] = f"{middle[:38]}{(seconds + 25.0) % 60.0:05.2f} {middle[44:]}"
    path = tmp_path / "misfit.obs80"
    path.write_text("\n".join(lines) + "\n")
    (row,) = records(path)
    assert row["status"] == "MISFIT"
    assert row["remarks"] == "no ephemeris: MISFIT (of three observations any one may be wrong)"
    assert np.isnan(row["dec_deg"] or np.nan)


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("--station", "X9"), "near it"),
        (("--station", "C51"), "(WISE)"),
        (("--at", "2300-01-01"), "1800 to 2200"),
        (("--at", "tomorrow"), "+24h"),
        (("--at", "+100000d"), "1800 to 2200"),
        (("--station", "247"), "or 500"),
        (("--station", ""), "--station"),
        (("--field", "-1deg"), "0.5deg"),
        (("--field", "2 m"), "0.5deg"),
        (("--coverage", "1"), "0.0<x<1.0"),
    ],
)
def test_wrong_usage_says_what_is_right(one_night, arguments, needed):
    result = run(one_night, *arguments)
    assert result.exit_code == 2
    assert needed in result.stderr.replace("\n", " ")


def test_methods_without_posterior_are_refused(one_night):
    for method in ("gauss", "pinn"):
        result = run(one_night, "--method", method)
        assert result.exit_code == 2
        assert "take systematic" in result.stderr
        assert "records" not in result.stderr  # before the file is read


def test_a_night_of_unknown_stations_keeps_its_rows(one_night, tmp_path):
    path = tmp_path / "unknown.obs80"
    path.write_text(one_night.read_text().replace("W68", "XYZ"))
    (row,) = records(path, "--field", "1deg")
    assert row["remarks"] == "no ephemeris: UNKNOWN_OBSERVER"


def test_few_draws_have_no_area(one_night):
    arguments = ["follow-up", str(one_night), "--draws", "5", "--format", "json"]
    (row,) = json.loads(CliRunner().invoke(main, arguments).stdout)["tracklets"]
    assert row["area_95_arcmin2"] is None
    assert row["remarks"] == "fewer than ten draws: no area"
