"""Arcs in memory: the truth that belongs to them, errors that are drawn anew."""

import numpy as np
import pytest
import torch

from neoranging.constants import ARCSEC
from neoranging.core.geometry import norm
from neoranging.core.noise import OFFSET, SHARE_OF_CLAIM
from neoranging.ephemeris.states import planet_position
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.splits import digest_of
from neoranging.lab.sets.store import ArcWriter, read_arcs
from neoranging.lab.simulation.twin import Twin
from neoranging.lab.training.data import load_arcs, make_training_arcs
from neoranging.lab.training.noise import noise_free


def test_ranges_count_from_the_origin(table):
    for origin, name in (("topocenter", "rho_topo_au"), ("geocenter", "rho_geo_au")):
        made = make_training_arcs(table, origin)
        np.testing.assert_array_equal(made.rho.numpy(), table[name])
        away = norm((made.inputs.observer - made.inputs.earth).numpy())
        assert (away < 1e-7).all() if origin == "geocenter" else (away > 4e-5).all()


def test_the_same_inputs_as_at_the_time_of_an_estimate(table, exact_arcs):
    noisy = exact_arcs.with_noise(np.random.default_rng(22))
    from_set = make_training_arcs(table).inputs
    for name, value in arc_inputs(noisy.tracklets().arcs()).map(torch.from_numpy)._asdict().items():
        tolerance = 1e-9 if name in ("ra", "dec", "sky") else 1e-5
        torch.testing.assert_close(
            getattr(from_set, name), value, rtol=1e-5, atol=tolerance, msg=name
        )


def test_triplet_and_span(table):
    inputs = make_training_arcs(table).inputs
    span = table["span_d"]
    np.testing.assert_allclose((inputs.dt3 - inputs.dt1).numpy(), span, rtol=1e-12)
    np.testing.assert_allclose(torch.exp(inputs.log_span).numpy(), span, rtol=1e-12)
    np.testing.assert_array_equal(inputs.ra[:, 1].numpy(), table["ra2_rad"])
    assert (inputs.curved == 1.0).all()


def test_two_epochs_have_no_curvature(exact_arcs):
    two = exact_arcs.tracklets()[0][[0, -1]]
    inputs = arc_inputs(two._set.arcs()).map(torch.from_numpy)
    for column in (inputs.curved, inputs.sky_acc, inputs.observer_acc, inputs.log_sigma_acc):
        assert (column == 0.0).all()
    assert all(bool(column.isfinite().all()) for column in inputs)


def test_noise_is_taken_off(table, exact_table):
    clean, exact = noise_free(table, to_core(table))
    assert exact.all()
    true, noisy = to_core(exact_table), to_core(table)
    error = norm(clean.direction - true.direction)
    # the object stands where the middle observation has it: an instant off, all of an arc together
    owner = clean.owner
    middle = (clean.direction - true.direction)[clean.triplet[:, 1]]
    common = norm(clean.direction - true.direction - middle[owner])
    sigma = noisy.sigma_dec
    assert np.median(error / sigma) < 1.0
    assert error.max() < 6.0 * sigma.max()
    assert np.median(common / sigma) < 1e-3
    assert np.median(norm(noisy.direction - true.direction) / sigma) > 1.0


def test_near_objects_are_held_against_the_path_that_the_earth_bends():
    twin = Twin(objects=60, seed=5, noise=0.0, close_fraction=0.2)
    table = twin.arcs()
    near = table.take((table["rho_geo_au"] < 0.02) & (table["span_d"] > 0.01))
    assert len(near) > 10
    arcs = to_core(near)
    clean, exact = noise_free(near, arcs)
    assert exact.all()
    assert norm(clean.direction - arcs.direction).max() < 1e-3 * ARCSEC
    # a set that has them on ellipses says so, and the observations tell that it is not true
    ellipses = near.with_columns(truth_dynamics="kepler")
    ellipse, exact = noise_free(ellipses, arcs)
    assert not exact.all()
    assert norm(ellipse.direction - arcs.direction).max() > 0.5 * ARCSEC


def test_sets_that_do_not_say_how_they_moved_are_of_ellipses(table):
    arcs = to_core(table)
    moved = [
        noise_free(table.with_columns(truth_dynamics=name), arcs)[0].ra for name in ("", "kepler")
    ]
    np.testing.assert_array_equal(*moved)


def test_an_orbit_of_something_else_is_not_believed(table):
    other = table.with_columns(q_au=1.01 * table["q_au"])
    arcs = to_core(other)
    clean, exact = noise_free(other, arcs)
    wrong = ~exact
    assert wrong.mean() > 0.9
    np.testing.assert_array_equal(clean.ra[wrong[arcs.owner]], arcs.ra[wrong[arcs.owner]])
    again = make_training_arcs(other, drawings=1)
    unmoved = torch.from_numpy(wrong)
    assert torch.equal(again.drawn(1).inputs.sky_acc[unmoved], again.inputs.sky_acc[unmoved])


def test_real_arcs_get_no_other_errors(table):
    made = make_training_arcs(table.with_columns(is_simulated=False), drawings=1)
    assert torch.equal(made.drawn(1).inputs.sky_rate, made.inputs.sky_rate)
    assert torch.equal(made.drawn(1).inputs.ra, made.inputs.ra)


def test_drawings_take_turns(table):
    made = make_training_arcs(table, drawings=2)
    seen = [made.drawn(k).inputs.sky_acc for k in range(4)]
    assert torch.equal(seen[0], made.inputs.sky_acc)
    assert torch.equal(seen[3], seen[0])
    assert not torch.equal(seen[1], seen[2])
    assert made.drawn(1).drawings == ()
    # the same objects, seen almost alike
    assert torch.corrcoef(torch.stack([seen[1].flatten(), seen[2].flatten()]))[0, 1] > 0.5


def test_drawings_scatter_as_the_errors_of_stations_do(exact_table):
    made = make_training_arcs(exact_table, "geocenter", drawings=40)
    cos_dec = torch.cos(made.inputs.dec)
    east = torch.stack([drawing.ra - made.inputs.ra for drawing in made.drawings])
    east = (torch.remainder(east + torch.pi, 2 * torch.pi) - torch.pi) * cos_dec / (0.2 * ARCSEC)
    north = torch.stack([drawing.dec - made.inputs.dec for drawing in made.drawings])
    off = torch.stack([east, north / (0.2 * ARCSEC)])
    # one station, one night: a common offset, and a scatter about it
    common = np.hypot(OFFSET, SHARE_OF_CLAIM / np.sqrt(3.0))
    assert 1.4826 * off.mean(dim=-1).abs().median() == pytest.approx(common, rel=0.15)
    within = off - off.mean(dim=-1, keepdim=True)
    usual = within.square().sum(dim=(0, -1)).div(4.0).sqrt().median()
    # half of all chi-square of four degrees of freedom lie below 0.839 of their mean
    assert usual == pytest.approx(np.sqrt(0.839) * SHARE_OF_CLAIM, rel=0.1)


def test_drawings_are_a_matter_of_the_generator(table):
    one, same, other = (
        make_training_arcs(table, drawings=1, rng=np.random.default_rng(k)).drawings[0].sky_acc
        for k in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_arcs_shown_with_two_epochs(table):
    made = make_training_arcs(table)
    rows = torch.zeros(len(made), dtype=torch.bool)
    rows[::3] = True
    shown = made.as_two_epochs(rows).inputs
    assert (shown.curved[rows] == 0.0).all()
    assert (shown.sky_acc[rows] == 0.0).all()
    assert torch.equal(shown.sky_acc[~rows], made.inputs.sky_acc[~rows])
    assert torch.equal(shown.sky_rate, made.inputs.sky_rate)


def test_a_stored_set(arc_set):
    train = load_arcs(arc_set, "train", drawings=2)
    table = read_arcs(arc_set, split="train")
    np.testing.assert_array_equal(train.rho.numpy(), table["rho_topo_au"])
    assert train.facts["n_arcs"] == len(train) == len(table)
    assert train.facts["n_objects"] == len(np.unique(table["designation"]))
    assert train.facts["set"] == "small"
    assert train.facts["settings"] == {"kind": "test"}
    assert train.facts["division"]["seed"] == 1
    assert train.facts["objects_sha256"] == digest_of(table["designation"])
    assert [len(drawing.dt1) for drawing in train.drawings] == [len(train)] * 2
    some = train.map(lambda x: x[5:9])
    assert len(some) == 4
    assert len(some.drawings[1].ra) == 4
    again = load_arcs(arc_set, "train", drawings=2)
    assert torch.equal(again.drawings[1].sky_acc, train.drawings[1].sky_acc)


def test_what_cannot_be_learnt_from(arc_set, table):
    with pytest.raises(DatasetError, match="dataset split"):
        load_arcs(arc_set, "unseen")
    with pytest.raises(DatasetError, match="no arcs"):
        make_training_arcs(table.take([]))
    rho = table["rho_topo_au"].copy()
    rho[3] = np.nan
    with pytest.raises(DatasetError, match=r"rho \(1\)"):
        make_training_arcs(table.with_columns(rho_topo_au=rho))


def test_close_passages_can_be_left_out(table, tmp_path):
    pytest.importorskip("pyarrow")
    near = np.arange(len(table)) % 3 == 0
    with ArcWriter(tmp_path / "set", settings={"kind": "test"}) as writer:
        writer.write(table.with_columns(is_close=near, split=np.full(len(table), "train")))
    whole = load_arcs(tmp_path / "set", "train")
    others = load_arcs(tmp_path / "set", "train", close_passages=False)
    assert (len(whole), len(others)) == (len(table), np.sum(~near))
    np.testing.assert_array_equal(others.rho, whole.rho[~near])
    assert others.facts["close_passages"] is False


def test_positions_of_planets(arc_set):
    """Those of the reference epochs, whatever becomes of the arcs; none unless asked for."""
    arcs = load_arcs(arc_set, "train", drawings=1, planets=("jupiter", "mars"))
    t2 = read_arcs(arc_set, split="train")["t2_mjd_tdb"]
    for name in ("jupiter", "mars"):
        np.testing.assert_array_equal(arcs.planets[name], planet_position(name, t2))
    rows = torch.arange(len(arcs)) % 3 == 0
    some = arcs.map(lambda x: x[rows])
    assert torch.equal(some.planets["mars"], arcs.planets["mars"][rows])
    for again in (arcs.drawn(1), arcs.as_two_epochs(rows), arcs.without_magnitude(rows)):
        assert again.planets == arcs.planets
    assert load_arcs(arc_set, "train").planets == {}
