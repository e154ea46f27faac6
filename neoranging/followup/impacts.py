"""`Impacts`: whether the orbits drawn from a night meet the Earth; where, when, and how near."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.table import QTable
from astropy.time import Time
from scipy.special import betaincinv

from neoranging.arguments import check_level
from neoranging.constants import AU_KM, AU_M, R_EARTH
from neoranging.core.columns import ragged_rows
from neoranging.core.geometry import dot, norm
from neoranging.ephemeris.states import almanac, site_state
from neoranging.exceptions import EstimationError
from neoranging.followup.dynamics import dynamics_of
from neoranging.observations.places import itrf_to_geodetic
from neoranging.one_or_many import OneOrMany
from neoranging.orbits.samples import OrbitSamples
from neoranging.typing import BoolArray, FloatArray, IntArray, StrArray

AU_D = u.au / u.d
KM_S = u.km / u.s

_LEVEL = 0.95
"""Level of the upper limit in tables, and share of the falls within `Impacts.extent`."""

_FEWEST = 10
"""Falls that show how far they are spread."""


class Flown(NamedTuple):
    """Flights of the n draws of M tracklets, shape (M, n), and F falls, flat in their order."""

    time: FloatArray
    """Instants of the least distances, or of the falls [MJD TDB]."""
    distance: FloatArray
    """Least distances from the centre of the Earth [au]."""
    falls: BoolArray
    """Flags of those that meet the Earth."""
    is_followed: BoolArray
    """Flags of flights that went to their end."""
    position: FloatArray
    """Geocentric positions of the falls, ICRS axes, shape (F, 3) [au]."""
    velocity: FloatArray
    """Geocentric velocities of the falls, shape (F, 3) [au/d]."""
    magnitude: FloatArray
    """Absolute magnitudes of the objects that fall, shape (F,); NaN without a magnitude."""

    @classmethod
    def none(cls, m: int, n: int) -> Flown:
        """Flights of tracklets from which nothing follows."""
        unknown, no, vectors = np.full((m, n), np.nan), np.zeros((m, n), bool), np.zeros((0, 3))
        return cls(unknown, unknown, no, no, vectors, vectors, np.zeros(0))


def flights(
    draws: Iterable[OrbitSamples | None], n: int, epoch: FloatArray, days: float, dynamics: str
) -> Iterator[Flown]:
    """Flights of the draws of one tracklet after the other, which keeps the memory flat.

    Parameters
    ----------
    draws : iterable of OrbitSamples or None
        Orbits of each tracklet, shape (n,); None of one from which nothing follows.
    n : int
    epoch : ndarray, shape (M,)
        Epochs of their estimates [MJD TDB].
    days : float
        Time from these until which the flights go [d].
    dynamics : str
        See `neoranging.followup.dynamics.dynamics_of`.
    """
    follow = dynamics_of(dynamics).approaches
    for samples, start in zip(draws, epoch.tolist(), strict=True):
        if samples is None:
            yield Flown.none(1, n)
            continue
        begin, end = samples.epoch.tdb.mjd, start + days
        first = min(float(np.nanmin(begin)), start)
        states = samples.r.to_value(u.au), samples.v.to_value(AU_D)
        one = follow(*states, begin, almanac(first, end), end)
        magnitude = samples.absolute_magnitude.to_value(u.mag)
        yield Flown(
            one.time[None],
            one.distance[None],
            one.falls[None],
            one.is_followed[None],
            one.position[one.falls],
            one.velocity[one.falls],
            magnitude[one.falls],
        )


class Impacts(OneOrMany):
    """Flights of the orbits drawn from the night of one tracklet, or of M: do they meet the Earth.

    Made by `RangeEstimate.impacts`. The Earth is a sphere of its equatorial radius without an
    atmosphere. Shapes below are of one tracklet; those of M tracklets have M in front. All is
    NaN of a tracklet that has no answer, and `status` says why.
    """

    def __init__(
        self,
        flown: Flown,
        within: u.Quantity,
        prior: str | None,
        labels: StrArray,
        status: StrArray,
        scalar: bool,
    ) -> None:
        self._flown, self._labels, self._status, self._scalar = flown, labels, status, scalar
        self.within, self.prior = within, prior

    @property
    def _n_rows(self) -> int:
        return len(self._labels)

    @cached_property
    def _ends(self) -> IntArray:
        """Falls before those of each tracklet, and of all, shape (M + 1,)."""
        return np.concatenate([[0], np.cumsum(self._flown.falls.sum(axis=1))])

    def _take(self, rows: IntArray, scalar: bool) -> Impacts:
        own = ragged_rows(self._ends[:-1][rows], np.diff(self._ends)[rows])
        index = (rows, rows, rows, rows, own, own, own)
        columns: list[Any] = [c[i] for c, i in zip(self._flown, index, strict=True)]
        labels, status = self._labels[rows], self._status[rows]
        return Impacts(Flown(*columns), self.within, self.prior, labels, status, scalar)

    # ------------------------------------------------------------------ how probable

    @cached_property
    def _counts(self) -> tuple[IntArray, IntArray]:
        """Draws that fall, and those that were followed, shapes (M,)."""
        return self._flown.falls.sum(axis=1), self._flown.is_followed.sum(axis=1)

    @property
    def n_draws(self) -> Any:
        """Number of draws that were followed to the end; 0 of a tracklet without an answer.

        A draw that circles the Earth so often that it was given up does not count.
        """
        return self._value(self._counts[1])

    @property
    def probability(self) -> Any:
        """Share of the draws that meet the Earth within the time asked for."""
        return self._value(self._share)

    @cached_property
    def _share(self) -> FloatArray:
        falls, n = self._counts
        with np.errstate(invalid="ignore"):
            return falls / n

    @property
    def error(self) -> Any:
        """Standard error of `probability` by the number of draws; 0 where none falls, or all.

        It says nothing of what else may be wrong. See `upper_limit`.
        """
        with np.errstate(invalid="ignore"):
            return self._value(np.sqrt(self._share * (1.0 - self._share) / self._counts[1]))

    def upper_limit(self, level: float = _LEVEL) -> Any:
        """Upper limit of the probability, by the number of draws and falls (Clopper & Pearson).

        Where none of 10,000 draws falls it is 0.0003 at the level of 0.95.

        Parameters
        ----------
        level : float
            Probability that a limit made so is not too low, between 0 and 1.
        """
        check_level("level", level)
        falls, n = self._counts
        return self._limit(falls + 1, n - falls, level, bound=1.0)

    def lower_limit(self, level: float = _LEVEL) -> Any:
        """Lower limit of the probability, as `upper_limit`: 0.9997 where all of 10,000 fall."""
        check_level("level", level)
        falls, n = self._counts
        return self._limit(falls, n - falls + 1, 1.0 - level, bound=0.0)

    def _limit(self, a: IntArray, b: IntArray, q: float, bound: float) -> Any:
        """Quantiles of beta distributions; the bound where one of the parameters is zero."""
        sure = (a == 0) | (b == 0)
        quantile = betaincinv(np.where(sure, 1.0, a), np.where(sure, 1.0, b), q)
        limit = np.where(sure, bound, quantile)
        return self._value(np.where(self._counts[1] > 0, limit, np.nan))

    # ------------------------------------------------------------------ when, where, how near

    @property
    def nearest_distance(self) -> u.Quantity:
        """Least distances of the draws from the centre of the Earth, shape (n,).

        The radius of the Earth of those that fall. One at the beginning or the end of the flight
        is no approach: the object recedes all the time, or is still on its way.
        """
        return self._quantity(self._flown.distance, u.au)

    @property
    def nearest_time(self) -> Time:
        """Instants of the least distances, UTC, shape (n,)."""
        time = self._flown.time[0] if self._scalar else self._flown.time
        return Time(time, format="mjd", scale="tdb").utc

    @property
    def falls(self) -> BoolArray:
        """Flags of the draws that meet the Earth, shape (n,)."""
        falls = self._flown.falls
        return (falls[0] if self._scalar else falls).copy()

    def _require_one(self, name: str) -> None:
        if not self._scalar:
            raise EstimationError(
                f"{name} is of one tracklet, these impacts are of {len(self)}: index them, or use "
                ".to_table(), which takes them all"
            )

    @property
    def time(self) -> Time:
        """Instants at which the draws of one tracklet that fall do so, UTC; maybe none."""
        self._require_one("time")
        time = self._flown.time[self._flown.falls]
        return Time(time, format="mjd", scale="tdb").utc

    @property
    def location(self) -> EarthLocation:
        """Places where the draws of one tracklet that fall do so, in the order of `time`."""
        self._require_one("location")
        return EarthLocation.from_geocentric(*(self._itrf * AU_M).T, unit=u.m)

    @property
    def entry_speed(self) -> u.Quantity:
        """Speeds of the falls about the centre of the Earth; its rotation is not taken off."""
        self._require_one("entry_speed")
        return (norm(self._flown.velocity) << AU_D).to(KM_S)

    @property
    def entry_angle(self) -> u.Quantity:
        """Angles of the falls with the horizon; 90 degrees is straight down."""
        self._require_one("entry_angle")
        place, speed = self._flown.position, self._flown.velocity
        return (np.arcsin(-dot(place, speed) / norm(place) / norm(speed)) << u.rad).to(u.deg)

    @property
    def absolute_magnitude(self) -> u.Quantity:
        """Absolute magnitudes H of the draws that fall, G = 0.15; NaN without a magnitude.

        Fainter than those of the other draws, as only near orbits fall. The size follows with an
        albedo: at H = 30 a dark object (0.05) has 6 m and a bright one (0.25) 3 m.
        """
        self._require_one("absolute_magnitude")
        return self._flown.magnitude << u.mag

    @cached_property
    def _itrf(self) -> FloatArray:
        """Places of all falls, Earth-fixed axes, shape (F, 3) [au]."""
        time = self._flown.time[self._flown.falls]
        axes = [site_state(axis, time)[0] * AU_M for axis in np.eye(3)]
        # the celestial directions of the three terrestrial axes are the rows of the rotation
        return np.stack([dot(axis, self._flown.position) for axis in axes], axis=1)

    @cached_property
    def _middle(self) -> tuple[FloatArray, FloatArray]:
        """Mean place of the falls (M, 3) [au], and the radius about it of most (M,) [km]."""
        place, extent = np.full((self._n_rows, 3), np.nan), np.full(self._n_rows, np.nan)
        for k in np.flatnonzero(np.diff(self._ends)).tolist():
            all_of_it = self._itrf[self._ends[k] : self._ends[k + 1]] / R_EARTH
            mean = all_of_it.mean(axis=0)
            mean /= norm(mean)
            place[k] = R_EARTH * mean
            angle = 2.0 * np.arcsin(np.minimum(0.5 * norm(all_of_it - mean), 1.0))
            if len(angle) >= _FEWEST:
                extent[k] = np.quantile(angle, _LEVEL) * R_EARTH * AU_KM
        return place, extent

    @property
    def center(self) -> EarthLocation:
        """Middle of the places where the draws of one tracklet fall.

        Raises
        ------
        EstimationError
            If none falls, or the impacts are of many tracklets.
        """
        self._require_one("center")
        if not self._ends[-1]:
            raise EstimationError(f"no place: none of {self.n_draws} draws meets the Earth")
        return EarthLocation.from_geocentric(*self._middle[0][0] * AU_M, unit=u.m)

    @property
    def extent(self) -> u.Quantity:
        """Distance from `center` over ground that holds 95 % of the falls; NaN of less than ten."""
        return self._quantity(self._middle[1], u.km)

    def time_quantile(self, q: float) -> Time:
        """Instant before which a share of the falls happens, UTC; masked where none falls.

        Parameters
        ----------
        q : float
            Between 0 and 1.
        """
        if not 0.0 <= q <= 1.0:
            raise EstimationError(f"q must be a share of the falls, between 0 and 1, got {q}")
        times = np.ma.masked_all(self._n_rows)
        for k in np.flatnonzero(np.diff(self._ends)).tolist():
            times[k] = np.quantile(self._flown.time[k, self._flown.falls[k]], q)
        instants = Time(times, format="mjd", scale="tdb").utc
        instants.format = "iso"
        return instants[0] if self._scalar else instants

    # ------------------------------------------------------------------ how it shows

    @property
    def status(self) -> Any:
        """Name of the status of the estimate."""
        return self._value(self._status)

    def to_table(self) -> QTable:
        """One row per tracklet.

        Columns: ``tracklet``, ``probability``, ``error``, ``lower_limit``, ``upper_limit`` (level
        0.95), ``n_draws``; of the falls ``time`` (median), ``time_low``, ``time_high`` (5 and
        95 %), ``longitude``, ``latitude`` (of `center`), ``extent`` and ``absolute_magnitude``
        (median); ``nearest_distance`` (median of all draws) and ``status``.
        """
        many = self._take(np.arange(self._n_rows), scalar=False)
        longitude, latitude, _ = itrf_to_geodetic(many._middle[0] * AU_M).T
        nearest = np.full(self._n_rows, np.nan)
        some = self._flown.is_followed.any(axis=1)
        nearest[some] = np.nanmedian(self._flown.distance[some], axis=1)
        size = np.full(self._n_rows, np.nan)
        for k, (first, stop) in enumerate(itertools.pairwise(self._ends.tolist())):
            if stop > first:
                size[k] = np.median(self._flown.magnitude[first:stop])
        return QTable(
            {
                "tracklet": self._labels,
                "probability": many.probability,
                "error": many.error,
                "lower_limit": many.lower_limit(),
                "upper_limit": many.upper_limit(),
                "n_draws": many.n_draws,
                "time": many.time_quantile(0.5),
                "time_low": many.time_quantile(0.05),
                "time_high": many.time_quantile(0.95),
                "longitude": (longitude + 180.0) % 360.0 - 180.0 << u.deg,
                "latitude": latitude << u.deg,
                "extent": many.extent,
                "absolute_magnitude": size << u.mag,
                "nearest_distance": nearest << u.au,
                "status": self._status,
            },
            meta={"within": self.within, "prior": self.prior},
        )

    def _summary(self) -> dict[str, str]:
        return {"impacts": repr(self)}

    def __repr__(self) -> str:
        if not self._scalar:
            return f"<Impacts of {len(self)} tracklets within {self.within:g}>"
        return (
            f"<Impacts: probability {self.probability:.4g} within {self.within:g} "
            f"({self.n_draws} draws)>"
        )
