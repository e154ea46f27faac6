"""The order in which the gallery shows its examples: the one to read first comes first."""

from __future__ import annotations

ORDER = tuple(
    f"plot_{name}.py"
    for name in (
        "discovery_night",
        "posterior",
        "follow_up",
        "night_page",
        "networks",
        "admissible_region",
        "collapse",
        "intervals",
        "unseen",
        "mlp_and_pinn",
        "train_small",
        "own_estimator",
        "messy_file",
    )
)


class ReadingOrder:
    """Sort key of sphinx-gallery; examples that are not listed follow in alphabetical order."""

    def __init__(self, source_folder: str) -> None:
        del source_folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Place of a script among the others."""
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
