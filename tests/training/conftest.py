"""A small set of labelled arcs: simulated ones with their truth."""

import numpy as np
import pytest
import torch

from neoranging import ephemeris
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import equatorial_to_ecliptic
from neoranging.core.prediction import sight
from neoranging.datasets.arcs import make_arcs
from neoranging.datasets.splits import split_set
from neoranging.datasets.store import ArcWriter


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def labelled_table(s):
    """`ArcTable` of simulated arcs with labels; four arcs to an object."""
    a = s.arcs
    table, counts = make_arcs(
        a.offsets,
        a.t,
        a.ra,
        a.dec,
        sigma_ra=a.sigma_ra,
        sigma_dec=a.sigma_dec,
        stations=s.station,
        designation=np.arange(len(s)).astype(str),
        night=a.t[a.offsets[:-1]].astype(np.int64),
    )
    assert counts.n_used > 0.9 * len(s)
    rows = table["designation"].astype(np.int64)
    s = s.take(rows)
    t2 = table["t2_mjd_tdb"]
    seen = sight(s.r, s.v, s.epoch, t2, *ephemeris.earth_state(t2))
    orbit = state_to_elements(*(equatorial_to_ecliptic(x) for x in (s.r, s.v)))
    return table.with_columns(
        designation=np.char.add("S", (rows // 4).astype(str)),
        rho_topo_au=s.rho,
        rho_dot_topo_au_d=s.rho_dot,
        rho_geo_au=seen.rho,
        rho_dot_geo_au_d=seen.rho_dot,
        q_au=orbit.q,
        ecc=orbit.ecc,
        inc_rad=orbit.inc,
        raan_rad=orbit.raan,
        argp_rad=orbit.argp,
        is_simulated=True,
    )


@pytest.fixture(scope="session")
def exact_arcs(simulate):
    """400 arcs of two hours without noise."""
    return simulate(400, 0.08, seed=21)


@pytest.fixture(scope="session")
def exact_table(exact_arcs):
    return labelled_table(exact_arcs)


@pytest.fixture(scope="session")
def table(exact_arcs):
    """The same arcs with noise."""
    return labelled_table(exact_arcs.with_noise(np.random.default_rng(22)))


@pytest.fixture(scope="session")
def arc_set(table, tmp_path_factory):
    """They, stored and divided."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("sets") / "small"
    with ArcWriter(folder, settings={"kind": "test"}) as writer:
        writer.write(table.take(slice(0, 150)))
        writer.write(table.take(slice(150, None)))
    split_set(folder, seed=1)
    return folder
