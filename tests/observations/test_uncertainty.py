"""Default uncertainties: by station, technique, catalogue and year."""

import numpy as np
import pytest

from neoranging.observations.uncertainty import default_sigma


@pytest.mark.parametrize(
    ("station", "note2", "catalog", "year", "sigma"),
    [
        # As the NEO services weigh single observations (error model vfcc17 of OrbFit).
        ("F51", "C", "L", 2014, 0.2),
        ("G96", "C", "V", 2020, 0.5),
        ("703", "C", "r", 2010, 1.0),
        ("703", "C", "V", 2014, 0.8),
        ("699", "C", "o", 2003, 0.8),
        ("T08", "C", "V", 2020, 0.8),
        ("673", "C", "g", 2001, 0.3),
        ("W68", "C", "V", 2024, 0.6),
        ("160", "C", "r", 2012, 1.0),
        ("244", "E", "V", 2021, 0.2),
        ("024", "A", "", 1885, 10.0),
        ("024", "A", "", 1931, 5.0),
        ("413", "A", "", 1979, 2.5),
        ("000", "M", "", 1900, 3.0),
        ("999", "T", "", 1986, 0.5),
        ("820", "", "c", 1989, 2.5),
        ("597", "", "m", 1992, 1.0),
    ],
)
def test_values(station, note2, catalog, year, sigma):
    columns = (np.array([text]) for text in (station, note2, catalog))
    assert default_sigma(*columns, np.array([float(year)])).tolist() == [sigma]


def test_no_observations():
    nothing = np.array([], dtype="U3")
    assert default_sigma(nothing, nothing, nothing, np.array([])).shape == (0,)
