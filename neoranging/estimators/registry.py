"""Names of methods: entry points of installed packages, and what a script registers itself.

Wherever a method is named, in Python and by every command, the name is

- ``NAME[@REPRESENTATION][@PRIOR][@ORIGIN]`` of a registered method, such as ``gauss``,
  ``gauss@geocenter``, ``mlp@paper`` or ``systematic@log-uniform``; a prior may be a file of a
  table, ``systematic@FILE.npz``;
- ``FILE.safetensors[@ORIGIN]`` of a trained network.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from neoranging.arguments import did_you_mean
from neoranging.estimators.base import RangingEstimator
from neoranging.exceptions import UnknownMethodError
from neoranging.tracklet import ORIGINS

GROUP = "neoranging.estimators"

WEIGHTS: Final = ".safetensors"
"""Ending of files of weights, by which they are told from names of methods."""

_registered: dict[str, type[RangingEstimator]] = {}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _load(name: str) -> type[RangingEstimator]:
    point = _entry_points()[name]
    try:
        cls = point.load()
    except Exception as error:  # of whoever wrote the plugin
        raise UnknownMethodError(
            f"the method {name!r} cannot be loaded from {point.value} "
            f"({type(error).__name__}: {error}): mend or remove the package that installed it"
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, RangingEstimator)):
        raise UnknownMethodError(
            f"entry point {name!r} of group {GROUP!r} is {point.value}, which is no subclass of "
            "RangingEstimator: tell the package that installed it"
        )
    return cls


def available_methods() -> tuple[str, ...]:
    """Names that ``tracklet.estimate(method=...)`` takes, in alphabetical order."""
    return tuple(sorted({*_entry_points(), *_registered}))


def register_estimator(estimator: type[RangingEstimator], name: str | None = None) -> None:
    """Make an estimator of your own available by name in this process.

    Parameters
    ----------
    estimator : type
        Subclass of `RangingEstimator`.
    name : str, optional
        Its ``name`` when left out. A name registered before is replaced, a built-in one too.

    Notes
    -----
    An installable package does the same for every process with an entry point::

        [project.entry-points."neoranging.estimators"]
        my-method = "my_package:MyEstimator"
    """
    if not (isinstance(estimator, type) and issubclass(estimator, RangingEstimator)):
        raise UnknownMethodError(
            f"expected a subclass of RangingEstimator, got {estimator!r}; see "
            "neoranging.estimators.base for the one method to write"
        )
    name = name or getattr(estimator, "name", None)
    if not name:
        raise UnknownMethodError(
            f"{estimator.__qualname__} has no name: give it a class attribute 'name', or say "
            "register_estimator(cls, name=...)"
        )
    _registered[name] = estimator


def unregister_estimator(name: str) -> None:
    """Forget a method that `register_estimator` made available; entry points stay.

    Raises
    ------
    UnknownMethodError
        If no method was registered under that name in this process.
    """
    if name not in _registered:
        raise UnknownMethodError(
            f"no method {name!r} was registered here; there are {', '.join(_registered) or 'none'}"
        )
    del _registered[name]


def get_estimator(method: Any, **options: Any) -> RangingEstimator:
    """Estimator of a name, a file of weights, a class, or an instance as it is.

    Parameters
    ----------
    method : str, type or RangingEstimator
        ``NAME[@REPRESENTATION][@PRIOR][@ORIGIN]``, such as ``"gauss@geocenter"``;
        ``FILE.safetensors[@ORIGIN]``; or an estimator or its class.
    **options
        For the constructor; an instance takes none.

    Raises
    ------
    UnknownMethodError
        If no such method is registered; the message lists those that are.
    NotTrainedError
        If there is no such file of weights.

    Examples
    --------
    >>> import neoranging as nr
    >>> nr.get_estimator("mlp@paper").representation
    'paper'
    >>> nr.get_estimator("mlp@papier")
    Traceback (most recent call last):
        ...
    neoranging.exceptions.UnknownMethodError: 'mlp@papier': 'papier' is ... (did you mean 'paper'?)
    """
    if isinstance(method, RangingEstimator):
        if options:
            raise UnknownMethodError(
                f"{method!r} is made already and takes no options, got {sorted(options)}: give "
                "them to its constructor, or name the method"
            )
        return method
    if isinstance(method, str):
        return _named(method, options)
    if not (isinstance(method, type) and issubclass(method, RangingEstimator)):
        raise UnknownMethodError(
            f"method must be a name, a RangingEstimator or its class, got {method!r}"
        )
    return method(**options)


def estimator_class(name: str) -> type[RangingEstimator]:
    """Class registered under a name; `UnknownMethodError` if there is none."""
    if name in _registered:
        return _registered[name]
    if name not in _entry_points():
        names = available_methods()
        raise UnknownMethodError(
            f"no method {name!r}{did_you_mean(name, names)}: choose one of {', '.join(names)}, or "
            "register your own with neoranging.register_estimator"
        )
    return _load(name)


def _named(text: str, options: dict[str, Any]) -> RangingEstimator:
    """Estimator of a name or a file, with the words behind it as options."""
    head, ending, tail = text.rpartition(WEIGHTS)
    if ending and (not tail or tail.startswith("@")):
        from neoranging.estimators.learned import read_card

        weights = head + ending
        cls = estimator_class(read_card(weights)["model"])
        if not hasattr(cls, "from_pretrained"):
            raise UnknownMethodError(
                f"{weights} was trained as {cls.name!r}, a method here that takes no weights: make "
                "an estimator of its own class"
            )
        meanings = dict.fromkeys(cls.priors, "prior")
        choices = _words(text, tail.split("@")[1:], meanings, options)
        return cls.from_pretrained(weights, **choices)
    if text in available_methods():  # one that was registered with an @ in its name
        return estimator_class(text)(**options)
    name, *words = text.split("@")
    cls = estimator_class(name)
    meanings = dict.fromkeys(cls.representations, "representation")
    meanings |= dict.fromkeys(cls.priors, "prior")
    if cls.priors:
        meanings |= {word: "prior" for word in words if word.endswith(".npz")}
    return cls(**_words(text, words, meanings, options))


def _words(
    text: str, words: list[str], meanings: dict[str, str], options: dict[str, Any]
) -> dict[str, Any]:
    """Options, and those that the words of a name stand for."""
    meanings = meanings | dict.fromkeys(ORIGINS, "origin")
    options = dict(options)
    for word in words:
        if word not in meanings:
            hint = did_you_mean(word, meanings)
            raise UnknownMethodError(f"{text!r}: {word!r} is none of {', '.join(meanings)}{hint}")
        option = meanings[word]
        if options.setdefault(option, word) != word or words.count(word) > 1:
            raise UnknownMethodError(f"{text!r}: give one {option}, got {word!r} and another")
    return options
