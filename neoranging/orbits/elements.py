"""Heliocentric orbits with units: elements, and the bridge to poliastro's family of packages.

Elements refer to the ecliptic and equinox of J2000.0 (obliquity 84381.448 arcsec), as those of the
Minor Planet Center, JPL and NEODyS do; states refer to the ICRS axes of the rest of the package.

poliastro itself is no longer maintained and cannot be installed beside a current astropy; its
continuation `boinor` keeps the interface. `to_orbit` and `from_orbit` exchange *state vectors*,
because the gravitational parameters of the packages differ by 1.5e-8: the same state has slightly
different elements there, the same elements a slightly different state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time

from neoranging.arguments import require_time, values_in
from neoranging.constants import GM_SUN
from neoranging.core.elements import elements_to_state, state_to_elements
from neoranging.core.geometry import ecliptic_to_equatorial, equatorial_to_ecliptic
from neoranging.core.kepler import mean_anomaly, true_anomaly
from neoranging.core.moid import earth_moid
from neoranging.display import html_table
from neoranging.exceptions import MissingDependencyError, OrbitError
from neoranging.typing import FloatArray

if TYPE_CHECKING:
    from collections.abc import Mapping


_SPEED = u.au / u.day
_ANGLES = ("inc", "raan", "argp", "nu")
_UNITS: Mapping[str, Any] = {"q": u.au, "ecc": u.one} | dict.fromkeys(_ANGLES, u.deg)

_PACKAGES = ("boinor", "poliastro", "hapsira")


def _values(name: str, quantity: Any, unit: Any) -> FloatArray:
    return values_in(name, quantity, unit, OrbitError)


def _tdb(epoch: Any) -> Time:
    return require_time("epoch", epoch, OrbitError).tdb


@dataclass(frozen=True, repr=False, eq=False)
class OrbitalElements:
    """Osculating heliocentric elements of one orbit or of an array of orbits.

    Usually made by `from_state`, `from_mean` or `from_perihelion`. Every conic is representable:
    ``q`` exists always, ``a`` is negative on hyperbolas and infinite on a parabola.

    Parameters
    ----------
    q : Quantity
        Perihelion distance.
    ecc : Quantity
        Eccentricity (dimensionless; a float will do).
    inc, raan, argp : Quantity
        Inclination, longitude of the ascending node, argument of perihelion; ecliptic J2000.
    nu : Quantity
        *True* anomaly at the epoch. Catalogues list the mean anomaly: see `from_mean`.
    epoch : Time
        Epoch of osculation, kept in TDB; one, or one per orbit.

    Raises
    ------
    OrbitError
        If an element lacks its unit, is out of range, or the shapes do not broadcast.

    Examples
    --------
    >>> from astropy import units as u
    >>> from astropy.time import Time
    >>> ceres = OrbitalElements.from_mean(
    ...     a=2.76604306 * u.au, ecc=0.07850100198, inc=10.587693 * u.deg,
    ...     raan=80.26859547 * u.deg, argp=73.63703979 * u.deg, mean_anomaly=291.3755993 * u.deg,
    ...     epoch=Time("2022-01-21", scale="tdb"))
    >>> ceres
    <OrbitalElements a=2.7660431 au e=0.0785010 i=10.58769 node=80.26860 peri=73.63704 M=291.37560 deg, ecliptic J2000, epoch 2022-01-21.00000 TDB>
    >>> print(ceres.period.to(u.year).round(3))
    4.6 yr
    """  # noqa: E501 (the repr is one line)

    q: u.Quantity
    ecc: u.Quantity
    inc: u.Quantity
    raan: u.Quantity
    argp: u.Quantity
    nu: u.Quantity
    epoch: Time

    def __post_init__(self) -> None:
        epoch = _tdb(self.epoch)
        values = [_values(name, getattr(self, name), unit) for name, unit in _UNITS.items()]
        try:
            shape = np.broadcast_shapes(epoch.shape, *(x.shape for x in values))
            values = [np.broadcast_to(x, shape).copy() for x in values]
            epoch = np.broadcast_to(epoch, shape) if epoch.shape else epoch
        except ValueError as error:
            raise OrbitError(f"elements and epoch must broadcast to one shape: {error}") from error
        q, ecc = values[0], values[1]
        if np.any(q < 0.0) or np.any(ecc < 0.0):
            raise OrbitError(
                f"q and ecc must not be negative, got q down to {np.min(q)} au and ecc down to "
                f"{np.min(ecc)}; a hyperbola has a negative a but a positive q = a (1 - ecc)"
            )
        for (name, unit), value in zip(_UNITS.items(), values, strict=True):
            object.__setattr__(self, name, value << unit)
        object.__setattr__(self, "epoch", epoch)

    @classmethod
    def from_state(cls, position: u.Quantity, velocity: u.Quantity, epoch: Time) -> OrbitalElements:
        """Osculating elements of heliocentric states.

        Parameters
        ----------
        position, velocity : Quantity, shape (..., 3)
            Heliocentric vectors on ICRS axes.
        epoch : Time
            One, or shape (...).
        """
        r, v = _vectors(position, velocity)
        e = state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v))
        inc, raan, argp, nu = (x << u.rad for x in (e.inc, e.raan, e.argp, e.nu))
        return cls(e.q << u.au, e.ecc << u.one, inc, raan, argp, nu, epoch)

    @classmethod
    def from_mean(
        cls,
        *,
        ecc: Any,
        inc: u.Quantity,
        raan: u.Quantity,
        argp: u.Quantity,
        mean_anomaly: u.Quantity,
        epoch: Time,
        a: u.Quantity | None = None,
        q: u.Quantity | None = None,
    ) -> OrbitalElements:
        """Elements as minor-planet catalogues list them, with the *mean* anomaly.

        Parameters
        ----------
        ecc, inc, raan, argp, epoch
            As for the class.
        mean_anomaly : Quantity
            Mean anomaly at the epoch; on a parabola ``sqrt(GM / (2 q^3)) (t - T)``.
        a, q : Quantity
            Semimajor axis or perihelion distance: one of the two.
        """
        if (a is None) == (q is None):
            raise OrbitError("give either a or q, and not both")
        mean, e = _values("mean_anomaly", mean_anomaly, u.rad), _values("ecc", ecc, u.one)
        if q is None:
            if np.any(e == 1.0):
                raise OrbitError("ecc = 1 is a parabola, whose a is infinite: give q")
            q = _values("a", a, u.au) * (1.0 - e) << u.au
        return cls(q, ecc, inc, raan, argp, true_anomaly(mean, e) << u.rad, epoch)

    @classmethod
    def from_perihelion(
        cls,
        *,
        q: u.Quantity,
        ecc: Any,
        inc: u.Quantity,
        raan: u.Quantity,
        argp: u.Quantity,
        perihelion_time: Time,
        epoch: Time,
    ) -> OrbitalElements:
        """Elements as comet catalogues list them, with the time of perihelion passage."""
        at_perihelion = cls(q, ecc, inc, raan, argp, 0.0 * u.deg, perihelion_time)
        return at_perihelion.propagate(epoch)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of every element; ``()`` for a single orbit."""
        return self.q.shape

    def __getitem__(self, item: Any) -> OrbitalElements:
        epoch = self.epoch[item] if self.epoch.shape else self.epoch
        return replace(self, epoch=epoch, **{name: getattr(self, name)[item] for name in _UNITS})

    @property
    def is_elliptic(self) -> Any:
        """Flag of an orbit bound to the Sun."""
        return self.ecc.value < 1.0

    @property
    def a(self) -> u.Quantity:
        """Semimajor axis: negative on hyperbolas, infinite on a parabola."""
        with np.errstate(divide="ignore"):
            return self.q / (1.0 - self.ecc)

    @property
    def mean_motion(self) -> u.Quantity:
        """Rate of the mean anomaly; Barker's ``sqrt(GM / (2 q^3))`` on a parabola."""
        gap = np.abs(1.0 - self.ecc.value)
        factor = np.where(gap == 0.0, 0.5, gap**3)
        with np.errstate(divide="ignore"):
            return np.sqrt(GM_SUN * factor / self.q.value**3) * u.rad / u.day

    @property
    def period(self) -> u.Quantity:
        """Orbital period; infinite where the orbit is not an ellipse."""
        turns = np.where(self.is_elliptic, 2.0 * np.pi, np.inf) * u.rad
        return (turns / self.mean_motion).to(u.day)

    @property
    def M(self) -> u.Quantity:  # noqa: N802 (the symbol of every catalogue)
        """Mean anomaly at the epoch: in [0, 360) deg on ellipses, signed on the other conics."""
        m = np.degrees(mean_anomaly(self.nu.to_value(u.rad), self.ecc.value))
        return np.where(self.is_elliptic, m % 360.0, m) << u.deg

    @property
    def perihelion_time(self) -> Time:
        """Passage through perihelion: the one nearest to the epoch on ellipses."""
        m = mean_anomaly(self.nu.to_value(u.rad), self.ecc.value) * u.rad
        return self.epoch - (m / self.mean_motion).to(u.day)

    def earth_moid(self) -> u.Quantity:
        """Least distance between the orbit and that of the Earth (MOID).

        The Earth's orbit is the mean one of the barycentre of Earth and Moon at the epoch, so that
        a MOID is good to some 1e-4 au; it changes by more over the decades.

        Examples
        --------
        >>> from astropy import units as u
        >>> from astropy.time import Time
        >>> eros = OrbitalElements.from_mean(
        ...     a=1.4581 * u.au, ecc=0.2228, inc=10.83 * u.deg, raan=304.27 * u.deg,
        ...     argp=178.92 * u.deg, mean_anomaly=310.6 * u.deg, epoch=Time("2025-05-05"))
        >>> print(eros.earth_moid().round(2))
        0.15 AU
        """
        inc, raan, argp = (getattr(self, name).to_value(u.rad) for name in _ANGLES[:3])
        least = earth_moid(self.q.value, self.ecc.value, inc, raan, argp, self.epoch.mjd)
        return least << u.au

    def state(self) -> tuple[u.Quantity, u.Quantity]:
        """Heliocentric position and velocity, shape (..., 3), on ICRS axes."""
        angles = (getattr(self, name).to_value(u.rad) for name in _ANGLES)
        r, v = elements_to_state(self.q.value, self.ecc.value, *angles)
        return ecliptic_to_equatorial(r) << u.au, ecliptic_to_equatorial(v) << _SPEED

    def propagate(self, epoch: Time) -> OrbitalElements:
        """The same two-body orbit at another epoch (broadcast against the orbits)."""
        epoch = _tdb(epoch)
        elapsed = (epoch - self.epoch).to(u.day)
        m = mean_anomaly(self.nu.to_value(u.rad), self.ecc.value)
        m = m + (self.mean_motion * elapsed).to_value(u.rad)
        return replace(self, nu=true_anomaly(m, self.ecc.value) << u.rad, epoch=epoch)

    def to_table(self) -> QTable:
        """One row per orbit: epoch, a, q, ecc, inc, raan, argp, nu, M, period."""
        names = ("a", "q", "ecc", "inc", "raan", "argp", "nu", "M", "period")
        columns = {name: np.atleast_1d(getattr(self, name)) for name in names}
        rows = columns["q"].shape
        epoch = Time(np.broadcast_to(self.epoch.mjd, rows), format="mjd", scale="tdb")
        table = QTable({"epoch": epoch, **columns})
        table.meta["frame"] = "heliocentric ecliptic J2000"
        return table

    def to_orbit(self) -> Any:
        """The orbit as an object of poliastro's family; see `to_orbit`."""
        return to_orbit(*self.state(), self.epoch)

    def to_mpcorb(self, designation: str, H: float | None = None, G: float = 0.15) -> str:
        """One line in the Minor Planet Center's export format, columns 1 to 103.

        The format holds bound orbits at 0h TT only: the anomaly is carried to the nearest one by
        two-body motion; the other elements stay.

        Parameters
        ----------
        designation : str
            Packed designation or a temporary name, at most 7 characters.
        H, G : float, optional
            Absolute magnitude and slope parameter; blank without H.

        Raises
        ------
        OrbitError
            If this is an array, the orbit is not an ellipse, or the designation is too long.
        """
        if self.shape or not self.is_elliptic or not np.isfinite(self.nu):
            raise OrbitError(f"an MPCORB line holds one elliptic orbit, got {self!r}; index first")
        if not 0 < len(designation) <= 7:
            raise OrbitError(f"designation {designation!r} has not 1 to 7 characters; pack it")
        day = Time(np.round(self.epoch.tt.mjd), format="mjd", scale="tt")
        orbit = self.propagate(day)
        magnitude = " " * 11 if H is None else f"{H:5.2f} {G:5.2f}"
        # rounded first, so that no angle prints as 360.00000
        degrees = (x.to_value(u.deg).round(5) % 360.0 for x in (orbit.M, self.argp, self.raan))
        angles = "  ".join(f"{x:9.5f}" for x in degrees)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUV"  # packed dates: K2555 is 2025 May 5
        year, month, date = (int(x) for x in day.isot[:10].split("-"))
        packed = f"{digits[year // 100]}{year % 100:02d}{digits[month]}{digits[date]}"
        motion = self.mean_motion.to_value(u.deg / u.day)
        return (
            f"{designation:<7} {magnitude} {packed} {angles}  {self.inc.value:9.5f}  "
            f"{self.ecc.value:9.7f} {motion:11.8f} {self.a.value:11.7f}"
        )

    def _repr_html_(self) -> str:
        if self.shape:
            return html_table({"orbits": repr(self)})
        angles = {"i": self.inc, "node": self.raan, "peri": self.argp, "M": self.M}
        return html_table(
            {
                "epoch": f"{self.epoch.tdb.isot} TDB, ecliptic J2000",
                "a": f"{self.a.value:.7f} au" if self.is_elliptic else f"q {self.q.value:.7f} au",
                "e": f"{self.ecc.value:.7f}",
                **{name: f"{value.value:.5f} deg" for name, value in angles.items()},
            }
        )

    def __repr__(self) -> str:
        if self.shape:
            bound = int(np.count_nonzero(self.is_elliptic))
            n = self.q.size
            return f"<OrbitalElements of {n} orbits, {bound} elliptic, ecliptic J2000>"
        size = f"a={self.a.value:.7f}" if self.is_elliptic else f"q={self.q.value:.7f}"
        angles = zip(
            ("i", "node", "peri", "M"), (self.inc, self.raan, self.argp, self.M), strict=True
        )
        text = " ".join(f"{name}={value.value:.5f}" for name, value in angles)
        return (
            f"<OrbitalElements {size} au e={self.ecc.value:.7f} {text} deg, ecliptic J2000, "
            f"epoch {self.epoch.isot[:10]}.{min(round(self.epoch.mjd % 1.0 * 1e5), 99999):05d} TDB>"
        )


def _vectors(position: u.Quantity, velocity: u.Quantity) -> tuple[FloatArray, FloatArray]:
    r, v = _values("position", position, u.au), _values("velocity", velocity, _SPEED)
    if r.shape != v.shape or r.shape[-1:] != (3,):
        raise OrbitError(
            f"position and velocity must both have shape (..., 3), got {r.shape} and {v.shape}"
        )
    return r, v


def to_orbit(position: u.Quantity, velocity: u.Quantity, epoch: Time) -> Any:
    """A heliocentric state as `Orbit` of boinor (or poliastro, or hapsira) on the ecliptic plane.

    Parameters
    ----------
    position, velocity : Quantity, shape (3,)
        Heliocentric vectors on ICRS axes.
    epoch : Time
        Scalar.

    Returns
    -------
    boinor.twobody.Orbit
        With ``plane=Planes.EARTH_ECLIPTIC``: its ``.r`` and ``.v`` are *ecliptic* vectors, as that
        package understands a state in a plane, and its elements are the usual ecliptic ones.

    Raises
    ------
    MissingDependencyError
        If none of the packages can be imported.
    OrbitError
        If the input is not one heliocentric state with units.

    Notes
    -----
    The call itself compiles nothing. The package compiles its numeric core anew in every process,
    some 5 s, the first time it needs elements: ``.classical()``, ``.a``, ``.propagate()``, and also
    the mere printing of an orbit. `OrbitalElements` gives the same at once, and for arrays.
    """
    r, v = _vectors(position, velocity)
    epoch = _tdb(epoch)
    if r.ndim != 1 or epoch.shape or not np.isfinite([r, v]).all() or not r.any():
        raise OrbitError(
            f"an Orbit is one finite state at one epoch, got shape {r.shape} and epochs of shape "
            f"{epoch.shape}; loop over the rows, or keep arrays as OrbitalElements"
        )
    failures = []
    for name in _PACKAGES:
        try:
            orbit_class = import_module(f"{name}.twobody").Orbit
            break
        except ImportError as error:
            failures.append(f"{name}: {error}")
    else:
        raise MissingDependencyError(
            "no package of poliastro's family can be imported; run `pip install boinor`. Tried "
            + "; ".join(failures)
        )
    return orbit_class.from_vectors(
        import_module(f"{name}.bodies").Sun,
        equatorial_to_ecliptic(r) << u.au,
        equatorial_to_ecliptic(v) << _SPEED,
        epoch=epoch,
        plane=import_module(f"{name}.frames").Planes.EARTH_ECLIPTIC,
    )


def from_orbit(orbit: Any) -> tuple[u.Quantity, u.Quantity, Time]:
    """Heliocentric ICRS state of an orbit of poliastro's family.

    Parameters
    ----------
    orbit : object
        Anything with ``r``, ``v``, ``epoch``, ``attractor`` (the Sun) and ``plane``
        (``EARTH_ECLIPTIC`` or ``EARTH_EQUATOR``).

    Returns
    -------
    position, velocity : Quantity, shape (3,)
        On ICRS axes, au and au/d.
    epoch : Time
        In TDB.

    Raises
    ------
    OrbitError
        If the orbit lacks an attribute, circles another body, or refers to another plane.
    """
    try:
        attractor, plane = orbit.attractor.name, orbit.plane.name
        r, v = _vectors(orbit.r, orbit.v)
        epoch = _tdb(orbit.epoch)
    except AttributeError as error:
        raise OrbitError(
            f"{orbit!r} is no Orbit of boinor, poliastro or hapsira: {error}"
        ) from error
    if attractor != "Sun":
        raise OrbitError(f"the orbit is about {attractor}; a heliocentric one is needed")
    if plane == "EARTH_ECLIPTIC":
        r, v = ecliptic_to_equatorial(r), ecliptic_to_equatorial(v)
    elif plane != "EARTH_EQUATOR":
        raise OrbitError(f"plane {plane} is neither EARTH_ECLIPTIC nor EARTH_EQUATOR")
    return r << u.au, v << _SPEED, epoch
