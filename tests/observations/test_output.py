"""Columns as the writers of all formats need them: places, codes, dates and angles."""

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.ades.write import format_ades_psv
from neoranging.observations.obs80.write import format_obs80
from neoranging.observations.output import band_letters, decimal_dates, flags, sexagesimal
from neoranging.observations.places import geodetic_to_itrf, itrf_to_geodetic
from neoranging.observations.rwo.write import format_rwo

WRITERS = [format_obs80, format_ades_psv, format_rwo]


def table(**columns):
    return QTable(
        {
            "designation": ["2024 YR4"],
            "obstime": Time(["2024-12-27T12:00:00"]),
            "ra": [10.0] * u.deg,
            "dec": [-5.0] * u.deg,
            "station": ["W68"],
            **{name: [value] for name, value in columns.items()},
        }
    )


@pytest.mark.parametrize("kind", ["space", "roving"])
@pytest.mark.parametrize("write", WRITERS)
def test_moving_observers_without_a_place_are_refused(write, kind):
    with pytest.raises(ObservationFormatError, match="no finite place"):
        write(table(kind=kind))


@pytest.mark.parametrize("write", [format_obs80, format_rwo])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("station", "G9", "three columns"), ("note2", "X", "correct note2 or kind")],
)
def test_codes_that_no_reader_would_take_are_refused(write, column, value, message):
    with pytest.raises(ObservationFormatError, match=message):
        write(table(**{column: value}))


def test_bands_of_ades_have_one_letter_in_fixed_columns():
    bands = QTable({"band": ["Vj", "Rc", "Sg", "Ao", "G", ""]})
    assert band_letters(bands) == ["V", "R", "g", "o", "G", " "]
    assert format_rwo(table(band="Vj", mag=16.5)).splitlines()[-1][156:162] == "16.5 V"


def test_flags_may_be_words():
    assert flags(QTable({"discovery": ["True", "False"]}), "discovery").tolist() == [True, False]
    assert flags(QTable({"discovery": [1, 0]}), "discovery").tolist() == [True, False]
    assert flags(table(), "selected", fill=True).tolist() == [True]


def test_dates_carry_into_the_next_day():
    day, fraction = np.array([60_310, 60_310]), np.array([0.999996, 0.25])
    assert decimal_dates(day, fraction, np.array([5, 0])) == ["2024 01 02.00000", "2024 01 01"]


def test_angles_in_seconds_and_minutes():
    value = np.array([23.9999999, 1.5, 12.0])
    in_minutes = np.array([False, True, True])
    decimals = np.array([2, 1, 0])
    assert sexagesimal(value, decimals, in_minutes=in_minutes, full_turn=24) == [
        "00 00 00.00",
        "01 30.0",
        "12 00",
    ]
    assert sexagesimal(np.array([89.9999999]), np.array([2])) == ["90 00 00.00"]


def test_places_there_and_back():
    geodetic = np.array([[237.8, 37.8, 470.0], [0.0, -90.0, -30.0], [10.0, 95.0, 0.0]])
    itrf = geodetic_to_itrf(geodetic)
    assert np.isfinite(itrf).all(axis=1).tolist() == [True, True, False]
    np.testing.assert_allclose(itrf_to_geodetic(itrf)[:2], geodetic[:2], atol=1e-8)
    assert np.isnan(itrf_to_geodetic(itrf)[2]).all()
