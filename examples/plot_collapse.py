"""
Why Gauss's method collapses onto the observer
==============================================

In published comparisons on near-Earth asteroids Gauss's method fails badly: nine of ten of its
ranges come out below a thousandth of an astronomical unit, nearer than the Moon. The method is two
centuries old and found Ceres again. This example looks for the reason, and finds it in one
assumption: that the observer stands in the centre of the Earth.
"""

# %%
# Two asteroids, two observers
# ----------------------------
# 2008 TC3 on its discovery night, less than a day before it fell on Sudan, and the discovery of
# 2024 YR4. Gauss's method is asked twice: with the observer where he stood, and with an observer in
# the centre of the Earth who is said to have seen the same positions.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from astropy import units as u
from astropy.constants import au

import neoranging as nr
from neoranging.lab.simulation import Twin
from neoranging.lab.study import (
    diurnal_signal,
    plot_collapse,
    predict,
    score,
    side_by_side,
    summarise,
)

COLLAPSED = 1e-3  # au: below, the range is that of a root at the observer

truth = nr.reference_ranges()
tracklets = nr.read_tracklets([nr.sample("impactors"), nr.sample("2024YR4")])[[1, 6]]
for tracklet in tracklets:
    print(tracklet)
    row = truth[np.argmin(abs(truth["obstime"] - tracklet.attributable().epoch))]
    print(f"    true range {row['range']:.5f}")
    for origin in ("topocenter", "geocenter"):
        print("   ", tracklet.estimate("gauss", origin=origin))

# %%
# From where he stood, the range of 2008 TC3 is right and the method says ``OK``; that of 2024 YR4
# is of the right size, and the method says that the night does not determine it. From the centre
# of the Earth the one has no range, and the other is placed inside the Earth.
#
# What the Earth does to an arc
# -----------------------------
# The Earth turns and carries the station along a curved path. Whoever watches from a moving place
# sees near things wander the other way. A steady motion of the station would only look like a
# motion of the asteroid; but the path bends, and so does the arc on the sky. The left panel shows
# how far the station leaves a straight line in the time of the arc, the right one by what angle an
# asteroid is displaced by it.

tracklet, first = tracklets[0], tracklets[[0]]
station = first.arcs("topocenter").position - first.arcs("geocenter").position
minutes = (tracklet.obstime - tracklet.obstime[0]).to_value(u.min)
bend = station - np.stack([np.polyval(np.polyfit(minutes, x, 1), minutes) for x in station.T], 1)
bend = bend @ np.linalg.svd(bend)[2][0]  # along the direction in which it is largest

rho = np.geomspace(1e-3, 3.0, 100)
displacement = (np.ptp(bend) / rho * u.rad).to_value(u.arcsec)
error = np.median(tracklet.sigma.to_value(u.arcsec))
near = np.argmin(abs(truth["obstime"] - tracklet.attributable().epoch))

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
left.plot(minutes, bend * au.to_value(u.km), "o-", color="#0072B2")
left.set_title("path of the station, bent by the turn of the Earth")
left.set_xlabel("time since the first observation [min]")
left.set_ylabel("station, off a straight line [km]")
right.loglog(rho, displacement, color="#0072B2", label="bend by the turn of the Earth")
right.axhline(error, color="#D55E00", linestyle="--", label="error of a position")
right.axvline(truth["range"][near].to_value(u.au), color="black", linestyle=":", label="2008 TC3")
right.set_title("the same bend, seen in the arc of an asteroid")
right.set_xlabel("range [au]")
right.set_ylabel("angle [arcsec]")
right.legend()
for ax in (left, right):
    ax.grid(alpha=0.25)

# %%
# A bend of the arc is just what Gauss's method feeds on: it takes it for the pull of the Sun and
# solves for the range. Told where the station was, the method knows the Earth's part; near the
# Earth that part *is* the signal. Told that the observer sat in the centre of the Earth, it still
# has to explain the bend. Only an asteroid right beside the observer, on the same path about the
# Sun, could curve like that. So that is its answer; or it finds none, if the bend is the wrong way.
#
# Many asteroids
# --------------
# Is it always so? Three hundred known orbits, and simulated nights on which the surveys of four
# decades might have observed them. The errors are those of real stations, and the truth is known.

arcs, account = Twin(objects=300, seed=4).block(0)
print(arcs)

scored = {}
for origin in ("geocenter", "topocenter"):
    answers = predict("gauss", arcs, origin=origin, label=f"gauss ({origin})")
    scored[origin] = score(arcs, answers)

# %%
# The figures of both, with 95 % intervals in brackets. Each is judged by the true range from where
# it counts.

figures = ("solved", "ok", "collapsed", "p_ar", "median_rho", "median_rho_true")
table = pd.concat(summarise(scores, metrics=figures) for scores in scored.values())
print(side_by_side(table).to_string(index=False))

# %%
# The cause, predicted
# --------------------
# If the missing station is the cause, then the collapsed range can be told beforehand, without
# asking the method. In the equation of Gauss the range is an acceleration divided by a curvature.
# With the station it is the acceleration of the station by the turn of the Earth. Without it there
# remains what the Earth as a whole has: the pull of the Moon, some thousand times less. So a
# collapsed range should be the range from the station, times the ratio of the two accelerations.

signal = diurnal_signal(arcs)
fig = plot_collapse(scored["geocenter"], scored["topocenter"], signal)
fig.set_size_inches(10.5, 4.0)

# %%
# Panel (a) has the ranges from the centre against those from the station: a band far below the
# broken line of equal ranges. In panel (b) arcs are sorted by how far the bend by the turn of the
# Earth stands above the errors. From the centre most answers collapse everywhere. From the station
# they do so only at the left end, where the arc is too short for any bend to be seen. Panel (c) has
# the collapsed ranges against the prediction. They fall on the line: the collapse is made by the
# missing station and by nothing else.
#
# A collapsed range hardly ever has the status ``OK``:

for name, scores in scored.items():
    collapsed = scores.answered & (scores.rho < COLLAPSED)
    n_ok = (collapsed & scores.ok).sum()
    print(f"{name}: {collapsed.sum()} of {len(scores)} collapsed, {n_ok} of them OK")

# %%
# What to take away
# -----------------
# - Classical methods do not fail on near-Earth asteroids because they are old. They fail when they
#   are given the centre of the Earth for an observer.
# - The turn of the Earth is not a nuisance. For a near object it is the only signal there is.
# - ``origin="topocenter"`` is the default, here and in every method of the package.
#
# The equations: :doc:`/guide/classical_methods`. What a night can tell at all:
# :doc:`/guide/ranging_problem`. Where the simulated arcs come from: :doc:`/guide/datasets`. The
# same for a whole set, with all methods: :doc:`/guide/study`.

plt.show()

# sphinx_gallery_thumbnail_number = 2
