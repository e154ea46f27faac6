"""Networks in files: weights as safetensors, beside them a model card in JSON.

A file holds tensors and text, nothing that is executed on reading. It carries the configuration
that rebuilds the network and a digest of its tensors, so a flipped bit is an error and not another
network.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as packed

from neoranging.exceptions import CheckpointError, NotTrainedError
from neoranging.files import parse_json, replacing, write_json
from neoranging.nn.network import NetworkConfig, RangingNetwork
from neoranging.typing import AnyArray

_KEY: Final = "neoranging network"
_VERSION: Final = 2
_WEIGHTS: Final = "weights_sha256"
"""Entry of a card that names its weights; cards written by hand may go without."""


def card_path(path: str | os.PathLike[str]) -> Path:
    """Path of the model card of a file of weights: the same name, ending in ``.json``."""
    return Path(path).with_suffix(".json")


def save(network: RangingNetwork, path: str | os.PathLike[str], card: Mapping[str, Any]) -> None:
    """Write a network and its model card, each replaced in one step if it exists.

    Parameters
    ----------
    network : RangingNetwork
        Made of arrays of numpy.
    path : path-like
        The file of weights, by custom ``.safetensors``.
    card : mapping
        Recipe, data and results of the training; JSON types only.

    Raises
    ------
    NotTrainedError
        If the scalings were never fitted, or a weight is not finite.
    CheckpointError
        If the file's own name ends in ``.json``, the place of the card.
    """
    path = Path(path)
    if card_path(path) == path:
        raise CheckpointError(f"{path.name} is where the model card goes; end in .safetensors")
    arrays = {name: np.ascontiguousarray(array) for name, array in network.arrays.items()}
    wrong = [name for name, array in arrays.items() if not np.isfinite(array).all()]
    if wrong:
        raise NotTrainedError(
            f"a network with values that are not finite ({', '.join(wrong)}) is not saved; "
            "train it, or fit its scalings, first"
        )
    config = asdict(network.config)
    header = {"version": _VERSION, "config": config, "sha256": _digest(config, arrays)}
    # one entry only: several are written in an order that changes from run to run
    content = packed(arrays, {_KEY: json.dumps(header, allow_nan=False)})
    with replacing(path) as part:
        part.write_bytes(content)
    # a kill between the two leaves a card that names other weights, which `load` refuses
    write_json(card_path(path), {**card, _WEIGHTS: header["sha256"]})


def load(path: str | os.PathLike[str]) -> tuple[RangingNetwork, dict[str, Any]]:
    """Read a network and its model card.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote.

    Returns
    -------
    network : RangingNetwork
        Made of arrays of numpy.
    card : dict
        The model card.

    Raises
    ------
    CheckpointError
        If the file or the card is damaged, is something else, or belongs to another version.
    OSError
        If the file cannot be opened.
    """
    path = Path(path)
    try:
        config, arrays, digest = _read(path)
        shape = NetworkConfig(**{**config, "widths": tuple(config["widths"])})
        network = RangingNetwork(shape, arrays)
    except CheckpointError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its weights do not fit its configuration ({error})") from error
    card = _read_card(card_path(path))
    if card.pop(_WEIGHTS, digest) != digest:
        raise CheckpointError(
            f"the model card {card_path(path)} belongs to other weights than those of {path}: "
            "resume the training that was interrupted, or copy both files again"
        )
    return network, card


def _read(path: Path) -> tuple[dict[str, Any], dict[str, AnyArray], str]:
    """Configuration and arrays of a file, checked against their digest, and that."""
    path.open("rb").close()  # an absent or forbidden file is the system's error, with its name
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path, f"it is no whole safetensors file ({error})") from error
    if _KEY not in metadata:
        raise _damaged(path, "it holds other tensors than a network of neoranging")
    header = parse_json(metadata[_KEY])
    if header["version"] != _VERSION:
        raise _damaged(path, f"it is of version {header['version']}, not {_VERSION}")
    if header["sha256"] != _digest(header["config"], arrays):
        raise _damaged(path, "its content is not what was saved")
    return header["config"], arrays, header["sha256"]


def _read_card(path: Path) -> dict[str, Any]:
    try:
        card = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            f"the model card {path} is missing; copy it from beside the weights"
        ) from error
    except ValueError as error:
        raise CheckpointError(
            f"the model card {path} is damaged ({error}); copy it again with its weights"
        ) from error
    if not isinstance(card, dict):
        raise CheckpointError(f"the model card {path} is no JSON object; copy it again")
    return card


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"cannot load {path}: {reason}; copy the file again or train the network anew"
    )


def _digest(config: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> str:
    """SHA-256 of the configuration, and of names, types, shapes and bytes in order of name."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        # types by torch's names, as the first files had them
        digest.update(f"{name} torch.{array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
