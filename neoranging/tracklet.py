"""`Tracklet` and `TrackletSet`: the observations of one object in one night, and many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
import numpy.typing as npt
from astropy import units as u
from astropy.time import Time

from neoranging import ephemeris
from neoranging.arguments import require_time
from neoranging.attributable import Attributable
from neoranging.constants import ARCSEC, AU_KM
from neoranging.core import attributable as core
from neoranging.core.arcs import Arcs, visits
from neoranging.ephemeris.states import tdb_of
from neoranging.exceptions import TrackletError
from neoranging.grouping import TrackletReport, group_as_one, group_by_label
from neoranging.observations import observatories
from neoranging.observations.bands import visual
from neoranging.observations.columns import (
    DEFAULT_SIGMA,
    Columns,
    Observations,
    icrs_directions,
    plain_columns,
)
from neoranging.records import many
from neoranging.typing import AnyArray, FloatArray, IntArray, StrArray

if TYPE_CHECKING:
    from astropy.coordinates import EarthLocation, SkyCoord
    from astropy.table import QTable

    from neoranging.estimate import RangeEstimate


ORIGINS = ("topocenter", "geocenter")


class _Observed:
    """The n observations of a `Tracklet`, or of all tracklets of a `TrackletSet`."""

    @property
    def _set(self) -> TrackletSet:
        return cast("TrackletSet", self)

    @property
    def obstime(self) -> Time:
        """Epochs of mid-exposure, UTC, shape (n,)."""
        c = self._set._columns
        return Time(c.jd1, c.jd2, format="jd", scale="utc")

    @property
    def coord(self) -> SkyCoord:
        """Directions, ICRS, shape (n,)."""
        from astropy.coordinates import SkyCoord

        c = self._set._columns
        return SkyCoord(c.ra << u.deg, c.dec << u.deg, frame="icrs")

    @property
    def sigma(self) -> u.Quantity:
        """Standard deviations on the sky, shape (n, 2): right ascension with cos(dec), dec."""
        return u.Quantity(self._set._columns.sigma, u.arcsec)

    @property
    def station(self) -> StrArray:
        """MPC code of each observation, empty for a place without one, shape (n,)."""
        return self._set._columns.station

    @property
    def location(self) -> EarthLocation:
        """Place of each observation, shape (n,); NaN for spacecraft and unknown codes."""
        from astropy.coordinates import EarthLocation

        return EarthLocation.from_geocentric(*self._set._columns.itrf.T, unit=u.m)

    @property
    def mag(self) -> FloatArray:
        """Magnitudes, NaN where not given, shape (n,)."""
        return self._set._columns.mag

    @property
    def band(self) -> StrArray:
        """Bands of the magnitudes, shape (n,)."""
        return self._set._columns.band

    def attributable(self, method: str = "fit", origin: str = "topocenter") -> Attributable:
        """Position and motion at the middle observation of each tracklet.

        Parameters
        ----------
        method : {"fit", "three-point"}
            Weighted least-squares parabola through all observations, or the Lagrange three-point
            derivative of the first, middle and last.
        origin : {"topocenter", "geocenter"}
            Observer that goes with it.

        Returns
        -------
        Attributable
            Scalar for a tracklet, of shape (M,) for a set.
        """
        makers = {"fit": core.from_fit, "three-point": core.from_three_points}
        if method not in makers:
            raise TrackletError(f"method must be one of {tuple(makers)}, got {method!r}")
        arrays = makers[method](self._set.arcs(origin))
        return Attributable._from_arrays(arrays, scalar=isinstance(self, Tracklet))

    def estimate(self, method: Any = "gauss", **options: Any) -> RangeEstimate:
        """Range and range-rate by a registered method.

        Parameters
        ----------
        method : str, RangingEstimator or type
            Name as listed by `neoranging.available_methods`, or an estimator of your own.
        **options
            For the estimator, for example ``origin="geocenter"``; and
            ``on_failure="raise"`` to get an `EstimationError` instead of a status.

        Returns
        -------
        RangeEstimate
            Scalar for a tracklet, of shape (M,) for a set; look at ``.status`` before ``.range``.
            ``.to_table()`` turns it into a QTable.
        """
        from neoranging.estimators.registry import get_estimator

        on_failure = options.pop("on_failure", "return")
        tracklets = cast("Tracklet | TrackletSet", self)
        return get_estimator(method, **options).estimate(tracklets, on_failure=on_failure)

    def to_table(self) -> QTable:
        """Observations as an observation table, which every writer takes; one row each.

        The column ``tracklet`` has the id of the tracklet, empty where it was given none, so that
        the table can be grouped anew; without a designation either, its number stands for both.
        ``tracklet_number`` counts the tracklets of the set.
        """
        tracklets, c = self._set, self._set._columns
        owner = np.repeat(np.arange(len(tracklets)), tracklets.counts)
        named = (tracklets.designation != "") & (tracklets.tracklet_id == "")
        in_space = np.isfinite(c.gcrs[:, 0])
        fixed = np.isfinite(observatories.itrf_positions(c.station)[:, 0])
        roving = np.isfinite(c.itrf[:, 0]) & ~fixed
        observations = Observations(
            columns=c._replace(itrf=np.where(roving[:, None], c.itrf, np.nan)),
            designation=tracklets.designation[owner],
            kind=np.select([in_space, roving], ["space", "roving"], "ground"),
            extra={
                "tracklet": np.where(named, "", tracklets._labels)[owner],
                "tracklet_number": owner,
            },
        )
        return observations.to_table().copy()  # the columns of a set are read-only

    def __astropy_table__(self, cls: type, copy: bool, **kwargs: Any) -> Any:
        return cls(self.to_table(), copy=copy, **kwargs)


class TrackletSet(_Observed, Sequence["Tracklet"]):
    """Many tracklets: a sequence of `Tracklet`, and a store of columns.

    Estimators work on the columns of all tracklets at once. Made by `neoranging.read_tracklets`,
    `from_arrays` or `from_tracklets`; immutable, and equal to another set of the same values.
    """

    def __init__(
        self,
        columns: Columns,
        offsets: IntArray,
        designation: StrArray,
        tracklet_id: StrArray | None = None,
        report: TrackletReport | None = None,
    ) -> None:
        if tracklet_id is None:
            tracklet_id = np.full(len(designation), "")
        for column in (*columns, offsets, designation, tracklet_id):
            column.flags.writeable = False
        self._columns, self._offsets = columns, offsets
        self._designation, self._tracklet_id, self._report = designation, tracklet_id, report

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = self._columns, self._offsets, self._designation, self._tracklet_id
        return type(self), (*arrays, self._report)  # copies are read-only too

    @property
    def designation(self) -> StrArray:
        """Name of the object of each tracklet, "" where none was given, shape (M,)."""
        return self._designation

    @property
    def tracklet_id(self) -> StrArray:
        """Id of each tracklet as the user gave it, "" where none was given, shape (M,)."""
        return self._tracklet_id

    @property
    def report(self) -> Any:
        """Account of the observations it was formed from; a part keeps that of the whole."""
        return self._report

    @classmethod
    def from_arrays(
        cls,
        obstime: Time,
        ra: u.Quantity,
        dec: u.Quantity,
        *,
        station: Any,
        tracklet: npt.ArrayLike | None = None,
        sigma: u.Quantity = DEFAULT_SIGMA,
        designation: npt.ArrayLike | None = None,
        mag: npt.ArrayLike | None = None,
        band: npt.ArrayLike | None = None,
        on_bad: str = "set aside",
    ) -> TrackletSet:
        """Group plain columns of observations into tracklets.

        Parameters
        ----------
        obstime : Time, shape (n,)
            Mid-exposure epochs.
        ra, dec : Quantity, shape (n,)
            ICRS directions.
        station : str, sequence of str (n,) or EarthLocation
            MPC code(s) or place; ``"500"`` is the geocentre.
        tracklet : array_like of int or str, shape (n,), optional
            Id of the tracklet of each observation; kept as text in `tracklet_id`. The designation
            when left out. Nights are not looked at.
        sigma : Quantity, scalar, (n,) or (n, 2)
            Standard deviations; of two columns the first is ra with cos(dec).
        designation : str or array_like of str, shape (n,), optional
            Of each observation; the first of a tracklet names it.
        mag, band : array_like, shape (n,), optional
            Magnitudes and their bands.
        on_bad : {"set aside", "raise"}
            What becomes of observations without position, sigma or station, and of tracklets that
            have fewer than two epochs: left out with a warning and an account in `report`, or an
            error.

        Returns
        -------
        TrackletSet
            In the order of the sorted ids.

        Raises
        ------
        TrackletError
            If columns differ in length, lack a unit or hold values of another kind, if neither
            ``tracklet`` nor ``designation`` is given, or if no tracklet is left.

        Warns
        -----
        NeoRangingWarning
            If observations are set aside, a station is unknown, or a sigma cannot be meant.
        """
        columns = plain_columns(obstime, ra, dec, station, sigma, mag, band)
        return cls(*group_by_label(columns, tracklet, designation, on_bad))

    @classmethod
    def from_tracklets(cls, tracklets: Iterable[Tracklet]) -> TrackletSet:
        """Join tracklets into one set."""
        sets = [tracklet._set for tracklet in tracklets]
        if not sets:
            raise TrackletError("a set needs at least one tracklet, got none")
        columns = Columns.concatenate(s._columns for s in sets)
        counts = np.concatenate([np.diff(s._offsets) for s in sets])
        names = np.concatenate([s.designation for s in sets])
        ids = np.concatenate([s.tracklet_id for s in sets])
        return cls(columns, np.concatenate([[0], np.cumsum(counts)]), names, ids)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, item: int) -> Tracklet: ...
    @overload
    def __getitem__(self, item: slice | npt.ArrayLike) -> TrackletSet: ...
    def __getitem__(self, item: Any) -> Tracklet | TrackletSet:
        if isinstance(item, (int, np.integer)):
            if not -len(self) <= item < len(self):
                raise IndexError(f"no tracklet {item} in a set of {len(self)}")
            return Tracklet._view(self._take(np.array([item % len(self)])))
        if isinstance(item, str):
            raise IndexError(
                "tracklets are indexed by number, slice or mask: one object may have many; write "
                f"tracklets[tracklets.designation == {item!r}]"
            )
        return self._take(np.arange(len(self))[item])

    def __iter__(self) -> Iterator[Tracklet]:
        return (self[k] for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrackletSet):
            return NotImplemented
        both = ((s._offsets, s._designation, s._tracklet_id, *s._columns) for s in (self, other))
        return all(
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(*both, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self._offsets.tobytes(), self._columns.jd1.tobytes()))

    def _take(self, index: IntArray) -> TrackletSet:
        counts = self.counts[index]
        bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.arange(bounds[-1]) + np.repeat(self._offsets[:-1][index] - bounds[:-1], counts)
        names, ids = self.designation[index], self.tracklet_id[index]
        return TrackletSet(self._columns.take(rows), bounds, names, ids, self.report)

    def _slice(self, start: int, stop: int) -> TrackletSet:
        """Tracklets ``start:stop`` as views of the same columns."""
        offsets = self._offsets[start : stop + 1]
        rows = slice(offsets[0], offsets[-1])
        names, ids = self.designation[start:stop], self.tracklet_id[start:stop]
        columns = self._columns.take(rows)
        return TrackletSet(columns, offsets - offsets[0], names, ids, self.report)

    @cached_property
    def counts(self) -> IntArray:
        """Observations of each tracklet, shape (M,)."""
        return _frozen(np.diff(self._offsets))

    @cached_property
    def stations(self) -> StrArray:
        """Codes of the stations of each tracklet in order of time, joined by commas, shape (M,)."""
        code = self._columns.station
        starts = self._offsets[:-1]
        new = np.ones(len(code), dtype=bool)
        new[1:] = code[1:] != code[:-1]
        new[starts] = True
        rows = np.flatnonzero(new)
        bounds = np.searchsorted(rows, self._offsets)
        names = code[rows[bounds[:-1]]].tolist()
        for k in np.flatnonzero(np.diff(bounds) > 1).tolist():
            names[k] = ",".join(dict.fromkeys(code[rows[bounds[k] : bounds[k + 1]]].tolist()))
        return _frozen(np.array(names, dtype=np.str_))

    @property
    def arc_length(self) -> u.Quantity:
        """Time from the first to the last observation of each tracklet, shape (M,)."""
        return (self._span * 24.0) << u.h

    @cached_property
    def _span(self) -> FloatArray:
        return self._tdb[self._offsets[1:] - 1] - self._tdb[self._offsets[:-1]]

    @cached_property
    def _tdb(self) -> FloatArray:
        return tdb_of("utc", self._columns.jd1, self._columns.jd2)

    @cached_property
    def _visit(self) -> IntArray:
        return visits(self._offsets, self._tdb, self._columns.station)

    def _site(self) -> tuple[FloatArray, FloatArray]:
        """Geocentric state of the observers [au, au/d]; NaN where unknown."""
        c = self._columns
        position, velocity = ephemeris.site_state(c.itrf, self._tdb)
        flying = np.flatnonzero(np.isfinite(c.gcrs[:, 0]))
        if len(flying):
            position[flying] = c.gcrs[flying] / AU_KM
            # Observations state where a spacecraft was, not how it moved; its mean velocity over
            # the arc is what the sky rates of the arc contain too. A spacecraft with one epoch of
            # a tracklet that others share has none.
            station, code = np.unique(c.station[flying], return_inverse=True)
            owner = np.repeat(np.arange(len(self)), self.counts)[flying]
            craft = np.unique(owner * len(station) + code, return_inverse=True)[1]
            by_craft = np.argsort(craft, kind="stable")  # keeps the order of time
            bounds = np.append(np.flatnonzero(np.diff(craft[by_craft], prepend=-1)), len(craft))
            first, last = flying[by_craft[bounds[:-1]]], flying[by_craft[bounds[1:] - 1]]
            elapsed = self._tdb[last] - self._tdb[first]
            elapsed[~(elapsed > 0.0)] = np.nan
            mean = (position[last] - position[first]) / elapsed[:, None]
            velocity[flying] = mean[craft]
        return position, velocity

    def arcs(self, origin: str = "topocenter") -> Arcs:
        """Columns for the numeric core.

        Parameters
        ----------
        origin : {"topocenter", "geocenter"}
            Where the observer stood, or the centre of the Earth instead (as the literature on very
            short arcs often has it).
        """
        if origin not in ORIGINS:
            raise TrackletError(f"origin must be one of {ORIGINS}, got {origin!r}")
        return self._topocentric if origin == "topocenter" else self._geocentric

    @cached_property
    def _topocentric(self) -> Arcs:
        earth, site = ephemeris.earth_state(self._tdb), self._site()
        return self._seen_from(earth[0] + site[0], earth[1] + site[1])

    @cached_property
    def _geocentric(self) -> Arcs:
        return self._seen_from(*ephemeris.earth_state(self._tdb))

    def _seen_from(self, position: FloatArray, velocity: FloatArray) -> Arcs:
        """Columns with observers of these heliocentric states."""
        c = self._columns
        ra, dec = np.radians(c.ra), np.radians(c.dec)
        sigma_ra, sigma_dec = c.sigma.T * ARCSEC
        sky = ra, dec, sigma_ra, sigma_dec, position, velocity
        return Arcs(self._offsets, self._tdb, *sky, self._visit, visual(c.mag, c.band))

    @property
    def _labels(self) -> StrArray:
        """Id of each tracklet, or its number where it has none."""
        numbers = np.arange(len(self)).astype(f"U{len(str(len(self)))}")
        return np.where(self.tracklet_id == "", numbers, self.tracklet_id)

    def __repr__(self) -> str:
        n = len(self._columns.ra)
        return f"<TrackletSet: {many(len(self), 'tracklet')}, {many(n, 'observation')}>"

    def _repr_html_(self) -> str:
        from astropy.table import QTable

        table = QTable(
            [self._labels, self.designation, self.stations, self.arc_length.round(2), self.counts],
            names=["tracklet", "designation", "station", "arc", "observations"],
        )
        return f"<p>{escape(repr(self))}</p>{table._repr_html_()}"


class Tracklet(_Observed):
    """Observations of one object over a night, or whatever arc one orbit is to fit.

    Immutable; observations are put in order of time, and records of one exposure count once.
    Iterating gives the rows of `to_table`. Tracklets of the same values are equal.

    Parameters
    ----------
    obstime : Time, shape (N,)
        Mid-exposure epochs, N >= 2, at least two of them different.
    coord : SkyCoord, shape (N,)
        Directions; turned into ICRS if in another frame.
    station : str, sequence of str or EarthLocation
        MPC observatory code(s) or place(s) of the observer. ``"500"`` is the geocentre, never
        assumed silently. An unknown code is kept, with a warning; estimates say
        ``UNKNOWN_OBSERVER``.
    sigma : Quantity, scalar, (N,) or (N, 2), optional
        Standard deviations of the positions; of two columns the first is right ascension with
        cos(dec). One arcsecond by default, and instead of what no telescope reaches (1 mas, but
        for spacecraft and occultations).
    mag, band : array_like, shape (N,), optional
        Magnitudes and their bands.
    designation : str, optional

    Raises
    ------
    TrackletError
        If the columns do not make a tracklet; the message says what was needed.

    Examples
    --------
    Three made-up positions:

    >>> from astropy import units as u
    >>> from astropy.coordinates import SkyCoord
    >>> from astropy.time import Time
    >>> import neoranging as nr
    >>> tracklet = nr.Tracklet(
    ...     Time([58487.10, 58487.12, 58487.15], format="mjd", scale="utc"),
    ...     SkyCoord([12.0, 12.02, 12.05], [5.0, 5.01, 5.025], unit="deg"),
    ...     station="G96", sigma=0.3 * u.arcsec, designation="example")
    >>> tracklet
    <Tracklet example: 3 observations in 1.20 h from G96, 2019-01-04>
    >>> print(tracklet.attributable().proper_motion.to(u.deg / u.day).round(3))
    1.115 deg / d
    """

    def __init__(
        self,
        obstime: Time,
        coord: SkyCoord,
        *,
        station: Any,
        sigma: u.Quantity = DEFAULT_SIGMA,
        mag: npt.ArrayLike | None = None,
        band: npt.ArrayLike | None = None,
        designation: str = "",
    ) -> None:
        require_time("obstime", obstime)
        icrs = icrs_directions(coord)
        if icrs.shape != obstime.shape or len(obstime.shape) != 1:
            raise TrackletError(
                f"obstime and coord must be one-dimensional and of one length, got shapes "
                f"{obstime.shape} and {icrs.shape}"
            )
        columns = plain_columns(obstime, icrs.ra, icrs.dec, station, sigma, mag, band)
        self._one = TrackletSet(*group_as_one(columns, designation or ""))

    @classmethod
    def _view(cls, one: TrackletSet) -> Tracklet:
        self = object.__new__(cls)
        self._one = one
        return self

    @property
    def _set(self) -> TrackletSet:
        return self._one

    def __len__(self) -> int:
        return len(self._set._columns.ra)

    def __getitem__(self, item: Any) -> Tracklet:
        """Part of the observations; at least two epochs have to remain."""
        rows = np.sort(np.atleast_1d(np.arange(len(self))[item]))
        if not len(rows):
            raise TrackletError("no observation of the tracklet was asked for")
        one = self._set
        columns = one._columns.take(rows)
        jd = columns.jd1 + columns.jd2
        if jd[-1] <= jd[0]:
            raise TrackletError(
                f"{many(len(rows), 'observation')} at one epoch are no tracklet: a motion needs at "
                "least two different epochs; `for row in tracklet` goes through the observations"
            )
        offsets = np.array([0, len(rows)])
        return self._view(TrackletSet(columns, offsets, one.designation, one.tracklet_id))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_table())

    def __hash__(self) -> int:
        return hash(self._set)

    def __eq__(self, other: object) -> bool:
        return self._set == other._set if isinstance(other, Tracklet) else NotImplemented

    @property
    def designation(self) -> str:
        """Name of the object, empty if none was given."""
        return str(self._set.designation[0])

    @property
    def tracklet_id(self) -> str:
        """Id as the user gave it, empty if none was given."""
        return str(self._set.tracklet_id[0])

    @property
    def arc_length(self) -> u.Quantity:
        """Time from the first to the last observation."""
        return self._set.arc_length[0]

    def triplet(self) -> Tracklet:
        """First, middle and last observation: what three-observation methods use.

        Raises
        ------
        TrackletError
            If there are fewer than three observations.
        """
        if len(self) < 3:
            raise TrackletError(f"a triplet needs three observations, got {len(self)}")
        return self[self._set.arcs("geocenter").triplet[0]]

    def fit_residuals(self) -> u.Quantity:
        """Observed minus fitted position, east and north, shape (N, 2)."""
        return (core.path_fit(self._set.arcs("geocenter")).rest / ARCSEC) << u.arcsec

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw the arc on the sky and its residuals; see `plotting.tracklet.plot_tracklet`."""
        from neoranging.plotting.tracklet import plot_tracklet

        return plot_tracklet(self, axes=axes, **options)

    def __repr__(self) -> str:
        codes = ", ".join(dict.fromkeys(code or "a given place" for code in self.station))
        name = self.designation or self.tracklet_id
        name = f" {name}" if name else ""
        return (
            f"<Tracklet{name}: {len(self)} observations in {self.arc_length.value:.2f} h from "
            f"{codes}, {self.obstime[0].to_value('iso', subfmt='date')}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.to_table()._repr_html_()}"


def _frozen(column: AnyArray) -> AnyArray:
    column.flags.writeable = False
    return column
