"""Arcs in memory: the truth that belongs to them, noise that is drawn anew."""

import numpy as np
import pytest
import torch

from neoranging.arc_inputs import arc_inputs
from neoranging.constants import ARCSEC
from neoranging.core.geometry import norm
from neoranging.datasets.arcs import to_core
from neoranging.datasets.store import ArcWriter, read_arcs
from neoranging.exceptions import DatasetError
from neoranging.training.data import load_arcs, make_training_arcs
from neoranging.training.noise import FreshNoise, noise_free


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_ranges_count_from_the_origin(table):
    for origin, name in (("topocenter", "rho_topo_au"), ("geocenter", "rho_geo_au")):
        made = make_training_arcs(table, origin)
        np.testing.assert_array_equal(made.rho.numpy(), table[name])
        away = norm((made.inputs.observer - made.inputs.earth).numpy())
        assert (away < 1e-7).all() if origin == "geocenter" else (away > 4e-5).all()


def test_the_same_inputs_as_at_the_time_of_an_estimate(table, exact_arcs):
    noisy = exact_arcs.with_noise(np.random.default_rng(22))
    from_set = make_training_arcs(table).inputs
    for name, value in arc_inputs(noisy.tracklets().arcs()).map(torch.clone)._asdict().items():
        tolerance = 1e-9 if name in ("ra", "dec", "sky") else 1e-5
        torch.testing.assert_close(
            getattr(from_set, name), value, rtol=1e-5, atol=tolerance, msg=name
        )


def test_triplet_and_span(table):
    inputs = make_training_arcs(table).inputs
    span = table["span_d"]
    np.testing.assert_allclose((inputs.dt3 - inputs.dt1).numpy(), span, rtol=1e-12)
    np.testing.assert_allclose(torch.exp(inputs.log_span).numpy(), span, rtol=1e-12)
    np.testing.assert_array_equal(inputs.n_obs.numpy(), table["n_obs"])
    np.testing.assert_array_equal(inputs.ra[:, 1].numpy(), table["ra2_rad"])
    assert (inputs.curved == 1.0).all()


def test_two_epochs_have_no_curvature(exact_arcs):
    two = exact_arcs.tracklets()[0][[0, -1]]
    inputs = arc_inputs(two._set.arcs())
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


def test_an_orbit_of_something_else_is_not_believed(table):
    other = table.with_columns(q_au=1.01 * table["q_au"])
    arcs = to_core(other)
    clean, exact = noise_free(other, arcs)
    wrong = ~exact
    assert wrong.mean() > 0.9
    np.testing.assert_array_equal(clean.ra[wrong[arcs.owner]], arcs.ra[wrong[arcs.owner]])
    made = make_training_arcs(other, fresh_noise=True)
    again = made.observed(generator())
    unmoved = torch.from_numpy(wrong)
    torch.testing.assert_close(again.inputs.sky_acc[unmoved], made.inputs.sky_acc[unmoved])


def test_real_arcs_get_no_noise(table):
    made = make_training_arcs(table.with_columns(is_simulated=False), fresh_noise=True)
    again = made.observed(generator())
    torch.testing.assert_close(again.inputs.sky_rate, made.inputs.sky_rate)
    torch.testing.assert_close(again.inputs.ra, made.inputs.ra)


def test_drawn_noise_scatters_as_observations_do(exact_arcs, exact_table):
    """Against fits of observations that were disturbed one by one."""
    clean = to_core(exact_table)
    noise = FreshNoise.of(clean, np.ones(len(exact_table), dtype=bool))
    inputs = arc_inputs(clean)
    names = ("sky_rate", "sky_acc")
    drawn = [noise.add(inputs, generator(k)) for k in range(150)]
    few = exact_arcs.take(np.arange(len(exact_arcs))[: len(exact_table)])
    assert len(few) == len(exact_table)
    disturbed = (few.with_noise(np.random.default_rng(k)).arcs for k in range(150))
    refitted = [arc_inputs(arcs) for arcs in disturbed]
    for name in names:
        a, b = (torch.stack([getattr(x, name) for x in xs]) for xs in (drawn, refitted))
        ratio = a.std(dim=0) / b.std(dim=0)
        assert abs(ratio.median() - 1.0) < 0.02
        assert ((ratio - 1.0).abs() < 0.35).all()
    a, b = (
        torch.stack([torch.stack([x.sky_rate, x.sky_acc]) for x in xs]) for xs in (drawn, refitted)
    )
    correlation = [
        ((x[:, 0] - x[:, 0].mean(0)) * (x[:, 1] - x[:, 1].mean(0))).mean(0)
        / (x[:, 0].std(0) * x[:, 1].std(0))
        for x in (a, b)
    ]
    assert (correlation[0] - correlation[1]).abs().median() < 0.1
    torch.testing.assert_close(
        torch.exp(inputs.log_sigma_acc),
        torch.stack([x.sky_acc for x in drawn]).std(0),
        rtol=0.3,
        atol=0.0,
    )


def test_the_triplet_scatters_by_its_sigma(exact_table):
    made = make_training_arcs(exact_table, "geocenter", fresh_noise=True)
    drawn = [made.observed(generator(k)).inputs for k in range(100)]
    cos_dec = torch.cos(made.inputs.dec)
    for name, size in (("ra", cos_dec), ("dec", torch.ones_like(cos_dec))):
        off = torch.stack([getattr(x, name) - getattr(made.inputs, name) for x in drawn])
        off = torch.remainder(off + torch.pi, 2 * torch.pi) - torch.pi
        sigma = (off * size).square().mean().sqrt()
        assert abs(sigma / (0.2 * ARCSEC) - 1.0) < 0.03


def test_noise_is_a_matter_of_the_generator(table):
    made = make_training_arcs(table, fresh_noise=True)
    one, same, other = (made.observed(generator(k)).inputs.sky_acc for k in (1, 1, 2))
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
    train = load_arcs(arc_set, "train", fresh_noise=True)
    table = read_arcs(arc_set, split="train")
    np.testing.assert_array_equal(train.rho.numpy(), table["rho_topo_au"])
    assert train.facts["n_arcs"] == len(train) == len(table)
    assert train.facts["n_objects"] == len(np.unique(table["designation"]))
    assert train.facts["set"] == "small"
    assert train.facts["settings"] == {"kind": "test"}
    assert train.facts["division"]["seed"] == 1
    assert train.noise is not None
    assert len(train.noise.factor) == len(train)
    some = train.map(lambda x: x[5:9])
    assert len(some) == 4
    assert len(some.noise.sigma) == 4


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


def test_noise_of_the_parallax_has_the_size_of_its_error(table, exact_arcs):
    made = make_training_arcs(table, fresh_noise=True)
    drawn = torch.stack([made.observed(generator(k)).inputs.parallax for k in range(60)])
    determined = made.noise.parallax > 0.0
    assert determined.any()
    scatter = drawn.std(dim=0)[determined] / made.noise.parallax[determined]
    assert scatter.mean() == pytest.approx(1.0, abs=0.03)
    torch.testing.assert_close(
        made.noise.parallax[determined], torch.exp(made.inputs.log_sigma_parallax)[determined]
    )


def test_the_size_of_fresh_noise_may_scatter(table):
    made = make_training_arcs(table, fresh_noise=True)
    same = made.observed(generator(3)).inputs
    torch.testing.assert_close(made.observed(generator(3), 0.0).inputs.sky_acc, same.sky_acc)
    off = [
        torch.stack(
            [made.observed(generator(k), spread).inputs.sky_acc[:, 0] for k in range(80)]
        ) - made.inputs.sky_acc[:, 0]
        for spread in (0.0, 0.5)
    ]  # fmt: skip
    plain, wide = (x / plain_error(made) for x in off)
    # a log-normal size of spread s gives the kurtosis 3 exp(4 s^2), and the variance exp(2 s^2)
    assert float(plain.square().mean()) == pytest.approx(1.0, abs=0.05)
    assert float(wide.square().mean()) == pytest.approx(np.exp(0.5), rel=0.15)


def plain_error(made):
    return torch.linalg.vector_norm(made.noise.factor[:, 0, 2], dim=-1)
