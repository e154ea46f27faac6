"""
Asteroids that no network has met
=================================

What does a network say of an asteroid that is discovered tonight? Some hundred asteroids of the
catalogue were kept from every network of the package, training, choice and calibration alike. They
stand in for the new ones. Here are six of them, night by night, with what two networks answer to
each night alone.
"""

# %%
# Six of them
# -----------
# The list comes with the weights. Nights are simulated, so the truth is exact; the six are drawn at
# random from those on the list with nights enough.

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u
from astropy.time import Time

import neoranging as nr
from neoranging.lab.simulation import Twin
from neoranging.lab.study import plot_unseen, predict, score

listed = files("neoranging") / "data" / "weights" / "never_learnt.csv"
never_learnt = listed.read_text(encoding="utf-8").split()[1:]

arcs = Twin(objects=1024, seed=7).arcs()
arcs = arcs.take(np.isin(arcs["designation"], never_learnt))
names, counts = np.unique(arcs["designation"], return_counts=True)
six = sorted(np.random.default_rng(2).choice(names[counts >= 8], 6, replace=False))
arcs = arcs.take(np.isin(arcs["designation"], six))
print(arcs)

# %%
# What they are asked
# -------------------
# Each night becomes a tracklet, and each tracklet is answered without the others. The network knows
# nothing of the asteroid's name.

night = np.repeat(np.arange(len(arcs)), arcs.counts)
tracklets = nr.TrackletSet.from_arrays(
    Time(arcs["t_mjd_tdb"], format="mjd", scale="tdb"),
    arcs["ra_rad"] << u.rad,
    arcs["dec_rad"] << u.rad,
    station=arcs["stations"],
    tracklet=np.char.zfill(night.astype(str), 5),
    sigma=np.stack([arcs["sigma_ra_rad"], arcs["sigma_dec_rad"]], axis=1) << u.rad,
)

scored = []
for name in ("mlp", "pinn"):
    network = nr.get_estimator(name)
    low, high = tracklets.estimate(network).interval(0.68).to_value(u.au).T
    scores = score(arcs, predict(network, arcs)).assign(low=low, high=high)
    inside = scores["rho_true"].between(low, high)
    print(f"{name}: {inside.sum()} of {len(inside)} true ranges within their 68 % interval")
    scored.append(scores)

# %%
# Night by night
# --------------
# The line is the true range, marks are answers, bars are 68 % intervals: of ten, some seven should
# cross the line. Nights of one asteroid are alike, so one of six may well miss more often than
# that.

fig = plot_unseen(arcs, scored, six, n_arcs=12)
fig.set_size_inches(11.0, 6.5)

# %%
# The bars are long. That is what one night leaves open, and no network makes it shorter. Two nights
# do: :ref:`sphx_glr_gallery_plot_refine.py`.
#
# A study draws this figure for every method that it judges: :doc:`/guide/study`.

plt.show()
