"""Clouds of one night hold the object in the next one, as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from astropy import units as u
from astropy.time import Time
from documentation_tools import load

from neoranging import TrackletSet, read_tracklets

WAY = "three"


@pytest.fixture(scope="module")
def tool():
    return load("next_night")


def nights_of(begins, *, station="G96", designation="A"):
    """Three observations in 0.02 d from each begin [MJD] on."""
    times = (np.asarray(begins)[:, None] + [0.0, 0.01, 0.02]).ravel()
    return TrackletSet.from_arrays(
        Time(times, format="mjd", scale="tdb"),
        np.linspace(10.0, 11.0, len(times)) << u.deg,
        np.linspace(5.0, 6.0, len(times)) << u.deg,
        station=np.full(len(times), station),
        tracklet=np.repeat(np.arange(len(begins)), 3),
        sigma=np.full(len(times), 0.3) << u.arcsec,
        designation=np.full(len(times), designation),
    )


class TestPairs:
    def test_are_of_a_night_and_the_next_one(self, tool):
        pairs = tool.night_pairs(nights_of([58000.0, 58000.2, 58001.1, 58006.0, 58100.0]), WAY)
        # two runs of one night share the next one, and the last nights have none in thirty days
        assert pairs[["first", "second"]].to_numpy().tolist() == [[0, 2], [1, 2], [2, 3]]
        np.testing.assert_allclose(pairs["gap"], [1.08, 0.88, 4.88], atol=1e-6)
        assert pairs["class"].tolist() == ["below 1.5 d", "below 1.5 d", "4.5 to 10 d"]

    def test_of_one_object_are_few(self, tool):
        pairs = tool.night_pairs(nights_of(58000.0 + np.arange(20.0)), WAY)
        assert len(pairs) == tool.CAP

    def test_leave_out_nights_of_wrong_times(self, tool):
        assert tool.night_pairs(nights_of([58300.0, 58301.0], station="I41"), WAY).empty
        assert len(tool.night_pairs(nights_of([59500.0, 59501.0], station="I41"), WAY)) == 1
        assert tool.night_pairs(nights_of([45000.0, 45001.0]), WAY).empty


def test_simulated_nights_are_held(tool):
    """Of orbits drawn from the catalogue, under the prior that is the catalogue."""
    nights = tool.simulated_nights(150, seed=1)
    pairs = tool.night_pairs(nights, WAY, cap=1)
    pairs = pairs.sample(70, random_state=0).reset_index(drop=True)
    judged = tool.judge(nights, pairs, "catalogue", WAY)
    assert len(judged) == 70
    assert judged["area"].notna().mean() > 0.9
    # three standard deviations of so few pairs
    assert abs(judged["68"].mean() - 0.70) < 0.16
    assert judged["95"].mean() > 0.87
    assert judged["99"].mean() > 0.93
    rows = list(tool.figures(judged))
    assert [row[0] for row in rows][-2:] == ["below 4.5 d", "all"]
    assert rows[-1][1] == "70"
    assert "68 % holds" in tool.table("A title", tool.HEADER, rows)


def test_real_nights_are_held(tool, shared):
    nights = read_tracklets(
        shared / "data" / "real_obs.csv.gz", kinds=("ground",), group_by="night"
    )
    pairs = tool.night_pairs(nights, WAY, cap=1)
    pairs = pairs.sample(80, random_state=0).reset_index(drop=True)
    judged = tool.judge(nights, pairs, "near-earth", WAY)
    # four standard deviations of so few pairs below what is asked of thousands
    assert judged["95"].mean() > 0.84
    assert judged["68"].mean() > 0.45
