"""
The admissible region of a slow and a fast mover
================================================

A direction and a motion on the sky leave two numbers open, range and range-rate. Which pairs of
them belong to an asteroid? Those that make an orbit bound to the Sun, not bound to the Earth,
outside the Earth: the admissible region. Its shape is governed by the speed on the sky.
"""

# %%
# Two attributables
# -----------------
# The fast one is 2014 AA on its discovery night, less than a day before it fell into the
# Atlantic. The slow one is made up: the motion that an asteroid of the main belt shows near
# opposition, a quarter of a degree a day westward, seen the same night from the same place.

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u
from astropy.time import Time

import neoranging as nr

night = nr.read_tracklets(nr.sample("impactors"))
fast = night[-1].attributable()
slow = nr.Attributable(
    Time("2014-01-01T06:45", scale="utc"),
    ra=101.0 * u.deg,
    dec=23.0 * u.deg,
    ra_rate=-0.25 * u.deg / u.day,
    dec_rate=0.02 * u.deg / u.day,
    station="G96",
)
movers = {"fast": fast, "slow": slow}
for name, attributable in movers.items():
    print(f"{name}: {attributable.proper_motion.to('deg/d'):.2f}")

# %%
# Their regions
# -------------
# A fast mover must be near: at a large range its speed across the line of sight would exceed the
# velocity of escape from the Sun. A slow mover may be near as well as far, and it may also be
# moving along the line of sight; near the Earth, slow motion is that of a satellite, which is
# left out.

fig, axes = plt.subplots(1, 2, figsize=(10.0, 4.2), sharey=True, layout="constrained")
for ax, (name, attributable) in zip(axes, movers.items(), strict=True):
    region = attributable.admissible_region()
    region.plot(ax=ax, legend=False)
    ax.set_xlim(3e-5, 60.0)
    ax.set_title(f"{name}: {attributable.proper_motion.to_value('deg/d'):.2f} deg/d")
    for low, high in region.components:
        print(f"{name}: {low:.5f} to {high:.4f}, area {region.area:.3g}")
axes[0].legend(loc="upper right")
axes[1].set_ylabel("")

# %%
# What the region is made of
# --------------------------
# The region is where the heliocentric energy is negative, less the orbits bound to the Earth. With
# limits it becomes smaller: orbits no larger than 3.5 au, and objects no fainter than H = 30 (at
# the magnitude 19 of the night), which is a limit to the nearest range.

region = fast.admissible_region()
limited = fast.admissible_region(a_max=3.5 * u.au, h_max=30.0, mag=19.0)

rho = np.geomspace(5e-5, 1.0, 300) * u.au
rho_dot = np.linspace(-0.035, 0.035, 300) * u.au / u.day
energy = region.energy(rho, rho_dot[:, None]).to_value((u.au / u.day) ** 2)

fig, ax = plt.subplots(figsize=(7.4, 4.8), layout="constrained")
filled = ax.contourf(
    rho.to_value(u.au),
    rho_dot.to_value(u.au / u.day),
    energy * 1e4,
    levels=np.arange(-4.0, 4.5, 0.5),
    cmap="RdBu",
    extend="both",
)
fig.colorbar(filled, label="heliocentric energy [1e-4 au$^2$/d$^2$]")
region.plot(ax=ax, color="none", label=None, show_earth_bound=False, legend=False)
limited.plot(
    ax=ax, color="#009E73", label="a < 3.5 au, H < 30", show_earth_bound=False, legend=False
)
ax.legend(loc="upper right")
ax.set_title("2014 AA, discovery night; blue line: the whole region")

# %%
# Points of the region
# --------------------
# Random points of the region are the starting point of statistical ranging. Uniform in the
# logarithm of the range they do justice to the near end. Each of them is an orbit:

rng = np.random.default_rng(2014)
rho, rho_dot = limited.sample(400, rng, spacing="log")
orbits = nr.OrbitalElements.from_state(*fast.state(rho, rho_dot))
print(orbits)

fig, ax = plt.subplots(figsize=(7.0, 4.6), layout="constrained")
points = ax.scatter(orbits.a.value, orbits.ecc.value, c=np.log10(rho.value), s=14, cmap="viridis")
fig.colorbar(points, label="log$_{10}$ range [au]")
ax.set_xlabel("semimajor axis [au]")
ax.set_ylabel("eccentricity")
ax.set_title("orbits that the discovery night of 2014 AA allows")
ax.grid(alpha=0.25)
plt.show()

# sphinx_gallery_thumbnail_number = 1
