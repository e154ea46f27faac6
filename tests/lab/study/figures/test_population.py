"""The population: every object once, its count told, orbits that are none left out."""

import numpy as np
import pytest

from neoranging.exceptions import EvaluationError
from neoranging.lab.study.figures.population import plot_population


def test_counts_objects_not_arcs(table, drawn):
    fig = plot_population(table, n_orbits=5)
    texts = drawn(fig)
    assert f"5 of {len(np.unique(table['designation']))} objects" in texts
    assert "semimajor axis $a$ [au]" in texts
    assert len(fig.axes) == 3


def test_bars_hold_every_object(table):
    _, _, inclinations = plot_population(table).axes
    assert sum(bar.get_height() for bar in inclinations.patches) == len(
        np.unique(table["designation"])
    )


def test_unbound_orbits_are_left_out(table, drawn):
    name = table["designation"]
    some = table.with_columns(ecc=np.where(name == name[0], 1.2, table["ecc"]))
    n = len(np.unique(name)) - 1
    assert any(f"of {n} objects" in text for text in drawn(plot_population(some)))


def test_a_set_without_orbits(table):
    with pytest.raises(EvaluationError, match="no catalogue"):
        plot_population(table.with_columns(q_au=np.nan))
