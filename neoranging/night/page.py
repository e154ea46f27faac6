"""`NightPage`: one page for the tracklets of a night, in order of what is worth following up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final

from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.time import Time

from neoranging._version import __version__
from neoranging.arguments import require_time, values_in
from neoranging.ephemeris import observer_posvel
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import TrackletError
from neoranging.files import write_file
from neoranging.followup.priority import LEAST_ALTITUDE
from neoranging.night.entries import entries_of
from neoranging.night.panel import (
    COLUMNS,
    COVERAGE,
    WATCH_PRIOR,
    Entry,
    Settings,
)
from neoranging.tracklet import Tracklet, TrackletSet
from neoranging.webpage import environment

_CHUNK: Final = 32
"""Tracklets that are worked on together, between two reports of progress."""

_LISTED: Final = 500
"""Records of one file that are listed one by one when they are set aside."""


class NightPage:
    """Page of a night: HTML that needs nothing else, with a row and a panel for each tracklet.

    Nothing of the night is left out: records that were set aside when it was read, and tracklets
    from which nothing follows, stand on the page with the reason. Rows are in the order of
    `RangeEstimate.priority`: possible impactors first.

    Parameters
    ----------
    tracklets : TrackletSet or Tracklet
    method : str or RangingEstimator
        A method that gives a posterior, such as ``"systematic@near-earth"``.
    at : Time or Quantity
        Instant to point at, or the time after the last observation of each tracklet.
    station : str or EarthLocation, optional
        Observer then; by default that of the last observation, or the centre of the Earth where
        that was a spacecraft.
    field : Quantity
        Side of the square field of view.
    limit : Quantity, optional
        Magnitude limit, in the band V.
    within : Quantity
        Time from the night within which an impact counts.
    n : int
        Orbits to draw for each tracklet and prior; `RangeEstimate.impacts` takes more.
    rng : int
        Seed of the random numbers.
    progress : callable, optional
        Called with the number of tracklets that are done and that of all, again and again.

    Raises
    ------
    EstimationError
        When the page is made, if the method gives no posterior.
    EphemerisError
        If the instant is outside the ephemeris, 1800 to 2200.
    UnknownStationError
        If the code is unknown or has no fixed place.

    Examples
    --------
    >>> import neoranging as nr
    >>> from neoranging.night import NightPage
    >>> page = NightPage(nr.read_tracklets(nr.sample("2024YR4"))[:1], n=200)
    >>> page
    <NightPage: 1 tracklet>
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """

    def __init__(
        self,
        tracklets: TrackletSet | Tracklet,
        *,
        method: Any = "systematic",
        at: Time | u.Quantity = 1.0 * u.d,
        station: str | EarthLocation | None = None,
        field: u.Quantity = 0.5 * u.deg,
        limit: u.Quantity | None = None,
        within: u.Quantity = 10.0 * u.d,
        n: int = 500,
        rng: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._tracklets = tracklets._set if isinstance(tracklets, Tracklet) else tracklets
        if isinstance(at, u.Quantity):
            at = float(values_in("at", at, u.d, TrackletError)) * u.d
        else:
            require_time("at", at)
        instant = at if isinstance(at, Time) else Time("J2000")
        observer_posvel(instant, station)  # before the work, or an error
        side, days = (
            float(values_in(name, value, unit, TrackletError))
            for name, value, unit in (("field", field, u.arcmin), ("within", within, u.d))
        )
        for name, value in (("field", side), ("within", days), ("n", n)):
            if not value > 0:
                raise TrackletError(f"{name} must be positive, got {value}")
        if limit is not None:
            limit = float(values_in("limit", limit, u.mag, TrackletError)) * u.mag
        self._settings = Settings(
            get_estimator(method), at, station, side * u.arcmin, limit, days * u.d, n, rng
        )
        self._progress = progress

    @cached_property
    def _entries(self) -> list[Entry]:
        """Entries in the order in which they stand."""
        return sorted(self._worked_out(), key=lambda entry: entry.order)

    def _worked_out(self) -> Iterator[Entry]:
        total = len(self._tracklets)
        for first in range(0, total, _CHUNK):
            if self._progress is not None:
                self._progress(first, total)
            yield from entries_of(self._tracklets[first : first + _CHUNK], first, self._settings)
        if self._progress is not None:
            self._progress(total, total)

    @cached_property
    def html(self) -> str:
        """The page as text."""
        entries, settings, report = self._entries, self._settings, self._tracklets.report
        nights = [entry.cells["first"].text[:10] for entry in entries]
        estimator = settings.estimator
        templates = environment("neoranging.night")
        return templates.get_template("page/night.html.j2").render(
            title=_title(min(nights, default=""), max(nights, default="")),
            entries=entries,
            groups=COLUMNS,
            report=report,
            files=() if report is None else report.reading,
            unusable=sum(not entry.is_usable for entry in entries),
            listed=_LISTED,
            method=estimator.name,
            prior=getattr(estimator, "prior", ""),
            origin=estimator.origin,
            watch=WATCH_PRIOR,
            settings=settings,
            at=settings.at.utc.isot[:16].replace("T", " ") if isinstance(settings.at, Time) else "",
            coverage=COVERAGE,
            least_altitude=LEAST_ALTITUDE,
            version=__version__,
            now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all: an existing file is replaced at the end.

        Parameters
        ----------
        path : path-like
        """
        write_file(Path(path), self.html)

    def __repr__(self) -> str:
        n = len(self._tracklets)
        return f"<NightPage: {n} tracklet{'s' * (n != 1)}>"

    def _repr_html_(self) -> str:
        page = escape(self.html)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 800px; border: 0"></iframe>'


def _title(first: str, last: str) -> str:
    """Title of a page by the dates of its first and last tracklet."""
    return f"Night of {first}" if first == last else f"Nights of {first} to {last}"
