"""Histograms of the probability integral transform, their band, and interval scores in order."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.posteriors import plot_interval_scores, plot_pit
from neoranging.lab.study.metrics import summarise
from neoranging.lab.study.tables import SCORES, pit_deciles


@pytest.fixture
def sure(made):
    """Scores of a method whose posteriors are too narrow."""
    pit = np.random.default_rng(3).beta(0.4, 0.4, 400)
    return made("systematic", pit=pit, depth=np.abs(2.0 * pit - 1.0))


def test_deciles_with_their_band_and_what_levels_hold(sure, made, drawn):
    even = made("mlp", pit=(np.arange(400) + 0.5) / 400, depth=(np.arange(400) + 0.5) / 400)
    deciles = pd.concat([pit_deciles(s, n_boot=20) for s in (sure, even)], ignore_index=True)
    fig = plot_pit(deciles, [sure, even])
    texts = drawn(fig)
    assert {"systematic", "mlp", "equal tails", "highest density"} <= set(texts)
    assert any(text.startswith("400 arcs") for text in texts)
    left, right, level, below = fig.axes
    heights = [bar.get_height() for bar in left.patches if bar.get_height() > 0][-10:]
    np.testing.assert_allclose(heights, deciles["percent"][:10])
    assert heights[0] > deciles["band_high"][0] > 10.0 > deciles["band_low"][0] > heights[5]
    assert deciles["band_low"][0] == pytest.approx(100.0 * binom.ppf(0.025, 400, 0.1) / 400)
    np.testing.assert_allclose([bar.get_height() for bar in level.patches][-10:], 10.0)
    # too narrow: fewer inside than the level says
    assert right.lines[1].get_ydata().min() < -10.0
    assert np.abs(below.lines[2].get_ydata()).max() < 0.5


def test_no_posterior_no_figure(made):
    with pytest.raises(EvaluationError, match="no method gives posteriors"):
        plot_pit(pd.DataFrame(), [])


def test_interval_scores_with_the_best_on_top(made, drawn):
    methods = {
        name: made(name, interval_score_68=0.5 * score, interval_score_95=score + np.zeros(400))
        for name, score in (("gauss", 2.0), ("mlp", 1.0), ("pinn", 1.5))
    }
    scores = pd.concat(summarise(s, metrics=SCORES, n_boot=20) for s in methods.values())
    fig = plot_interval_scores(scores)
    assert {"68 % intervals", "95 % intervals"} <= set(drawn(fig))
    left, right = fig.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["gauss", "pinn", "mlp"]
    assert [line.get_xdata()[0] for line in right.lines if line.get_marker() in "so^"] == [
        2.0,
        1.5,
        1.0,
    ]
    with pytest.raises(EvaluationError, match="no interval scores"):
        plot_interval_scores(scores[scores["metric"] == "crps"])
