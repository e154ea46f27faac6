"""Order of a night's tracklets by what it would teach to observe them once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from astropy import units as u
from astropy.coordinates import Angle
from astropy.table import QTable

from neoranging.constants import ARCSEC
from neoranging.core.geometry import radec
from neoranging.core.information import FEWEST, expected_gain
from neoranging.core.pointings import cover
from neoranging.core.status import RangeStatus
from neoranging.followup.ephemeris import Ephemeris
from neoranging.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from neoranging.follow_up_view import FollowUpView


SIGMA: Final = 0.3 * ARCSEC
"""Standard error of the position that would be observed, in each coordinate [rad]."""

DARK: Final = -12.0
"""Altitude of the Sun below which the sky is dark enough, the end of nautical twilight [deg]."""

LEAST_ALTITUDE: Final = 20.0
"""Altitude below which a telescope does not point [deg]."""

POSSIBLE: Final = (0.01, 0.5)
"""Chances of an impact from which on a tracklet comes first: under the prior of the estimate, and
under the log-uniform one. The second takes near objects for common, and gives some percent to many
tracklets of objects that passed."""

_PLACED: Final = 500
"""Draws that place the field and say what it holds: the time grows with their square."""


def ranking(
    estimate: FollowUpView,
    sky: Ephemeris,
    impact: FloatArray | None = None,
    *,
    field: float,
    limit: float = np.inf,
    min_altitude: float = LEAST_ALTITUDE,
    neo: FloatArray | None = None,
) -> QTable:
    """Table of ``RangeEstimate.priority`` from an ephemeris and chances of an impact.

    Parameters
    ----------
    estimate : FollowUpView
        Of M tracklets.
    sky : Ephemeris
        Of the same tracklets at T instants.
    impact : ndarray, shape (M, 2), optional
        Chances under the prior of the estimate and under the log-uniform one; NaN by default.
    field : float
        Side of the field of view [rad].
    limit : float
        Magnitude limit V; none by default.
    min_altitude : float
        In degrees.
    neo : ndarray, shape (M,), optional
        Chances of a near-Earth object, where they are at hand.
    """
    if neo is None:
        neo = estimate.probability("neo")
    looks = looked_for(sky, neo, field, limit, min_altitude)
    m = len(neo)
    if impact is None:
        impact = np.full((m, 2), np.nan)
    best = np.arange(m), looks.worth.argmax(axis=1)
    bits, in_field, pointing, bright, altitude, sun, has_magnitude, fallen, worth = looks
    ra, dec = radec(pointing[best])
    has_answer = np.asarray(np.isfinite(sky._samples.r.value[..., 0]).any(axis=1))
    possible = has_answer & (impact >= POSSIBLE).any(axis=1)
    rows = QTable(
        {
            "index": np.arange(m),
            "tracklet": estimate._tracklets._labels,
            "designation": estimate._tracklets.designation,
            "time": sky.times.reshape(-1)[best[1]],
            "ra": Angle(ra << u.rad).to(u.deg),
            "dec": Angle(dec << u.rad).to(u.deg),
            "bits": bits[best],
            "neo": neo,
            "impact": impact[:, 0],
            "impact_log_uniform": impact[:, 1],
            "possible_impactor": possible,
            "in_field": in_field[best],
            "bright": bright[best],
            "altitude": altitude[best] << u.deg,
            "sun_altitude": sun[best] << u.deg,
            "worth": worth[best],
            "status": np.array([member.name for member in RangeStatus])[estimate._answers.status],
        }
    )
    rows["remark"] = _remarks(rows, has_answer, has_magnitude, min_altitude, fallen[best])
    for name in ("bits", "neo", "in_field", "bright", "worth"):
        rows[name][~has_answer] = np.nan
    for name in ("neo", "impact", "impact_log_uniform", "in_field", "bright"):
        rows[name].info.format = ".3f"
    for name in ("ra", "dec", "bits", "altitude", "sun_altitude", "worth"):
        rows[name].info.format = ".2f"
    urgency = np.where(possible, np.nan_to_num(impact).max(axis=1), 0.0)
    order = np.lexsort((-worth[best], -urgency, ~has_answer))
    return rows[order]


class Looks(NamedTuple):
    """Looks for M tracklets at T instants: what they would teach, and whether they would find."""

    bits: FloatArray
    """Expected drop of the entropy of the range, shape (M, T)."""
    in_field: FloatArray
    """Chance that the best field holds it, shape (M, T)."""
    pointing: FloatArray
    """Unit vectors to the middle of that field, shape (M, T, 3)."""
    bright: FloatArray
    """Chance that it is brighter than the limit, shape (M, T)."""
    altitude: FloatArray
    """Altitude of the middle of the cloud, shape (M, T) [deg]."""
    sun: FloatArray
    """Altitude of the Sun, shape (M, T) [deg]."""
    has_magnitude: BoolArray
    """Flags of tracklets with a magnitude, shape (M,)."""
    fallen: FloatArray
    """Shares of the draws that have met the Earth before, shape (M, T)."""
    worth: FloatArray
    """Bits times all chances, zero where it cannot be observed, shape (M, T)."""


def looked_for(
    sky: Ephemeris, neo: FloatArray, field: float, limit: float, min_altitude: float
) -> Looks:
    """Looks for tracklets that are near-Earth objects with chances ``neo``, shape (M,).

    The other arguments are those of `ranking`.
    """
    bits, in_field, pointing = _fields(sky, field)
    m, t = bits.shape
    in_view = np.isfinite(sky._clouds.rho)
    has_magnitude = np.asarray(np.isfinite(sky._magnitude).any(axis=(1, 2)))
    count = (sky._magnitude < limit).sum(axis=2)  # of those that have fallen it is NaN
    bright = count / np.maximum(in_view.sum(axis=2), 1)
    bright[~has_magnitude] = 1.0
    altitude = sky.altitude.to_value(u.deg).reshape(m, t)
    sun = sky.sun_altitude.to_value(u.deg).reshape(m, t)
    # without a place on the ground neither is known, nor in the way
    observable = ~(altitude < min_altitude) & ~(sun > DARK)
    worth = np.nan_to_num(neo[:, None] * bits * in_field * bright * observable)
    return Looks(bits, in_field, pointing, bright, altitude, sun, has_magnitude, sky._fallen, worth)


def _fields(sky: Ephemeris, field: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bits, chance to be in the best field and its centre, (M, T), (M, T) and (M, T, 3)."""
    direction, pointing = sky._clouds.direction, sky._middle.copy()
    log_rho = np.log(sky._samples.range.to_value(u.au))
    bits, in_field = np.zeros((2, *direction.shape[:2]))
    for k, instant in np.ndindex(bits.shape):
        line = direction[k, instant]
        in_view = np.isfinite(line[:, 0])
        if in_view.sum() < FEWEST:
            continue
        bits[k, instant] = expected_gain(log_rho[k], line, SIGMA)
        some = line[in_view][:_PLACED]
        # any coverage: the first field only
        best = cover(some, np.ones(len(some)), field, 1e-9)
        if len(best.probability):
            pointing[k, instant] = best.direction[0]
            in_field[k, instant] = best.probability[0] * in_view.mean()
    return bits, in_field, pointing


def _remarks(
    rows: QTable,
    has_answer: BoolArray,
    has_magnitude: BoolArray,
    min_altitude: float,
    fallen: FloatArray,
) -> list[str]:
    """Reasons why a tracklet stands where it stands, beside the numbers."""
    remarks = []
    for k, row in enumerate(rows):
        if not has_answer[k]:
            remarks.append(RangeStatus[row["status"]].advice)
            continue
        remarks.append(
            remark(
                bool(row["possible_impactor"]),
                float(fallen[k]),
                float(row["bright"]) if has_magnitude[k] else np.nan,
                float(row["altitude"].value),
                float(row["sun_altitude"].value),
                min_altitude,
            )
        )
    return remarks


def remark(
    is_possible: bool,
    fallen: float,
    bright: float,
    altitude: float,
    sun: float,
    min_altitude: float,
) -> str:
    """Remark on a look for one tracklet; ``bright`` is NaN without a magnitude."""
    parts = ["possible impactor"] if is_possible else []
    if fallen > 0.005:
        parts.append(f"{fallen:.0%} of the draws have met the Earth by then")
    if np.isnan(bright):
        parts.append("no magnitude: its brightness is not known and counts as enough")
    elif bright < 0.5:
        parts.append("probably too faint")
    if np.isnan(altitude):
        parts.append("no place on the ground: altitudes are not known")
    elif altitude < 0.0:
        parts.append("below the horizon")
    elif altitude < min_altitude:
        parts.append(f"below {min_altitude:g} degrees of altitude")
    if sun > DARK:
        parts.append("not dark")
    return "; ".join(parts)
