"""The admissible region of one attributable, as an object with units.

See :mod:`neoranging.core.admissible` for the formulae and for many attributables at once.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, Protocol

import astropy.units as u
import numpy as np
import numpy.typing as npt

from neoranging.arguments import values_in
from neoranging.constants import R_EARTH
from neoranging.core import admissible as core
from neoranging.core.admissible_shape import RegionShape, zeros_of
from neoranging.display import html_table
from neoranging.exceptions import AdmissibleRegionError
from neoranging.typing import BoolArray, FloatArray


class _AttributableLike(Protocol):
    """Attributes of an `Attributable` that a region is made of.

    Stated here because an attributable stands above its region and makes it.
    """

    @property
    def ra(self) -> u.Quantity: ...
    @property
    def dec(self) -> u.Quantity: ...
    @property
    def ra_rate(self) -> u.Quantity: ...
    @property
    def dec_rate(self) -> u.Quantity: ...
    @property
    def observer_position(self) -> u.Quantity: ...
    @property
    def observer_velocity(self) -> u.Quantity: ...


class BoundaryCurve(NamedTuple):
    """A closed curve in the plane of range and range-rate; the last point repeats the first."""

    range: u.Quantity
    range_rate: u.Quantity


class AdmissibleRegion:
    """Ranges and range-rates at which an attributable is a Sun-bound, not Earth-bound orbit.

    Parameters
    ----------
    attributable : Attributable
        Direction, angular rates and the observer's heliocentric state (ICRS).
    a_max : Quantity, optional
        Largest semimajor axis; all elliptic orbits by default.
    h_max : float, optional
        Faintest absolute magnitude H, the shooting-star limit of Milani et al. (2004). With the
        apparent magnitude ``mag`` it becomes a least range: the nearest one at which H, from
        distance and phase angle in the H-G system, is no fainter. Needs ``mag``.
    mag : float, optional
        Apparent magnitude, in the band (V as a rule) in which ``h_max`` is meant.
    slope : float
        Slope parameter G of the phase function.
    rho_min : Quantity, optional
        Least range; never less than the Earth's equatorial radius.

    Raises
    ------
    AdmissibleRegionError
        If the attributable is not finite, a limit makes no sense, or the region has no far end.

    Notes
    -----
    The region is that of Milani et al. (2004, Celest. Mech. Dyn. Astr. 90, 59) except that orbits
    bound to the Earth are cut out at every range, not only within its sphere of influence
    (0.010 au): the definition by energies alone. The difference is a sliver about zero range-rate
    for objects slower than about 0.04 rad/d. Observer and geocentre are one in the geocentric
    energy. The object is immutable.

    Examples
    --------
    >>> import numpy as np
    >>> from neoranging.admissible_region import AdmissibleRegion
    >>> region = AdmissibleRegion.from_coefficients(
    ...     [1.01316, 3.04833e-2, 1.25118e-3, 5.47587e-4, 2.92308e-4, 8.84022e-1])
    >>> print(region.range_limits[1].round(4))
    0.3999 AU
    >>> rho, rho_dot = region.sample(1000, np.random.default_rng(1))
    >>> bool(region.contains(rho, rho_dot).all())
    True
    """

    __slots__ = ("_c", "_shape")

    _c: FloatArray
    _shape: RegionShape

    def __init__(
        self,
        attributable: _AttributableLike,
        *,
        a_max: u.Quantity | None = None,
        h_max: float | None = None,
        mag: float | None = None,
        slope: float = 0.15,
        rho_min: u.Quantity | None = None,
    ) -> None:
        c = core.energy_coefficients(
            attributable.ra.to_value(u.rad),
            attributable.dec.to_value(u.rad),
            attributable.ra_rate.to_value(u.rad / u.day),
            attributable.dec_rate.to_value(u.rad / u.day),
            attributable.observer_position.to_value(u.au),
            attributable.observer_velocity.to_value(u.au / u.day),
        )
        self._set(c, a_max=a_max, h_max=h_max, mag=mag, slope=slope, rho_min=rho_min)

    @classmethod
    def from_coefficients(cls, coefficients: npt.ArrayLike, **limits: Any) -> AdmissibleRegion:
        """Build the region from the energy coefficients c0..c5 [au, day] instead.

        Parameters
        ----------
        coefficients : array_like, shape (6,)
        **limits
            Optional limits, as for `AdmissibleRegion`.
        """
        region = cls.__new__(cls)
        region._set(coefficients, **limits)
        return region

    def _set(
        self,
        coefficients: npt.ArrayLike,
        *,
        a_max: u.Quantity | None = None,
        h_max: float | None = None,
        mag: float | None = None,
        slope: float = 0.15,
        rho_min: u.Quantity | None = None,
    ) -> None:
        c = np.array(coefficients, dtype=np.float64)
        if c.shape != (6,) or not np.all(np.isfinite(c)):
            raise AdmissibleRegionError(
                f"the energy coefficients must be six finite numbers, got {c}; build one region "
                "per attributable and check that its direction, rates and observer are finite"
            )
        a = math.inf if a_max is None else float(_au(a_max, "a_max"))
        if not a > 0.0:
            raise AdmissibleRegionError(
                f"a_max must be a positive length, got {a_max}; leave it out for no limit"
            )
        limited = core.limit_semimajor_axis(c, a)
        far = float(np.nanmax(core.range_roots(limited), initial=0.0))
        if math.isinf(far):
            raise AdmissibleRegionError(
                "the region has no far end: the object shows no angular rate and the observer no "
                "velocity across the line of sight; give a_max, or an attributable that moves"
            )
        near = R_EARTH if rho_min is None else max(R_EARTH, float(_au(rho_min, "rho_min")))
        if h_max is not None:
            near = max(near, _shooting_star_range(c, mag, h_max, slope, near, far))
        self._c = c
        self._shape = RegionShape.of(limited, near)
        for array in (c, limited, self._shape.intervals):
            array.flags.writeable = False

    def __repr__(self) -> str:
        spans = ", ".join(f"{low:.5g} to {high:.5g}" for low, high in self._shape.intervals)
        return f"<AdmissibleRegion: range {spans + ' AU' if spans else 'empty'}>"

    def _repr_html_(self) -> str:
        spans = [f"{low:.5g} to {high:.5g} au" for low, high in self._shape.intervals]
        return html_table({"admissible ranges": ", ".join(spans) or "none"})

    @property
    def coefficients(self) -> FloatArray:
        """Energy coefficients c0..c5 [au, day], read-only."""
        return self._c

    @property
    def is_empty(self) -> bool:
        """Flag of a region to which the limits leave nothing."""
        return len(self._shape.intervals) == 0

    @property
    def components(self) -> u.Quantity:
        """Near and far end of the one or two intervals of range, shape (n, 2), ascending."""
        return self._shape.intervals * u.au

    @property
    def range_limits(self) -> u.Quantity:
        """Least and greatest range, shape (2,)."""
        self._require_some()
        return np.array([self._shape.intervals[0, 0], self._shape.intervals[-1, 1]]) * u.au

    def range_rate_limits(self, rho: u.Quantity | None = None) -> tuple[u.Quantity, u.Quantity]:
        """Lowest and highest range-rate of the orbits bound to the Sun (and within ``a_max``).

        Parameters
        ----------
        rho : Quantity, optional
            Ranges; NaN is returned at those outside the region. Over the whole region if left out.
        """
        if rho is None:
            self._require_some()
            low, high = (np.asarray(edge) for edge in self._shape.rate_bounds())
        else:
            distance = _au(rho)
            ends = self._shape.intervals.reshape(-1, 2, *(1,) * distance.ndim)
            inside = ((distance >= ends[:, 0]) & (distance <= ends[:, 1])).any(axis=0)
            edges = core.range_rate_interval(self._shape.c, distance)
            low, high = (np.where(inside, edge, np.nan) for edge in edges)
        return low * (u.au / u.day), high * (u.au / u.day)

    def contains(self, rho: u.Quantity, rho_dot: u.Quantity) -> BoolArray:
        """Flags of the pairs of range and range-rate that lie in the region; they broadcast."""
        return self._shape.contains(_au(rho), _au_per_day(rho_dot))

    def energy(self, rho: u.Quantity, rho_dot: u.Quantity) -> u.Quantity:
        """Heliocentric two-body energy per mass, negative for ellipses."""
        value = core.sun_energy(self._c, _au(rho), _au_per_day(rho_dot))
        return value * (u.au / u.day) ** 2

    def earth_energy(self, rho: u.Quantity, rho_dot: u.Quantity) -> u.Quantity:
        """Geocentric two-body energy per mass, negative for satellites of the Earth."""
        value = core.earth_energy(self._c, _au(rho), _au_per_day(rho_dot))
        return value * (u.au / u.day) ** 2

    @property
    def area(self) -> u.Quantity:
        """Area of the region in the plane of range and range-rate."""
        return self._shape.area() * u.au**2 / u.day

    def sample(
        self,
        n: int,
        rng: np.random.Generator | int,
        *,
        spacing: Literal["linear", "log"] = "linear",
    ) -> tuple[u.Quantity, u.Quantity]:
        """Points drawn uniformly from the region.

        Parameters
        ----------
        n : int
            Number of points.
        rng : numpy.random.Generator or int
            Source of the random numbers; an int seeds a generator of its own.
        spacing : {"linear", "log"}
            Uniform in range and range-rate, or in the logarithm of range and range-rate.

        Returns
        -------
        rho, rho_dot : Quantity, shape (n,)
        """
        self._require_some()
        if spacing not in {"linear", "log"}:
            raise AdmissibleRegionError(f'spacing must be "linear" or "log", got {spacing!r}')
        generator = np.random.default_rng(rng)
        rho, rho_dot = self._shape.sample(n, generator, log=spacing == "log").T
        return rho * u.au, rho_dot * (u.au / u.day)

    def boundary(self, n: int = 200) -> tuple[BoundaryCurve, ...]:
        """Closed curves around the region, in ascending order of range.

        Parameters
        ----------
        n : int
            Ranges per stretch of a curve, denser towards its ends and even in log range between.

        Returns
        -------
        tuple of BoundaryCurve
            A component of range is one curve with the notch of the Earth-bound orbits at its near
            end, or two if that notch reaches its far end. Every point lies on a limit of energy;
            the straight line at the near end joins two of them.
        """
        return tuple(
            BoundaryCurve(rho * u.au, rate * (u.au / u.day))
            for rho, rate in self._shape.outlines(n)
        )

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the region; see :func:`neoranging.plotting.plot_admissible_region`."""
        from neoranging.plotting import plot_admissible_region

        return plot_admissible_region(self, ax=ax, **options)

    def _require_some(self) -> None:
        if self.is_empty:
            raise AdmissibleRegionError(
                "the admissible region is empty; relax a_max, h_max or rho_min"
            )


def _au(rho: u.Quantity, name: str = "rho") -> FloatArray:
    return values_in(name, rho, u.au, AdmissibleRegionError)


def _au_per_day(rho_dot: u.Quantity) -> FloatArray:
    return values_in("rho_dot", rho_dot, u.au / u.d, AdmissibleRegionError)


def _shooting_star_range(
    c: FloatArray, mag: float | None, h_max: float, slope: float, near: float, far: float
) -> float:
    """Nearest range at which H is no fainter than ``h_max``; ``far`` if there is none."""
    if mag is None or not (math.isfinite(mag) and math.isfinite(h_max)):
        raise AdmissibleRegionError(
            f"h_max needs a finite apparent magnitude, got mag={mag}, h_max={h_max}; give mag"
        )

    def excess(rho: Any) -> Any:
        return core.absolute_magnitude(c, rho, mag, slope) - h_max

    if far <= near or excess(near) <= 0.0:
        return near
    return min([*zeros_of(excess, near, far), far])
