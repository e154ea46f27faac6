"""
Finding it again the next night
===============================

A new object that nobody sees a second time is lost. From one night it is not known where it will
be the next, but how probably it is where. This example follows 2024 YR4 from a night of three
positions, asks where to point, and looks whether it was there.
"""

# %%
# One night
# ---------
# Three positions in 42 minutes from W68, ATLAS in Chile, on the second night of this object.

import matplotlib.pyplot as plt
import numpy as np
from astropy import units as u

import neoranging as nr

nights = nr.read_tracklets(nr.sample("2024YR4"))
night = nights[1]
estimate = night.estimate(method="systematic")
print(night)
print(f"range, 95 %: {estimate.interval(0.95).round(3)}")

# %%
# The range is open by a factor of eight, and with it the orbit. Each draw of the posterior is an
# orbit that explains the night, and each goes its own way.
#
# Ten hours later
# ---------------
# Q62 in Australia observed it next. From there, at that time, the draws are a cloud:

later = nights[2]
found = later.coord[0]
cloud = estimate.ephemeris(later.obstime[0], later.station[0])
print(cloud)
print(f"middle       {cloud.center.to_string('hmsdms', precision=0)}")
print(f"68 % area    {cloud.area(0.68):.0f}")
print(f"95 % area    {cloud.area(0.95):.0f}")
print(f"altitude     {cloud.altitude:.0f}, of the Sun {cloud.sun_altitude:.0f}")
print(f"found inside the 95 % region: {cloud.contains(found, 0.95)}")

# %%
# The regions are those of highest probability, whatever their form. The long side of the cloud is
# the unknown range:

east = (cloud.coord.ra - cloud.center.ra).to_value(u.arcmin)
distance = cloud.coord.distance
for name, part in (
    ("east", east > 20.0),
    ("middle", abs(east) < 5.0),
    ("west", east < -15.0),
):
    print(f"{name:8} median distance {np.median(distance[part]):.3f}")

# %%
# Whoever finds it learns how far it is from where it stands.
#
# Where to point
# --------------
# A telescope with a field of half a degree needs two pointings for 95 % of the probability. They
# come in the order in which to try them. The probability is that of finding it there and in none of
# the fields before.

fields = cloud.pointings(0.5 * u.deg)
for name in fields.colnames:
    fields[name].info.format = ".2f"
print(fields)

# %%
# The star shows where it was.

cloud.plot_sky(0.5 * u.deg, pointings=True, observed=found)

# %%
# Waiting makes it worse
# ----------------------
# The area grows faster than the square of the time. After one day half a degree holds a fraction,
# after three days the region has ten square degrees. A second tracklet in the same night is
# worth more than a larger telescope later.

days = np.array([0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0])
future = estimate.ephemeris(night.obstime[-1] + days * u.d, "W68")
_, ax = plt.subplots(layout="constrained")
for level, line in ((0.68, "-o"), (0.95, "--s")):
    ax.plot(days, future.area(level).to(u.deg**2), line, label=f"{level:.0%} region")
ax.axhline(0.25, color="grey", linewidth=0.8)
ax.annotate("a field of half a degree", (0.1, 0.28), color="grey")
ax.set(xscale="log", yscale="log", xlabel="days after the night", ylabel="area [square degrees]")
ax.legend()

# %%
# The same from the command line, for every tracklet of a file: ``neoranging follow-up
# night.obs80 --at 2024-12-27T16:52 --station Q62 --field 0.5deg``. :doc:`/guide/follow_up` explains
# the numbers.

plt.show()

# sphinx_gallery_thumbnail_number = 1
