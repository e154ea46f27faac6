"""Ragged columns: views, copies, sums and the choice of three observations."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.core.arcs import Arcs, visits

COLUMNS = ("t", "ra", "dec", "sigma_ra", "sigma_dec", "position", "velocity")


def ragged(counts, seed=0, steps=None):
    """Arcs of the given sizes with random columns; epochs grow along each arc."""
    rng = np.random.default_rng(seed)
    n = int(np.sum(counts))
    if steps is None:
        steps = rng.uniform(0.01, 1.0, n)
    t = 60_000.0 + np.cumsum(steps)
    return Arcs(
        np.concatenate([[0], np.cumsum(counts)]),
        t,
        *rng.uniform(0.0, 1.5, (2, n)),
        *rng.uniform(1e-7, 1e-5, (2, n)),
        *rng.standard_normal((2, n, 3)),
    )


def pieces(arcs):
    """Each arc as a tuple of its columns, the slow way."""
    bounds = zip(arcs.offsets[:-1], arcs.offsets[1:], strict=True)
    return [tuple(getattr(arcs, name)[a:b] for name in COLUMNS) for a, b in bounds]


def assert_same(first, second):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@given(sizes, st.data())
def test_take_copies_the_arcs_in_the_order_asked_for(counts, data):
    arcs = ragged(counts)
    index = data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=15))
    taken = arcs.take(np.array(index))
    assert taken.offsets[0] == 0
    assert_same(pieces(taken), [pieces(arcs)[k] for k in index])


def test_take_owns_its_memory():
    arcs = ragged([3, 4])
    taken = arcs.take(np.array([1]))
    taken.ra[:] = 0.0
    assert (arcs.ra[3:] != 0.0).all()


def test_take_of_nothing():
    taken = ragged([3, 4]).take(np.array([], dtype=int))
    assert len(taken) == 0
    assert len(taken.t) == 0


@given(sizes, st.integers(1, 5))
def test_chunks_cover_all_arcs_once(counts, size):
    arcs = ragged(counts)
    chunks = list(arcs.chunks(size))
    assert all(0 < len(chunk) <= size for chunk in chunks)
    assert all(chunk.offsets[0] == 0 for chunk in chunks)
    assert_same([piece for chunk in chunks for piece in pieces(chunk)], pieces(arcs))


def test_a_chunk_is_a_view():
    arcs = ragged([3, 4, 2])
    assert np.shares_memory(arcs.chunk(1, 3).ra, arcs.ra)


@given(sizes)
def test_sums_and_owners(counts):
    arcs = ragged(counts)
    values = np.random.default_rng(1).standard_normal((len(arcs.t), 2))
    expected = np.stack([values[arcs.owner == k].sum(axis=0) for k in range(len(arcs))])
    np.testing.assert_allclose(arcs.sum(values), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(arcs.counts, counts)
    np.testing.assert_array_equal(np.bincount(arcs.owner), counts)


@settings(max_examples=200)
@given(sizes, st.integers(0, 1000), st.booleans())
def test_triplet_is_first_last_and_the_one_nearest_the_middle(counts, seed, repeat):
    rng = np.random.default_rng(seed)
    steps = rng.uniform(0.1, 1.0, int(np.sum(counts)))
    if repeat:
        steps[rng.random(len(steps)) < 0.3] = 0.0
    arcs = ragged(counts, steps=steps)
    for k, (first, middle, last) in enumerate(arcs.triplet):
        a, b = arcs.offsets[k : k + 2]
        assert (first, last) == (a, b - 1)
        inner = np.arange(a + 1, b - 1) if b - a >= 3 else np.arange(a, b)
        assert middle in inner
        distance = np.abs(arcs.t[inner] - 0.5 * (arcs.t[a] + arcs.t[b - 1]))
        assert abs(arcs.t[middle] - 0.5 * (arcs.t[a] + arcs.t[b - 1])) == distance.min()
        assert arcs.n_epochs[k] == len(np.unique(arcs.t[a:b]))


def test_triplet_of_three_epochs_keeps_them_apart_though_some_stand_twice():
    """Two exposures at the first epoch must not give a triplet of two epochs."""
    arcs = ragged([4], steps=np.array([0.0, 0.0, 0.1, 10.0]))
    assert arcs.n_epochs[0] == 3
    assert len(np.unique(arcs.t[arcs.triplet[0]])) == 3


def test_epochs_that_rounding_joins_are_one():
    """A gap of a millionth of the arc leaves no digits for a curvature."""
    t = 60_000.0 + np.array([0.0, 0.3, 0.3 + 1e-8, 0.0, 0.3, 0.3 + 1e-5])
    arcs = ragged([3, 3], steps=np.zeros(6))
    arcs = dataclasses.replace(arcs, t=t)
    np.testing.assert_array_equal(arcs.n_epochs, [2, 3])


def test_arcs_are_immutable():
    arcs = ragged([3])
    with pytest.raises(AttributeError):
        arcs.t = arcs.t + 1.0


def test_visits_are_of_one_station_in_one_night():
    offsets = np.array([0, 5, 8])
    t = np.array([0.0, 0.01, 0.02, 0.03, 1.02, 0.0, 0.01, 0.02])
    station = np.array(["G96", "703", "G96", "703", "G96", "G96", "G96", "G96"])
    label = visits(offsets, t, station)
    np.testing.assert_array_equal(label[[0, 1]], label[[2, 3]])
    assert len(set(label[[0, 1, 4, 5]].tolist())) == 4
    assert len(np.unique(label[5:])) == 1


def test_visits_are_numbered_in_order_of_the_arcs():
    arcs = dataclasses.replace(ragged([3, 2, 4]), visit=np.array([7, 3, 7, 7, 7, 9, 2, 9, 2]))
    np.testing.assert_array_equal(arcs.visit_number, [1, 0, 1, 2, 2, 4, 3, 4, 3])
    plain = dataclasses.replace(arcs, visit=None)
    np.testing.assert_array_equal(plain.visit_number, plain.owner)


def test_mean_magnitude_is_of_those_that_are_given():
    mag = np.array([20.0, np.nan, 21.0, np.nan, np.nan, 18.0, 18.5, 19.0, 18.5])
    arcs = dataclasses.replace(ragged([3, 2, 4]), mag=mag)
    np.testing.assert_array_equal(arcs.mean_mag, [20.5, np.nan, 18.5])
