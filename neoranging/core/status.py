"""What became of an estimate: one enum, whose values are the advice a user gets."""

from __future__ import annotations

from enum import Enum


class RangeStatus(Enum):
    """Verdict on one range estimate; the value says what happened and what to try.

    ``OK`` means *determined*, not merely converged: the root is admissible, the only one, and the
    noise of the observations leaves it standing. The integer `code` is what arrays carry.
    """

    OK = (
        "The method vouches for it: a classical one because no other admissible solution "
        "withstands the noise, a network because it has learnt from tracklets of this kind."
    )
    MULTIPLE_ROOTS = (
        "Several admissible orbits fit the observations: look at the candidates and add an "
        "observation at another time to tell them apart."
    )
    UNDETERMINED = (
        "The noise of the observations covers the signal the method needs: use the interval or "
        "the admissible region, ask a network (method='pinn'), or observe a longer arc."
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
        "The best orbit misses observations of the arc by far more than their errors: look at the "
        "residuals for a blunder, a wrong time or station or too small a sigma, or take a method "
        "that fits all observations."
    )
    TOO_FEW_OBSERVATIONS = (
        "Fewer distinct epochs than the method needs: use the interval or the admissible region, "
        "ask a network (method='pinn' in its invariant form takes two epochs), or add observations."
    )
    UNKNOWN_OBSERVER = (
        "An observer's position is not known: register the observatory code, give an "
        "EarthLocation, or ask for origin='geocenter'."
    )
    OUTSIDE_TRAINING_DOMAIN = (
        "The input lies outside what the network was trained on: use a classical method or the "
        "admissible region."
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

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Members compare with each other and with their names, which tables hold as text."""
        if isinstance(other, str):
            return self.name == other
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)
