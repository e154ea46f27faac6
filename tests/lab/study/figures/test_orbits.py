"""Orbits: the median and the best of each method, where the bodies were, with their names."""

import numpy as np
import pytest

from neoranging import ephemeris
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.orbits import plot_orbits
from neoranging.lab.study.predictions import predict
from neoranging.lab.study.scores import score


@pytest.fixture(scope="module")
def judged(table):
    predictions = predict("gauss", table)
    return score(table, predictions), predictions


def test_heads_tell_the_arcs(table, judged, drawn):
    scored, predictions = judged
    texts = drawn(plot_orbits(table, [scored], [predictions]))
    best = int(np.nanargmin(scored.d_sh_pseudo))
    head = next(text for text in texts if text.startswith("gauss, best"))
    assert f"= {scored.d_sh_pseudo[best]:.2g}\n{table['designation'][best]}, " in head
    assert head.endswith(" h")
    assert " UTC, " in head
    assert {"Earth", "Sun", "pseudo-true orbit", "estimated orbit"} <= set(texts)


def test_bodies_stand_where_they_were(table, judged):
    scored, predictions = judged
    top, side = plot_orbits(table, [scored], [predictions]).axes[1::2]
    best = int(np.nanargmin(scored.d_sh_pseudo))
    marks = {line.get_label(): line for line in top.lines}
    earth = equatorial_to_ecliptic(ephemeris.earth_state(table["t2_mjd_tdb"][[best]])[0])[0]
    found = equatorial_to_ecliptic(predictions.r[best])
    np.testing.assert_allclose(marks["Earth"].get_xydata()[0], earth[:2], atol=1e-12)
    np.testing.assert_allclose(marks["estimated orbit"].get_xydata()[0], found[:2], atol=1e-12)
    height = {line.get_label(): line for line in side.lines}["estimated orbit"]
    np.testing.assert_allclose(height.get_xydata()[0], found[[0, 2]], atol=1e-12)


def test_truth_and_estimate_lie_on_one_line_of_sight(table, judged):
    scored, predictions = judged
    top = plot_orbits(table, [scored], [predictions]).axes[0]
    marks = {line.get_label(): line.get_xydata()[0] for line in top.lines}
    true, found = (
        marks[name] - marks["Earth"] for name in ("pseudo-true orbit", "estimated orbit")
    )
    assert abs(true[0] * found[1] - true[1] * found[0]) < 1e-3 * np.hypot(*true)


def test_one_view_has_one_scale(table, judged):
    scored, predictions = judged
    fig = plot_orbits(table, [scored], [predictions])
    for ax in fig.axes:
        assert ax.get_aspect() == 1.0
    assert fig.axes[0].get_xlim() == fig.axes[2].get_xlim()


def test_scores_and_predictions_must_match(table, judged):
    scored, predictions = judged
    with pytest.raises(EvaluationError, match="same order"):
        plot_orbits(table, [scored], [])
    with pytest.raises(EvaluationError, match="same order"):
        plot_orbits(table, [scored.take([0, 1])], [predictions.take([0, 1])])


def test_nothing_elliptic(table, judged):
    scored, predictions = judged
    lost = scored.assign(d_sh_pseudo=np.nan)
    with pytest.raises(EvaluationError, match="no elliptic orbit"):
        plot_orbits(table, [lost], [predictions])
