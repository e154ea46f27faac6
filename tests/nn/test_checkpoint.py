import hashlib
import json
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from neoranging.exceptions import CheckpointError, NotTrainedError
from neoranging.lab.training.network import TrainableNetwork
from neoranging.nn import checkpoint
from neoranging.nn.network import NetworkConfig

CARD = {"method": "pinn", "seed": 0, "metrics": {"median_relative_error": 0.2}}


@pytest.fixture(scope="module", params=["paper", "invariant"])
def network(request, night_inputs, night_truth):
    torch.manual_seed(0)
    config = {
        "paper": NetworkConfig.paper(),
        "invariant": NetworkConfig(width=24, blocks=2, output="admissible"),
    }
    made = TrainableNetwork(config[request.param])
    return made.fit(night_inputs, *night_truth).exported()


@pytest.fixture
def path(network, tmp_path):
    path = tmp_path / "net.safetensors"
    checkpoint.save(network, path, CARD)
    return path


def test_round_trip(network, path, night_inputs):
    loaded, card = checkpoint.load(path)
    assert card == CARD
    assert loaded.config == network.config
    assert set(loaded.arrays) == set(network.arrays)
    for name, value in network.arrays.items():
        assert np.array_equal(loaded.arrays[name], value), name
        assert loaded.arrays[name].dtype == value.dtype
    inputs = night_inputs.map(np.asarray)
    for ours, theirs in zip(loaded(inputs), network(inputs), strict=True):
        assert np.array_equal(ours, theirs)


def test_the_digest_is_that_of_the_first_files(path):
    """Of names, types as torch calls them, shapes and bytes."""
    _, header = header_of(path)
    digest = hashlib.sha256(json.dumps(header["config"], sort_keys=True).encode())
    for name, tensor in sorted(load_file(path).items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    assert header["sha256"] == digest.hexdigest()


def test_the_domain_seen_comes_back(path, night_inputs):
    loaded, _ = checkpoint.load(path)
    inputs = night_inputs.map(np.asarray)
    # the extremes were found by torch, and are rounded otherwise
    assert not loaded.features.outside(loaded.features.show(inputs), slack=1e-9).any()
    beyond = inputs._replace(sky_rate=1e3 * inputs.sky_rate, earth=9.0 * inputs.earth)
    assert loaded.features.outside(loaded.features.show(beyond)).any()


def test_saving_again_replaces_and_leaves_nothing_beside(network, path):
    checkpoint.save(network, path, {"second": True})
    assert checkpoint.load(path)[1] == {"second": True}
    assert sorted(p.name for p in path.parent.iterdir()) == ["net.json", "net.safetensors"]


def test_files_are_the_same_byte_for_byte(network, path):
    before = path.read_bytes()
    checkpoint.save(network, path, CARD)
    assert path.read_bytes() == before


def test_cut_files_are_typed_errors(path):
    content = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match="copy the file again"):
            checkpoint.load(path)


def test_flipped_bits_are_typed_errors(path):
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(6)
    header = int.from_bytes(content[:8].tobytes(), "little")
    places = [*rng.integers(0, 8 + header, 40), *rng.integers(8 + header, len(content), 20)]
    for place in places:
        damaged = content.copy()
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged.tobytes())
        with pytest.raises(CheckpointError, match=r"net\.safetensors"):
            checkpoint.load(path)


def test_a_flipped_weight_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not what was saved"):
        checkpoint.load(path)


def test_pickles_are_not_opened(path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was executed",))

    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(CheckpointError, match="no whole safetensors file"):
        checkpoint.load(path)
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises(CheckpointError):
        checkpoint.load(path)


def test_foreign_tensors_are_named_so(path):
    save_file({"a": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="other tensors than a network"):
        checkpoint.load(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 99}, "of version 99"),
        ({"sha256": "0"}, "not what was saved"),
        ({"config": {"representation": "paper"}}, "not what was saved"),
    ],
)
def test_other_versions_and_configurations(path, change, said):
    key, header = header_of(path)
    save_file(load_file(path), path, {key: json.dumps({**header, **change})})
    with pytest.raises(CheckpointError, match=said):
        checkpoint.load(path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "null"])
def test_a_damaged_header(path, text):
    save_file(load_file(path), path, {header_of(path)[0]: text})
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.load(path)


def header_of(path):
    with safe_open(path, framework="pt") as file:
        ((key, text),) = file.metadata().items()
    return key, json.loads(text)


def test_the_card_belongs_to_the_weights(path):
    card = checkpoint.card_path(path)
    written = json.loads(card.read_text())
    assert len(written.pop("weights_sha256")) == 64
    assert written == CARD
    assert checkpoint.load(path)[1] == CARD
    card.write_text("{")
    with pytest.raises(CheckpointError, match=r"model card .* damaged"):
        checkpoint.load(path)
    card.write_text("[]")
    with pytest.raises(CheckpointError, match="no JSON object"):
        checkpoint.load(path)
    card.unlink()
    with pytest.raises(CheckpointError, match=r"net\.json is missing"):
        checkpoint.load(path)


def test_absent_files_are_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "none.safetensors")


def test_what_was_never_trained_is_not_saved(tmp_path, night_inputs, night_truth):
    untrained = TrainableNetwork(NetworkConfig(width=8, blocks=1))
    with pytest.raises(NotTrainedError, match="fit its scalings"):
        checkpoint.save(untrained.exported(), tmp_path / "a.safetensors", {})
    network = untrained.fit(night_inputs, *night_truth).exported()
    network.weights["trunk.entry.bias"][0] = np.nan
    with pytest.raises(NotTrainedError, match=r"trunk\.entry\.bias"):
        checkpoint.save(network, tmp_path / "a.safetensors", {})
    with pytest.raises(CheckpointError, match=r"end in \.safetensors"):
        checkpoint.save(network, tmp_path / "a.json", {})
    assert not list(tmp_path.iterdir())
