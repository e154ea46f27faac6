"""
A discovery night, step by step
===============================

On the morning of 6 October 2008 the Catalina Sky Survey (station G96) found a faint moving dot.
Less than a day later it exploded over Sudan: 2008 TC3, the first asteroid seen before it hit the
Earth. This example asks what the first two hours already said. Then it asks the same of the
discovery of 2024 YR4, where the answer is different, and the difference is the point.
"""

# %%
# Reading
# -------
# The file holds records in the 80-column format of the Minor Planet Center. Reading groups them
# by object, night and station, and accounts for every one.

import matplotlib.pyplot as plt
from astropy import units as u

import neoranging as nr

tracklets = nr.read_tracklets(nr.sample("impactors"))
print(tracklets.report)

tracklet = tracklets[1]
print(tracklet)

# %%
# The first thing to look at is the arc itself: do the positions lie on a smooth curve, and are
# they as good as their uncertainties say? The right-hand panel shows what a parabola leaves of
# them.

tracklet.plot()

# %%
# What was measured
# -----------------
# Direction and motion at the middle of the arc make up the attributable. What range methods feed
# on is what comes next, the curvature; here it stands far above its error.

attributable = tracklet.attributable()
print(attributable)
print(f"proper motion           {attributable.proper_motion.to('deg/d'):.3f}")
print(f"curvature over error    {attributable.curvature_significance:.1f}")

# %%
# What is possible
# ----------------
# Before any method is asked, the admissible region tells which ranges make sense at all: those of
# an object bound to the Sun and not to the Earth.

region = attributable.admissible_region()
print(region)

# %%
# Two methods
# -----------
# Gauss uses three of the eight observations and lets all of them judge the result; Laplace uses a
# parabola through all. Each keeps every root it finds.

gauss = tracklet.estimate(method="gauss")
laplace = tracklet.estimate(method="laplace")
for estimate in (gauss, laplace):
    print(estimate)
    print("   ", estimate.status.advice)

# %%
# The plane of range and range-rate shows all of it at once: the region, the candidates, and the
# chosen solution with its errors. JPL's range and range-rate at the same instant, from the
# object's whole arc, are added for comparison.

reference = nr.reference_ranges()
truth = reference[abs(reference["obstime"] - gauss.epoch) < 0.5 * u.s][0]

ax = gauss.plot()
ax.plot(
    truth["range"].to_value(u.au),
    truth["range_rate"].to_value(u.au / u.d),
    "k+",
    markersize=16,
    markeredgewidth=2,
    label="JPL",
    zorder=6,
)
ax.legend(loc="upper right")
print(f"Gauss  {gauss.range:.5f}  {gauss.range_rate:+.5f}")
print(f"JPL    {truth['range']:.5f}  {truth['range_rate']:+.5f}")

# %%
# What can be quoted
# ------------------
# The status of Gauss's estimate is OK: every range beyond a factor of two is excluded by the
# observations. So an interval can be quoted, at a level of one's choice. It is calibrated: of arcs
# of a like motion whose range is known, this share lay inside.

for level in (0.68, 0.95):
    low, high = gauss.interval(level)
    print(f"{level:.0%}: {low:.5f} to {high:.5f}")

# %%
# The orbit it implies
# --------------------
# Range and range-rate complete the attributable to an orbit. The D criterion of Southworth and
# Hawkins compares it with the one that JPL's range and range-rate give, and with the orbit in the
# catalogue (Minor Planet Center, epoch 7 October 2008).

implied = nr.OrbitalElements.from_state(*attributable.state(truth["range"], truth["range_rate"]))
catalogue = (0.8999575 * u.au, 0.3120658, 2.54221 * u.deg, 194.10114 * u.deg, 234.44884 * u.deg)

print(gauss.elements)
print(f"D_SH to the orbit of JPL's range  {nr.d_sh(gauss.elements, implied):.3f}")
print(f"D_SH to the catalogue             {nr.d_sh(gauss.elements, catalogue):.3f}")

# %%
# Both lie far below 0.2, the value under which two orbits are by custom called associated.
#
# A night that does not tell
# --------------------------
# The discovery of 2024 YR4 looks much the same: three exposures, in 42 minutes, residuals of a
# tenth of an arcsecond.

discovery = nr.read_tracklets(nr.sample("2024YR4"))[1]
estimate = discovery.estimate("gauss")
curvature = discovery.attributable().curvature_significance
print(discovery)
print(f"curvature over error    {curvature:.1f}")
print(estimate)
print("   ", estimate.status.advice)
low, high = estimate.interval(0.68)
print(f"68%: {low:.5f} to {high:.5f}")

# %%
# A number was printed, and nothing supports it: its error bar spans the whole region. The status
# says so, and so does the interval: it is as wide as answers of this kind were off on arcs whose
# range is known, cut at the limits of the admissible range.

estimate.plot()
plt.show()

# sphinx_gallery_thumbnail_number = 2
