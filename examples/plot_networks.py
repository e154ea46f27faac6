"""
A network on a discovery night
==============================

Most discovery nights do not determine a range: the arc is too short for its curvature to stand
above the errors. A classical method then has no answer that can be used. A network has learnt
from hundreds of thousands of nights with known ranges, and answers with the range that nights
like this one mostly have. This example asks all four methods of the package about the same
nights, and shows how far their answers can be used.
"""

# %%
# One night, four methods
# -----------------------
# The discovery of 2024 YR4: three exposures within an hour. All methods are asked in the same way,
# by name. ``gauss`` and ``laplace`` solve equations; ``mlp`` and ``pinn`` are the
# networks that come with the package. The PINN also learnt the equation of motion.

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

import neoranging as nr

methods = ("gauss", "laplace", "mlp", "pinn")
tracklet = nr.read_tracklets(nr.sample("2024YR4"))[1]
print(tracklet)

estimates = {method: tracklet.estimate(method) for method in methods}
for estimate in estimates.values():
    print(estimate)

# %%
# What was the range really? The sample comes with it, from an orbit fitted to 26 days of
# observations.

reference = nr.reference_ranges()


def true_row(epoch):
    """Row of the true range at an epoch."""
    return reference[np.argmin(abs(reference["obstime"] - epoch))]


truth = true_row(estimates["mlp"].epoch)
print(f"true range {truth['range']:.4f}, range-rate {truth['range_rate']:+.4f}")

# %%
# Read the status first
# ---------------------
# ``OK`` means that the observations *determine* the range. The answer of a network mostly rests on
# something else, on what near-Earth objects that move like this mostly do, for which the status is
# ``POPULATION``. Such a number must be quoted with its interval.

for method, estimate in estimates.items():
    print(f"{method:8} {estimate.status.name}")

# %%
# Then the interval
# -----------------
# How far off a method may be was counted on thousands of simulated nights that it had not seen. So
# each answer has an interval: of nights that move as fast as this one, the given share lay within.
# Where a method has no answer, the interval is the whole admissible range.

for method, estimate in estimates.items():
    low, high = estimate.interval(0.68)
    wide_low, wide_high = estimate.interval(0.95)
    print(
        f"{method:8} 68%: {low.value:.5f} to {high.value:.5f} au"
        f"   95%: {wide_low.value:.5f} to {wide_high.value:.5f} au"
    )

# %%
# All four in the plane of range and range-rate. Shaded is what is admissible at all.

looks = {
    "gauss": {"color": "#D55E00", "marker": "s"},
    "laplace": {"color": "#E69F00", "marker": "D"},
    "mlp": {"color": "#0072B2", "marker": "o"},
    "pinn": {"color": "#009E73", "marker": "^"},
}


def bars(estimate):
    """Lengths of the bars to either end of the intervals, which are centred on no number."""
    rho, (low, high) = estimate.range.value, estimate.interval(0.68).value.T
    return np.maximum([rho - low, high - rho], 0.0).reshape(2, -1)


region = tracklet.attributable().admissible_region()
ax = region.plot(legend=False)
for method, estimate in estimates.items():
    ax.errorbar(
        estimate.range.value,
        estimate.range_rate.value,
        xerr=bars(estimate),
        linestyle="none",
        capsize=3,
        label=method,
        **looks[method],
    )
x, y = truth["range"].value, truth["range_rate"].value
ax.plot(x, y, "k+", markersize=16, markeredgewidth=2, label="true", zorder=6)
ax.legend(loc="lower left", bbox_to_anchor=(0.1, 0.13))  # off the edge of the region
ax.set_title("2024 YR4, discovery night; bars: 68 % intervals of the range")

# %%
# A whole night at once
# ---------------------
# A network takes one tracklet or a night's worth of them; it is fastest with many. Here are all
# tracklets of both samples with real observations. Nothing is dropped: each has its row and its
# status.

tracklets = nr.read_tracklets([nr.sample("impactors"), nr.sample("2024YR4")])
night = {method: tracklets.estimate(method) for method in methods}
for estimate in night.values():
    print(estimate)

table = night["mlp"].to_table()
columns = table["designation", "station", "range", "range_low", "range_high", "status"]
for name in ("range", "range_low", "range_high"):
    columns[name].info.format = ".4f"
columns.pprint(max_width=-1)

# %%
# Two epochs are enough for a network. Where a tracklet is unlike all that was trained on, the
# status is ``OUTSIDE_TRAINING_DOMAIN`` and the diagnostics name the feature: the number beside it
# is an extrapolation.

for name, status, remark in zip(
    table["designation"], table["status"], night["mlp"].diagnostics, strict=True
):
    if remark:
        print(f"{name}: {status}, {remark}")

# %%
# Against the truth
# -----------------
# Each tracklet with its true range and the answers of all methods. Where a method has no answer,
# there is no mark.

true_range = np.array([true_row(epoch)["range"].value for epoch in night["mlp"].epoch])
place = np.arange(len(tracklets))

fig, ax = plt.subplots(figsize=(9.0, 5.0), layout="constrained")
for k, (method, estimate) in enumerate(night.items()):
    answered = np.isfinite(estimate.range.value)
    ax.errorbar(
        place[answered] + 0.17 * (k - 1.5),
        estimate.range.value[answered],
        yerr=bars(estimate)[:, answered],
        linestyle="none",
        markersize=5,
        elinewidth=1,
        label=method,
        **looks[method],
    )
ax.hlines(true_range, place - 0.4, place + 0.4, color="black", linewidth=2, label="true", zorder=5)
labels = [f"{row['designation']}\n{row['station']}" for row in table]
ax.set_xticks(place, labels, rotation=45)
ax.set_yscale("log")
ax.set_ylabel("range [au]")
ax.set_title("ten tracklets; bars: 68 % intervals")
ax.legend(ncols=5, loc="upper left")
ax.grid(axis="y", alpha=0.25)

# %%
# How many truths lie within their intervals? Without an answer the interval is the whole admissible
# range, which is never wrong and says little.

for method, estimate in night.items():
    low, high = estimate.interval(0.68).to_value(u.au).T
    inside = (low <= true_range) & (true_range <= high)
    print(f"{method:8} {inside.sum():2d} of {len(inside)}")

# %%
# Do not expect seven of ten. The promise of an interval is about ordinary nights, and these ten
# are none: they were picked because the objects came extraordinarily near, and some were about to
# hit the Earth. A network leans towards what is usual, and what is usual is farther away. Where
# parallax is strong, the classical methods see it and have the status ``OK``: take their answers.
#
# The model card
# --------------
# Every network carries a record of its making: data, recipe, and how far off it was on objects that
# it never saw. The objects of the samples were kept from its training, too.

card = nr.get_estimator("mlp").card
print("learnt from", card["train"]["n_arcs"], "arcs of", card["train"]["n_objects"], "objects")
print("a simulated set made with", card["train"]["settings"])
for key, value in card["metrics"]["validation"].items():
    print(f"{key:24} {value:.3g}")

# %%
# What to take away
# -----------------
# - A network always answers; the status says what its answer rests on.
# - Its answer is the range that such nights *mostly* have. Quote the interval, never the number
#   alone.
# - Where Gauss or Laplace have the status ``OK``, the observations determine the range: take
#   their answer.
#
# How networks see a night and how to train your own: :doc:`/guide/networks`. What ``OK`` means
# without a network: :doc:`/guide/classical_methods`. How intervals are made, by hand:
# :doc:`/gallery/plot_intervals`, and in the package: :doc:`/guide/intervals`.

plt.show()

# sphinx_gallery_thumbnail_number = 2
