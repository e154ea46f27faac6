"""Classical methods: one block for each origin, solve rates of all arcs, the collapse marked."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.diurnal import DiurnalSignal
from neoranging.lab.study.figures.classical import plot_classical, plot_collapse


@pytest.fixture
def geocentric(made):
    found = made("gauss (geocentre)", failing=200, origin="geocenter")
    found["rho"] *= 1e-4
    return found


def test_both_origins_with_solve_rates(made, geocentric, drawn):
    here = [made("gauss", failing=100), made("laplace", failing=120, seed=3)]
    texts = drawn(plot_classical([geocentric, *here], [made("mlp")]))
    assert "gauss (geocentre) (50.0 % solved)" in texts
    assert "laplace (70.0 % solved)" in texts
    assert "mlp (100.0 % solved)" in texts
    solved = "solved by all classical methods"
    assert f"From the geocenter: 200 arcs {solved} (50.0 % of all)" in texts
    assert f"From the topocenter: 280 arcs {solved} (70.0 % of all)" in texts


def test_the_collapse_is_marked(made, geocentric):
    fig = plot_classical([geocentric], [made("mlp")])
    panel = fig.subfigs[0].axes[0]
    lines = [np.unique(line.get_ydata()) for line in panel.lines]
    assert any(len(y) == 1 and y[0] == pytest.approx(1e-3) for y in lines)
    low, high = panel.get_ylim()
    assert low < 1e-6
    assert high > 1.0


def test_other_arcs(made):
    with pytest.raises(EvaluationError, match="different arcs"):
        plot_classical([made("gauss"), made("laplace", m=200)])


def test_nothing_solved_alike(made):
    first, second = made("gauss", failing=200), made("laplace")
    second.loc[200:, ["rho", "answered"]] = np.nan, False
    with pytest.raises(EvaluationError, match="no arc is solved"):
        plot_classical([first, second])


def test_collapse_without_a_signal_is_one_panel(made, geocentric, drawn):
    fig = plot_collapse(geocentric, made("gauss"))
    assert len(fig.axes) == 1
    assert {"radius of the Earth", "(a) gauss, 200 arcs"} <= set(drawn(fig))


def test_collapse_with_its_cause(made, geocentric, drawn):
    signal = DiurnalSignal(np.full(400, 1e-4), np.geomspace(1e-3, 1e3, 400))
    fig = plot_collapse(geocentric, made("gauss"), signal)
    texts = drawn(fig)
    assert {"geocentric", "topocentric", "(b) collapse"} <= set(texts)
    shares = {line.get_label(): line.get_ydata() for line in fig.axes[1].lines}
    assert (shares["geocentric"] == 100.0).all()
    assert (shares["topocentric"] < 20.0).all()
    # made to shrink by 1e-4: every cell of the cause lies on its line
    cells = fig.axes[2].collections[0]
    x, y = cells.get_offsets().T
    np.testing.assert_allclose(x, y, atol=0.2)


def test_a_collapse_that_no_arc_shows(made):
    with pytest.raises(EvaluationError, match="no arc is solved both"):
        plot_collapse(made("gauss", failing=400), made("gauss"))
