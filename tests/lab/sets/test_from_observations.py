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
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.from_observations import make_real_set
from neoranging.lab.sets.store import read_account, read_arcs, read_manifest
from neoranging.observations import observatories
from neoranging.orbits.catalogue import load_catalogue
from neoranging.samples import sample

NAMES = ["433", "1862", "3200", "99942"]


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
