"""Other nights of simulated arcs: fresh errors of the right size, valid arcs of fewer epochs."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp

from neoranging.constants import ARCSEC
from neoranging.core.geometry import norm
from neoranging.core.noise import LARGEST_SHARE, OFFSET, SHARE_OF_CLAIM, SHARE_SPREAD
from neoranging.estimators.network_inputs import arc_inputs
from neoranging.exceptions import DatasetError, TrainingError
from neoranging.lab.sets.arcs import LEAST_SPAN_D, to_core
from neoranging.lab.sets.store import ArcWriter
from neoranging.lab.simulation.astrometric_errors import Errors
from neoranging.lab.simulation.twin import Twin
from neoranging.lab.training import TrainingConfig, nights
from neoranging.lab.training.fit import fit_network, fit_on_set
from neoranging.lab.training.nights import CUT_SHARE, ExactArcs, Nights, load_nights
from neoranging.nn import checkpoint
from neoranging.nn.network import NetworkConfig

SMALL = NetworkConfig(width=16, blocks=1, root=True, output="mixture", components=3)


@pytest.fixture(scope="module")
def twin_table():
    """Some thousand arcs as the twin has them, close passages among them."""
    return Twin(objects=60, seed=5, close_fraction=0.2).arcs()


@pytest.fixture(scope="module")
def exact(twin_table):
    return ExactArcs.of(twin_table, Errors())


@pytest.fixture(scope="module")
def twin_set(twin_table, tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("sets") / "twin"
    _, objects = np.unique(twin_table["designation"], return_inverse=True)
    part = np.where(objects % 4 == 0, "val", "train")
    some = twin_table.with_columns(split=part).take(slice(None, None, 3))
    with ArcWriter(folder, settings={"kind": "twin", "errors": "measured"}) as writer:
        writer.write(some)
    return folder


def rng(seed=0):
    return np.random.default_rng(seed)


def test_positions_without_errors_are_those_of_the_exact_twin(twin_table, exact):
    # the same seed without errors draws other numbers: take the orbits' own prediction instead
    clean = Twin(objects=60, seed=5, noise=0.0, close_fraction=0.2).arcs()
    again = ExactArcs.of(clean, Errors(size=0.0))
    assert again.is_drawn.mean() > 0.999
    assert norm(again.arcs.direction - to_core(clean).direction).max() < 1e-3 * ARCSEC
    np.testing.assert_allclose(
        again.rho[again.arcs.triplet[:, 1]], clean["rho_topo_au"], rtol=1e-12
    )
    # the observed ones differ from those without errors by errors
    assert exact.is_drawn.mean() > 0.99
    assert exact.is_drawn[twin_table["is_close"]].mean() > 0.98
    off = norm(exact.arcs.direction - to_core(twin_table).direction) / exact.arcs.sigma_dec
    far = (~twin_table["is_close"] & exact.is_drawn)[exact.arcs.owner]
    assert 0.1 < np.median(off[far]) < 1.0


def test_truth_at_another_epoch_is_that_of_the_orbit(exact):
    """Range and range-rate at the observations of an arc are of one motion."""
    arcs = exact.arcs
    first, middle = arcs.offsets[:-1], arcs.triplet[:, 1]
    # within half an hour the range from one station is a parabola: its slope is that of both ends
    elapsed = arcs.t[middle] - arcs.t[first]
    one_station = arcs.visit[middle] == arcs.visit[first]
    near = exact.is_drawn & one_station & (elapsed < 0.02) & (exact.rho[middle] > 0.01)
    assert near.sum() > 300
    change = (exact.rho[middle] - exact.rho[first])[near]
    mean = 0.5 * (exact.rho_dot[middle] + exact.rho_dot[first])[near]
    np.testing.assert_allclose(change, mean * elapsed[near], rtol=0.0, atol=2e-7)


def test_the_motion_on_the_sky_is_that_of_the_directions(exact):
    arcs = exact.arcs
    first = arcs.offsets[:-1]
    step = norm(arcs.direction[first + 1] - arcs.direction[first])
    elapsed = arcs.t[first + 1] - arcs.t[first]
    short = exact.is_drawn & (elapsed > 1e-3) & (elapsed < 0.01) & (exact.rho[first] > 0.01)
    short &= arcs.visit[first] == arcs.visit[first + 1]
    assert short.sum() > 300
    speed = 0.5 * (np.hypot(*exact.motion)[first] + np.hypot(*exact.motion)[first + 1])
    np.testing.assert_allclose((step / elapsed)[short], speed[short], rtol=2e-3)


def test_the_same_seed_gives_the_same_nights(exact):
    def inputs(seed, number):
        return Nights((exact,), Errors(), seed=seed).drawn(number).inputs.sky_acc

    assert torch.equal(inputs(1, 3), inputs(1, 3))
    assert not torch.equal(inputs(1, 3), inputs(1, 4))
    assert not torch.equal(inputs(1, 3), inputs(2, 3))


def test_cut_arcs_are_arcs(exact):
    whole, n = exact.arcs, len(exact.arcs)
    cut, twos = 0, 0
    numbers, spans = [], []
    for seed in range(5):
        arcs, rho, rho_dot = exact.night(Errors(), rng(seed))
        assert len(arcs) == len(rho) == len(rho_dot) == n
        assert arcs.counts.min() >= 2
        assert (arcs.n_epochs >= 2).all()
        assert (arcs.span > LEAST_SPAN_D).all()
        assert np.isfinite(rho).all()
        assert np.isfinite(rho_dot).all()
        assert (np.diff(arcs.t)[np.diff(arcs.owner) == 0] >= 0.0).all()
        # every observation that is left belongs to the arc it came from
        assert np.isin(arcs.t, whole.t).all()
        changed = arcs.counts < whole.counts
        assert exact.is_drawn[changed].all()
        cut += int(changed.sum())
        twos += int((arcs.counts == 2).sum())
        numbers.append(arcs.counts[changed & (whole.counts >= 8)])
        spans.append((arcs.span / whole.span)[changed & (whole.counts >= 8)])
    # some that were chosen would have become too short; binomial bounds on the rest
    eligible = 5 * int((exact.is_drawn & (whole.counts >= 3)).sum())
    five_sigma = 5.0 * np.sqrt(CUT_SHARE * (1.0 - CUT_SHARE) / eligible)
    assert 0.8 * CUT_SHARE < cut / eligible < CUT_SHARE + five_sigma
    assert 0.2 * cut < twos < 0.8 * cut
    numbers, spans = np.concatenate(numbers), np.concatenate(spans)
    assert numbers.min() == 2
    assert numbers.max() >= 7
    assert np.quantile(spans, 0.1) < 0.3
    assert np.quantile(spans, 0.9) > 0.8


@pytest.fixture
def uncut(monkeypatch):
    monkeypatch.setattr(nights, "CUT_SHARE", 0.0)


def test_observers_of_cut_arcs_move_as_those_of_others(twin_table, exact):
    """The features of the observer's path keep their scale: its spread over stored arcs."""
    stored = arc_inputs(to_core(twin_table)).map(torch.from_numpy)
    for name in ("observer_acc", "observer_rate"):
        usual = getattr(stored, name).std(dim=0)
        for number in range(5):
            drawn = getattr(Nights((exact,), Errors(), seed=3).drawn(number).inputs, name)
            assert (drawn.std(dim=0) < 1.5 * usual).all()


def test_fresh_errors_scatter_as_the_law_says(exact, uncut):
    """Of slow objects with fine records and claims, where the last digits do not count."""
    arcs = exact.arcs
    speed = np.hypot(*exact.motion)
    taken = (
        (speed < 0.01) & exact.fine & (arcs.sigma_dec > 0.3 * ARCSEC) & exact.is_drawn[arcs.owner]
    )
    drawn = [exact.night(Errors(), rng(seed))[0] for seed in range(30)]
    off = np.stack([(night.dec - arcs.dec)[taken] / arcs.sigma_dec[taken] for night in drawn])
    chance = rng(99).standard_normal((3, 10**6))
    share = np.minimum(SHARE_OF_CLAIM * np.exp(SHARE_SPREAD * chance[0]), LARGEST_SHARE)
    law = share * chance[1] + OFFSET * chance[2]
    # nights are drawn on their own: the scatter of a figure over them is its error
    for figure in (np.mean, lambda x: np.mean(x**2), lambda x: np.mean(np.abs(x) < 0.2)):
        values = np.array([figure(night) for night in off])
        bound = 5.0 * values.std(ddof=1) / np.sqrt(len(values)) + 1e-3
        assert abs(values.mean() - figure(law)) < bound


@pytest.mark.parametrize("is_close", [False, True])
def test_fresh_curvatures_err_as_the_stored_ones(twin_table, exact, uncut, is_close):
    """Against those without errors, in units of what the arc claims; times count if it is fast."""
    rows = torch.from_numpy((twin_table["is_close"] == is_close) & exact.is_drawn)
    stored = arc_inputs(to_core(twin_table)).map(torch.from_numpy)
    true = arc_inputs(exact.arcs).map(torch.from_numpy)

    def errors_of(inputs):
        off = (inputs.sky_acc - true.sky_acc) / torch.exp(true.log_sigma_acc)
        return off[rows].flatten().numpy()

    drawn = [errors_of(Nights((exact,), Errors(), seed=k).drawn(1).inputs) for k in range(4)]
    assert not np.array_equal(drawn[0], drawn[1])
    sizes = [np.abs(x) for x in (errors_of(stored), np.concatenate(drawn))]
    assert ks_2samp(*sizes).pvalue > 1e-3


def test_real_arcs_and_wrong_orbits_stay_as_they_are(twin_table):
    other = twin_table.with_columns(
        # orbits of something else, or none
        q_au=np.choose(np.arange(len(twin_table)) % 4, (1.02, 1.0, np.nan, 1.0))
        * twin_table["q_au"],
        is_simulated=np.arange(len(twin_table)) % 4 != 1,
    )
    part = ExactArcs.of(other, Errors())
    assert 0.2 < part.is_drawn.mean() < 0.35
    night, rho, _ = part.night(Errors(), rng())
    stays = ~part.is_drawn
    np.testing.assert_array_equal(rho[stays], other["rho_topo_au"][stays])
    own, seen = (arcs.take(np.flatnonzero(stays)) for arcs in (to_core(other), night))
    np.testing.assert_array_equal(seen.offsets, own.offsets)
    np.testing.assert_array_equal(seen.ra, own.ra)
    np.testing.assert_array_equal(seen.dec, own.dec)


def test_a_stored_set_and_its_card(twin_set, tmp_path):
    own = load_nights(twin_set, "train", root=True, seed=4)
    shown = own.drawn(1)
    assert shown.facts["n_arcs"] == len(shown)
    prior = shown.facts["training_prior"]
    assert prior["cut_share"] == CUT_SHARE
    assert 0.0 < prior["close_share"] < 1.0
    assert prior["drawn_share"] > 0.99
    assert "impactors" in prior["prior"]
    assert all(bool(column.isfinite().all()) for column in shown.inputs)
    assert (shown.inputs.curved == 0.0).any()
    assert (shown.inputs.has_root == 1.0).any()
    far = load_nights(twin_set, "train", close_passages=False)
    assert far.facts["training_prior"]["close_share"] == 0.0
    with pytest.raises(DatasetError, match="dataset split"):
        load_nights(twin_set, "unseen")


def test_a_set_without_orbits_has_no_other_nights(table, tmp_path):
    pytest.importorskip("pyarrow")
    with ArcWriter(tmp_path, settings={"kind": "test"}) as writer:
        writer.write(table.with_columns(is_simulated=False, split="train"))
    with pytest.raises(DatasetError, match="train without fresh nights"):
        load_nights(tmp_path, "train")


class StoppedError(Exception):
    pass


def test_a_resumed_run_sees_the_same_nights(twin_set, tmp_path):
    def stop(row):
        if row["epoch"] == 2:
            raise StoppedError

    config = TrainingConfig.invariant(
        "posterior", network=SMALL, epochs=4, batch_size=64, learning_rate=3e-3
    )
    straight = fit_on_set(config, twin_set, tmp_path / "straight", device="cpu")
    with pytest.raises(StoppedError):
        fit_on_set(config, twin_set, tmp_path / "killed", device="cpu", on_epoch=stop)
    resumed = fit_on_set(config, twin_set, tmp_path / "killed", device="cpu", resume=True)
    for one, other in zip(straight.history, resumed.history, strict=True):
        assert {**one, "seconds": 0.0} == {**other, "seconds": 0.0}
    for a, b in zip(straight.network.arrays.values(), resumed.network.arrays.values(), strict=True):
        assert np.array_equal(a, b)
    losses = [row["val_total"] for row in straight.history]
    assert losses[-1] < losses[0]
    card = checkpoint.load(tmp_path / "killed" / "network.safetensors")[1]
    assert card["train"]["training_prior"]["cut_share"] == CUT_SHARE
    assert card["config"]["fresh_nights"] is True


def test_nights_and_recipes_that_do_not_go_together(twin_set, tmp_path):
    own = load_nights(twin_set, "train", root=True)
    arcs = own.drawn(0)
    fresh = TrainingConfig.invariant("posterior", network=SMALL)
    stale = dataclasses.replace(fresh, fresh_nights=False)
    for config, given in ((fresh, None), (stale, own)):
        with pytest.raises(TrainingError, match="nights go with"):
            fit_network(config, arcs, arcs, tmp_path, nights=given, device="cpu")
    with pytest.raises(TrainingError, match="drawings must be 0"):
        TrainingConfig.invariant("posterior", drawings=2)
    with pytest.raises(TrainingError, match="'invariant'"):
        TrainingConfig.paper(fresh_nights=True)
