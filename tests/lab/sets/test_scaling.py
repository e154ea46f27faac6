"""Scaling to [-1, 1]: reached, inverted, kept on disk bit by bit, fitted on training alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neoranging import ephemeris
from neoranging.exceptions import DatasetError
from neoranging.lab.sets.arcs import make_arcs
from neoranging.lab.sets.scaling import (
    INPUTS,
    OUTPUTS,
    ArcScaling,
    fit_scaling,
    network_inputs,
    network_outputs,
)
from neoranging.lab.sets.schema import ArcTable
from neoranging.lab.sets.store import ArcWriter

REASONABLE = st.integers(-(10**12), 10**12).map(lambda k: k * 1e-6)


@pytest.fixture(scope="module")
def table(simulate) -> ArcTable:
    simulated = simulate(60, 0.05, seed=3)
    a = simulated.arcs
    arcs, _ = make_arcs(
        a.offsets, a.t, a.ra, a.dec, sigma_ra=a.sigma_ra, sigma_dec=a.sigma_dec,
        stations=simulated.station, designation=np.char.mod("S%d", np.arange(60)),
        night=np.zeros(60, dtype=int),
    )  # fmt: skip
    return arcs.with_columns(rho_geo_au=np.linspace(0.1, 2, 60), rho_dot_geo_au_d=simulated.rho_dot)


def test_inputs_are_the_triplet_and_the_earth(table):
    inputs = dict(zip(INPUTS, network_inputs(table).T, strict=True))
    assert (inputs["dt1_d"] < 0.0).all()
    assert (inputs["dt3_d"] > 0.0).all()
    np.testing.assert_allclose(inputs["dt3_d"] - inputs["dt1_d"], table["span_d"], atol=1e-10)
    np.testing.assert_array_equal(inputs["ra3_rad"], table["ra3_rad"])
    earth = np.stack([inputs[f"earth_{axis}_au"] for axis in "xyz"], axis=1)
    np.testing.assert_array_equal(earth, ephemeris.earth_state(table["t2_mjd_tdb"])[0])


def test_everything_fills_the_interval_and_times_keep_their_sign(table):
    scaling = ArcScaling.fit(network_inputs(table), network_outputs(table))
    inputs = scaling.inputs.scale(network_inputs(table))
    outputs = scaling.outputs.scale(network_outputs(table))
    both = np.hstack([inputs, outputs])
    assert np.abs(both).max() <= 1.0 + 1e-12
    others = [k for k, name in enumerate(INPUTS + OUTPUTS) if not name.startswith("dt")]
    np.testing.assert_allclose(both[:, others].max(axis=0), 1.0)
    np.testing.assert_allclose(both[:, others].min(axis=0), -1.0)
    times = inputs[:, [0, 5]]
    assert (times[:, 0] < 0.0).all()
    assert (times[:, 1] > 0.0).all()
    assert np.abs(times).max() == 1.0


@given(arrays(float, (7, 11), elements=REASONABLE), arrays(float, (7, 2), elements=REASONABLE))
def test_restore_inverts_scale(inputs, outputs):
    scaling = ArcScaling.fit(inputs, outputs)
    for part, values in ((scaling.inputs, inputs), (scaling.outputs, outputs)):
        scaled = part.scale(values)
        assert np.abs(scaled).max() <= 1.0 + 1e-9
        size = np.abs(values).max() + 1.0
        np.testing.assert_allclose(part.restore(scaled), values, rtol=0.0, atol=1e-14 * size)


@given(inputs=arrays(float, (4, 11), elements=REASONABLE))
def test_saving_keeps_every_bit(tmp_path_factory, inputs):
    path = tmp_path_factory.mktemp("scaling") / "scaling.json"
    scaling = ArcScaling.fit(inputs, inputs[:, :2])
    scaling.save(path)
    assert ArcScaling.load(path) == scaling


def test_what_cannot_be_fitted(table):
    with pytest.raises(DatasetError, match="divide the set first"):
        ArcScaling.fit(np.zeros((0, 11)), np.zeros((0, 2)))
    outputs = network_outputs(table)
    outputs[3, 0] = np.nan
    with pytest.raises(DatasetError, match="cannot scale rho_geo_au"):
        ArcScaling.fit(network_inputs(table), outputs)


def test_some_other_json_is_refused(tmp_path):
    (tmp_path / "scaling.json").write_text("{}")
    with pytest.raises(DatasetError, match="no scaling of arcs"):
        ArcScaling.load(tmp_path / "scaling.json")


def test_only_the_training_part_counts(tmp_path, table):
    pytest.importorskip("pyarrow")
    split = np.where(table["rho_geo_au"] < 1.0, "train", "test")
    with ArcWriter(tmp_path, settings={}) as writer:
        writer.write(table.with_columns(split=split))
    train = table.take(split == "train")
    stored = ArcScaling.load(fit_scaling(tmp_path))
    assert stored == ArcScaling.fit(network_inputs(train), network_outputs(train))
    assert stored.n_arcs == len(train) < len(table)
