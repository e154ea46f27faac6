"""`Attributable`: where an object stood and how it moved, with the place of its observer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging import ephemeris
from neoranging.arguments import require_time, values_in
from neoranging.core import attributable as core
from neoranging.core.geometry import beyond_poles, line_of_sight
from neoranging.exceptions import TrackletError
from neoranging.one_or_many import OneOrMany
from neoranging.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord
    from astropy.table import QTable

    from neoranging.admissible_region import AdmissibleRegion


class Attributable(OneOrMany):
    """Position and motion on the sky at one epoch, of one arc or of M arcs.

    Usually made by `Tracklet.attributable`; written out by hand for an attributable from elsewhere.
    Immutable. Attributes of one arc are scalars, those of M arcs have shape (M,).

    Parameters
    ----------
    epoch : Time
        Instant of reception.
    ra, dec : Quantity
        ICRS direction.
    ra_rate, dec_rate : Quantity
        *Coordinate* rates: ``ra_rate`` is without cos(dec) (ADES and many ephemerides print it
        with: divide by cos(dec)).
    station : str, sequence of str or EarthLocation, optional
        MPC code(s) or place of the observer; ``"500"`` is the geocentre.
    observer_position, observer_velocity : Quantity, shape (..., 3), optional
        Heliocentric ICRS state of the observer at the epoch, instead of ``station``.

    Raises
    ------
    TrackletError
        If the observer is missing or given twice, a unit is missing, shapes do not agree, a value
        is not finite, or a declination lies beyond a pole.
    UnknownStationError
        If a code has no known position.

    Examples
    --------
    The attributable of 2015 RN35 that OrbFit uses in its tests:

    >>> from astropy import units as u
    >>> from astropy.time import Time
    >>> import neoranging as nr
    >>> attributable = nr.Attributable(
    ...     Time("2015-09-09T08:00", scale="utc"),
    ...     ra=50.4121 * u.deg, dec=19.3376 * u.deg,
    ...     ra_rate=2.07249 * u.deg / u.day, dec_rate=0.53208 * u.deg / u.day, station="500")
    >>> print(attributable.proper_motion.to(u.deg / u.day).round(3))
    2.027 deg / d
    """

    def __init__(
        self,
        epoch: Time,
        ra: u.Quantity,
        dec: u.Quantity,
        ra_rate: u.Quantity,
        dec_rate: u.Quantity,
        *,
        station: Any = None,
        observer_position: u.Quantity | None = None,
        observer_velocity: u.Quantity | None = None,
    ) -> None:
        require_time("epoch", epoch)
        states = [x for x in (observer_position, observer_velocity) if x is not None]
        if len(states) != (2 if station is None else 0):
            raise TrackletError(
                "an attributable needs the place of its observer once: give station= (an MPC "
                "code, an EarthLocation, or '500' for the geocentre) or both observer_position= "
                "and observer_velocity="
            )
        observer = states or ephemeris.observer_posvel(epoch, station)
        angles = [
            values_in(name, x, unit)
            for name, x, unit in (
                ("ra", ra, u.rad),
                ("dec", dec, u.rad),
                ("ra_rate", ra_rate, u.rad / u.d),
                ("dec_rate", dec_rate, u.rad / u.d),
            )
        ]
        _check_angles(angles)
        state = [
            values_in("observer_position", observer[0], u.au),
            values_in("observer_velocity", observer[1], u.au / u.d),
        ]
        try:
            shape = np.broadcast_shapes(
                epoch.shape, *(x.shape for x in angles), *(x.shape[:-1] for x in state)
            )
            state = [np.broadcast_to(x, (*shape, 3)).reshape(-1, 3) for x in state]
        except ValueError as error:
            raise TrackletError(
                f"epoch, angles, rates and observer do not share a shape: {error}"
            ) from error
        m = int(np.prod(shape))
        columns = [np.broadcast_to(x, shape).reshape(m) for x in angles]
        unmeasured = (np.full((m, *s), np.nan) for s in ((4, 4), (2,), (2, 2), ()))
        tdb = np.broadcast_to(ephemeris.tdb_mjd(epoch), shape).reshape(m)
        columns[0] = columns[0] % (2.0 * np.pi)
        self._arrays = core.Attributables._make([tdb, *columns, *unmeasured, *state])
        self._scalar = not shape

    @classmethod
    def _from_arrays(cls, arrays: core.Attributables, scalar: bool) -> Attributable:
        self = object.__new__(cls)
        self._arrays, self._scalar = arrays, scalar
        return self

    @property
    def _n_rows(self) -> int:
        return len(self._arrays.ra)

    def _take(self, rows: IntArray, scalar: bool) -> Attributable:
        return self._from_arrays(self._arrays.take(rows), scalar)

    @cached_property
    def epoch(self) -> Time:
        """Instant of reception, TDB."""
        epoch = Time(self._arrays.epoch, format="mjd", scale="tdb")
        return epoch[0] if self._scalar else epoch

    @property
    def ra(self) -> u.Quantity:
        """Right ascension, ICRS."""
        return self._quantity(self._arrays.ra, u.rad).to(u.deg)

    @property
    def dec(self) -> u.Quantity:
        """Declination, ICRS."""
        return self._quantity(self._arrays.dec, u.rad).to(u.deg)

    @property
    def ra_rate(self) -> u.Quantity:
        """Rate of right ascension, without cos(dec)."""
        return self._quantity(self._arrays.ra_rate, u.rad / u.d)

    @property
    def dec_rate(self) -> u.Quantity:
        """Rate of declination."""
        return self._quantity(self._arrays.dec_rate, u.rad / u.d)

    @property
    def proper_motion(self) -> u.Quantity:
        """Speed on the sky, eta = sqrt(ra_rate^2 cos^2 dec + dec_rate^2)."""
        return self._quantity(self._arrays.proper_motion, u.rad / u.d)

    @property
    def position_angle(self) -> u.Quantity:
        """Direction of the motion, from north through east, in [0, 360) deg."""
        a = self._arrays
        angle = np.arctan2(a.ra_rate * np.cos(a.dec), a.dec_rate)
        return self._quantity(angle % (2.0 * np.pi), u.rad).to(u.deg)

    @property
    def coord(self) -> SkyCoord:
        """Direction with its proper motion (``pm_ra_cosdec``, ``pm_dec``) and epoch, ICRS."""
        from astropy.coordinates import SkyCoord

        a = self._arrays
        return SkyCoord(
            self.ra,
            self.dec,
            pm_ra_cosdec=self._quantity(a.ra_rate * np.cos(a.dec), u.rad / u.d).to(u.deg / u.d),
            pm_dec=self.dec_rate.to(u.deg / u.d),
            obstime=self.epoch,
            frame="icrs",
        )

    @property
    def line_of_sight(self) -> FloatArray:
        """Unit vector towards the object, ICRS axes, shape (..., 3)."""
        return self._array(line_of_sight(self._arrays.ra, self._arrays.dec))

    @property
    def covariance(self) -> FloatArray:
        """Covariance of (ra, dec, ra_rate, dec_rate) [rad, rad/d], (..., 4, 4); NaN if unknown."""
        return self._array(self._arrays.covariance)

    @property
    def curvature(self) -> u.Quantity:
        """Acceleration on the sky along and across the motion, shape (..., 2); NaN if unknown."""
        return self._quantity(self._arrays.curvature, u.rad / u.d**2)

    @property
    def curvature_covariance(self) -> FloatArray:
        """Covariance of the components of `curvature` [(rad/d^2)^2], shape (..., 2, 2)."""
        return self._array(self._arrays.curvature_covariance)

    @property
    def curvature_significance(self) -> Any:
        """Acceleration in units of its standard error; below about 3 the arc looks straight."""
        return self._value(self._arrays.curvature_significance)

    @property
    def observer_position(self) -> u.Quantity:
        """Heliocentric position of the observer at the epoch, ICRS axes, shape (..., 3)."""
        return self._quantity(self._arrays.position, u.au)

    @property
    def observer_velocity(self) -> u.Quantity:
        """Heliocentric velocity of the observer at the epoch, ICRS axes, shape (..., 3)."""
        return self._quantity(self._arrays.velocity, u.au / u.d)

    def state(self, rho: u.Quantity, rho_dot: u.Quantity) -> tuple[u.Quantity, u.Quantity, Time]:
        """Orbit that a range and range-rate complete the attributable to.

        Parameters
        ----------
        rho, rho_dot : Quantity
            Range and range-rate from the observer, by time of reception. One of each per arc; for
            a scalar attributable any common shape.

        Returns
        -------
        position, velocity : Quantity, shape (..., 3)
            Heliocentric, ICRS axes.
        epoch : Time
            Epoch of emission, TDB: that of the attributable less the light time.
        """
        au, au_d = np.broadcast_arrays(
            values_in("rho", rho, u.au),
            values_in("rho_dot", rho_dot, u.au / u.d),
        )
        a = self._arrays
        if self._scalar:
            # one sky position completed by any number of ranges
            a = a.take(np.zeros(au.size, dtype=int))
        orbit = a.complete(au.ravel(), au_d.ravel())
        shape = (*au.shape, 3)
        return (
            orbit.r.reshape(shape) << u.au,
            orbit.v.reshape(shape) << u.au / u.d,
            Time(orbit.epoch.reshape(au.shape), format="mjd", scale="tdb"),
        )

    def admissible_region(self, **limits: Any) -> AdmissibleRegion:
        """Ranges and range-rates of a Solar-System object that this attributable allows.

        Parameters
        ----------
        **limits
            Optional limits, as for `AdmissibleRegion`.
        """
        from neoranging.admissible_region import AdmissibleRegion

        return AdmissibleRegion(self, **limits)

    def to_table(self) -> QTable:
        """Table of one row an arc: the epoch, the direction, its rates and the observer's state.

        Columns: ``epoch``, ``ra``, ``dec``, ``ra_rate`` (without cos(dec)), ``dec_rate``,
        ``proper_motion``, ``curvature_significance``, ``observer_position`` and
        ``observer_velocity`` of shape (M, 3).
        """
        from astropy.table import QTable

        a = self._arrays
        return QTable(
            {
                "epoch": Time(a.epoch, format="mjd", scale="tdb"),
                "ra": (a.ra << u.rad).to(u.deg),
                "dec": (a.dec << u.rad).to(u.deg),
                "ra_rate": (a.ra_rate << u.rad / u.d).to(u.deg / u.d),
                "dec_rate": (a.dec_rate << u.rad / u.d).to(u.deg / u.d),
                "proper_motion": np.atleast_1d(self.proper_motion.to(u.deg / u.d)),
                "curvature_significance": a.curvature_significance,
                "observer_position": a.position << u.au,
                "observer_velocity": a.velocity << u.au / u.d,
            }
        )

    def _summary(self) -> dict[str, str]:
        return {
            "epoch": f"{self.epoch.utc.isot} UTC",
            "ra, dec": f"{self.ra.value:.6f}, {self.dec.value:+.6f} deg",
            "motion": f"{self.proper_motion.to_value(u.deg / u.d):.5g} deg/d "
            f"towards {self.position_angle.value:.1f} deg",
            "curvature": f"{self.curvature_significance:.3g} standard errors",
        }

    def __repr__(self) -> str:
        if not self._scalar:
            return f"<Attributable of {len(self)} arcs>"
        rates = [x.to_value(u.deg / u.d) for x in (self.ra_rate, self.dec_rate)]
        return (
            f"<Attributable {self.epoch.utc.isot} UTC ra={self.ra.value:.6f} "
            f"dec={self.dec.value:+.6f} deg ra_rate={rates[0]:+.5f} dec_rate={rates[1]:+.5f} deg/d>"
        )


def _check_angles(angles: list[FloatArray]) -> None:
    """Raise an error for directions and rates that are none."""
    for name, values in zip(("ra", "dec", "ra_rate", "dec_rate"), angles, strict=True):
        if not np.isfinite(values).all():
            raise TrackletError(
                f"{name} must be finite, got {np.sum(~np.isfinite(values))} values of "
                f"{values.size} that are not: leave these arcs out"
            )
    if beyond_poles(angles[1]).any():
        worst = np.degrees(angles[1].flat[np.argmax(np.abs(angles[1]))])
        raise TrackletError(f"dec must lie between -90 and 90 deg, got {worst:.6g}: see its unit")
