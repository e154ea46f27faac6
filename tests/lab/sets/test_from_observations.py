"""Sets of real arcs from tables of observations and orbits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from astropy.time import Time
from click.testing import CliRunner

from neoranging import ephemeris
from neoranging.cli import main
from neoranging.core.geometry import radec
from neoranging.core.prediction import sight
from neoranging.exceptions import DatasetError, NeoRangingWarning, ObservationFormatError
from neoranging.lab.sets.from_observations import make_real_set
from neoranging.lab.sets.plain_observations import read_observation_table
from neoranging.lab.sets.store import read_account, read_arcs, read_manifest
from neoranging.observations import observatories
from neoranging.orbits.catalogue import load_catalogue
from neoranging.samples import sample

NAMES = ["433", "1862", "3200", "99942"]
HEADER = "designation,mjd_utc,ra_deg,dec_deg,station"
ROW = "433,60000.123456789,359.5,-12.25,G96"


@pytest.fixture(scope="module")
def observed():
    """Noise-free two-body observations from days about the epoch of the catalogue."""
    catalogue = load_catalogue()
    utc = 60_998.0 + np.arange(4)[:, None] + np.array([0.30, 0.32, 0.35])
    t = ephemeris.tdb_mjd(Time(utc.ravel(), format="mjd", scale="utc"))
    observer = ephemeris.observer_state(observatories.itrf_positions(np.full(len(t), "G96")), t)
    rows = np.repeat(catalogue.find(NAMES), 3)
    few = catalogue.take(rows)
    ra, dec = radec(sight(*few.states(), few.epoch_mjd_tdb, t, *observer).direction)
    return pd.DataFrame(
        {
            "designation": few.designation,
            "mjd_utc": utc.ravel(),
            "ra_deg": np.degrees(ra),
            "dec_deg": np.degrees(dec),
            "station": "G96",
        }
    )


def run(*arguments):
    return CliRunner().invoke(main, ["dataset", "real", *map(str, arguments)])


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


class TestObservationTable:
    def test_columns_and_defaults(self, tmp_path):
        table = read_observation_table(write(tmp_path / "o.csv", HEADER, ROW))
        assert table["designation"][0] == "433"
        assert table["obstime"][0].utc.mjd == pytest.approx(60_000.123456789, abs=1e-11)
        assert (table["ra"][0].value, table["dec"][0].value) == (359.5, -12.25)
        assert table["sigma_source"][0] == "default"
        assert table["sigma_ra"][0].value == 0.5  # G96
        assert table["selected"].all()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("jd_utc", "2460000.623456789"),
            ("obstime", "2023-02-25T02:57:46.667"),
            ("obsTime", "2023-02-25T02:57:46.667Z"),
        ],
    )
    def test_other_times(self, tmp_path, name, value):
        header, row = HEADER.replace("mjd_utc", name), ROW.replace("60000.123456789", value)
        table = read_observation_table(write(tmp_path / "o.csv", header, row))
        assert table["obstime"][0].utc.mjd == pytest.approx(60_000.123456789, abs=1e-8)

    def test_every_row_is_accounted_for(self, tmp_path):
        header = f"{HEADER},note2,selected_flag,sigma_ra_arcsec,sigma_dec_arcsec"
        good = f"{ROW},C,1.0,0.2,0.3"
        rows = [
            good,
            good.replace("359.5", ""),
            good.replace("60000.123456789", "yesterday"),
            good.replace("-12.25", "-95.0"),
            good.replace("433", ""),
            good.replace(",C,", ",X,"),
            good.replace(",C,", ",S,"),
            good.replace(",C,", ",R,"),
            good.replace("G96", "C51"),
            good.replace(",1.0,", ",0.0,"),
        ]
        table = read_observation_table(write(tmp_path / "o.csv", header, *rows))
        report = table.meta["report"]
        assert (report.n_read, report.n_used, report.n_set_aside) == (10, 2, 8)
        assert [entry.line for entry in report.set_aside] == list(range(3, 11))
        assert table["selected"].tolist() == [True, False]
        assert (table["sigma_ra"][0].value, table["sigma_dec"][0].value) == (0.2, 0.3)

    def test_no_weight(self, tmp_path):
        header = f"{HEADER},sigma_ra_arcsec,sigma_dec_arcsec"
        table = read_observation_table(write(tmp_path / "o.csv", header, f"{ROW},999.0,999.0"))
        assert np.isinf(table["sigma_ra"][0].value)

    def test_a_station_that_nobody_knows_is_told(self, tmp_path):
        path = write(tmp_path / "o.csv", HEADER, ROW.replace("G96", "!!!"))
        with pytest.warns(NeoRangingWarning, match="no list of observatories"):
            table = read_observation_table(path)
        assert len(table) == 1

    def test_what_is_missing_is_named(self, tmp_path):
        ours = ("designation", "obstime", "ra", "dec", "station")
        for name, column in zip(HEADER.split(","), ours, strict=True):
            header = HEADER.replace(name, "something")
            with pytest.raises(ObservationFormatError, match=rf"lacks .* {column};.*something"):
                read_observation_table(write(tmp_path / "o.csv", header, ROW))

    def test_what_is_no_table(self, tmp_path):
        with pytest.raises(ObservationFormatError, match="no comma-separated table"):
            read_observation_table(write(tmp_path / "o.csv", "a,b", "1,2,3,4", "1,2,3,4,5"))


class TestSet:
    def test_from_end_to_end(self, observed, tmp_path):
        observations = tmp_path / "o.csv.gz"
        stranger = observed.iloc[:3].assign(designation="2099 ZZ9")
        wrong = observed.iloc[:3].assign(designation="1862", station="703")
        pd.concat([observed, stranger, wrong]).to_csv(observations, index=False)
        result = run(
            "--observations", observations, "--out", tmp_path / "set", "--dynamics", "kepler"
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert "4 arcs of 4 objects" in result.stdout
        assert "6 arcs, 4 used" in result.stdout
        arcs = read_arcs(tmp_path / "set")
        assert sorted(arcs["designation"]) == sorted(NAMES)
        assert arcs["truth_residual_arcsec"].max() < 1e-3
        assert np.isfinite(arcs["rho_geo_au"]).all()
        account = read_account(tmp_path / "set")
        assert account.counts["arcs"].reasons == {
            "no orbit of that object": 1,
            'label more than 10" from an observation': 1,
        }
        manifest = read_manifest(tmp_path / "set")
        assert manifest["settings"]["dynamics"] == "kepler"
        assert manifest["labels"]["n_arcs"] == 4

    def test_own_orbits_without_uncertainty(self, observed, tmp_path):
        observed.to_csv(tmp_path / "o.csv", index=False)
        few = load_catalogue()
        few = few.take(few.find(NAMES[:2]))
        frame = pd.DataFrame({"designation": few.designation, "q_au": few.q_au, "ecc": few.ecc})
        for name in ("inc", "raan", "argp", "mean_anomaly"):
            frame[f"{name}_deg"] = np.degrees(getattr(few, f"{name}_rad"))
        frame["epoch_mjd_tdb"] = few.epoch_mjd_tdb
        frame.to_csv(tmp_path / "orbits.csv", index=False)
        files = ["--observations", tmp_path / "o.csv", "--orbits", tmp_path / "orbits.csv"]
        common = [*files, "--dynamics", "kepler", "--out", tmp_path / "set"]
        refused = run(*common)
        assert refused.exit_code == 1
        assert "no column U" in refused.stderr
        result = run(*common, "--any-u", "--overwrite")
        assert result.exit_code == 0, result.output
        assert "2 arcs of 2 objects" in result.stdout

    def test_a_set_that_is_there_is_kept(self, observed, tmp_path):
        observed.to_csv(tmp_path / "o.csv", index=False)
        options = {"dynamics": "kepler"}
        make_real_set([tmp_path / "o.csv"], None, tmp_path / "set", **options)
        with pytest.raises(DatasetError, match="complete already"):
            make_real_set([tmp_path / "o.csv"], None, tmp_path / "set", **options)
        summary, _ = make_real_set(
            [tmp_path / "o.csv"], None, tmp_path / "set", **options, overwrite=True
        )
        assert summary.n_arcs == 4

    def test_nothing_left(self, observed, tmp_path):
        observed.assign(designation="2099 ZZ9").to_csv(tmp_path / "o.csv", index=False)
        summary, account = make_real_set(
            [tmp_path / "o.csv"], None, tmp_path / "set", dynamics="kepler"
        )
        assert (summary.n_arcs, account.counts["arcs"].n_used) == (0, 0)
        assert str(summary) == "0 arcs of 0 objects"
        assert len(read_arcs(tmp_path / "set")) == 0

    def test_files_of_observers_with_the_planets(self, tmp_path):
        pytest.importorskip("assist")
        result = run(
            "--observations", sample("impactors"), "--gate", "60", "--any-u", "--out", tmp_path
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        arcs = read_arcs(tmp_path)
        assert set(arcs["truth_dynamics"]) == {"nbody"}
        assert "2008 TC3" in arcs["designation"]

    def test_real_observations(self, shared, tmp_path):
        pytest.importorskip("assist")
        frame = pd.read_csv(shared / "data" / "real_obs.csv.gz", dtype=str)
        frame = frame[frame["designation"].isin(["1566", "5011", "3200"])]
        frame.to_csv(tmp_path / "o.csv", index=False)
        summary, account = make_real_set(
            [tmp_path / "o.csv"], shared / "data" / "neo_orbits.csv.gz", tmp_path / "set"
        )
        assert account.counts["records"].n_read == len(frame)
        assert summary.n_arcs > 100
        assert summary.residual["median"] < 1.5
        assert summary.pseudo_admissible > 0.99
