"""
Intervals that hold
===================

A range without an error is half an answer. Where the observations determine the range, their
errors can be carried through. Mostly they do not, and a network has no errors to carry. There is a
way that always works: ask the method about many nights whose truth is known, and count how far off
it was. This example does that by hand first, then with the package, and checks on other asteroids
whether the intervals hold.
"""

# %%
# Nights with known truth
# -----------------------
# A thousand known orbits, and nights on which surveys might have observed them. The nights are
# simulated, so the truth is exact. The network has seen none of these nights, although it learnt
# from other nights of many of these orbits. A few asteroids are observed on hundreds of nights; ten
# of each will do.

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

import neoranging as nr
from neoranging.lab.simulation import Twin
from neoranging.lab.study import (
    CalibrationSample,
    Selection,
    coverage,
    cross_conformal,
    plot_half_widths,
    plot_reliability,
)

twin = Twin(objects=1024, seed=11)
arcs = twin.arcs()
arcs = Selection(cap=10).of(arcs)
print(arcs)

samples = {name: CalibrationSample.of(nr.get_estimator(name), [arcs]) for name in ("gauss", "mlp")}
for sample in samples.values():
    print(sample)

# %%
# The asteroids are dealt into two halves. From the first we learn how far off the network is; the
# second is for the test. It must be whole asteroids: two nights of one are alike, and a test on a
# night whose neighbour was learnt from is no test.

mlp = samples["mlp"]
objects = np.unique(mlp.truth.designation)
half = np.random.default_rng(1).permutation(objects)[: len(objects) // 2]
to_learn = np.isin(mlp.truth.designation, half)
print(f"{to_learn.sum()} arcs to learn from, {(~to_learn).sum()} to test")

# %%
# By hand
# -------
# How far off is an answer? Ranges go over powers of ten, so count in factors: the logarithm of
# answer over truth. Put these errors in order, and see below which of them 68 % lie. This number,
# to either side of a new answer, is the interval.

off = np.abs(np.log(mlp.answers.rho / mlp.truth.rho))
width = np.quantile(off[to_learn], 0.68)
print(f"68 % of the answers are right within a factor of {np.exp(width):.2f}")
print(f"on the other asteroids: {np.mean(off[~to_learn] <= width):.1%}")

# %%
# That is the whole trick. It asks nothing of the method, nor of the shape of its errors. But look
# at whom it serves. Sort the arcs by their motion on the sky, in ten groups from slow to fast, and
# count again in each of them.

eta = mlp.answers.eta
edges = np.quantile(eta[to_learn], np.linspace(0.1, 0.9, 9))
decile = np.searchsorted(edges, eta)
widths = np.array([np.quantile(off[to_learn & (decile == k)], 0.68) for k in range(10)])

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
left.semilogx(np.degrees(eta), mlp.answers.rho / mlp.truth.rho, ",", color="#0072B2", alpha=0.5)
ends = np.degrees([eta.min(), *edges, eta.max()])
for sign in (-1, 1):
    left.stairs(np.exp(sign * widths), ends, baseline=None, color="#D55E00", linewidth=2)
    left.axhline(np.exp(sign * width), color="black", linestyle="--")
left.set_yscale("log")
left.set_ylim(1 / 6, 6)
left.set_yticks([0.2, 0.5, 1, 2, 5], ["1/5", "1/2", "1", "2", "5"])
left.yaxis.set_minor_locator(plt.NullLocator())
left.set_title("answers of the network, and widths of 68 %")
left.set_xlabel("proper motion [deg/d]")
left.set_ylabel("answer over truth")

for wide, color, mark, label in (
    (np.full(10, width), "black", "s", "one width for all"),
    (widths, "#D55E00", "o", "a width for each tenth"),
):
    share = [np.mean(off[~to_learn & (decile == k)] <= wide[k]) for k in range(10)]
    right.plot(
        np.arange(1, 11), 100 * np.array(share), mark, linestyle=":", color=color, label=label
    )
right.axhline(68.0, color="grey", linewidth=1)
right.set_ylim(30, 100)
right.set_xticks(range(1, 11))
right.set_title("how often these intervals hold")
right.set_xlabel("tenth of the arcs, slow to fast")
right.set_ylabel("truth within the interval [%]")
right.legend(loc="lower right")
for ax in (left, right):
    ax.grid(alpha=0.25)

# %%
# On the left each point is an arc. The broken lines are one width for all, the steps a width for
# each tenth. With one width, some speeds are promised too much and others too little, and the
# misses make up for each other only in the mean. A width of its own brings most tenths nearer to
# the promise. What is left is mostly chance: a few hundred arcs are a small sample.
#
# With the package
# ----------------
# A `~neoranging.calibration.Calibration` is just this: widths by tenths of the proper motion and,
# within each, by the length of the arc (or by fewer parts, where arcs are few), for every level,
# and apart for answers that are ``OK`` and those that are not. ``cross_conformal`` learns on each
# half of the asteroids and tests on the other. It takes any method; of a classical one it serves
# the doubtful answers, too.

crosswise = {
    name: cross_conformal(each, levels=(0.2, 0.4, 0.5, 0.68, 0.8, 0.9, 0.95), folds=2)
    for name, each in samples.items()
}
covered = {name: coverage(samples[name], each) for name, each in crosswise.items()}
columns = ["level", "n_arcs", "n_objects", "per_arc", "per_object", "median_ratio"]
for name, rows in covered.items():
    print(name)
    answered = rows.loc[rows["stratum"] == "answered", columns]
    print(answered.to_string(index=False, float_format="{:.3g}".format))

# %%
# Promised on one axis, kept on the other. Hollow marks count asteroids instead of arcs, lest those
# that are seen on many nights decide.

fig = plot_reliability(covered)
fig.suptitle("share of truths inside, promised and kept")
fig.set_size_inches(5.5, 6.0)

# %%
# How wide?
# ---------
# To hold is one thing, to be narrow another. The widths tell which method knows more, and for which
# speeds: here at 68 %, in astronomical units on the left, on the right as a factor.

fig = plot_half_widths(covered, level=0.68)
fig.suptitle("half widths of 68 % intervals by proper motion")
fig.set_size_inches(10.0, 4.0)

# %%
# A slow mover may be near or far, and the intervals show it. The interval never reaches beyond what
# is admissible, so even a method that knows nothing has a finite width.
#
# For a night of your own
# -----------------------
# The methods of the package come calibrated on thousands of asteroids: networks on asteroids that
# they have not learnt from, Gauss and Laplace on another simulated set, whose errors are as large
# as the observations claim. ``interval`` uses that calibration. Without it the interval is what the
# observations alone imply.

tracklet = nr.read_tracklets(nr.sample("2024YR4"))[1]
print(tracklet)
for name in samples:
    estimate = tracklet.estimate(name)
    for calibrated in (True, False):
        low, high = estimate.interval(0.68, calibrated=calibrated).to_value(u.au)
        print(f"{name:6} calibrated: {calibrated!s:6} {low:.5f} to {high:.5f} au")

# %%
# What to take away
# -----------------
# - An interval that was counted on known nights holds for any method, however poor; a poor method
#   has wide ones.
# - It holds for nights like those it was counted on. An asteroid chosen because it is about to hit
#   the Earth is not like them: see :doc:`/gallery/plot_networks`.
# - Count by speed and length of arc, and divide by asteroid.
#
# All about calibrations: :doc:`/guide/intervals`. The same for a method of your own:
# :doc:`/gallery/plot_own_estimator`. What classical methods carry through:
# :doc:`/guide/classical_methods`.

plt.show()

# sphinx_gallery_thumbnail_number = 1
