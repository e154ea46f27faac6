"""
All that one night tells
========================

A range with an error bar is one number and one width. What a night really leaves open is a
distribution over range and range-rate: sometimes a speck, sometimes a long ridge, sometimes two
islands. ``method="systematic"`` computes it, from the law of the errors and from what is known of
the orbits that there are. This example shows one night of each kind.
"""

# %%
# A speck
# -------
# The discovery of 2008 TC3: eight observations in two hours, from Mount Lemmon. The object was so
# near that the turning Earth, which carries the telescope around, shows its distance.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from astropy import units as u

import neoranging as nr

impactors = nr.read_tracklets(nr.sample("impactors"))
reference = nr.reference_ranges()


def true_row(estimate):
    """Row of the true range nearest to the epoch of an estimate."""
    return reference[np.argmin(abs(reference["obstime"] - estimate.epoch))]


speck = impactors[1].estimate(method="systematic")
truth = true_row(speck)
low, high = speck.interval(0.95)
print(speck)
print(f"95 %  {low:.5f} to {high:.5f}")
print(f"JPL   {truth['range']:.5f}")

# %%
# The status is ``OK``: the range is confined whatever one believes about orbits. The figure shows
# the admissible region cut to where the probability is, the lines that hold 68 and 95 % of it, and
# the densities of range and range-rate at the sides.

speck.plot(truth=(truth["range"], truth["range_rate"]))

# %%
# Two islands
# -----------
# Another famous object on a poor night: 2024 YR4 a month after its discovery, four exposures of
# Pan-STARRS 2 in 49 minutes near opposition. It moved slowly, and slow motion has two
# explanations: something far away, or something near that happens to keep up with the Earth.

night = pd.DataFrame(
    {
        "designation": "2024 YR4",
        "obstime": [
            "2025-01-22T08:00:49.569",
            "2025-01-22T08:17:17.409",
            "2025-01-22T08:33:47.291",
            "2025-01-22T08:50:15.648",
        ],
        "ra": [119.348009, 119.346815, 119.345530, 119.344229],
        "dec": [11.669998, 11.671066, 11.672124, 11.673228],
        "mag": [22.01, 21.92, 21.51, 21.64],
        "band": "G",
        "station": "F52",
    }
)
tracklet = nr.read_tracklets(night)[0]
islands = tracklet.estimate(method="systematic")
print(islands)
for low, high in islands.credible_region(0.95):
    share = islands.cdf(high) - islands.cdf(low)
    print(f"{low:.3f} to {high:.3f}: {share:.0%}")

# %%
# The region is in two pieces, and the median, which the star in the figure marks, sums up neither.
# What the object may be depends on the piece:

between = 2.0 * u.au
orbits = islands.samples(4000, rng=1)
for name, part in (
    ("near", orbits.range < between),
    ("distant", orbits.range > between),
):
    perihelion = np.median(orbits.elements.q[part])
    magnitude = np.median(orbits.absolute_magnitude[part])
    print(f"{name:8} {part.mean():.0%}, median perihelion {perihelion:.2f}, H {magnitude:.1f}")

print(f"near-Earth object: {islands.probability('neo'):.0%}")

# %%
# Later observations tell that it was the near one; from the orbit of the Minor Planet Center the
# range was 0.237 au. Who already knows that the object is a near-Earth one says so by the prior
# ``near-earth``, and the far island is gone.

vetted = tracklet.estimate(method="systematic@near-earth")
print(vetted.credible_region(0.95).round(3))

true = 0.2374 * u.au, 0.0093 * u.au / u.d
islands.plot(truth=true)

# %%
# A ridge
# -------
# 2008 TC3 once more, hours before it fell: eight positions from Siding Spring, but in six minutes.
# Its distance does not show. The prior then decides: among all objects that move like this, hardly
# any is about to hit the Earth. For a watch that must not miss the exception there is the prior
# ``log-uniform``, which takes each factor of ten in distance for as likely as the next.

brief = impactors[3]
answers = {
    prior: brief.estimate(method="systematic", prior=prior)
    for prior in ("population", "log-uniform")
}
true_range = true_row(answers["population"])["range"]

rho = np.geomspace(5e-4, 1.0, 500) * u.au
fig, ax = plt.subplots(layout="constrained")
for (prior, answer), color in zip(answers.items(), ("#0072B2", "#D55E00"), strict=True):
    low, high = answer.interval(0.95)
    inside = "inside" if low < true_range < high else "outside"
    print(f"{prior:12} 95 %: {low:.4f} to {high:.4f}, the true {true_range:.4f} is {inside}")
    ax.plot(rho, rho * answer.pdf(rho), color=color, label=prior)
    ax.axvspan(low.value, high.value, color=color, alpha=0.12)
ax.axvline(true_range.value, color="black", linestyle="--", label="true")
ax.set(xscale="log", xlabel="range [au]", ylabel="density in the logarithm of the range")
ax.set_title("2008 TC3, six minutes from E12; shaded: 95 % intervals")
ax.legend()

# %%
# Neither curve is wrong. They answer two questions: how far such objects mostly are, and how near
# this one could be. :doc:`/guide/posterior` says which to ask when.

plt.show()

# sphinx_gallery_thumbnail_number = 2
