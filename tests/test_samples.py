"""The embedded observations: complete, readable, and true to their source."""

from __future__ import annotations

import json

import numpy as np
import pytest
from astropy import units as u
from astropy.table import QTable

import neoranging as nr
from neoranging.exceptions import UnknownSampleError
from neoranging.observations.report import Reason
from neoranging.samples import available_samples, reference_ranges, sample


@pytest.mark.parametrize("name", available_samples())
def test_every_sample_is_a_small_file(name):
    path = sample(name)
    assert path.is_file()
    assert path.stat().st_size < 5_000


def test_case_and_blanks_of_a_name_do_not_matter():
    assert sample("2024 yr4") == sample("2024YR4")


def test_unknown_sample_names_those_there_are():
    with pytest.raises(UnknownSampleError, match="2024YR4, impactors, messy"):
        sample("nothing")


@pytest.mark.parametrize(
    ("name", "tracklets", "objects"),
    [("2024YR4", 5, {"2024 YR4"}), ("impactors", 5, {"2014 AA", "2008 TC3", "2008 EK68"})],
)
def test_real_samples_are_read_without_loss(name, tracklets, objects):
    read = nr.read_tracklets(sample(name))
    assert len(read) == tracklets
    assert set(read.designation) == objects
    assert read.report.n_used == read.report.n_read
    assert read.report.reading[0].n_set_aside == 0


def test_messy_sample_holds_records_of_every_kind():
    with pytest.warns(nr.exceptions.NeoRangingWarning, match="ZZZ"):
        table = QTable.read(sample("messy"))
    report = table.meta["report"]
    assert set(report.reasons) == {
        Reason.RADAR,
        Reason.REPLACED,
        Reason.SPACE_WITHOUT_POSITION,
        Reason.ORPHAN_SECOND_LINE,
        Reason.MALFORMED,
    }
    assert (report.n_read, report.n_used) == (15, 9)
    assert set(table["kind"]) == {"ground", "space", "roving"}
    assert any("unreadable magnitude" in str(note) for note in report.notes)


def test_every_observation_has_a_reference_range():
    known = reference_ranges()
    read = [nr.read_tracklets(sample(name)).to_table() for name in ("2024YR4", "impactors")]
    assert len(known) == sum(map(len, read))
    for table in read:
        for row in table:
            same = known["designation"] == row["designation"]
            same &= known["station"] == row["station"]
            same &= np.abs((known["obstime"] - row["obstime"]).to_value(u.s)) < 2e-3
            assert same.sum() == 1


def test_range_rates_are_the_slopes_of_the_ranges():
    known = reference_ranges()
    for name, station in set(zip(known["designation"], known["station"], strict=True)):
        part = known[(known["designation"] == name) & (known["station"] == station)]
        slope = np.diff(part["range"]) / np.diff(part["obstime"].mjd) / u.d
        mean = 0.5 * (part["range_rate"][1:] + part["range_rate"][:-1])
        # the ranges of 2024 YR4 are given to 1e-7 au, and minutes lie between them
        assert np.all(np.abs(slope - mean) < 5e-4 * u.au / u.d)


def test_determined_estimates_hold_the_reference_range():
    tracklets = nr.read_tracklets(sample("impactors"))
    known = reference_ranges()
    for method in ("gauss", "laplace"):
        estimate = tracklets.estimate(method)
        assert estimate.ok.sum() >= 2
        for one, name in zip(estimate, tracklets.designation, strict=True):
            part = known[known["designation"] == name]
            true = part["range"][np.argmin(np.abs(part["obstime"].mjd - one.epoch.utc.mjd))]
            if one.ok:
                assert abs(one.range - true) < 3.0 * one.range_error


def test_impactors_agree_with_the_outside_copy(shared):
    truth = json.loads((shared / "cases/truth_tracklets.json").read_text())
    published = {
        round(obs["jd_tdb"], 6): obs["rho_au"]
        for entry in truth.values()
        for tracklet in entry["tracklets"]
        for obs in tracklet["obs"]
    }
    known = reference_ranges()
    known = known[known["source"] == "JPL Horizons"]
    for row in known:
        assert row["range"].value == pytest.approx(
            published[round(float(row["obstime"].tdb.jd), 6)], abs=1e-9
        )
