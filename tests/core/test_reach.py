"""Orbits that are said to stay clear of the Earth do, and most of a night are."""

import numpy as np
import pytest

import neoranging as nr
from neoranging.core.flight import approaches
from neoranging.core.reach import may_meet
from neoranging.ephemeris.states import almanac, earth_state

START, DAYS = 60500.0, 10.0


@pytest.fixture(scope="module")
def swarm():
    """Geocentric states of objects about the Earth, a third of which aim at her."""
    rng = np.random.default_rng(1)
    n = 6000
    line = rng.normal(size=(n, 3))
    line /= np.linalg.norm(line, axis=1, keepdims=True)
    distance = np.exp(rng.uniform(np.log(1e-4), np.log(0.3), n))
    speed = rng.normal(size=(n, 3)) * 0.01
    aims = rng.random(n) < 1.0 / 3.0
    arrival = rng.uniform(0.2, DAYS, n)
    speed[aims] = (
        -(line * (distance / arrival)[:, None])[aims] + rng.normal(size=(aims.sum(), 3)) * 2e-5
    )
    return line * distance[:, None], speed


def test_whatever_falls_was_not_excluded(swarm):
    line, speed = swarm
    position, velocity = earth_state(START)
    r, v = line + position, speed + velocity
    epoch = np.full(len(r), START)
    fell = approaches(r, v, epoch, almanac(START, START + DAYS), START + DAYS)
    may = may_meet(line, speed, np.linalg.norm(r, axis=1), DAYS)
    near = fell.distance < 0.001
    assert fell.falls.sum() > 100
    assert not (fell.falls & ~may).any()
    begins_there = np.linalg.norm(line, axis=1) < 0.001
    assert not (near & ~may & ~begins_there).any()


def test_most_of_a_night_need_not_be_followed():
    night = nr.read_tracklets(nr.sample("2024YR4"))[4]
    draws = night.estimate(method="systematic").samples(1000, rng=1)
    position, velocity = earth_state(np.median(draws.epoch.mjd))
    r, v = draws.r.value, draws.v.value
    may = may_meet(r - position, v - velocity, np.linalg.norm(r, axis=1), DAYS)
    assert may.mean() < 0.2


def test_what_is_near_the_sun_is_not_judged():
    line, speed = np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3))
    assert may_meet(line, speed, np.array([0.3]), DAYS)[0]
    assert not may_meet(line, speed, np.array([0.9]), DAYS)[0]
