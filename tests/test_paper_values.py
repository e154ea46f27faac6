"""The paper's networks on arcs drawn as the paper's: docs/tools/paper_values.py."""

import hashlib

import numpy as np
import pytest
from documentation_tools import load

from neoranging.core.arcs import Arcs
from neoranging.core.attributable import from_three_points
from neoranging.estimators.learned import default_weights
from neoranging.exceptions import EvaluationError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.study import METRICS, predict
from neoranging.lab.study.published import TERCILES

NETWORKS = {"mlp": ["mlp@paper"], "pinn": ["pinn@paper", "pinn@paper"]}
THIRD = np.full(3, 1.0 / 3.0)


@pytest.fixture(scope="module")
def tool():
    return load("paper_values")


@pytest.fixture(scope="module")
def table(simulate):
    return simulate(300, 0.08, seed=41).with_noise(np.random.default_rng(42)).labelled()


@pytest.fixture(scope="module")
def nights(tool, table):
    return tool.Nights.of("made", table, NETWORKS)


class TestRaking:
    def test_gives_every_category_its_share(self, tool):
        rng = np.random.default_rng(3)
        first, second = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
        second[first == 2] = 1
        wanted = [np.array([0.2, 0.3, 0.5]), np.array([0.25, 0.75])]
        weights = tool.raked([first, second], wanted)
        assert weights.mean() == pytest.approx(1.0)
        for category, share in zip((first, second), wanted, strict=True):
            held = np.bincount(category, weights) / len(weights)
            np.testing.assert_allclose(held, share, atol=1e-5)
        # a cell is scaled as a whole
        for cell in {*zip(first.tolist(), second.tolist(), strict=True)}:
            of_cell = weights[(first == cell[0]) & (second == cell[1])]
            assert np.ptp(of_cell) == pytest.approx(0.0, abs=1e-12)

    def test_needs_arcs_in_every_category(self, tool):
        with pytest.raises(EvaluationError, match="has a share and no arcs"):
            tool.raked([np.array([0, 0, 2])], [THIRD])

    def test_tells_that_no_weights_do(self, tool):
        alike = np.array([0, 1])
        shares = [np.array([0.5, 0.5]), np.array([0.9, 0.1])]
        with pytest.raises(EvaluationError, match=r"still off by 0\.4"):
            tool.raked([alike, alike], shares)

    def test_draws_arcs_as_often_as_weights_say(self, tool):
        weights = np.random.default_rng(4).uniform(0.0, 3.0, 500)
        weights /= weights.mean()
        rows = tool.drawn(weights)
        assert len(rows) == 500
        assert np.abs(np.bincount(rows, minlength=500) - weights).max() < 1.0


def test_elongation_is_the_angle_from_the_sun(tool):
    position = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    t = np.array([0.0, 0.01, 0.02])
    arcs = Arcs(
        np.array([0, 3, 6]),
        np.tile(t, 2),
        np.repeat([0.0, 0.0], 3) + 1e-4 * np.tile([-1.0, 0.0, 1.0], 2),
        np.repeat([0.0, 0.0], 3),
        *np.full((2, 6), 1e-6),
        np.repeat(position, 3, axis=0),
        np.zeros((6, 3)),
    )
    # opposite the Sun, and at a right angle to it
    np.testing.assert_allclose(tool.elongation_deg(from_three_points(arcs)), [180.0, 90.0])


def test_arcs_are_scored_as_in_the_paper(nights, table):
    """From the geocentre, with three observations; the answers are those of the network."""
    for kind, scores in nights.scored.items():
        asked = predict(NETWORKS[kind][0], table)
        assert len(scores) == len(NETWORKS[kind])
        for each in scores:
            np.testing.assert_array_equal(each.rho, asked.rho)
            np.testing.assert_array_equal(each.rho_true, table["rho_geo_au"])
            eta = from_three_points(to_core(table, "geocenter")).proper_motion
            np.testing.assert_array_equal(each.eta, eta)
    thirds = nights.thirds
    np.testing.assert_array_equal(thirds[0] == 2, eta >= TERCILES["eta"][1])
    np.testing.assert_array_equal(thirds[1] == 0, table["rho_geo_au"] < TERCILES["rho"][0])


def test_steps_have_the_published_thirds(tool, nights):
    steps = tool.steps(nights, nights._replace(title="real nights"))
    whole, *changed = steps.values()
    np.testing.assert_array_equal(whole[1], np.arange(len(nights.table)))
    assert len(changed) == 3
    for _, rows in changed:
        for third in nights.thirds:
            np.testing.assert_allclose(np.bincount(third[rows]) / len(rows), THIRD, atol=0.05)
    assert len(tool.steps(nights, None)) == 2


def test_answers_move_to_the_published_median(tool, nights):
    rows = np.arange(200)
    for kind, ratio in (("mlp", 0.442 / 0.310), ("pinn", 0.332 / 0.310)):
        before = nights.scored[kind][0].rho
        moved = tool.farther(nights, rows, kind)[0].rho
        assert np.median(moved[rows]) == pytest.approx(ratio * np.median(nights.truth.rho[rows]))
        assert np.ptp(moved - before) == pytest.approx(0.0, abs=1e-12)


def test_table_has_the_paper_beside_ours(tool, nights):
    steps = tool.steps(nights, None)
    text = tool.as_table("pinn", steps, 20)
    assert "PINN in the form of the paper, 2 networks" in text
    line = next(line for line in text.splitlines() if '"range, correlation"' in line)
    value = METRICS["corr_rho"](nights.scored["pinn"][0])
    assert line.split('", "')[1] == "0.317"
    assert f"{value:.3g}" in line
    for label in tool.FIGURES.values():
        assert text.count(f'"{label}"') == 1


def test_arcs_and_weights_are_named(tool, nights):
    text = tool.describe(nights)
    assert "**Made**: 300 arcs of 75 objects." in text
    digest = hashlib.sha256(default_weights("pinn", "paper").read_bytes()).hexdigest()[:8]
    assert text.count(f"``{digest}``") == 2


def test_a_tick_is_for_a_published_value_within_the_interval(tool, nights, monkeypatch):
    figures = dict.fromkeys(tool.FIGURES, (5e3, 4e3, 6e3))
    figures |= {"corr_rho": (0.3, 0.2, 0.391), "spread_rho": (0.3, 0.2, 0.399)}
    monkeypatch.setattr(tool, "figures_of", lambda *_: figures)
    steps = tool.steps(nights, None)
    text = tool.as_table("mlp", steps, 20)
    assert text.count("✓") == len(steps) + 1
    row = text[text.index('"range, correlation"') : text.index('"range, spread ratio"')]
    assert row.count("✓") == len(steps) + 1


def test_networks_of_another_form_are_refused(tool, table):
    with pytest.raises(EvaluationError, match="mlp is no network of the form of the paper"):
        tool.Nights.of("made", table, {"mlp": ["mlp"]})
