"""Orbits in OrbFit's format."""

from __future__ import annotations

import numpy as np
import pytest
from astropy import units as u
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.core.elements import elements_to_state
from neoranging.core.kepler import true_anomaly
from neoranging.exceptions import OrbitFormatError
from neoranging.lab.archive.oef import (
    looks_like_catalogue,
    orbit_from_astroquery,
    read_catalogue,
    read_orbit,
)

HEAD = """\
format  = 'OEF2.0'       ! file format
rectype = 'ML'           ! record type (1L/ML)
refsys  = ECLM J2000     ! default reference system
END_OF_HEADER
"""
# elements of 2018 VP1 as the portal had them when astroquery's test data were recorded
EQU = (
    "1.5881497559207589E+00  -0.037761493287417   0.428349632624671    0.018136658554010    "
    "0.021742631955843  14.9386830433169"
)
UPPER = np.arange(1.0, 22.0)
COV = "".join(
    f" COV {row[0]:.15E} {row[1]:.15E} {row[2]:.15E}\n" for row in UPPER.reshape(7, 3) * 1e-9
)
EQUINOCTIAL = (
    f"{HEAD}2018VP1\n! Equinoctial elements: a, e*sin(LP), e*cos(LP), ...\n EQU   {EQU}\n"
    f" MJD     58430.299591399 TDT\n MAG  30.865  0.150\n! Non-grav parameters\n LSP   0  0    6\n"
    f"! RMS 5.6E-04\n{COV} NOR 1.0E+15 2.0E+16 3.0E+16\n"
)
KEPLERIAN = (
    f"{HEAD}433\n KEP   1.4582  0.2227  10.8285  304.2963  178.8972  246.9041\n"
    " MJD     59600.000000000 TDT\n MAG  10.870  0.460\n"
)
CATALOGUE = """\
format  = 'OEF2.0'       ! file format
rectype = '1L'           ! record type (1L/ML)
elem    = 'KEP'          ! type of orbital elements
refsys  = ECLM J2000     ! default reference system
END_OF_HEADER
! Name, Epoch(MJD), a, e, i, long. node, arg. peric., mean anomaly, abs. magnitude, slope, non-grav
'433'         59600.000000 1.45827310E+00 2.2272733E-01 10.8284 304.2963 178.8972 246.9 10.87 0.46 0
'2024YR4'     59600.000000 2.51581275E+00 6.6154037E-01  3.4081 271.3656 134.3614  40.4 23.88 0.15 0
'A/2017U1'      59600.000000 -1.2723E+00 1.2011E+00  122.74 24.6 241.8  36.4 -999.0 0.15 0
"""


def test_equinoctial_elements_and_their_covariance():
    orbit = read_orbit(EQUINOCTIAL, url="http://x/2018VP1.eq0")
    assert orbit.designation == "2018 VP1"
    assert orbit.epoch.scale == "tt"
    assert orbit.epoch.mjd == pytest.approx(58430.299591399, abs=1e-9)
    assert orbit.a.to_value(u.au) == 1.5881497559207589
    assert (orbit.H, orbit.G) == (30.865, 0.15)
    assert orbit.kind == "EQU"
    assert orbit.values[5] == 14.9386830433169
    assert orbit.covariance.shape == (6, 6)
    assert np.array_equal(orbit.covariance, orbit.covariance.T)
    assert orbit.covariance[0, 5] == pytest.approx(6e-9)
    assert orbit.covariance[5, 5] == pytest.approx(21e-9)
    assert orbit.covariance[1, 2] == pytest.approx(8e-9)
    assert orbit.correlation is None
    assert orbit.url.endswith("eq0")


def test_keplerian_elements_are_those_of_the_equinoctial_ones():
    orbit = read_orbit(EQUINOCTIAL)
    ecc, inc = float(orbit.ecc), orbit.inc.to_value(u.rad)
    node, argp = orbit.raan.to_value(u.rad), orbit.argp.to_value(u.rad)
    a, h, k, p, q, mean_longitude = orbit.values
    assert ecc * np.sin(node + argp) == pytest.approx(h, abs=1e-14)
    assert ecc * np.cos(node + argp) == pytest.approx(k, abs=1e-14)
    assert np.tan(inc / 2) * np.sin(node) == pytest.approx(p, abs=1e-14)
    assert np.tan(inc / 2) * np.cos(node) == pytest.approx(q, abs=1e-14)
    longitude = (orbit.M + orbit.raan + orbit.argp).to_value(u.deg) % 360.0
    assert longitude == pytest.approx(mean_longitude, abs=1e-12)
    # published: a 1.588 au, e 0.430, i 3.24 deg, perihelion 0.905 au
    assert ecc == pytest.approx(0.430, abs=1e-3)
    assert orbit.inc.to_value(u.deg) == pytest.approx(3.24, abs=0.01)
    mean = np.array([orbit.M.to_value(u.rad)])
    r, _ = elements_to_state(
        *(np.array([x]) for x in (a * (1 - ecc), ecc, inc, node, argp)),
        true_anomaly(mean, np.array([ecc])),
    )
    assert np.linalg.norm(r) == pytest.approx(1.0, abs=0.02)  # it passed the Earth then


def test_keplerian_file_as_it_stands():
    orbit = read_orbit(KEPLERIAN.replace("1.4582 ", "1.4582D+00 ").replace("D+00", "E+00"))
    assert orbit.kind == "KEP"
    assert orbit.covariance is None
    assert orbit.argp == 178.8972 * u.deg
    assert orbit.M.to_value(u.deg) == 246.9041


def test_a_covariance_with_a_seventh_parameter():
    numbers = "".join(f" COV {value:.15E}\n" for value in np.arange(28.0))
    assert read_orbit(KEPLERIAN + numbers).covariance.shape == (7, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing"),
        ("<html><body>maintenance</body></html>\n", "OrbFit's format: got '<html>"),
        (HEAD, "ends with its header"),
        (HEAD + "433\n", "0 numbers after EQU"),
        (KEPLERIAN.split(" MJD", maxsplit=1)[0], "0 numbers after MJD"),
        (KEPLERIAN.replace("178.8972  246.9041", "178.8972"), "5 numbers after KEP"),
        (KEPLERIAN.replace("304.2963", "304.29.63"), "needed are numbers"),
        (KEPLERIAN.replace("0.2227", "1.2227"), "no heliocentric orbit"),
        (KEPLERIAN.replace("0.2227", "NaN"), "no heliocentric orbit"),
        (KEPLERIAN.replace("TDT", "UTC"), "time scale UTC"),
        (KEPLERIAN.replace("ECLM J2000", "EQUM J2000"), "frame EQUM J2000"),
        (EQUINOCTIAL.replace(COV, COV[: len(COV) // 2].rsplit("\n", 1)[0] + "\n"), "upper tri"),
    ],
)
def test_what_is_no_orbit_is_refused(text, message):
    with pytest.raises(OrbitFormatError, match=message):
        read_orbit(text.encode())


def test_catalogue():
    table = read_catalogue(CATALOGUE)
    assert list(table["designation"]) == ["433", "2024 YR4", "A/2017U1"]
    assert table["epoch"].scale == "tt"
    assert table["a"].unit == u.au
    assert table["raan"][1] == 271.3656 * u.deg
    assert list(table["ecc"].value) == [0.22272733, 0.66154037, 1.2011]
    assert table["H"][0] == 10.87
    assert np.isnan(table["H"][2])
    report = table.meta["report"]
    assert (report.n_read, report.n_used) == (3, 3)


@pytest.mark.parametrize(
    "damaged",
    [
        "'2024AA'  59600.0 1.0 0.1 2.0 3.0 4.0",
        "'2024AA'  59600.0 1.0 0.1 2.0 3.0 4.0 x5.0 20.0 0.15",
        "'2024AA'  59600.0 1.0 1.1 2.0 3.0 4.0 5.0 20.0 0.15",
        "'2024AA'  59600.0 1.0 0.1 200.0 3.0 4.0 5.0 20.0 0.15",
        "'2024AA'  NaN 1.0 0.1 2.0 3.0 4.0 5.0 20.0 0.15",
        "'2024AA",
        "''  59600.0 1.0 0.1 2.0 3.0 4.0 5.0 20.0 0.15",
    ],
)
def test_a_damaged_line_of_a_catalogue_is_set_aside(damaged):
    lines = CATALOGUE.splitlines()
    lines.insert(7, damaged)
    table = read_catalogue("\n".join(lines) + "\n")
    assert len(table) == 3
    (set_aside,) = table.meta["report"].set_aside
    assert set_aside.line == 8
    assert set_aside.text == damaged


def test_a_line_without_magnitude_and_quotes():
    table = read_catalogue(CATALOGUE + "99942 59600.0 0.92 0.19 3.3 204. 126. 90.\n")
    assert table["designation"][3] == "99942"
    assert np.isnan(table["H"][3])


def test_a_file_of_one_object_is_no_catalogue():
    with pytest.raises(OrbitFormatError, match="read_orbit"):
        read_catalogue(KEPLERIAN)
    assert looks_like_catalogue(CATALOGUE.encode())
    assert not looks_like_catalogue(KEPLERIAN.encode())


damage = st.tuples(
    st.floats(0.0, 1.0), st.integers(0, 40), st.binary(max_size=12) | st.just(b"\n KEP ")
)


@settings(max_examples=300, deadline=None)
@given(damages=st.lists(damage, min_size=1, max_size=3))
@pytest.mark.parametrize(
    ("reader", "text"),
    [(read_orbit, KEPLERIAN), (read_orbit, EQUINOCTIAL), (read_catalogue, CATALOGUE)],
)
def test_damaged_files_are_read_or_refused_and_nothing_else(reader, text, damages):
    content = text.encode()
    for where, n_lost, inserted in damages:
        at = int(where * len(content))
        content = content[:at] + inserted + content[at + n_lost :]
    try:
        orbit = reader(content)
    except OrbitFormatError:
        return
    a = orbit.a if reader is read_orbit else orbit["a"]
    assert np.isfinite(a).all()


def test_a_file_that_does_not_unpack_is_a_damaged_file_of_orbits():
    for reader in (read_orbit, read_catalogue):
        with pytest.raises(OrbitFormatError, match="damaged"):
            reader(b"\xfd7zXZ" + KEPLERIAN.encode())


def test_the_answer_of_astroquery():
    answer = {
        "Equinoctial State Vector": [float(x) for x in EQU.split()],
        "Mean Julian Date": ["58430.299591399", "TDT"],
        "Magnitude": [30.865, 0.15],
        "Covariance Matrix": list(UPPER * 1e-9),
        "Keplerian Correlation Matrix": [],
        "URL": "http://x//2018VP1.eq0",
    }
    ours, theirs = read_orbit(EQUINOCTIAL), orbit_from_astroquery(answer, "2018 VP1")
    assert theirs.epoch == ours.epoch
    assert theirs.argp == ours.argp
    assert theirs.H == ours.H
    assert np.allclose(theirs.covariance, ours.covariance, rtol=1e-12)
    assert theirs.url == answer["URL"]


def test_the_answer_of_astroquery_to_a_web_page():
    answer = {"Covariance Matrix": [], "Keplerian Correlation Matrix": [], "URL": "http://x"}
    with pytest.raises(OrbitFormatError, match="0 numbers after"):
        orbit_from_astroquery(answer, "433")


def test_the_portals_catalogue_of_2022(shared):
    import pandas as pd

    theirs = pd.read_csv(shared / "data" / "neodys_2022_orbits.csv.gz", dtype={"designation": str})
    names = ("a_au", "e", "i_deg", "Omega_deg", "omega_deg", "M_deg", "H", "G")
    rows = zip(theirs.designation, theirs.epoch_mjd_tdb, *(theirs[n] for n in names), strict=True)
    lines = [
        f"'{name}' {epoch:.6f} " + " ".join(f"{value!r}" for value in values) + " 0"
        for name, epoch, *values in rows
    ]
    text = CATALOGUE.partition("'433'")[0] + "\n".join(lines) + "\n"
    table = read_catalogue(text)
    assert len(table) == len(theirs) == 29012
    assert np.array_equal(table["M"].to_value(u.deg), theirs.M_deg)
