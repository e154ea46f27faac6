"""Bins along one axis within bins along another."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neoranging.core.conformal import NestedBins, bin_of, quantile_edges

FEW = st.lists(st.integers(0, 6), min_size=1, max_size=60)


def test_by_hand():
    """Twelve points: the slow half is cut at spans 2, 4 and the fast half at 20, 40."""
    first = np.arange(12.0)
    second = np.array([1, 6, 2, 5, 3, 4, 60, 10, 50, 20, 40, 30.0])
    bins = NestedBins.fit(first, second, (2, 3), least=2)
    assert bins.outer.tolist() == [5.0]
    assert [edges.tolist() for edges in bins.inner] == [[2.0, 4.0], [20.0, 40.0]]
    assert bins.n_cells == 6
    assert bins.cell_of(first, second).tolist() == [0, 2, 0, 2, 1, 1, 5, 3, 5, 3, 4, 4]
    # a value on an edge belongs below, what lies outside to the nearest
    corners = np.array([[-9.0, -9.0], [-9.0, 99.0], [5.0, 2.0], [5.1, 2.0], [99.0, 99.0]])
    assert bins.cell_of(*corners.T).tolist() == [0, 2, 0, 3, 5]


def test_few_points_make_few_bins_of_the_second_value_first():
    rng = np.random.default_rng(1)
    sizes = []
    for n in (3, 399, 800, 4_000, 8_000, 12_000, 60_000):
        bins = NestedBins.fit(*rng.random((2, n)), (10, 6), least=400)
        sizes.append((len(bins.outer) + 1, bins.n_cells))
    assert sizes == [(1, 1), (1, 1), (2, 2), (10, 10), (10, 20), (10, 30), (10, 60)]


def test_cells_are_the_quantiles_of_each_bin_where_the_two_go_together():
    rng = np.random.default_rng(2)
    first = rng.lognormal(size=9_000)
    second = first * rng.lognormal(size=9_000)
    bins = NestedBins.fit(first, second, (10, 3), least=100)
    counts = np.bincount(bins.cell_of(first, second))
    assert len(counts) == 30
    assert np.ptp(counts) == 0
    row = bin_of(quantile_edges(first, 10), first)
    np.testing.assert_array_equal(bins.inner[4], quantile_edges(second[row == 4], 3))


@given(FEW, st.randoms(use_true_random=False))
def test_no_cell_is_empty_whatever_the_ties(values, random):
    first = np.array(values, dtype=float)
    second = np.array(random.choices(range(4), k=len(values)), dtype=float)
    bins = NestedBins.fit(first, second, (4, 3), least=2)
    counts = np.bincount(bins.cell_of(first, second), minlength=bins.n_cells)
    assert len(counts) == bins.n_cells
    assert (counts > 0).all()


def test_of_nothing_there_is_one():
    bins = NestedBins.fit(np.zeros(0), np.zeros(0), (10, 6), least=400)
    assert bins.n_cells == 1
    assert bins.cell_of(np.zeros(0), np.zeros(0)).shape == (0,)
    assert bins.cell_of(np.array([1.0]), np.array([2.0])).tolist() == [0]
