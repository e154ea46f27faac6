"""The near-Earth objects in the package, and tables of orbits of the user's."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from neoranging.constants import MJD_JD
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.exceptions import ObservationFormatError
from neoranging.orbits.catalogue import CATALOGUE_FILE, load_catalogue, read_orbits

HEADER = "designation,a_au,ecc,inc_deg,raan_deg,argp_deg,mean_anomaly_deg,epoch_mjd_tdb"
EROS = "433,1.458121,0.222836,10.82847,304.2701,178.92976,310.55432,61000.0"


@pytest.fixture(scope="module")
def catalogue():
    return load_catalogue()


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


class TestPackaged:
    def test_is_small_and_whole(self, catalogue):
        assert CATALOGUE_FILE.stat().st_size < 3_000_000
        assert len(catalogue) == 40_874
        assert len(np.unique(catalogue.designation)) == 40_874
        assert np.isfinite(catalogue.states()[0]).all()

    def test_gives_the_printed_numbers(self, catalogue):
        (row,) = catalogue.find(["2024 YR4"])
        one = catalogue.take(np.array([row]))
        assert one.a_au[0] == pytest.approx(2.5158319, rel=1e-15)
        assert one.ecc[0] == 0.6614715
        assert np.degrees(one.mean_anomaly_rad[0]) == pytest.approx(89.80779, rel=1e-15)
        assert (one.H_mag[0], one.G[0], one.U[0]) == (23.92, 0.15, 4)
        assert (one.n_obs[0], one.n_opp[0], one.arc_d[0]) == (502, 1, 138.0)

    def test_agrees_with_its_source(self, catalogue, shared):
        source = read_orbits(shared / "data" / "neo_orbits.csv.gz")
        for name in vars(catalogue):
            if not name.startswith("_"):
                ours, theirs = getattr(catalogue, name), getattr(source, name)
                equal_nan = ours.dtype.kind == "f"
                assert np.array_equal(ours, theirs, equal_nan=equal_nan), name

    def test_knows_what_is_not_known(self, catalogue):
        assert np.isnan(catalogue.H_mag).sum() == 11
        assert (catalogue.U == -1).sum() == 74  # 39 letters and 35 blanks
        assert np.isnan(catalogue.arc_d[catalogue.n_opp > 1]).all()
        assert np.isfinite(catalogue.arc_d[catalogue.n_opp == 1]).mean() > 0.999

    def test_states_have_the_elements(self, catalogue):
        few = catalogue.take(np.arange(0, 40_874, 500))
        found = state_to_elements(*map(equatorial_to_ecliptic, few.states()))
        np.testing.assert_allclose(found.q, few.q_au, rtol=1e-12)
        np.testing.assert_allclose(found.ecc, few.ecc, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.inc, few.inc_rad, rtol=0, atol=1e-12)


class TestFind:
    def test_by_number_name_and_closed_up_name(self, catalogue):
        rows = catalogue.find(["433", "A898 PA", "2024 YR4", "2024YR4", "2004 MN4", "99942"])
        assert rows[0] == rows[1]
        assert rows[2] == rows[3]
        assert rows[4] == rows[5]
        assert (rows >= 0).all()

    def test_unknown_objects_are_minus_one(self, catalogue):
        assert catalogue.find(["1", "A10TlFw", ""]).tolist() == [-1, -1, -1]
        assert catalogue.find(np.empty(0, dtype=str)).shape == (0,)

    def test_nearest_epoch_of_several(self, tmp_path):
        other = EROS.replace("61000.0", "59600.0")
        orbits = read_orbits(write(tmp_path / "t.csv", HEADER, EROS, other))
        assert orbits.find(["433"] * 3, [59700.0, 60900.0, 50000.0]).tolist() == [1, 0, 1]
        assert orbits.find(["433"]).tolist() == [0]


class TestReadOrbits:
    def test_the_names_of_others(self, tmp_path):
        own = read_orbits(write(tmp_path / "own.csv", HEADER, EROS))
        names = "pdes,a,e,i,om,w,ma,epoch"
        jd = EROS.replace("61000.0", str(61000.0 + MJD_JD))
        sbdb = read_orbits(write(tmp_path / "sbdb.csv", names, jd))
        for one, other in zip(own.states(), sbdb.states(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert sbdb.epoch_mjd_tdb[0] == 61000.0
        assert (own.U[0], own.n_obs[0], own.n_opp[0]) == (-1, -1, -1)

    def test_perihelion_distance_serves_every_conic(self, tmp_path):
        comet = "C/2017 K2,1.797,1.0005,87.5,88.2,236.2,0.01,59930"
        header = HEADER.replace("a_au", "q_au")
        orbits = read_orbits(write(tmp_path / "q.csv", header, comet))
        assert orbits.a_au[0] < 0.0
        assert np.isfinite(orbits.states()[0]).all()

    def test_compressed(self, tmp_path):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(f"{HEADER}\n{EROS}\n".encode()))
        assert len(read_orbits(path)) == 1

    def test_empty_cells_predict_nothing(self, tmp_path):
        hole = EROS.replace("0.222836", "")
        orbits = read_orbits(write(tmp_path / "t.csv", HEADER, EROS, hole))
        assert np.isfinite(orbits.states()[0]).all(axis=1).tolist() == [True, False]

    def test_what_is_missing_is_named(self, tmp_path):
        frame = pd.DataFrame([EROS.split(",")], columns=HEADER.split(","))
        for missing in frame.columns:
            path = tmp_path / "t.csv"
            frame.drop(columns=missing).to_csv(path, index=False)
            with pytest.raises(ObservationFormatError, match=missing):
                read_orbits(path)

    @pytest.mark.parametrize("text", ["", "a,b\n1,2,3\n4\n1,2,3,4,5\n"])
    def test_what_is_no_table(self, tmp_path, text):
        path = tmp_path / "t.csv"
        path.write_text(text)
        with pytest.raises(ObservationFormatError):
            read_orbits(path)

    def test_words_for_numbers(self, tmp_path):
        path = write(tmp_path / "t.csv", HEADER, EROS.replace("0.222836", "high"))
        with pytest.raises(ObservationFormatError, match=r"ecc.*high"):
            read_orbits(path)
