"""A small set of labelled arcs: simulated ones with their truth."""

import numpy as np
import pytest
from network_fixtures import (  # noqa: F401
    _one_thread,
    night,
    night_inputs,
    night_truth,
    slide,
    to_inputs,
)

from neoranging.lab.sets.splits import split_set
from neoranging.lab.sets.store import ArcWriter


@pytest.fixture(scope="session")
def exact_arcs(simulate):
    """400 arcs of two hours without noise."""
    return simulate(400, 0.08, seed=21)


@pytest.fixture(scope="session")
def exact_table(exact_arcs):
    return exact_arcs.labelled()


@pytest.fixture(scope="session")
def table(exact_arcs):
    """400 arcs of two hours with noise."""
    return exact_arcs.with_noise(np.random.default_rng(22)).labelled()


@pytest.fixture(scope="session")
def arc_set(table, tmp_path_factory):
    """Folder of these arcs, stored and divided."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("sets") / "small"
    with ArcWriter(folder, settings={"kind": "test"}) as writer:
        writer.write(table.take(slice(0, 150)))
        writer.write(table.take(slice(150, None)))
    split_set(folder, seed=1)
    return folder
