"""The domain of a network that was trained before networks had one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from neoranging.exceptions import TrainingError
from neoranging.lab.training.data import load_arcs
from neoranging.nn import checkpoint


def fit_domain(path: str | os.PathLike[str], data: str | os.PathLike[str]) -> dict[str, Any]:
    """Fit the domain of a network in a file, on the arcs that it learnt from.

    The file and its card are replaced; weights and answers stay as they are, but the digest of the
    file is another one, so that calibrations have to be made after this.

    Parameters
    ----------
    path : path-like
        File of weights, such as the ``network.safetensors`` of a run.
    data : path-like
        Folder of the divided set that the network was trained on.

    Returns
    -------
    dict
        The model card as it was.

    Raises
    ------
    TrainingError
        If the training part of the set has other objects or arcs than the card says.
    """
    network, card = checkpoint.load(path)
    learnt = card.get("train", {})
    arcs = load_arcs(
        Path(data),
        "train",
        network.origin,
        root=network.config.root,
        close_passages=learnt.get("close_passages", True),
    )
    for name in ("objects_sha256", "n_arcs"):
        got, wanted = arcs.facts[name], learnt.get(name, arcs.facts[name])
        if got != wanted:
            raise TrainingError(
                f"{Path(path).name} learnt from another set than {data}: {name} is {wanted} in its "
                f"card and {got} here; give the set that it was trained on"
            )
    network.fit_domain(arcs.inputs)
    checkpoint.save(network, path, card)
    return card
