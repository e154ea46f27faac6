"""Progress bars, where there is a terminal to see them."""

from __future__ import annotations

from typing import Any

from neoranging.exceptions import MissingDependencyError

__all__ = ["progress_bar"]


def progress_bar(total: int, description: str, unit: str = "arc", initial: int = 0) -> Any:
    """Progress bar on standard error with the time left; silent where that is no terminal.

    Parameters
    ----------
    total, initial : int
        Steps in all, and those done before.
    description, unit : str
        What is done, and to what.

    Returns
    -------
    tqdm.tqdm
        A context manager; ``bar.update(n)`` after n steps.

    Raises
    ------
    MissingDependencyError
        Without tqdm.
    """
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingDependencyError(
            "progress bars are drawn by tqdm, which is not installed; "
            "pip install 'neoranging[data]' brings it"
        ) from error
    return tqdm(
        total=total,
        initial=initial,
        desc=description,
        unit=unit,
        unit_scale=total >= 100_000,
        disable=None,
        dynamic_ncols=True,
    )
