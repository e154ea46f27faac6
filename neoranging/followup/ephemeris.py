"""`Ephemeris`: where the orbits drawn from a night stand on the sky at other instants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from astropy import units as u
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.table import QTable
from astropy.time import Time

from neoranging import ephemeris
from neoranging.arguments import check_field, check_level, require_time
from neoranging.constants import C_AU_PER_DAY
from neoranging.core.admissible import phase_magnitude
from neoranging.core.geometry import dot, norm, radec, sky_basis
from neoranging.core.pointings import cover
from neoranging.core.prediction import range_rate
from neoranging.core.sky_density import FEWEST, SkyDensity, spatial_median
from neoranging.ephemeris.states import almanac, zenith
from neoranging.exceptions import EstimationError
from neoranging.followup.dynamics import dynamics_of
from neoranging.one_or_many import OneOrMany
from neoranging.orbits.samples import OrbitSamples
from neoranging.records import many
from neoranging.typing import FloatArray, IntArray, StrArray

Station: TypeAlias = EarthLocation | str | Sequence[str] | StrArray | None
"""Place of an observer: an MPC code, a place, or one of them for each instant."""


class Clouds(NamedTuple):
    """Draws of M tracklets as seen at T instants, n of each, leading shape (M, T, n)."""

    direction: FloatArray
    """Unit vectors towards the object, ICRS axes, shape (M, T, n, 3)."""
    rate: FloatArray
    """Derivatives of the unit vectors by time [rad/d], shape (M, T, n, 3)."""
    rho: FloatArray
    """Lengths of the light paths [au], shape (M, T, n)."""
    sun: FloatArray
    """Distances from the Sun [au], shape (M, T, n)."""
    phase: FloatArray
    """Cosines of the phase angle, shape (M, T, n)."""

    def take(self, rows: IntArray) -> Clouds:
        """Draws of some tracklets."""
        return Clouds(*(column[rows] for column in self))


class Ephemeris(OneOrMany):
    """Directions of the orbits drawn from the night of one tracklet, or of M, at T instants.

    Made by `RangeEstimate.ephemeris`. The draws of one instant are a cloud on the sky. Shapes below
    are of one tracklet and T instants; those of many tracklets have M in front, and those of a
    single instant lack T. Draws that have met the Earth before are NaN, and so is all of a tracklet
    that has no ephemeris. Regions and pointings are those of an object that has not met it.

    Examples
    --------
    >>> import astropy.units as u
    >>> import neoranging as nr
    >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
    >>> estimate = night.estimate(method="systematic")
    >>> tomorrow = estimate.ephemeris(estimate.epoch + 1 * u.d, "G96")
    >>> tomorrow
    <Ephemeris: 1 tracklet, 2024-12-28 05:46 UTC, 1000 orbits>
    >>> tomorrow.center.to_string(precision=1)
    '127.7 4.5'
    >>> print(tomorrow.area(0.95).round(-3))
    2000.0 arcmin2
    >>> print(tomorrow.altitude.round())
    31.0 deg
    """

    def __init__(
        self,
        samples: OrbitSamples,
        times: Time,
        station: Station = None,
        *,
        labels: StrArray | None = None,
        dynamics: str = "near-earth",
        clouds: Clouds | None = None,
    ) -> None:
        times = require_time("times", times, EstimationError)
        if times.ndim > 1 or not times.size:
            raise EstimationError(
                f"times must be one instant or a row of them, got a Time of shape {times.shape}"
            )
        # a tuple is mostly a place in coordinates, which the ephemeris refuses by that name
        codes = () if isinstance(station, tuple) else np.asarray(station).shape
        if codes not in ((), times.shape):
            raise EstimationError(
                f"station must be one for all instants or one for each: {codes[0]} were given "
                f"for {many(times.size, 'instant')}"
            )
        self._samples, self.times, self.station = samples, times, station
        self._scalar = samples.range.ndim == 1
        instants = np.atleast_1d(ephemeris.tdb_mjd(times))
        self._observer = tuple(
            np.broadcast_to(x.to_value(unit), (len(instants), 3))
            for x, unit in zip(
                ephemeris.observer_posvel(times, station), (u.au, u.au / u.d), strict=True
            )
        )
        self._clouds = clouds or _clouds(samples, instants, dynamics, *self._observer)
        self._labels = np.arange(self._n_rows).astype(str) if labels is None else labels
        self._weights = np.reshape(samples.weights, self._shape_of_draws)
        self._densities: dict[tuple[int, int], SkyDensity | None] = {}

    @property
    def _n_rows(self) -> int:
        return len(self._clouds.rho)

    @property
    def _shape_of_draws(self) -> tuple[int, int, int]:
        """Shape (M, 1, n) of columns that are the same at all instants."""
        return self._n_rows, 1, self._clouds.rho.shape[-1]

    def _take(self, rows: IntArray, scalar: bool) -> Ephemeris:
        samples = self._samples[int(rows[0])] if scalar else self._samples[rows]
        labels, clouds = self._labels[rows], self._clouds.take(rows)
        return Ephemeris(samples, self.times, self.station, labels=labels, clouds=clouds)

    def _shaped(self, column: FloatArray) -> FloatArray:
        """Column (M, T, ...) without the axes of one tracklet and of one instant."""
        if self.times.isscalar:
            column = column[:, 0]
        return column[0] if self._scalar else column

    # ------------------------------------------------------------------ the draws

    @cached_property
    def coord(self) -> SkyCoord:
        """Directions and distances of the draws, ICRS axes, from the observer, shape (T, n)."""
        ra, dec = radec(self._shaped(self._clouds.direction))
        return SkyCoord(ra, dec, self._shaped(self._clouds.rho) * u.au, unit=(u.rad, u.rad, u.au))

    @property
    def proper_motion(self) -> u.Quantity:
        """Angular speeds of the draws, shape (T, n)."""
        return self._shaped(norm(self._clouds.rate)) << u.rad / u.d

    @property
    def position_angle(self) -> u.Quantity:
        """Directions of their motion, from north to east, shape (T, n)."""
        return self._shaped(self._position_angle) << u.rad

    @cached_property
    def _position_angle(self) -> FloatArray:
        east, north = sky_basis(*radec(self._clouds.direction))
        rate = self._clouds.rate
        return np.asarray(np.arctan2(dot(rate, east), dot(rate, north)) % (2.0 * np.pi))

    @property
    def magnitude(self) -> u.Quantity:
        """Magnitudes V of the draws, shape (T, n); NaN of a tracklet without a magnitude.

        By the H-G system with G = 0.15 from the absolute magnitude that each draw has.
        """
        return self._shaped(self._magnitude) << u.mag

    @cached_property
    def _magnitude(self) -> FloatArray:
        c = self._clouds
        size = self._samples.absolute_magnitude.to_value(u.mag)
        size = size.reshape(self._shape_of_draws)
        return np.asarray(size + 5.0 * np.log10(c.rho * c.sun) + phase_magnitude(c.phase))

    @property
    def fallen(self) -> Any:
        """Shares of the draws that have met the Earth before, shape (T,)."""
        value = self._shaped(self._fallen)
        return value.copy() if value.ndim else float(value)

    @cached_property
    def _fallen(self) -> FloatArray:
        has_state = np.isfinite(self._samples.r.value[..., 0]).reshape(self._shape_of_draws)
        weights = np.where(has_state, self._weights, 0.0)
        in_view = np.isfinite(self._clouds.rho)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.sum(weights * ~in_view, axis=-1) / np.sum(weights, axis=-1))

    # ------------------------------------------------------------------ the clouds

    @cached_property
    def center(self) -> SkyCoord:
        """Spatial medians of the clouds, shape (T,): few draws that are far do not move them."""
        ra, dec = radec(self._shaped(self._middle))
        return SkyCoord(ra, dec, unit=u.rad)

    @cached_property
    def _middle(self) -> FloatArray:
        """Unit vectors to the middles of the clouds, shape (M, T, 3)."""
        out = np.full((*self._clouds.rho.shape[:2], 3), np.nan)
        for row, instant in np.ndindex(out.shape[:2]):
            direction, weights = self._cloud(row, instant)
            if len(direction):
                out[row, instant] = spatial_median(direction, weights)
        return out

    def _cloud(self, row: int, instant: int) -> tuple[FloatArray, FloatArray]:
        """Draws of a cloud, (n, 3), that have not fallen, and their weights (n,)."""
        in_view = np.isfinite(self._clouds.rho[row, instant])
        return self._clouds.direction[row, instant, in_view], self._weights[row, 0, in_view]

    def _density(self, row: int, instant: int) -> SkyDensity | None:
        """Density of a cloud, None of one of too few draws."""
        if (row, instant) not in self._densities:
            direction, weights = self._cloud(row, instant)
            enough = len(direction) >= FEWEST
            self._densities[row, instant] = (
                SkyDensity.of_cloud(direction, weights) if enough else None
            )
        return self._densities[row, instant]

    def _of_each(self, function: Callable[[SkyDensity], Any], *shape: int) -> FloatArray:
        """Numbers of each cloud, shape (M, T, ...); NaN of one without density."""
        out = np.full((*self._clouds.rho.shape[:2], *shape), np.nan)
        for row, instant in np.ndindex(out.shape[:2]):
            density = self._density(row, instant)
            if density is not None:
                out[row, instant] = function(density)
        return out

    def area(self, level: float = 0.68) -> u.Quantity:
        """Areas of the regions of highest density that hold a share of the probability.

        They are computed from the draws, of which a thousand tell the area at the level 0.95 to a
        tenth: a cloud may be bent, or in two pieces.

        Parameters
        ----------
        level : float
            Share, between 0 and 1.

        Returns
        -------
        Quantity, shape (T,)
            In square arcminutes; NaN where fewer than ten draws are left.
        """
        check_level("level", level)
        areas = self._shaped(self._of_each(lambda density: density.area(level)))
        return (areas << u.sr).to(u.arcmin**2)

    def ellipse(self, level: float = 0.68) -> tuple[u.Quantity, u.Quantity, u.Quantity]:
        """Ellipses about `center` that hold a share of the draws.

        They have the axes of the covariance of the region of that level. A long cloud is bent, and
        its ellipse is larger than `area`.

        Parameters
        ----------
        level : float
            Share, between 0 and 1.

        Returns
        -------
        semi_major, semi_minor, position_angle : Quantity, shape (T,)
            In arcminutes; the angle of the major axis from north to east, 0 to 180 deg.
        """
        check_level("level", level)
        axes = self._shaped(self._of_each(lambda density: density.ellipse(level), 3)) << u.rad
        major, minor, angle = np.moveaxis(axes, -1, 0)
        return major.to(u.arcmin), minor.to(u.arcmin), angle.to(u.deg)

    def contains(self, coord: SkyCoord, level: float = 0.68) -> Any:
        """Flags of positions that lie in the regions of `area`, bool or shape (T,).

        Parameters
        ----------
        coord : SkyCoord
            A position for each cloud, or one for all.
        level : float
            Share, between 0 and 1.
        """
        check_level("level", level)
        shape = self._shaped(self._clouds.rho[..., 0]).shape
        if not isinstance(coord, SkyCoord):
            raise EstimationError(
                f"coord must be a SkyCoord, got {type(coord).__name__}: write "
                "SkyCoord(ra, dec, unit='deg')"
            )
        # an axis of length 1 serves all, as an axis that is not there
        if coord.ndim > len(shape) or any(
            own not in (1, all_of_them)
            for own, all_of_them in zip(coord.shape[::-1], shape[::-1], strict=False)
        ):
            raise EstimationError(
                f"coord has the shape {coord.shape}, the clouds have {shape}: give one position "
                "for all, or one for each"
            )
        xyz = coord.icrs.cartesian.xyz.value
        direction = np.broadcast_to(np.moveaxis(xyz, 0, -1), (*shape, 3))
        direction = direction.reshape(*self._clouds.rho.shape[:2], 3)
        out = np.zeros(direction.shape[:2], dtype=bool)
        for row, instant in np.ndindex(out.shape):
            density = self._density(row, instant)
            if density is not None:
                unit = direction[row, instant] / norm(direction[row, instant])
                out[row, instant] = density.contains(unit[None], level)[0]
        flags = out.reshape(shape)
        return flags if flags.ndim else bool(flags)

    def outline(self, level: float = 0.68) -> list[SkyCoord]:
        """Closed lines around the region of `area`, of one tracklet at one instant.

        More than one if it is in pieces; a line around a hole runs the other way.

        Parameters
        ----------
        level : float
            Share, between 0 and 1.

        Raises
        ------
        EstimationError
            If the ephemeris is of many tracklets or instants, or has too few draws.
        """
        check_level("level", level)
        self._require_one("an outline")
        density = self._density(0, 0)
        lines = [] if density is None else density.outline(level)
        return [SkyCoord(*radec(line), unit=u.rad) for line in lines]

    def _require_one(self, what: str) -> None:
        """Raise an error unless there is one cloud, and that has draws enough."""
        n_rows, n_times, n = self._clouds.rho.shape
        if (n_rows, n_times) != (1, 1):
            raise EstimationError(
                f"{what} is of one tracklet at one instant, this ephemeris is of "
                f"{many(n_rows, 'tracklet')} at {many(n_times, 'instant')}: index the estimate, "
                "and ask it for one Time"
            )
        count = int(np.isfinite(self._clouds.rho).sum())
        if count < FEWEST:
            raise EstimationError(
                f"{what} takes {FEWEST} draws, and {count} of {n} are left: the tracklet has no "
                "ephemeris, or they have met the Earth before"
            )

    # ------------------------------------------------------------------ the observer's night

    @property
    def altitude(self) -> u.Quantity:
        """Altitudes of the centers over the horizon, without refraction, shape (T,).

        Geodetic; NaN from the centre of the Earth.
        """
        sine = dot(self._middle, self._zenith)
        return np.arcsin(self._shaped(np.clip(sine, -1.0, 1.0))) * u.rad << u.deg

    @property
    def sun_altitude(self) -> u.Quantity:
        """Altitudes of the Sun, likewise: dark below -18 deg, shape (T,)."""
        position = self._observer[0]
        sine = dot(-position / norm(position)[:, None], self._zenith)
        every = np.broadcast_to(np.clip(sine, -1.0, 1.0), self._clouds.rho.shape[:2])
        return np.arcsin(self._shaped(every)) * u.rad << u.deg

    @cached_property
    def _zenith(self) -> FloatArray:
        """Unit vectors to the zenith of the observer, shape (T, 3)."""
        up = zenith(self.times, self.station)
        return np.broadcast_to(up, (self._clouds.rho.shape[1], 3))

    def pointings(self, field: u.Quantity, coverage: float = 0.95) -> QTable:
        """Fields that cover a share of the probability, the most probable first.

        Squares whose sides run along right ascension and declination, of one tracklet at one
        instant. Half of the draws place them, and the other half says what they hold.

        Parameters
        ----------
        field : Quantity
            Length of a side, as ``0.5 * u.deg``.
        coverage : float
            Share to cover, between 0 and 1.

        Returns
        -------
        QTable
            Columns ``ra``, ``dec`` (of the middle), ``probability`` (that the object is in this
            field and in none before) and ``cumulative``. At most 50 rows, and none for single
            draws: ``meta["is_covered"]`` is False where they hold less than `coverage`, as the
            cloud is too wide for the field.

        Raises
        ------
        EstimationError
            If the ephemeris is of many tracklets or instants, has too few draws, or the field is
            no angle below 90 deg.

        Examples
        --------
        >>> import astropy.units as u
        >>> import neoranging as nr
        >>> night = nr.read_tracklets(nr.sample("2024YR4"))[1]
        >>> estimate = night.estimate(method="systematic")
        >>> tomorrow = estimate.ephemeris(estimate.epoch + 1 * u.d, "G96")
        >>> fields = tomorrow.pointings(2 * u.deg)
        >>> fields["probability"].round(1).tolist()
        [0.8, 0.1]
        """
        check_level("coverage", coverage)
        self._require_one("a list of pointings")
        side = check_field(field)
        direction, weights = self._cloud(0, 0)
        fields = cover(direction, weights, side, coverage)
        ra, dec = radec(fields.direction)
        cumulative = np.cumsum(fields.probability)
        # a hair below for the rounding of the sum
        is_covered = bool(len(cumulative) and cumulative[-1] >= coverage - 1e-9)
        return QTable(
            {
                "ra": (ra << u.rad).to(u.deg),
                "dec": (dec << u.rad).to(u.deg),
                "probability": fields.probability,
                "cumulative": cumulative,
            },
            meta={"field": u.Quantity(field), "coverage": coverage, "is_covered": is_covered},
        )

    # ------------------------------------------------------------------ how it shows

    def to_table(self) -> QTable:
        """One row for each tracklet and instant.

        Columns: ``tracklet`` (its id, or its number), ``time``, ``ra`` and ``dec`` of `center`,
        ``magnitude`` with ``magnitude_low`` and ``magnitude_high`` (median, 5 and 95 %),
        ``proper_motion`` (median), ``position_angle`` (mean), ``area_68``, ``area_95``,
        ``semi_major``, ``semi_minor`` and ``ellipse_angle`` (`ellipse` at the level 0.95),
        ``altitude``, ``sun_altitude`` and ``fallen`` (share of draws that have met the Earth).
        """
        n_rows, n_times = self._clouds.rho.shape[:2]
        instants = np.tile(np.atleast_1d(self.times.utc.isot), n_rows)
        utc = Time(instants, format="isot", scale="utc")
        ra, dec = radec(self._middle)
        levels = 0.05, 0.5, 0.95
        low, magnitude, high = self._quantiles(self._magnitude, levels) << u.mag
        (motion,) = self._quantiles(norm(self._clouds.rate), (0.5,)) << u.rad / u.d
        angle = self._position_angle
        in_view = np.isfinite(angle)
        weights = np.where(in_view, self._weights, 0.0)
        weights[~in_view.any(axis=-1)] = np.nan
        east, north = (
            np.sum(weights * f(np.where(in_view, angle, 0.0)), axis=-1) for f in (np.sin, np.cos)
        )
        major, minor, ellipse_angle = (np.ravel(axis) for axis in self.ellipse(0.95))
        return QTable(
            {
                "tracklet": np.repeat(self._labels, n_times),
                "time": utc,
                "ra": (ra.ravel() << u.rad).to(u.deg),
                "dec": (dec.ravel() << u.rad).to(u.deg),
                "magnitude": magnitude,
                "magnitude_low": low,
                "magnitude_high": high,
                "proper_motion": motion.to(u.arcsec / u.min),
                "position_angle": (np.arctan2(east, north).ravel() % (2.0 * np.pi) << u.rad).to(
                    u.deg
                ),
                "area_68": np.ravel(self.area(0.68)),
                "area_95": np.ravel(self.area(0.95)),
                "semi_major": major,
                "semi_minor": minor,
                "ellipse_angle": ellipse_angle,
                "altitude": np.ravel(self.altitude),
                "sun_altitude": np.ravel(self.sun_altitude),
                "fallen": self._fallen.ravel(),
            }
        )

    def _quantiles(self, values: FloatArray, levels: Sequence[float]) -> FloatArray:
        """Quantiles of numbers (M, T, n) of the draws by their weights, (levels, M * T)."""
        order = np.argsort(values, axis=-1)  # NaN last
        values = np.take_along_axis(values, order, axis=-1)
        weights = np.take_along_axis(np.broadcast_to(self._weights, values.shape), order, axis=-1)
        weights = np.where(np.isnan(values), 0.0, weights)
        below = np.cumsum(weights, axis=-1) - 0.5 * weights
        pairs = zip(
            *(column.reshape(-1, values.shape[-1]) for column in (below, values)), strict=True
        )
        out = np.full((len(values.reshape(-1, values.shape[-1])), len(levels)), np.nan)
        for row, (b, v) in zip(out, pairs, strict=True):
            if np.isfinite(v[0]):
                row[:] = np.interp(np.multiply(levels, b[-1]), b, v)
        return out.T

    def plot_sky(self, field: u.Quantity | None = None, ax: Any = None, **options: Any) -> Any:
        """Draw the cloud of one tracklet at one instant, with a field of view to scale.

        See :func:`neoranging.plotting.plot_sky`.
        """
        from neoranging.plotting.sky import plot_sky

        return plot_sky(self, field, ax=ax, **options)

    def __repr__(self) -> str:
        of, orbits = many(self._n_rows, "tracklet"), many(self._clouds.rho.shape[-1], "orbit")
        utc = np.atleast_1d(self.times.utc.to_value("iso", subfmt="date_hm"))
        when = f"{utc[0]} UTC" if len(utc) == 1 else f"{len(utc)} instants"
        return f"<Ephemeris: {of}, {when}, {orbits}>"

    def _summary(self) -> dict[str, str]:
        row = self.to_table()
        place = self.station if isinstance(self.station, str) else type(self.station).__name__
        rows = {
            "station": "the centre of the Earth" if self.station is None else place,
            "draws": str(self._clouds.rho.shape[-1]),
        }
        for one in row:
            when = f"{one['time'].to_value('iso', subfmt='date_hm')} UTC"
            if np.isnan(one["ra"]):
                rows[when] = (
                    "all draws have met the Earth" if one["fallen"] == 1.0 else "no ephemeris"
                )
                continue
            rows[when] = (
                f"ra {one['ra']:.3f}, dec {one['dec']:+.3f}, V {one['magnitude'].value:.1f}, "
                f"{one['proper_motion'].value:.3g} arcsec/min, "
                f"95 % area {one['area_95'].value:.3g} square arcminutes"
            )
        return rows


def _clouds(
    samples: OrbitSamples,
    instants: FloatArray,
    dynamics: str,
    position: FloatArray,
    velocity: FloatArray,
) -> Clouds:
    """Draws at instants [MJD TDB] from observers with heliocentric states (T, 3) [au, au/d]."""
    n, follow = samples.shape[-1], dynamics_of(dynamics).views
    r = samples.r.to_value(u.au).reshape(-1, n, 3)
    v = samples.v.to_value(u.au / u.d).reshape(-1, n, 3)
    epoch = samples.epoch.tdb.mjd.reshape(-1, n)
    order = np.argsort(instants, kind="stable")
    line, speed = np.empty((2, len(r), len(instants), n, 3))
    for k in range(len(r)):
        # the epochs of draws differ by their light times
        first = min(float(np.nanmin(epoch[k])), instants[order[0]] - 1.0)
        last = max(float(np.nanmax(epoch[k])), instants[order[-1]])
        path = almanac(first, last)
        sights = follow(r[k], v[k], epoch[k], path, instants[order], position[order])
        line[k, order] = sights.line.swapaxes(0, 1)
        speed[k, order] = sights.velocity.swapaxes(0, 1)
    rho = norm(line)
    direction = line / rho[..., None]
    rho_dot = range_rate(direction, speed, velocity[:, None])
    # the derivative of the light path by time of reception, whose part across is rho L_dot
    apparent = speed * (1.0 - rho_dot / C_AU_PER_DAY)[..., None] - velocity[:, None]
    rate = (apparent - rho_dot[..., None] * direction) / rho[..., None]
    heliocentric = line + position[:, None]
    sun = norm(heliocentric)
    phase = np.clip(dot(heliocentric, direction) / sun, -1.0, 1.0)
    return Clouds(direction, rate, rho, sun, phase)
