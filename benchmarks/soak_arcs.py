"""Hostile arcs through every method: no untyped error, no warning, no OK without a number.

    python benchmarks/soak_arcs.py [--arcs 100000] [--seed 1] [--seconds 600]
        [--method gauss ...] [--family random ...] [--csv counts.csv]

Each family of `FAMILIES` draws arcs of one kind: positions without an object behind them, motion
that vanishes, wraps or leaps, errors beyond any instrument, dates beyond the tables. `soak` gives
one `Row` for a family and a method; the counts in `FAULTS` must be zero. With a limit of time the
arcs of all families grow together until it is reached, and the count reached is printed.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from astropy import units as u
from astropy.time import Time

from neoranging import RangingEstimator, TrackletSet, ephemeris, get_estimator
from neoranging.core.geometry import radec
from neoranging.exceptions import NeoRangingError, NeoRangingWarning

DEG, ARCSEC = np.pi / 180.0, np.pi / 648_000.0
N_OBS = 4
STATIONS = np.array(["G96", "F51", "W68", "500", "M22", "568"])
BATCH = 1_000

METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "gauss": ("gauss", {}),
    "laplace": ("laplace", {}),
    "gauss@geocenter": ("gauss", {"origin": "geocenter"}),
    "laplace@geocenter": ("laplace", {"origin": "geocenter"}),
    "mlp": ("mlp", {}),
    "pinn": ("pinn", {}),
    "mlp paper": ("mlp", {"representation": "paper"}),
    "pinn paper": ("pinn", {"representation": "paper"}),
}


class Sky(NamedTuple):
    """Observations of m arcs, each column of shape (m, `N_OBS`)."""

    t: np.ndarray
    """MJD TDB."""
    ra: np.ndarray
    dec: np.ndarray
    sigma: np.ndarray
    """Standard deviation [arcsec]."""


# Families ----------------------------------------------------------------------------------------


def _arcs(rng: np.random.Generator, m: int, hours: tuple[float, float] = (0.5, 6.0)) -> Sky:
    """Plain arcs: anywhere on the sky, any rate of a near-Earth object, a little curvature."""
    span = rng.uniform(*hours, m) / 24.0
    t = rng.uniform(48_000, 61_000, m)[:, None] + span[:, None] * _places(rng, m)
    rate = 10.0 ** rng.uniform(-2.0, 1.0, m) * DEG
    return _moving(rng, t, rate)


def _places(rng: np.random.Generator, m: int) -> np.ndarray:
    """Places of the observations in their arcs, from 0 to 1."""
    inner = np.sort(rng.uniform(0.1, 0.9, (m, N_OBS - 2)), axis=1)
    return np.hstack([np.zeros((m, 1)), inner, np.ones((m, 1))])


def _moving(
    rng: np.random.Generator,
    t: np.ndarray,
    rate: np.ndarray,
    ra: np.ndarray | None = None,
    dec: np.ndarray | None = None,
    noise: float = 0.3,
) -> Sky:
    m = len(t)
    ra = rng.uniform(0.0, 2.0 * np.pi, m) if ra is None else ra
    dec = np.arcsin(rng.uniform(-1.0, 1.0, m)) if dec is None else dec
    angle = rng.uniform(0.0, 2.0 * np.pi, m)
    elapsed = t - t[:, :1]
    along = rate[:, None] * elapsed * (1.0 + rng.normal(0.0, 0.05, m)[:, None] * elapsed)
    east, north = along * np.cos(angle)[:, None], along * np.sin(angle)[:, None]
    sigma = np.full(t.shape, 0.5)
    east, north = (x + rng.normal(0.0, noise * ARCSEC, t.shape) for x in (east, north))
    new_dec = np.clip(dec[:, None] + north, -0.5 * np.pi, 0.5 * np.pi)
    cosine = np.maximum(np.cos(dec), 1.0e-6)[:, None]
    return Sky(t, (ra[:, None] + east / cosine) % (2.0 * np.pi), new_dec, sigma)


def random_arcs(rng: np.random.Generator, m: int) -> Sky:
    return _arcs(rng, m)


def zero_motion(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    ra, dec = (np.repeat(angle[:, :1], N_OBS, axis=1) for angle in (sky.ra, sky.dec))
    return sky._replace(ra=ra, dec=dec)


def zero_motion_and_noise(rng: np.random.Generator, m: int) -> Sky:
    sky = zero_motion(rng, m)
    east, north = rng.normal(0.0, 0.2 * ARCSEC, (2, *sky.ra.shape))
    return sky._replace(
        ra=(sky.ra + east / np.maximum(np.cos(sky.dec), 1e-6)) % (2.0 * np.pi),
        dec=np.clip(sky.dec + north, -0.5 * np.pi, 0.5 * np.pi),
    )


def pole(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    radius = np.abs(rng.normal(0.0, 1.0, m)) * DEG
    angle = rng.uniform(0.0, 2.0 * np.pi, m)
    rate = rng.uniform(0.1, 5.0, m) * DEG
    elapsed = sky.t - sky.t[:, :1]
    x = radius[:, None] * np.cos(angle)[:, None] + rate[:, None] * elapsed
    y = radius[:, None] * np.sin(angle)[:, None] - 0.3 * rate[:, None] * elapsed
    sign = np.where(rng.random(m) < 0.5, 1.0, -1.0)[:, None]
    ra, dec = radec(np.stack([x, y, sign * np.ones_like(x)], axis=-1).reshape(-1, 3))
    return sky._replace(ra=ra.reshape(x.shape) % (2 * np.pi), dec=dec.reshape(x.shape))


def days(rng: np.random.Generator, m: int) -> Sky:
    return _arcs(rng, m, hours=(5.0 * 24.0, 60.0 * 24.0))


def seconds(rng: np.random.Generator, m: int) -> Sky:
    return _arcs(rng, m, hours=(3.0 / 3600.0, 30.0 / 3600.0))


def sigma_tiny(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    return sky._replace(sigma=np.full(sky.t.shape, 1.0e-12))


def sigma_huge(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    return sky._replace(sigma=np.full(sky.t.shape, 1.0e6))


def sigma_extreme(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    power = rng.choice([-300.0, -150.0, 0.0, 150.0, 200.0], sky.t.shape)
    return sky._replace(sigma=10.0**power)


def ra_wrap(rng: np.random.Generator, m: int) -> Sky:
    t = _arcs(rng, m).t
    rate = rng.uniform(0.1, 20.0, m) * DEG
    return _moving(rng, t, rate, ra=rng.normal(0.0, 0.2, m) * DEG)


def beyond_de440(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    before, after = rng.uniform(0.0, 33_000.0, m), rng.uniform(73_600.0, 120_000.0, m)
    epoch = np.where(rng.random(m) < 0.5, before, after)
    return sky._replace(t=sky.t - sky.t[:, :1] + epoch[:, None])


def old_dates(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    epoch = rng.uniform(-21_500.0, -20_000.0, m)
    return sky._replace(t=sky.t - sky.t[:, :1] + epoch[:, None])


def edge_of_the_sky(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    dec = np.where(rng.random(m) < 0.5, 0.5 * np.pi, -0.5 * np.pi)[:, None]
    ra = rng.choice([0.0, np.nextafter(2.0 * np.pi, 0.0), np.pi], sky.ra.shape)
    step = rng.choice([0.0, 1.0e-9, 1.0e-3], sky.dec.shape)
    return sky._replace(ra=ra, dec=dec - np.sign(dec) * step)


def extreme_rate(rng: np.random.Generator, m: int) -> Sky:
    t = _arcs(rng, m).t
    return _moving(rng, t, 10.0 ** rng.uniform(1.5, 4.0, m) * DEG)


def coincident_pairs(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    pairs = np.repeat(np.arange(0, N_OBS, 2), 2)
    t = sky.t[:, pairs] + np.tile([0.0, 1.0e-9], N_OBS // 2)
    return Sky(t, sky.ra[:, pairs], sky.dec[:, pairs], sky.sigma)


def opposition(rng: np.random.Generator, m: int) -> Sky:
    return _about_the_sun(rng, m, 1.0)


def sun_direction(rng: np.random.Generator, m: int) -> Sky:
    return _about_the_sun(rng, m, -1.0)


def _about_the_sun(rng: np.random.Generator, m: int, side: float) -> Sky:
    t = _arcs(rng, m).t
    earth, _ = ephemeris.earth_state(t[:, 0])
    ra, dec = radec(side * earth)
    return _moving(rng, t, 10.0 ** rng.uniform(-3.0, 0.3, m) * DEG, ra=ra, dec=dec)


def random_jumps(rng: np.random.Generator, m: int) -> Sky:
    sky = _arcs(rng, m)
    size = 10.0 ** rng.uniform(0.0, 4.0, m)[:, None] * ARCSEC
    jumps = rng.normal(0.0, 1.0, sky.dec.shape) * size
    return sky._replace(dec=np.clip(sky.dec + jumps, -0.5 * np.pi, 0.5 * np.pi))


def two_objects(rng: np.random.Generator, m: int) -> Sky:
    one, other = _arcs(rng, m), _arcs(rng, m)
    offset = rng.normal(0.0, 300.0, (m, 1)) * ARCSEC
    turn = np.arange(N_OBS) % 2 == 1
    dec = np.where(turn, one.dec + offset - (other.dec - other.dec[:, :1]), one.dec)
    return one._replace(dec=np.clip(dec, -0.5 * np.pi, 0.5 * np.pi))


def two_stars(rng: np.random.Generator, m: int) -> Sky:
    """Stars of a field, taken in turn."""
    sky = zero_motion_and_noise(rng, m)
    offset = rng.uniform(5.0, 600.0, (m, 1)) * ARCSEC
    dec = np.where(np.arange(N_OBS) % 2 == 1, sky.dec + offset, sky.dec)
    return sky._replace(dec=np.clip(dec, -0.5 * np.pi, 0.5 * np.pi))


def stray(rng: np.random.Generator, m: int) -> Sky:
    """Straight arcs with one position off by 20 arcsec to a degree."""
    sky = _arcs(rng, m)
    rate = 10.0 ** rng.uniform(-1.0, 0.5, m) * DEG
    sky = _moving(rng, sky.t, rate, noise=0.1)
    size = 10.0 ** rng.uniform(1.3, 3.55, m) * ARCSEC
    which = rng.integers(0, N_OBS, m)
    dec = sky.dec.copy()
    dec[np.arange(m), which] += rng.choice([-1.0, 1.0], m) * size
    return sky._replace(dec=np.clip(dec, -0.5 * np.pi, 0.5 * np.pi))


def heap(rng: np.random.Generator, m: int) -> Sky:
    """Detections anywhere in a field of two degrees."""
    sky = _arcs(rng, m)
    east, north = rng.uniform(-1.0, 1.0, (2, *sky.ra.shape)) * DEG
    dec = np.clip(sky.dec[:, :1] + north, -0.5 * np.pi, 0.5 * np.pi)
    return sky._replace(
        ra=(sky.ra[:, :1] + east / np.maximum(np.cos(dec), 1e-6)) % (2.0 * np.pi), dec=dec
    )


FAMILIES: dict[str, Callable[[np.random.Generator, int], Sky]] = {
    "random": random_arcs,
    "zero motion": zero_motion,
    "zero motion, noise": zero_motion_and_noise,
    "pole": pole,
    "5 to 60 days": days,
    "seconds": seconds,
    'sigma 1e-12"': sigma_tiny,
    'sigma 1e6"': sigma_huge,
    "sigma 1e-300 to 1e200": sigma_extreme,
    "RA wrap": ra_wrap,
    "before 1950, after 2060": beyond_de440,
    "old dates": old_dates,
    "edge of the sky": edge_of_the_sky,
    "extreme rate": extreme_rate,
    "coincident pairs": coincident_pairs,
    "opposition": opposition,
    "direction of the Sun": sun_direction,
    "random jumps": random_jumps,
    "two objects": two_objects,
    "two stars": two_stars,
    "stray": stray,
    "heap": heap,
}

NONSENSE = (
    *("zero motion", "zero motion, noise", "random jumps", 'sigma 1e6"'),
    *("two objects", "two stars", "stray", "heap"),
)
"""Families of which no arc is OK, whatever the method: no object was seen, or a wrong position."""


# Counting ----------------------------------------------------------------------------------------


@dataclass
class Row:
    """Counts of one family and one method."""

    family: str
    method: str
    arcs: int = 0
    refused: int = 0
    """Arcs in sets that a typed error refused."""
    untyped: int = 0
    warned: int = 0
    """Warnings that are none of the package's."""
    ok: int = 0
    no_number: int = 0
    """Answers without a range, whatever their status."""
    ok_without_number: int = 0
    ok_inadmissible: int = 0
    infinite: int = 0
    bad_interval: int = 0
    """Intervals that are reversed, or missing beside an answer that is OK."""
    ok_nonsense: int = 0
    """Answers that are OK to arcs of `NONSENSE`."""
    statuses: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)


FAULTS = (
    *("untyped", "warned", "ok_without_number", "ok_inadmissible", "infinite", "bad_interval"),
    "ok_nonsense",
)


def tracklets_of(sky: Sky, rng: np.random.Generator) -> TrackletSet:
    """Arcs through the public door, which warns of errors beyond any instrument."""
    m = len(sky.t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NeoRangingWarning)
        return TrackletSet.from_arrays(
            Time(sky.t.ravel(), format="mjd", scale="tdb"),
            sky.ra.ravel() << u.rad,
            sky.dec.ravel() << u.rad,
            station=np.repeat(rng.choice(STATIONS, m), N_OBS),
            tracklet=np.repeat(np.arange(m), N_OBS),
            sigma=sky.sigma.ravel() << u.arcsec,
        )


def count(row: Row, estimator: RangingEstimator, tracklets: TrackletSet) -> None:
    """Estimate a set and add to the counts of a row."""
    row.arcs += len(tracklets)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimate = estimator.estimate(tracklets)
            interval = estimate.interval(0.68).value
        except NeoRangingError as error:
            row.refused += len(tracklets)
            row.messages[f"{type(error).__name__}: {error}"[:120]] += 1
            return
        except Exception as error:  # the very thing that is looked for
            row.untyped += len(tracklets)
            row.messages[f"{type(error).__name__}: {error}"[:120]] += 1
            return
    foreign = [w for w in caught if not issubclass(w.category, NeoRangingWarning)]
    row.warned += len(foreign)
    row.messages.update(f"{w.message} ({Path(w.filename).name}:{w.lineno})" for w in foreign)
    rho, ok = estimate.range.value, estimate.ok
    low, high = interval.T
    row.ok += int(ok.sum())
    row.ok_nonsense += int(ok.sum()) if row.family in NONSENSE else 0
    row.no_number += int(np.isnan(rho).sum())
    row.ok_without_number += int((ok & ~(np.isfinite(rho) & (rho > 0.0))).sum())
    row.ok_inadmissible += int((ok & ~estimate.admissible).sum())
    row.infinite += int((np.isinf(rho) | np.isinf(low) | np.isinf(high)).sum())
    row.bad_interval += int(((low > high) | (ok & ~(np.isfinite(low) & np.isfinite(high)))).sum())
    row.statuses.update(status.name for status in estimate.status)


def soak(
    family: str, method: str, m: int, seed: int = 1, row: Row | None = None, start: int = 0
) -> Row:
    """Counts of ``m`` arcs of a family by a method; the same for the same seed.

    Parameters
    ----------
    family, method : str
        Keys of `FAMILIES` and `METHODS`.
    m : int
        Arcs, drawn `BATCH` at a time.
    seed : int
    row : Row, optional
        To add to, with ``start`` the number of its first batch.
    """
    name, options = METHODS[method]
    estimator = get_estimator(name, **options)
    row = row or Row(family, method)
    for batch, size in enumerate(_sizes(m), start):
        rng = np.random.default_rng([seed, list(FAMILIES).index(family), batch])
        try:
            tracklets = tracklets_of(FAMILIES[family](rng, size), rng)
        except NeoRangingError as error:
            row.arcs += size
            row.refused += size
            row.messages[f"{type(error).__name__}: {error}"[:120]] += 1
            continue
        count(row, estimator, tracklets)
    return row


def _sizes(m: int) -> Iterator[int]:
    for done in range(0, m, BATCH):
        yield min(BATCH, m - done)


def faults(row: Row) -> dict[str, int]:
    """Counts of a row that must be zero, and are not."""
    return {name: getattr(row, name) for name in FAULTS if getattr(row, name)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arcs", type=int, default=100_000, help="over all families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--method", action="append", choices=list(METHODS))
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    pairs = [
        (family, method)
        for family in options.family or FAMILIES
        for method in options.method or METHODS
    ]
    n_families = len(options.family or FAMILIES)
    rows = {pair: Row(*pair) for pair in pairs}
    end, round_ = time.monotonic() + options.seconds, 0
    while sum(row.arcs for row in rows.values()) < options.arcs * len(pairs) / n_families:
        for family, method in pairs:
            soak(family, method, BATCH, options.seed, rows[family, method], round_)
            if time.monotonic() > end:
                break
        else:
            round_ += 1
            continue
        break
    _tell(list(rows.values()), options.csv)
    return any(faults(row) for row in rows.values())


def _tell(rows: list[Row], path: Path | None) -> None:
    print(f"{'family':24} {'method':18} {'arcs':>8} {'OK':>7} {'NaN':>7} {'refused':>8}  faults")
    for row in rows:
        print(
            f"{row.family:24} {row.method:18} {row.arcs:8} {row.ok:7} {row.no_number:7} "
            f"{row.refused:8}  {faults(row) or ''}"
        )
        for message, n in row.messages.most_common(4):
            print(f"{'':24}   {n} x {message}")
    print(f"{sum(row.arcs for row in rows)} estimates of arcs")
    if path is not None:
        with path.open("w", newline="", encoding="utf-8") as file:
            columns = [name for name in asdict(rows[0]) if name not in ("statuses", "messages")]
            names = sorted({name for row in rows for name in row.statuses})
            writer = csv.writer(file)
            writer.writerow([*columns, *names])
            for row in rows:
                counts = [row.statuses[name] for name in names]
                writer.writerow([*(getattr(row, name) for name in columns), *counts])


if __name__ == "__main__":
    sys.exit(main())
