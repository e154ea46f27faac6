"""Estimates: a density and a distribution for each method, nothing left out in silence."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.estimates import plot_estimates


def test_panels_and_counts(made, drawn):
    fig = plot_estimates([made("gauss", failing=100), made("mlp", seed=2)])
    texts = drawn(fig)
    assert {"gauss\n300 arcs", "mlp\n400 arcs", "truth", r"true $\rho$ [au]"} <= set(texts)
    panels = fig.axes[:6]
    assert [ax.get_xscale() for ax in panels[:2]] == ["log", "log"]
    assert panels[3].get_xscale() == "linear"


def test_what_is_out_of_view_is_told(made, drawn):
    wild = made("laplace")
    wild.loc[:39, "rho_dot"] = 5.0
    assert "10 %\nout of view" in drawn(plot_estimates([wild]))


def test_densities_hold_every_answer_in_view(made):
    fig = plot_estimates([made("gauss", failing=100)])
    cells = fig.axes[0].collections[0].get_array()
    assert 290 <= cells.sum() <= 300


def test_distributions_are_shares(made):
    fig = plot_estimates([made("gauss", failing=100)])
    for steps in fig.axes[1].patches:
        assert steps.get_data().values.sum() == pytest.approx(100.0, abs=1.0)


def test_densities_of_a_row_count_alike(made):
    fig = plot_estimates([made("gauss", failing=300), made("mlp")])
    first, second = (ax.collections[0].norm for ax in fig.axes[:2])
    assert (first.vmin, first.vmax) == (second.vmin, second.vmax)


def test_a_constant_method_is_drawn(made, drawn):
    constant = made("mine")
    constant = constant.assign(rho=0.3, rho_dot=0.0)
    drawn(plot_estimates([constant]))


def test_negative_ranges_do_not_stop_it(made, drawn):
    odd = made("mine")
    odd.loc[:9, "rho"] = -1.0
    drawn(plot_estimates([odd]))


def test_without_an_answer(made):
    with pytest.raises(EvaluationError, match="does the method answer"):
        plot_estimates([made(failing=400)])
    with pytest.raises(EvaluationError, match="at least one"):
        plot_estimates([])


def test_one_silent_method_beside_another(made, drawn):
    texts = drawn(plot_estimates([made("gauss", failing=400), made("mlp")]))
    assert "gauss\n0 arcs" in texts


def test_large_sets_make_small_files(made, drawn):
    drawn(plot_estimates([made(m=40_000), made("pinn", m=40_000)]), most=1024)
    assert np.isfinite(made(m=8).rho).all()
