"""
An impactor, nineteen hours before
==================================

On 6 October 2008 the Catalina Sky Survey took eight positions of a new object from Mount Lemmon. It
was named 2008 TC3, and fell the next night over Sudan. What did these eight positions know of it?
"""

# %%
# The probability of an impact
# ----------------------------
# Orbits are drawn from the posterior of the night and followed under Sun, Earth and Moon. Under the
# population of the solar system and under a prior that takes near objects for common the answer is
# the same, so it rests on the observations.

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u
from astropy.time import Time

import neoranging as nr

night = nr.read_tracklets(nr.sample("impactors"))
discovery = night[1]
estimate = discovery.estimate(method="systematic")
impacts = estimate.impacts()
print(discovery)
print(impacts)
print(f"log-uniform: {estimate.impact_probability(prior='log-uniform'):.4f}")
print(f"at least {impacts.lower_limit():.4f} by the number of draws")

# %%
# When, where, how large
# ----------------------

early, late = (impacts.time_quantile(q).iso[:16] for q in (0.05, 0.95))
print(f"when   {early} to {late} UTC (90 %)")
print(f"speed  {impacts.entry_speed.mean():.1f} at {impacts.entry_angle.mean():.0f} to the horizon")
print(f"H      {impacts.absolute_magnitude.mean():.1f}: 2 to 5 m across")

# %%
# Eight positions know the path in space to some hundred kilometres across, and the instant of the
# fall to an hour. Within this hour the Earth turns, so the places of the falls are a line. The map
# has cities for coasts. The fall was at the cross (Jenniskens et al. 2009, Nature 458, 485).

cities = {
    "Dakar": (-17.4, 14.7),
    "Casablanca": (-7.6, 33.6),
    "Algiers": (3.1, 36.8),
    "Lagos": (3.4, 6.5),
    "Tripoli": (13.2, 32.9),
    "N'Djamena": (15.0, 12.1),
    "Cairo": (31.2, 30.0),
    "Khartoum": (32.5, 15.6),
    "Addis Ababa": (38.7, 9.0),
    "Mecca": (39.8, 21.4),
}
fell, place = Time("2008-10-07T02:46"), (32.2, 20.8)

fig, ax = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
hours = (impacts.time - Time("2008-10-07T00:00")).to_value(u.h)
dots = ax.scatter(
    impacts.location.lon.deg, impacts.location.lat.deg, c=hours, s=4, cmap="viridis", vmin=2, vmax=6
)
ax.plot(*place, "x", color="tab:red", ms=11, mew=2.5, label=f"fell {fell.iso[:16]} UTC")
for name, (lon, lat) in cities.items():
    ax.plot(lon, lat, "o", color="0.35", ms=3)
    ax.annotate(name, (lon, lat), (4, 3), textcoords="offset points", fontsize=8, color="0.35")
ax.set(xlim=(-35, 50), ylim=(2, 40), xlabel="longitude east [deg]", ylabel="latitude [deg]")
ax.set_aspect(1.0 / np.cos(np.radians(21.0)))
ax.grid(color="0.9")
ax.set_axisbelow(True)
ax.legend(loc="lower left")
fig.colorbar(dots, label="fall, 7 October 2008 [h UTC]", shrink=0.75)

# %%
# Ten minutes of it
# -----------------
# In the same night Sabino Canyon Observatory took three positions within ten minutes. Alone they
# would have been a riddle: the population takes the object for one that passes far away, and the
# prior of alarm for an impactor in one of fifteen cases. Such a tracklet asks for another position
# an hour later, not for a siren.

short = night[2].estimate(method="systematic")
for prior in (None, "log-uniform"):
    part = short.impacts(prior=prior)
    print(f"{prior or 'population'}: {part.probability:.4f} +- {part.error:.4f}")

# %%
# The nearest distances of all draws show why. Under the population next to none comes within the
# distance of the Moon, 0.0026 au; under the other prior many do, and a part of them falls.

fig, ax = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
bins = np.geomspace(3e-5, 1.0, 50)
for prior, color in ((None, "tab:blue"), ("log-uniform", "tab:orange")):
    part = short.impacts(prior=prior)
    ax.hist(
        part.nearest_distance.value,
        bins,
        weights=np.full(part.n_draws, 1.0 / part.n_draws),
        histtype="step",
        lw=1.8,
        color=color,
        label=f"{prior or 'population'}: {part.probability:.2%} fall",
    )
ax.axvline(6378.137 / 149_597_870.7, color="0.4", lw=1, ls=":")
ax.text(4.6e-5, 0.9, "surface", transform=ax.get_xaxis_transform(), color="0.4", fontsize=9)
ax.set(xscale="log", xlabel="least distance from the Earth's centre [au]", ylabel="share of draws")
ax.legend()
