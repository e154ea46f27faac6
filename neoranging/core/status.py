"""Status of an estimate: one enum, whose values are the advice that a user gets."""

from __future__ import annotations

from enum import Enum
from typing import Final

import numpy as np

from neoranging.typing import BoolArray, CodeArray


class RangeStatus(Enum):
    """Verdict on one range estimate; the value says what happened and what to try.

    ``OK`` has one meaning for every method: the observations determine the range. The root of a
    classical method is then admissible, fits all observations, and every other range is excluded by
    their errors; the answer of a learned method agrees with such a root; a posterior is narrow
    under any prior. ``POPULATION`` is a usable answer that rests on something else. The integer
    `code` is what arrays carry.
    """

    OK = "The observations determine the range: they exclude all others."
    MULTIPLE_ROOTS = (
        "Several admissible orbits fit the observations: look at the candidates and add an "
        "observation at another time to tell them apart."
    )
    UNDETERMINED = (
        "The observations leave many ranges possible, and a number beside this status, if there is "
        "one, means nothing: use the interval or the admissible region, ask for the posterior "
        "(method='systematic'), or observe a longer arc."
    )
    INADMISSIBLE = (
        "The solution is not bound to the Sun, or is bound to the Earth, or lies inside it: "
        "check the observations and their station, or use the admissible region."
    )
    NO_ROOT = (
        "No positive range satisfies the equations: check the observations and their times, or "
        "use the admissible region."
    )
    NOT_CONVERGED = (
        "Roots exist but no orbit through the observations was reached from them: the arc is too "
        "long or too curved for the method; use a part of it."
    )
    MISFIT = (
        "No orbit near the answer fits the observations within their errors: the diagnostics name "
        "the observation that is worst, or the range that does fit. Look for a blunder, a wrong "
        "time or station, another object, or too small a sigma."
    )
    TOO_FEW_OBSERVATIONS = (
        "Fewer distinct epochs than the method needs: use the interval or the admissible region, "
        "ask for the posterior (method='systematic', which takes two epochs), or add observations."
    )
    UNKNOWN_OBSERVER = (
        "The position of an observer is not known: see the diagnostics for the station and what "
        "it needs."
    )
    OUTSIDE_TRAINING_DOMAIN = (
        "The input lies outside what the network was trained on: use a classical method or the "
        "admissible region."
    )
    POPULATION = (
        "The answer rests on where objects that move like this mostly are, not on the observations "
        "alone: quote the interval, not the number."
    )

    code: int

    def __init__(self, advice: str) -> None:
        self.code = len(type(self).__members__)
        self.advice = advice

    @classmethod
    def from_code(cls, code: int) -> RangeStatus:
        """Member whose integer `code` stands in a status array."""
        members = list(cls)
        if not 0 <= code < len(members):
            raise ValueError(f"status codes run from 0 to {len(members) - 1}, got {code}")
        return members[code]

    @property
    def usable(self) -> bool:
        """Flag of an answer that the method stands by: OK or POPULATION."""
        return self in (RangeStatus.OK, RangeStatus.POPULATION)

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Members compare with each other and with their names, which tables hold as text."""
        if isinstance(other, str):
            return self.name == other
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)


_USABLE: Final = np.array([member.usable for member in RangeStatus])


def is_usable(status: CodeArray) -> BoolArray:
    """Usability of answers by their status codes, `RangeStatus.usable` of each."""
    return _USABLE[status]
