"""Tables of orbits: what the package has, where it comes from, and damaged ones."""

from __future__ import annotations

import numpy as np
import priors as tool
import pytest

from neoranging.constants import GM_SUN
from neoranging.core.elements import state_to_elements
from neoranging.core.priors import log_density
from neoranging.exceptions import CorruptFileError, OrbitError
from neoranging.orbits.population import PRIORS, PRIORS_FOLDER, load_prior, read_prior

# Objects of q < 1.3 au in the model of digest2, for each magnitude up to H 25.
NEAR_EARTH = {19.5: 3296, 20.5: 6350, 21.5: 13422, 22.5: 29736, 23.5: 66438, 24.5: 148_440}


@pytest.fixture
def arrays():
    shape = (3, 3, 3, 3)
    return {"log_density": np.zeros(shape), "start": np.zeros(4), "step": np.ones(4)}


@pytest.mark.parametrize("name", PRIORS)
def test_tables_of_the_package(name):
    table = load_prior(name)
    assert table.log_density.dtype == table.log_cumulative.dtype == np.float32
    assert table.log_density.shape == table.log_cumulative.shape
    assert np.isfinite(table.log_density).all()
    assert np.isfinite(table.log_cumulative).all()
    assert (np.diff(table.log_cumulative, axis=-1) >= 0.0).all()
    assert load_prior(name) is table


@pytest.mark.parametrize("path", sorted(PRIORS_FOLDER.glob("*.npz")), ids=lambda path: path.stem)
def test_files_say_where_they_come_from(path):
    assert path.stat().st_size < 800_000
    with np.load(path) as file:
        assert "priors.py" in str(file["command"])
        assert str(file["source"])
        assert str(file["date"])


def test_the_number_of_objects_is_that_of_the_model():
    """The density, integrated over phase space at random, gives the near-Earth objects."""
    table, rng, n = load_prior("population"), np.random.default_rng(3), 400_000
    log_q, ecc = rng.uniform(np.log(0.1), np.log(1.3), n), rng.uniform(0.0, 1.0, n)
    cos_inc = rng.uniform(-1.0, 1.0, n)
    # sampled in ln q, e and cos(inc): the measure of Delaunay's variables, a = q / (1 - e)
    q = np.exp(log_q)
    measure = 0.5 * GM_SUN**1.5 * (2.0 * np.pi) ** 3 * q**1.5 * ecc * (1.0 - ecc) ** -1.5
    measure *= (np.log(1.3) - np.log(0.1)) * 2.0 * (q / (1.0 - ecc) < tool.A_MAX_AU)
    for H, expected in NEAR_EARTH.items():
        place = q, ecc, np.arccos(cos_inc), np.full(n, H)
        total = np.mean(measure * np.exp(tool.evaluate(table, *place)))
        assert total == pytest.approx(expected * (1.0 + tool.FLOOR), rel=0.05)


def test_volumes_of_phase_space():
    """States at random, counted by their orbits, measure the cells."""
    rng, n = np.random.default_rng(5), 2_000_000
    reach, speed = 2.0, np.sqrt(2.0 * GM_SUN / 0.6)
    x = rng.uniform(-reach, reach, (n, 3))
    v = rng.uniform(-speed, speed, (n, 3))
    box = (2.0 * reach) ** 3 * (2.0 * speed) ** 3
    elements = state_to_elements(x, v)
    # no orbit of these cells leaves the box of places or of velocities
    edges = [np.array([0.7, 0.9, 1.1]), np.array([0.0, 0.15, 0.25]), np.array([0.0, 0.6, 1.6, 3.1])]
    place = np.stack([elements.q, elements.ecc, elements.inc], axis=1)
    counts, _ = np.histogramdd(place, edges)
    assert counts.min() > 30
    volume = tool.phase_space(*edges)
    assert np.all(np.abs(counts - volume / box * n) < 4.0 * np.sqrt(counts))
    assert counts.sum() == pytest.approx(volume.sum() / box * n, rel=0.03)


def test_the_whole_phase_space_has_a_closed_form():
    whole = tool.phase_space(np.array([0.0, 60.0]), np.linspace(0.0, 1.0, 9), np.array([0, np.pi]))
    expected = 0.5 * GM_SUN**1.5 * (2.0 * np.pi) ** 3 * 2.0 / 3.0 * tool.A_MAX_AU**1.5
    assert whole.sum() == pytest.approx(expected, rel=1e-3)


def test_small_objects_are_many_near_the_earth_only_in_the_catalogue():
    """What is known of the smallest is divided by its share of time in reach, not taken as such."""
    table = load_prior("catalogue")
    step = log_density(table.log_density, table.start, table.step, 0.9, 0.4, 0.1, 25.0)
    step -= log_density(table.log_density, table.start, table.step, 0.9, 0.4, 0.1, 20.0)
    assert 0.3 < step / np.log(10.0) / 5.0 < 0.7


def test_main_belt_is_in_the_population_only():
    belt = 2.2, 0.1, 0.1, 18.0
    near = 1.0, 0.5, 0.1, 18.0
    ratio = {}
    for name in PRIORS:
        table = load_prior(name)
        grid = table.log_density, table.start, table.step
        ratio[name] = log_density(*grid, *belt) - log_density(*grid, *near)
    assert ratio["population"] > 3.0
    assert ratio["catalogue"] < -3.0
    assert ratio["near-earth"] < -3.0


def test_near_earth_is_the_near_part_of_the_population():
    whole, part = load_prior("population"), load_prior("near-earth")
    rng, n = np.random.default_rng(6), 5000
    near = (
        np.exp(rng.uniform(np.log(0.12), np.log(1.3), n)),
        rng.uniform(0.0, 1.0, n),
        rng.uniform(0.0, np.pi, n),
        rng.uniform(10.0, 28.0, n),
    )
    expected = tool.evaluate(whole, *near)
    # between the nodes of the whole table the finer one may cut a corner by a hundredth
    np.testing.assert_allclose(tool.evaluate(part, *near), expected, atol=0.5)
    assert np.abs(tool.evaluate(part, *near) - expected).mean() < 0.02
    beyond = np.full(n, 1.35), *near[1:]
    assert np.all(tool.evaluate(part, *beyond) <= tool.evaluate(whole, *beyond) + 1e-3)
    assert np.ptp(tool.evaluate(part, *beyond[:3], np.full(n, 20.0))) < 1e-3


def test_there_are_no_other_tables():
    with pytest.raises(OrbitError, match="population, near-earth, catalogue"):
        load_prior("granvik")


def test_own_tables(tmp_path, arrays):
    np.savez(tmp_path / "own.npz", **arrays, remark=np.array("mine"))
    table = read_prior(tmp_path / "own.npz")
    assert log_density(table.log_density, table.start, table.step, 1.0, 0.5, 0.1, 1.0) == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"log_density": np.zeros((3, 3, 3))}, "four axes"),
        ({"log_density": np.zeros((3, 1, 3, 3))}, "two nodes"),
        ({"log_density": np.full((3, 3, 3, 3), -np.inf)}, "81 values"),
        ({"step": np.array([1.0, 1.0, 0.0, 1.0])}, "positive steps"),
        ({"start": np.zeros(3)}, "four numbers"),
        ({"start": np.array(["a", "b", "c", "d"])}, "no table of orbits"),
        ({"start": np.array([{}, None, 1, 2], dtype=object)}, "no table of orbits"),
    ],
)
def test_foreign_arrays_are_refused(tmp_path, arrays, changes, message):
    np.savez(tmp_path / "own.npz", **(arrays | changes))
    with pytest.raises(CorruptFileError, match=message):
        read_prior(tmp_path / "own.npz")


@pytest.mark.parametrize("content", [b"", b"q,e,i,H\n1,2,3,4\n", b"PK\x03\x04 cut short"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "own.npz"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match="no table of orbits"):
        read_prior(path)


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_files_cut_short_are_refused(tmp_path, share):
    content = (PRIORS_FOLDER / "population.npz").read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CorruptFileError, match="no table of orbits"):
        read_prior(path)


def test_turned_bits_are_noticed(tmp_path):
    content = bytearray((PRIORS_FOLDER / "population.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / "turned.npz"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match="no table of orbits"):
        read_prior(path)


def test_a_single_array_is_no_table(tmp_path):
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(CorruptFileError, match="no table of orbits"):
        read_prior(tmp_path / "one.npy")


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_prior(tmp_path / "none.npz")


@pytest.mark.parametrize("magnitude", [28.0, 30.0, 31.5])
def test_as_many_objects_fall_as_fireballs_are_seen(magnitude):
    """The flux of the population on the Earth against Brown et al. 2002, Nature 420, 294.

    Estimates of the smallest objects differ by a factor of three. The median speed at the top of
    the atmosphere is that of the fireballs that CNEOS lists.
    """
    rng = np.random.default_rng(0)
    falls, km_per_s = tool.falls_on_earth(load_prior("population"), magnitude, rng)
    order = np.argsort(km_per_s)
    share = np.cumsum(falls[order]) / falls.sum()
    assert np.interp(0.5, share, km_per_s[order]) == pytest.approx(17.5, abs=1.5)
    assert np.interp(11.5, km_per_s[order], share) < 0.04
    diameter = 1.329e6 / np.sqrt(0.14) * 10.0 ** (-0.2 * magnitude)
    kilotons = 0.5 * (np.pi / 6.0 * 3000.0 * diameter**3) * 17e3**2 / 4.184e12
    assert 1.0 / 3.0 < falls.sum() / (3.7 * kilotons**-0.9) < 3.0
