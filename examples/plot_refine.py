"""
An orbit from more nights
=========================

One night leaves the range open; two or three more settle it. This example starts from what a
network says of one night of 2024 YR4, corrects the orbit with the other nights, and looks at what
is left of the observations.
"""

# %%
# A first guess
# -------------
# Three positions in 42 minutes. The network knows where objects that move like this mostly are.

import matplotlib.pyplot as plt
from astropy import units as u

import neoranging as nr

nights = nr.read_tracklets(nr.sample("2024YR4"))
guess = nights[1].estimate(method="mlp")
print(guess)

# %%
# One night more, and all of them
# -------------------------------
# Differential corrections: least squares through all observations. Each night cuts the error.

for count in (2, 3, 4, 5):
    solution = guess.refine(nights[:count])
    print(
        f"{count} nights: {solution.status:12} range {solution.range:.6f} "
        f"+- {solution.range_error:.6f}, a {solution.elements.a:.3f}"
    )

# %%
# The elements with their errors, and the verdict:

row = solution.to_table()[0]
for name in ("a", "ecc", "inc", "raan", "argp", "M"):
    print(f"{name:5} {row[name]:12.5f} +- {row[f'{name}_error']:.5f}")
print(solution.status, "-", solution.advice)

# %%
# What is left
# ------------
# Residuals of the orbit under Sun, Earth and Moon, with the errors given to the observations.

rows = solution.residuals
_, axes = plt.subplots(2, 1, sharex=True, layout="constrained")
for ax, side in zip(axes, ("east", "north"), strict=True):
    ax.errorbar(
        rows["obstime"].mjd,
        rows[f"residual_{side}"].to_value(u.arcsec),
        rows[f"sigma_{side}"].to_value(u.arcsec),
        fmt="o",
    )
    ax.axhline(0.0, color="grey", linewidth=0.8)
    ax.set_ylabel(f"{side} [arcsec]")
axes[1].set_xlabel("MJD (UTC)")

# %%
# Where to look a week later, from the covariance of the orbit:

week = solution.ephemeris(nights[4].obstime[-1] + 7 * u.d, "G96")
print(week.center.to_string("hmsdms", precision=0), f"{week.area(0.95):.3f}")

plt.show()
