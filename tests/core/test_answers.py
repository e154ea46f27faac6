"""Answers keep their posteriors when they are taken, spread and joined."""

from dataclasses import replace

import numpy as np
import pytest
from made_posteriors import SHAPES, posterior

from neoranging.core.answers import Answers
from neoranging.core.attributable import Attributables, from_fit
from neoranging.core.posterior import Posterior
from neoranging.core.status import RangeStatus


@pytest.fixture(scope="module")
def attributables(simulate):
    return from_fit(simulate(7, 1.0, seed=8).arcs)


@pytest.fixture(scope="module")
def answers(attributables):
    """Five answers, of which the last has no posterior."""
    shapes = Posterior.join([*(posterior(shape) for shape in SHAPES[:4]), Posterior.none(1)])
    rho = np.append(shapes.quantile(0.5)[:4], np.nan)
    made = Answers.of(attributables.take(np.arange(5)), rho, 0.0 * rho, RangeStatus.POPULATION)
    return replace(made, posterior=shapes)


@pytest.mark.parametrize("rows", [[3, 0], slice(1, None, 2), np.array([1, 0, 0, 0, 1], bool), []])
def test_taken(answers, rows):
    part = answers.take(rows)
    assert len(part.posterior) == len(part)
    np.testing.assert_array_equal(part.posterior.quantile(0.5)[: len(part)], part.rho)


def test_spread_among_others(answers, attributables):
    index = np.array([6, 1, 0, 3, 4])
    among = answers.spread(index, attributables, np.zeros(7, dtype=np.int8))
    assert len(among.posterior) == 7
    np.testing.assert_array_equal(among.posterior.quantile(0.5), among.rho)


def test_joined_with_those_that_have_none(answers, attributables):
    bare = Answers.unsolved(attributables, np.zeros(7, dtype=np.int8))
    joined = Answers.join(iter([bare, answers, bare]), 19)
    assert len(joined.posterior) == len(joined) == 19
    np.testing.assert_array_equal(joined.posterior.quantile(0.5), joined.rho)
    assert Answers.join([bare, bare], 14).posterior is None


def test_of_no_arcs():
    assert Answers.unsolved(Attributables.none(), []).posterior is None
