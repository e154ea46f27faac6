"""Bars and heat maps show the numbers of their rows, and say who is better."""

import numpy as np
import pandas as pd
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.strata import plot_cross, plot_strata
from neoranging.lab.study.strata import cross, stratify


@pytest.fixture
def pair(made):
    return made("mlp", dex=0.3), made("pinn", dex=0.05, seed=2, failing=20)


def test_bars_are_as_high_as_the_rows_say(pair, drawn):
    rows = stratify(pair, metrics=("p_ar", "d_sh_pseudo"), n_boot=20)
    fig = plot_strata(rows)
    wanted = rows.query("axis == 'rho' and metric == 'd_sh_pseudo' and method == 'mlp'")["value"]
    bars = fig.axes[4 + 1].containers[1]  # below, second axis; error bars come first
    assert [bar.get_height() for bar in bars] == pytest.approx(wanted.tolist())
    texts = drawn(fig)
    assert {"mlp", "pinn", r"$P_\mathrm{AR}$ [%]"} <= set(texts)
    assert len(fig.axes) == 8


def test_ticks_tell_bounds_and_arcs(pair):
    rows = stratify(pair, axes=("rho",), metrics=("p_ar",), n_boot=0)
    (ax,) = plot_strata(rows, metrics=("p_ar",)).axes
    close, mid, far = (tick.get_text() for tick in ax.get_xticklabels())
    edge = f"{rows['upper'][0]:.3g}"
    assert close.startswith(f"close\n< {edge}")
    assert mid.startswith(f"mid\n{edge}")
    assert far.startswith("far")
    assert "133" in mid


def test_methods_differ_by_hatch(pair):
    rows = stratify(pair, axes=("rho",), metrics=("p_ar",), n_boot=0)
    (ax,) = plot_strata(rows, metrics=("p_ar",)).axes
    assert len({bar.get_hatch() for bar in ax.patches}) == 2


def test_rows_of_other_figures(pair):
    rows = stratify(pair, axes=("rho",), metrics=("p_ar",), n_boot=0)
    with pytest.raises(EvaluationError, match="no rows of medae_rho"):
        plot_strata(rows, metrics=("medae_rho",))
    with pytest.raises(EvaluationError, match="no rows"):
        plot_strata(rows[:0])


def test_blue_is_for_the_second_method(pair, drawn):
    fig = plot_cross(cross(*pair, metrics=("medae_rho",), n_boot=20))
    (ax,) = fig.axes
    image = ax.images[0]
    assert (np.ma.filled(image.get_array(), 1.0) > 0.0).all()  # pinn errs less everywhere
    shade = image.cmap(image.norm(image.get_array().max()))
    assert shade[2] > shade[0]
    assert not ax.patches  # no cell is hatched for the first
    assert {"pinn better", "mlp better"} <= set(drawn(fig))


def test_a_figure_that_should_be_high_turns_the_colours(made):
    poor, good = made("mlp"), made("pinn")
    poor.loc[::2, "admissible"] = False
    (ax,) = plot_cross(cross(poor, good, metrics=("p_ar",), n_boot=0)).axes
    assert np.nanmin(np.ma.filled(ax.images[0].get_array(), 1.0)) >= 0.0
    (ax,) = plot_cross(cross(good, poor, metrics=("p_ar",), n_boot=0)).axes
    assert ax.patches


def test_cells_tell_their_arcs(pair, drawn):
    rows = cross(*pair, metrics=("medae_rho",), n_boot=0)
    texts = drawn(plot_cross(rows))
    assert {f"{n:,}" for n in rows["n_arcs"]} <= set(texts)


def test_margins_are_no_cells(pair):
    (ax,) = plot_cross(cross(*pair, metrics=("medae_rho",), margins=True, n_boot=0)).axes
    assert ax.images[0].get_array().shape == (3, 3)


def test_no_cells():
    with pytest.raises(EvaluationError, match="no cells"):
        plot_cross(pd.DataFrame())
