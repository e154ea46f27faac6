"""D criteria: metric properties, and the same distances from vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neoranging.core.dcriteria import d_drummond, d_jopek, d_sh
from neoranging.core.elements import elements_to_state, state_to_elements

ALL = [d_sh, d_drummond, d_jopek]
turn = st.floats(0.0, 2.0 * np.pi)
orbit = st.tuples(st.floats(0.1, 2.0), st.floats(0.0, 0.99), st.floats(0.0, np.pi), turn, turn)


def d_sh_from_vectors(first, second):
    """Southworth and Hawkins' D from the normals and the angles from the common node."""
    q1, e1, *_ = first
    q2, e2, *_ = second
    (r1, v1), (r2, v2) = elements_to_state(*first, 0.0), elements_to_state(*second, 0.0)
    normal1, normal2 = (
        np.cross(r, v) / np.linalg.norm(np.cross(r, v)) for r, v in [(r1, v1), (r2, v2)]
    )
    node = np.cross(normal1, normal2)
    node /= np.linalg.norm(node)

    def from_node(r, normal):
        return np.arctan2(np.cross(normal, node) @ r, node @ r)

    apsidal = from_node(r2, normal2) - from_node(r1, normal1)
    return np.sqrt(
        (e2 - e1) ** 2
        + (q2 - q1) ** 2
        + np.sum((normal1 - normal2) ** 2)
        + ((e1 + e2) * np.sin(0.5 * apsidal)) ** 2
    )


@settings(deadline=None, max_examples=200)
@given(first=orbit, second=orbit)
def test_d_sh_against_its_vector_definition(first, second):
    (_, _, i1, n1, _), (_, _, i2, n2, _) = first, second
    if np.hypot(np.sin(i1) * np.sin(n1 - n2), np.sin(i1 - i2)) < 1e-3:
        return  # coplanar: the common node of the vector form is undefined
    assert d_sh(first, second) == pytest.approx(d_sh_from_vectors(first, second), abs=1e-9)


@pytest.mark.parametrize("distance", ALL)
@settings(deadline=None, max_examples=100)
@given(first=orbit, second=orbit)
def test_symmetric_zero_on_itself_and_blind_to_whole_turns(distance, first, second):
    first, second = np.array(first), np.array(second)
    there = distance(first, second)
    assert there >= 0.0
    assert distance(second, first) == pytest.approx(there, abs=1e-12)
    assert distance(first, first) == pytest.approx(0.0, abs=1e-12)
    turned = second + 2.0 * np.pi * np.array([0, 0, 0, 1, -1])
    assert distance(first, turned) == pytest.approx(there, abs=1e-12)


@pytest.mark.parametrize("distance", ALL)
def test_nodes_on_both_sides_of_the_equinox(distance):
    """The arcsine trap: 359 deg and 1 deg are neighbours, like 9 deg and 11 deg."""

    def between(node1, node2):
        first = np.array([0.9, 0.5, 0.2, np.radians(node1), 1.0])
        return distance(first, np.array([0.9, 0.5, 0.2, np.radians(node2), 1.3]))

    assert between(359.0, 1.0) == pytest.approx(between(9.0, 11.0), rel=1e-12)
    assert between(1.0, 359.0) == pytest.approx(between(11.0, 9.0), rel=1e-12)


@pytest.mark.parametrize("distance", ALL)
def test_choice_of_plane_does_not_matter(distance):
    first, second = (0.9, 0.5, 0.2, 0.3, 1.0), (1.1, 0.6, 0.5, 6.0, 1.3)
    eps = 0.4
    turn_x = np.array([[1, 0, 0], [0, np.cos(eps), -np.sin(eps)], [0, np.sin(eps), np.cos(eps)]])

    def turned(orbit):
        r, v = elements_to_state(*orbit, 0.7)
        return state_to_elements(turn_x @ r, turn_x @ v)[:5]

    got = distance(turned(first), turned(second))
    assert got == pytest.approx(distance(first, second), rel=1e-10)


def test_pairs_broadcast_and_bad_elements_are_nan():
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.1, 0.9, (5, 4)), rng.uniform(0.1, 0.9, (5, 3))
    for distance in ALL:
        matrix = distance([x[:, None] for x in a], b)
        assert matrix.shape == (4, 3)
        assert matrix[2, 1] == distance(a[:, 2], b[:, 1])
        assert np.isnan(distance(np.full(5, np.nan), b[:, 0]))


def test_two_circular_orbits_have_no_eccentricity_term():
    first, second = np.array([1.0, 0.0, 0.1, 0, 0]), np.array([1.0, 0.0, 0.1, 0, 0])
    assert d_drummond(first, second) == 0.0
