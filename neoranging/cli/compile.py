"""``neoranging compile``: compile all numeric kernels ahead, where the first use would."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from neoranging.cli.errors import CommandError, echo
from neoranging.records import many
from neoranging.tables import text_table


@click.command("compile")
def compile_ahead() -> None:
    """Compile the numeric kernels ahead.

    The first use on a machine compiles them, which takes a minute or two; this command does it
    before, for an image of a container, say, or for all users of an installation. It makes every
    calculation once, on the observations that come with the package, and says where the compiled
    code is kept: beside the package where that can be written, else in the cache folder of the
    user. The environment variable NUMBA_CACHE_DIR names another place, for this command and for
    those that use the code. Code that is there already, from the same sources, is not made anew.
    """
    # numba, and whatever else stands behind the methods, is imported by no other command's help
    from neoranging.core.compiled import REGISTER, compilations, subject

    start = time.monotonic()
    with compilations() as finished, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the observations, which nobody asked to judge
        for thing, calculation in calculations():
            echo(f"{thing} ...", err=True)
            calculation()
    if finished:
        seconds: dict[str, float] = {}
        for dispatcher, taken in finished:  # again for arguments of another kind
            seconds[subject(dispatcher)] = seconds.get(subject(dispatcher), 0.0) + taken
        columns = {"compiled": list(seconds), "seconds": [f"{s:.1f}" for s in seconds.values()]}
        echo(text_table(columns, align="<>"))
        echo()
    anew = {dispatcher for dispatcher, _ in finished}
    ready = [one for one in REGISTER if one in anew or one.stats.cache_hits]
    folders = sorted({str(one.stats.cache_path) for one in ready if one.stats.cache_path})
    if not folders:
        raise CommandError(
            "no folder can be written, and nothing is kept: let NUMBA_CACHE_DIR name one"
        )
    done = f"made in {time.monotonic() - start:.0f} s" if finished else "there already"
    echo(f"{many(len(ready), 'kernel')}, {done}, kept in")
    for folder in folders:
        echo(f"  {folder}")


def calculations() -> Iterator[tuple[str, Any]]:
    """Every calculation that has a compiled part: its name, and a function that makes it."""
    from astropy import units as u

    from neoranging.estimators.registry import available_methods, estimator_class
    from neoranging.night import NightPage
    from neoranging.read import read_tracklets
    from neoranging.samples import sample

    tracklets = read_tracklets([sample("2024YR4"), sample("impactors")])
    for name in available_methods():
        method = estimator_class(name)
        if not method.__module__.startswith("neoranging."):  # of somebody else's package
            continue
        further = (*method.representations[1:], *method.priors[1:])
        for full in (name, *(f"{name}@{one}" for one in further)):
            yield f"the method {full}", lambda full=full: _estimated(full, tracklets)
    night = tracklets[-2:]
    yield "what follows from a night", lambda: NightPage(night, at=4.0 * u.h, n=20).html
    estimate = tracklets[1].estimate("mlp")
    yield "the orbit of several nights", lambda: estimate.refine(tracklets[:3]).samples(20, rng=0)
    yield "orbital elements", lambda: estimate.elements.propagate(estimate.epoch).M
    yield "the motion of simulated objects", lambda: _moved(estimate.state)


def _estimated(method: str, tracklets: Any) -> None:
    """Estimate tracklets together, and one by itself, with what is read off an estimate."""
    for observed in (tracklets, tracklets[-1]):
        estimate = observed.estimate(method)
        estimate.to_table()
        estimate.residuals()


def _moved(state: Any) -> None:
    """Move an object for an hour, near the Earth and far from it, as simulations do."""
    from astropy import units as u

    from neoranging.core.kepler import propagate
    from neoranging.core.motion import move_near_earth
    from neoranging.ephemeris.states import attractors

    r, v = state[0].to_value(u.au)[None], state[1].to_value(u.au / u.d)[None]
    epoch, hour = np.array([state[2].tdb.mjd]), np.array([1.0 / 24.0])
    propagate(r, v, hour)
    move_near_earth(r, v, np.zeros(1, dtype=np.int64), hour, attractors(epoch, hour))
