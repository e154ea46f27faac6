"""Make the tables of orbits that come with the package, and check any of them.

The debiased model of the solar system is that of the public-domain package ``digest2`` (Keys et
al. 2019, PASP 131, 064501), which bins the synthetic model of Grav et al. (2011, PASP 123, 423) and
adds what was found beyond it; known near-Earth objects are those of the Minor Planet Center in the
package::

    python docs/tools/priors.py population digest2.model.csv --date 2026-11-28
    python docs/tools/priors.py catalogue --date 2026-11-28

Nothing is random but the directions that average the chance of detection, and these have a seed:
the same command gives the same file. It prints totals beside those of its source.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Final, NamedTuple

import numba
import numpy as np
import pandas as pd
from scipy import ndimage, sparse

from neoranging.constants import AU_KM, DAY_S, GM_EARTH, GM_SUN, R_EARTH
from neoranging.core.elements import state_to_elements
from neoranging.core.geometry import ecliptic_to_equatorial, equatorial_to_ecliptic
from neoranging.core.priors import PriorTable, log_density
from neoranging.ephemeris import earth_state
from neoranging.lab.simulation.survey import Aspect, Survey, _trailing_loss, hg_magnitude
from neoranging.lab.simulation.twin import USUAL_SLOPE
from neoranging.orbits import load_catalogue
from neoranging.orbits.population import NEAR_EARTH_AU, PRIORS_FOLDER, read_prior

A_MAX_AU: Final = 50.0
"""Largest semimajor axis of the phase space that objects are spread over."""

FLOOR: Final = 0.02
"""Number of interlopers, on any bound orbit, relative to near-Earth objects of the same size."""

# Upper edges of the bins of digest2 (`d2model.c`); the first ones begin at zero.
_Q_TEXT = """0 0.4 0.7 0.8 0.9 1.0 1.1 1.2 1.3 1.4 1.5 1.67 1.8 2.0 2.2 2.4 2.6 2.8 3.0
3.2 3.5 4.0 4.5 5.0 5.5 10 20 30 40 100"""
Q_EDGES = np.array(_Q_TEXT.split(), dtype=np.float64)
E_EDGES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.1])
I_EDGES_DEG = np.array([0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0, 90.0, 180.0])
H_EDGES = np.array([0.0, 6.0, 8.0, *range(10, 25), 25.5])

MODEL_LIMIT_MAG: Final = 24.5
"""Apparent magnitude at opposition to which the synthetic model holds the main belt."""

BELT_SLOPE: Final = 0.3
"""Growth of the number of objects of the main belt per magnitude beyond that limit [dex]."""


CATALOGUE_LIMIT_MAG: Final = 21.4
"""Depth of the search that found the catalogue, over its years. True ranges of simulated arcs lie
evenly in the densities that follow from 21.4; 20.8 and 22.2 are too shallow and too deep."""

NEVER_LEARNT_FILE: Final = PRIORS_FOLDER.parent / "weights" / "never_learnt.csv"

SHRINKAGE: Final = 4.0
"""Number of objects by which a density leans on the one of the next wider neighbourhood."""


class Grid(NamedTuple):
    """Nodes of a table."""

    log_q: np.ndarray
    ecc: np.ndarray
    root_inc: np.ndarray
    H: np.ndarray

    @property
    def start(self) -> np.ndarray:
        """First nodes."""
        return np.array([axis[0] for axis in self])

    @property
    def step(self) -> np.ndarray:
        """Distances of the nodes."""
        return np.array([(axis[-1] - axis[0]) / (len(axis) - 1) for axis in self])


def _grid(first_log_q: float, step: float, n_q: int, H: np.ndarray) -> Grid:
    n_e, n_i = 20, 24
    return Grid(
        first_log_q + step * np.arange(n_q),
        (np.arange(n_e) + 0.5) / n_e,
        (np.arange(n_i) + 0.5) / n_i * np.sqrt(np.pi),
        H,
    )


def cell_edges(axis: np.ndarray) -> np.ndarray:
    """Edges of the cells about the nodes of an axis."""
    half = 0.5 * (axis[1] - axis[0])
    return np.append(axis - half, axis[-1] + half)


def phase_space(
    q_edges: np.ndarray, ecc_edges: np.ndarray, inc_edges: np.ndarray, a_max: float = A_MAX_AU
) -> np.ndarray:
    """Volumes [au^3 (au/d)^3] of cells of perihelion distance, eccentricity and inclination [rad].

    Exact integrals of the measure: of ``sqrt(a) e da de`` by q at fixed e, and then of
    ``e (1 - e)^(-3/2)`` by Gauss's rule in the root of 1 - e, in which it is smooth. Orbits of
    semimajor axes beyond ``a_max`` have no part in it.
    """
    nodes, weights = np.polynomial.legendre.leggauss(24)
    root = np.sqrt(np.clip(1.0 - ecc_edges, 0.0, 1.0))
    half, middle = 0.5 * (root[:-1] - root[1:]), 0.5 * (root[:-1] + root[1:])
    s = middle[:, None] + half[:, None] * nodes
    # e (1 - e)^(-3/2) de = 2 (1 - s^2) s^(-2) ds
    density = 2.0 * (1.0 - s * s) / (s * s) * half[:, None] * weights
    largest = a_max * s * s
    q = np.clip(q_edges[:, None, None], 0.0, largest)
    orbit = np.sum(density * np.diff(2.0 / 3.0 * q**1.5, axis=0), axis=-1)
    tilt = -np.diff(np.cos(np.clip(inc_edges, 0.0, np.pi)))
    return 0.5 * GM_SUN**1.5 * (2.0 * np.pi) ** 3 * orbit[:, :, None] * tilt


def interpolation(grid: Grid, q: np.ndarray, ecc: np.ndarray, inc: np.ndarray) -> sparse.csr_array:
    """Matrix that takes values on the nodes of orbits to those at M orbits, linear in between."""
    rows = np.zeros((len(q), 1), dtype=np.int64)
    weight = np.ones((len(q), 1))
    for axis, value in zip(grid[:3], (np.log(q), ecc, np.sqrt(inc)), strict=True):
        place = np.clip((value - axis[0]) / (axis[1] - axis[0]), 0.0, len(axis) - 1.0)
        cell = np.minimum(place.astype(np.int64), len(axis) - 2)
        part = (place - cell)[:, None]
        rows = np.concatenate([rows * len(axis) + cell[:, None] + d for d in (0, 1)], axis=1)
        weight = np.concatenate([weight * (1.0 - part), weight * part], axis=1)
    n_nodes = int(np.prod([len(axis) for axis in grid[:3]]))
    pointer = np.arange(len(q) + 1) * 8
    return sparse.csr_array((weight.ravel(), rows.ravel(), pointer), shape=(len(q), n_nodes))


def floor_density(per_magnitude: np.ndarray) -> np.ndarray:
    """Density of interlopers by H, from the number of near-Earth objects per magnitude."""
    edges = np.array([0.0, NEAR_EARTH_AU]), np.array([0.0, 1.0]), np.array([0.0, np.pi])
    return FLOOR * per_magnitude / phase_space(*edges)[0, 0, 0]


# The debiased population -------------------------------------------------------------------------


def read_model(path: Path, kind: str = "SS") -> np.ndarray:
    """Numbers of objects of a class in the bins of digest2, shape (29, 8, 11, 18).

    The file holds counts divided by the root of the size of their bin, `muk.c` of the package says
    so: digest2 adds up bins along a surface. Multiplied by it they are whole numbers again.
    """
    frame = pd.read_csv(path).fillna(0.0)
    rows = frame[(frame["Model"] == "All") & (frame["Class"] == kind)]
    scaled = rows.iloc[:, 5:].to_numpy(float).reshape(29, 8, 11, 18)
    ends = np.where(E_EDGES < 1.0, 1.0 - E_EDGES, 0.0)
    shape = np.diff(E_EDGES) / (ends[:-1] + ends[1:])
    size = np.diff(Q_EDGES)[:, None] * shape
    size = size[:, :, None, None] * np.diff(I_EDGES_DEG)[:, None] * np.diff(H_EDGES)
    counts = scaled * np.sqrt(size)
    if np.abs(counts - np.rint(counts)).max() > 1e-6:
        raise SystemExit(f"{path} does not hold whole numbers of objects: of another version?")
    return np.rint(counts)


def _by_magnitude(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers per magnitude at H = 9.5, 10.5 ... 24.5, and these H.

    Near the Earth the last bin of the model is no part of it: known objects of any smaller size
    were added to it. They were found where they pass the Earth slowly, and on orbits like hers are
    forty times as many as in the bin before, elsewhere twice. The orbits of that bin are those of
    all brighter objects, and its number grows as that of the bin before. The main belt of the model
    ends where it is too faint at opposition; it is gone on with by a moderate slope.
    """
    H = np.arange(9.5, 25.0)
    numbers = counts[..., 2:].copy()
    numbers[..., 0] /= 2.0
    q = 0.5 * (Q_EDGES[:-1] + Q_EDGES[1:])
    near = numbers[q < NEAR_EARTH_AU]
    brighter = near[..., :-1].sum(-1)
    total = near.sum((0, 1, 2))
    near[..., -1] = brighter / brighter.sum() * total[-2] ** 2 / total[-3]
    numbers[q < NEAR_EARTH_AU] = near
    for k in np.flatnonzero(q > NEAR_EARTH_AU):
        limit = MODEL_LIMIT_MAG - 5.0 * np.log10(q[k] * (q[k] - 1.0))
        complete = limit > H + 0.5
        last = int(np.flatnonzero(complete)[-1]) if complete.any() else 0
        for m in range(last + 1, len(H)):
            grown = numbers[k, ..., last] * 10.0 ** (BELT_SLOPE * (m - last))
            numbers[k, ..., m] = np.maximum(numbers[k, ..., m], grown)
    return numbers, H


def population(path: Path) -> tuple[Grid, np.ndarray]:
    """Grid and logarithm of the density of the debiased population."""
    counts, H = _by_magnitude(read_model(path))
    grid = _grid(-2.2, 0.1, 60, H)
    inc_edges = np.radians(I_EDGES_DEG)
    volume = phase_space(Q_EDGES, E_EDGES, inc_edges)
    near = Q_EDGES[1:] < NEAR_EARTH_AU + 1e-9
    density = np.empty_like(counts)
    for rows, wide, strength in ((near, 8.0, 30.0), (~near, 1.0, 2.0)):
        # Bins hold few objects each; where there are none the density is that of their neighbours.
        # Near the Earth the source draws size and orbit apart, so that neighbours have any size.
        law = counts[rows].sum((0, 1, 2)) / counts[rows].sum()
        expected = volume[rows][..., None] * law
        width = (0.5, 0.4, 0.5, wide) if wide > 1.0 else (0.7, 0.5, 0.7, wide)
        found, hoped = (
            ndimage.gaussian_filter(x, width, mode="nearest") for x in (counts[rows], expected)
        )
        pilot = np.maximum(found / np.maximum(hoped, 1e-300) * law, 1e-300)
        smooth = (counts[rows] + strength) / (expected / law + strength / pilot)
        held = np.sum(smooth * volume[rows][..., None], axis=(0, 1, 2))
        density[rows] = smooth * counts[rows].sum((0, 1, 2)) / held
    per_magnitude = counts[near].sum((0, 1, 2))
    log_floor = np.log(floor_density(per_magnitude))
    target = np.logaddexp(np.log(density), log_floor)
    return grid, np.maximum(_fit(grid, target, volume), log_floor)


def _fit(grid: Grid, target: np.ndarray, volume: np.ndarray) -> np.ndarray:
    """Logarithm of a density on the grid whose means over the bins of digest2 are the targets."""
    inc_edges = np.radians(I_EDGES_DEG)
    n = 4
    edges = [
        np.concatenate([np.linspace(a, b, n + 1)[:-1] for a, b in itertools.pairwise(x)])
        for x in (Q_EDGES, np.minimum(E_EDGES, 1.0), inc_edges)
    ]
    edges = [np.append(x, y) for x, y in zip(edges, (Q_EDGES[-1], 1.0, np.pi), strict=True)]
    parts = phase_space(*edges)
    centres = [0.5 * (x[:-1] + x[1:]) for x in edges]
    points = [x.ravel() for x in np.meshgrid(*centres, indexing="ij")]
    to_points = interpolation(grid, *points)
    # from the centres of the bins to the nodes
    node = np.meshgrid(np.exp(grid.log_q), grid.ecc, np.square(grid.root_inc), indexing="ij")
    coarse = [np.log(0.5 * (Q_EDGES[:-1] + Q_EDGES[1:])), 0.5 * (E_EDGES[:-1] + E_EDGES[1:])]
    coarse += [np.sqrt(0.5 * (inc_edges[:-1] + inc_edges[1:]))]
    coarse[0][0] = np.log(0.28)  # near-Earth orbits thin out towards the Sun
    coarse[1][-1] = 0.95
    places = [np.log(node[0]), node[1], np.sqrt(node[2])]
    index = np.stack(
        [np.interp(x, c, np.arange(len(c))) for x, c in zip(places, coarse, strict=True)]
    )

    def spread(values: np.ndarray) -> np.ndarray:
        return np.stack(
            [
                ndimage.map_coordinates(values[..., m], index, order=1, mode="nearest")
                for m in range(values.shape[-1])
            ],
            axis=-1,
        )

    log_f = spread(target)
    flat = log_f.reshape(-1, log_f.shape[-1])
    shape = (29, n, 8, n, 11, n, -1)
    has_volume = volume > 0.0
    for _ in range(40):
        at_points = np.exp(to_points @ flat) * parts.ravel()[:, None]
        mean = at_points.reshape(shape).sum((1, 3, 5))
        mean = mean / np.where(has_volume, volume, 1.0)[..., None]
        wrong = np.where(has_volume[..., None], target - np.log(np.maximum(mean, 1e-300)), 0.0)
        flat += spread(0.6 * np.clip(wrong, -1.0, 1.0)).reshape(flat.shape)
    ratio = np.exp(wrong) - 1.0
    weight = np.exp(target) * volume[..., None]
    for name, rows in (("near-Earth", slice(0, 8)), ("other", slice(8, 22))):
        error = np.sum(np.abs(ratio * weight)[rows]) / weight[rows].sum()
        total = np.sum((ratio * weight)[rows]) / weight[rows].sum()
        print(f"{name} bins are met to {error:.1%} in the mean, their total to {total:.2%}")
    return flat.reshape(log_f.shape)


def falls_on_earth(
    table: PriorTable, magnitude: float, rng: np.random.Generator, n: int = 800
) -> tuple[np.ndarray, np.ndarray]:
    """Objects that fall on the Earth in a year, in many parts, and the speed of each part [km/s].

    Those brighter than an absolute magnitude, by Monte Carlo integration: the density of orbits
    that pass the Earth in any direction, times their speed and the cross-section of the Earth. The
    speed is that at her surface.
    """
    km_s = DAY_S / AU_KM
    escape = 2.0 * GM_EARTH / R_EARTH
    edges = km_s * np.array([0.0, 1.0, 2.7, 5.0, 8.0, 13.0, 20.0, 30.0, 72.0])
    flux, entry = [], []
    for low, high in itertools.pairwise(edges):
        epoch = 57_000.0 + rng.uniform(0.0, 365.25, n)
        r, v = earth_state(epoch)
        speed = np.cbrt(rng.uniform(low**3, high**3, n))
        line = rng.standard_normal((n, 3))
        line *= (speed / np.linalg.norm(line, axis=1))[:, None]
        orbits = state_to_elements(equatorial_to_ecliptic(r), equatorial_to_ecliptic(v + line))
        axes = table.log_cumulative, table.start, table.step
        log_number = _evaluate(*axes, orbits.q, orbits.ecc, orbits.inc, np.full(n, magnitude))
        density = np.where(orbits.ecc < 1.0, np.exp(log_number), 0.0)
        # the cross-section of the Earth with its focusing
        section = np.pi * R_EARTH**2 * (1.0 + escape / speed**2)
        shell = 4.0 / 3.0 * np.pi * (high**3 - low**3)
        flux.append(365.25 * shell * density * speed * section / n)
        entry.append(np.sqrt(speed**2 + escape) / km_s)
    return np.concatenate(flux), np.concatenate(entry)


# The catalogue ------------------------------------------------------------------------------------


class Places(NamedTuple):
    """Places around the Earth, and how objects there are seen."""

    volume: np.ndarray
    """Part of space [au^3] that a place stands for."""
    sun: np.ndarray
    """Distance from the Sun [au]."""
    latitude: np.ndarray
    """Ecliptic latitude as seen from the Sun [rad]."""
    basis: np.ndarray
    """Directions away from the Sun, along with the orbits, and north, shape (3, 3, n)."""
    sight: np.ndarray
    """Direction from the Earth, shape (3, n)."""
    rho: np.ndarray
    """Distance from the Earth [au]."""
    magnitude: np.ndarray
    """Apparent magnitude of an object of H = 0."""
    sky: np.ndarray
    """Effort of the surveys at that place of the sky."""
    earth_velocity: np.ndarray
    """Shape (3, n) [au/d]."""


def draw_places(n: int, rng: np.random.Generator) -> Places:
    """Places at all distances alike in their logarithm, in all directions, at any time of the year.

    Axes are ecliptic; the Earth moves on a circle.
    """
    log_near, log_far = np.log(3e-5), np.log(6.0)
    rho = np.exp(rng.uniform(log_near, log_far, n))
    sight = rng.standard_normal((3, n))
    sight /= np.linalg.norm(sight, axis=0)
    longitude = rng.uniform(0.0, 2.0 * np.pi, n)
    cos, sin, zero = np.cos(longitude), np.sin(longitude), np.zeros(n)
    earth = np.stack([cos, sin, zero])
    earth_velocity = np.sqrt(GM_SUN) * np.stack([-sin, cos, zero])
    place = earth + rho * sight
    sun = np.linalg.norm(place, axis=0)
    away = place / sun
    level = np.hypot(away[0], away[1])
    east = np.stack([-away[1] / level, away[0] / level, zero])
    basis = np.stack([away, east, np.cross(away, east, axis=0)])
    cos_phase = np.sum(away * sight, axis=0)
    magnitude = hg_magnitude(0.0, USUAL_SLOPE, sun, rho, cos_phase)
    elongation = np.arccos(np.clip(-np.sum(earth * sight, axis=0), -1.0, 1.0))
    tilted = ecliptic_to_equatorial(sight.T)[:, 2]
    view = Aspect(magnitude, elongation, zero, tilted)
    sky = np.exp(Survey()._log_sky(view))
    volume = 4.0 * np.pi * rho**3 * (log_far - log_near) / n
    latitude = np.arcsin(away[2])
    return Places(volume, sun, latitude, basis, sight, rho, magnitude, sky, earth_velocity)


def visibility(grid: Grid, limit: float, seed: int, n: int) -> np.ndarray:
    """Share of its time in which an object can be found, for all cells of a grid.

    The time that orbits of any node, perihelion and anomaly spend in a place has a closed form
    (Kessler 1981, Icarus 48, 39), so that only directions and distances from the Earth are drawn:
    the smallest objects, in reach for a millionth of their time, cost no more than the others. The
    orbits of a cell are drawn too.
    """
    rng = np.random.default_rng(seed)
    places = draw_places(n, rng)
    survey = Survey()
    jitter = rng.uniform(-0.5, 0.5, (3, n))
    sign = rng.choice([-1.0, 1.0], (2, n))
    step = grid.step
    bins = np.arange(-25.0, 25.0, 0.1)
    faintness = limit - (bins + 0.05)[:, None] - grid.H
    chance = 1.0 / (1.0 + np.exp(-faintness / survey.softness))
    inc = [np.square(u + jitter[2] * step[2]) for u in grid.root_inc]
    sin_inc, cos_inc = [np.sin(x) for x in inc], [np.cos(x) for x in inc]
    # the drawn orbits of a cell count by the phase space that they stand for
    share = [np.sin(x) * np.sqrt(x) for x in inc]
    share = [x / x.mean() for x in share]
    sin_lat, cos_lat = np.sin(places.latitude), np.cos(places.latitude)
    result = np.zeros([len(axis) for axis in grid])
    for i, log_q in enumerate(grid.log_q):
        q = np.exp(log_q + jitter[0] * step[0])
        for j, middle in enumerate(grid.ecc):
            ecc = middle + jitter[1] * step[1]
            a = q / (1.0 - ecc)
            radial = (places.sun - q) * (a * (1.0 + ecc) - places.sun)
            reached = np.flatnonzero(radial > 0.0)
            for k in range(len(inc)):
                square = sin_inc[k][reached] ** 2 - sin_lat[reached] ** 2
                rows = reached[square > 0.0]
                if not len(rows):
                    continue
                square = square[square > 0.0]
                r = places.sun[rows]
                density = 1.0 / (2.0 * np.pi**3 * r * a[rows] * np.sqrt(square * radial[rows]))
                # the four velocities of such an orbit in such a place, one of them
                h = np.sqrt(GM_SUN * q[rows] * (1.0 + ecc[rows]))
                along = h / r * cos_inc[k][rows] / cos_lat[rows]
                north = sign[0][rows] * h / r * np.sqrt(square) / cos_lat[rows]
                out = sign[1][rows] * np.sqrt(GM_SUN / a[rows] * radial[rows]) / r
                velocity = (
                    out * places.basis[0][:, rows]
                    + along * places.basis[1][:, rows]
                    + north * places.basis[2][:, rows]
                    - places.earth_velocity[:, rows]
                )
                sight = places.sight[:, rows]
                across = velocity - np.sum(velocity * sight, axis=0) * sight
                rate = np.linalg.norm(across, axis=0) / places.rho[rows]
                seen_at = places.magnitude[rows] + _trailing_loss(rate)
                index = np.clip(((seen_at - bins[0]) / 0.1).astype(np.int64), 0, len(bins) - 1)
                weight = density * share[k][rows] * places.volume[rows] * places.sky[rows]
                result[i, j, k] = np.bincount(index, weight, len(bins)) @ chance
    return result


def catalogue(seed: int) -> tuple[Grid, np.ndarray]:
    """Grid and logarithm of the density of the known near-Earth objects."""
    grid = _grid(np.log(NEAR_EARTH_AU) - 0.05 * 38, 0.05, 40, np.arange(9.5, 32.0))
    known = load_catalogue()
    edges = [cell_edges(axis) for axis in grid]
    q_edges = np.minimum(np.exp(edges[0]), NEAR_EARTH_AU)
    volume = phase_space(q_edges, edges[1], np.square(np.maximum(edges[2], 0.0)))
    chance = visibility(grid, CATALOGUE_LIMIT_MAG, seed, 40_000)
    place = [np.log(known.q_au), known.ecc, np.sqrt(known.inc_rad), known.H_mag]
    usable = np.all([np.isfinite(x) for x in place], axis=0) & (known.n_obs > 0)
    # objects on which methods are judged have no part in what they know beforehand
    judged = pd.read_csv(NEVER_LEARNT_FILE, dtype=str)["designation"].to_numpy(dtype=np.str_)
    usable[known.find(judged)] = False
    found, _ = np.histogramdd(np.stack(place, axis=1)[usable], edges)
    model = read_prior(PRIORS_FOLDER / "population.npz")
    nodes = np.meshgrid(
        np.exp(grid.log_q), grid.ecc, np.square(grid.root_inc), grid.H, indexing="ij"
    )
    pilot = np.exp(evaluate(model, *nodes))
    expected = pilot * volume[..., None] * chance
    ratio = found.sum() / expected.sum()
    for scale in (8.0, 4.0, 2.0, 1.0):
        width = scale * np.array([1.0, 0.7, 0.7, 0.4])
        size = np.prod(np.maximum(2.0 * np.sqrt(np.pi) * width, 1.0))
        counts, hopes = (
            size * ndimage.gaussian_filter(x, width, mode="nearest") for x in (found, expected)
        )
        ratio = (counts + SHRINKAGE) / (hopes + SHRINKAGE / ratio)
    density = pilot * ratio
    density[volume[..., 0] == 0.0] = 0.0
    per_magnitude = np.sum(density * volume[..., None], axis=(0, 1, 2))
    print(f"{found.sum():.0f} found, {np.sum(density * volume[..., None] * chance):.0f} expected")
    return grid, np.log(density + floor_density(per_magnitude))


@numba.njit
def _evaluate(table, start, step, q, ecc, inc, H):
    result = np.empty(len(q))
    for k in range(len(q)):
        result[k] = log_density(table, start, step, q[k], ecc[k], inc[k], H[k])
    return result


def evaluate(prior: PriorTable, *place: np.ndarray) -> np.ndarray:
    """Logarithm of the density of a table at orbits and magnitudes of any shape."""
    flat = [x.ravel() for x in place]
    values = _evaluate(prior.log_density, prior.start, prior.step, *flat)
    return values.reshape(place[0].shape)


def numbers(grid: Grid, log_f: np.ndarray, q_range: tuple[float, float]) -> np.ndarray:
    """Numbers of objects per magnitude at the nodes of H, by perihelion distance.

    Integrals of the interpolated density over orbits of semimajor axes up to `A_MAX_AU`.
    """
    edges = [
        np.geomspace(*q_range, 80),
        np.linspace(0.0, 1.0, 81),
        np.square(np.linspace(0.0, np.sqrt(np.pi), 73)),
    ]
    centres = [np.sqrt(edges[0][1:] * edges[0][:-1])]
    centres += [0.5 * (x[:-1] + x[1:]) for x in edges[1:]]
    points = [x.ravel() for x in np.meshgrid(*centres, indexing="ij")]
    matrix = interpolation(grid, *points)
    values = np.exp(matrix @ log_f.reshape(-1, log_f.shape[-1]))
    return phase_space(*edges).ravel() @ values


def save(path: Path, grid: Grid, log_f: np.ndarray, **texts: str) -> None:
    """Write a table, its numbers rounded to the half precision that they deserve."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"log_density": log_f.astype(np.float16), "start": grid.start, "step": grid.step}
    np.savez_compressed(path, **arrays, **{name: np.array(text) for name, text in texts.items()})
    table = read_prior(path)
    print(f"{path}: {path.stat().st_size} bytes, {table.log_density.shape}")


def main() -> None:
    """Write a table and print what it holds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("table", choices=("population", "catalogue"))
    parser.add_argument("model", type=Path, nargs="?", help="digest2.model.csv")
    parser.add_argument("--date", default="", help="day on which the table is made")
    parser.add_argument("--seed", type=int, default=0, help="of the directions; for the catalogue")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    command = f"python docs/tools/priors.py {arguments.table}"
    if arguments.table == "population":
        grid, log_f = population(arguments.model)
        source = (
            "digest2 2.8.2, digest2.model.csv (public domain; Keys et al. 2019, PASP 131, 064501)"
        )
        command += " digest2.model.csv"
    else:
        grid, log_f = catalogue(arguments.seed)
        source = "the IAU Minor Planet Center's nea_extended of February 2026"
        command += f" --seed {arguments.seed}"
    output = arguments.output or PRIORS_FOLDER / f"{arguments.table}.npz"
    save(output, grid, log_f, source=source, command=command, date=arguments.date)
    near = numbers(grid, log_f, (0.02, NEAR_EARTH_AU))
    far = numbers(grid, log_f, (NEAR_EARTH_AU, 4.0))
    print("    H     q < 1.3 au      1.3 to 4 au")
    for H, a, b in zip(grid.H, near, far, strict=True):
        print(f"{H:5.1f} {a:14.1f} {b:15.1f}")
    if arguments.table == "population":
        falls, speed = falls_on_earth(read_prior(output), 30.0, np.random.default_rng(0))
        order = np.argsort(speed)
        share = np.cumsum(falls[order]) / falls.sum()
        middle, slow = np.interp(0.5, share, speed[order]), np.interp(11.5, speed[order], share)
        print(f"falls on the Earth in a year, brighter than H 30: {falls.sum():.2f}")
        print(f"their median speed {middle:.1f} km/s, {slow:.0%} slower than 11.5 km/s")


if __name__ == "__main__":
    main()
