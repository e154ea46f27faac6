"""
A method of your own, judged beside the others
==============================================

Observers have had a rule of thumb for long: what moves fast is near. This example makes it a method
of the package, in twenty lines. From then on it is asked by name like Gauss's, judged on the same
arcs as the networks, and given intervals that hold, although nobody ever derived its error.
"""

# %%
# The idea
# --------
# Suppose that near-Earth objects cross our line of sight at ten kilometres a second, all of them.
# Then the range is that speed over the angular one. For the range-rate take the middle of what is
# admissible.
#
# The method
# ----------
# One method is to be written, ``_estimate``. It gets the observations and the fitted motion as
# plain arrays in au, day and radian, many arcs at once, and returns one answer for each. Units,
# places of observers, and all that follows are done by the base class. The status is honest:
# ``UNDETERMINED``, for the rule never looks at what would determine a range.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from astropy import units as u

import neoranging as nr
from neoranging.core import Answers
from neoranging.exceptions import ConformalError
from neoranging.lab.simulation import Twin
from neoranging.lab.study import (
    CalibrationSample,
    Selection,
    plot_estimates,
    predict,
    score,
    side_by_side,
    summarise,
)


class RuleOfThumb(nr.RangingEstimator):
    """Range of an object that crosses the line of sight at a usual speed."""

    name = "rule-of-thumb"
    min_observations = 2

    def __init__(self, *, speed=10.0 * u.km / u.s, origin="topocenter"):
        super().__init__(origin=origin)
        self.speed = speed.to_value(u.au / u.d)

    @property
    def identity(self):
        """Settings that the answers depend on: a calibration is for one speed and no other."""
        return {**super().identity, "speed_au_d": self.speed}

    def _estimate(self, arcs, attributables):  # noqa: ARG002 (the motion says enough)
        rho = self.speed / attributables.proper_motion
        rho_dot = -0.5 * attributables.energy_coefficients[:, 1]
        return Answers.of(attributables, rho, rho_dot, nr.RangeStatus.UNDETERMINED)


# %%
# By its name
# -----------
# Registered, it is a method like any other, for one tracklet or many, with its options.

nr.register_estimator(RuleOfThumb)
print(nr.available_methods())

tracklets = nr.read_tracklets(nr.sample("2024YR4"))
print(tracklets[1].estimate("rule-of-thumb"))
print(tracklets.estimate("rule-of-thumb", speed=15 * u.km / u.s))

# %%
# That holds for this process. A package gives its method to everybody who installs it, on the
# command line too, by an entry point in its ``pyproject.toml``; the methods that come with
# neoranging use the same:
#
# .. code-block:: toml
#
#    [project.entry-points."neoranging.estimators"]
#    rule-of-thumb = "my_package:RuleOfThumb"
#
# Judged beside the others
# ------------------------
# Simulated nights of known orbits, at most ten of each. The network may have learnt from other
# nights of some of these orbits; the rule has learnt nothing at all.

twin = Twin(objects=1024, seed=31)
arcs = twin.arcs()
arcs = Selection(cap=10).of(arcs)
print(arcs)

scored = [score(arcs, predict(name, arcs)) for name in ("gauss", "rule-of-thumb", "mlp")]
figures = ("solved", "ok", "median_relative_error", "corr_rho", "p_ar", "d_sh_pseudo")
table = pd.concat(summarise(scores, metrics=figures) for scores in scored)
print(side_by_side(table).to_string(index=False))

# %%
# The figures are of the arcs that a method answers, and Gauss's does not answer all of them: look
# at the first row before the others. Where Gauss says ``OK``, however, the range is measured. On
# these arcs alone:

determined = scored[0].ok.to_numpy()
ok_alone = [summarise(scores, rows=determined, metrics=figures[2:3]) for scores in scored]
print(f"{determined.sum()} arcs")
print(side_by_side(pd.concat(ok_alone)).to_string(index=False))

# %%
# All answers against the truth, ranges above and range-rates below, and how both are distributed:

fig = plot_estimates(scored)
fig.set_size_inches(11.0, 5.4)

# %%
# Judge for yourself whether the rule deserves to be one. It is the least that a method which has
# learnt from many nights must beat.
#
# With intervals
# --------------
# The rule has no error of its own. But how far off it is can be counted, on one half of the
# asteroids, and checked on the other.

sample = CalibrationSample.of(RuleOfThumb(), [arcs])
objects = np.unique(sample.truth.designation)
half = np.random.default_rng(0).permutation(objects)[: len(objects) // 2]
to_learn = np.isin(sample.truth.designation, half)

calibration = sample.take(to_learn).calibration()
test = sample.take(~to_learn)
for level in (0.5, 0.68, 0.95):
    low, high = test.intervals(calibration, level).T
    inside = (low <= test.truth.rho) & (test.truth.rho <= high)
    print(f"promised {level:.0%}, kept {inside.mean():.1%} of {len(test)} arcs")

# %%
# A :class:`~neoranging.ConformalEstimator` is the method and its calibration
# in one. It answers as before, and now with an interval.

rule = nr.ConformalEstimator(RuleOfThumb(), calibration)
night = tracklets.estimate(rule)
for name, rho, (low, high) in zip(
    tracklets.stations, night.range.value, night.interval(0.68).value, strict=True
):
    print(f"2024 YR4 from {name}: {rho:.3f} au, 68%: {low:.3f} to {high:.3f} au")

# %%
# The calibration is for ten kilometres a second. For another speed it is refused, because its
# errors are others; that is what ``identity`` is for.

try:
    nr.ConformalEstimator(RuleOfThumb(speed=15 * u.km / u.s), calibration)
except ConformalError as error:
    print(type(error).__name__)

# %%
# What to take away
# -----------------
# - A method is one function on arrays. Say honestly in the status what it knows.
# - Judge it on the same arcs as the others, by all figures. A good error on few answers is cheap.
# - Whatever it is, counted intervals make it usable.
#
# The contract in full: :doc:`/guide/own_estimator`. How such intervals come about:
# :doc:`/guide/intervals`. All figures of a method with one command: :doc:`/guide/study`.

plt.show()

# sphinx_gallery_start_ignore
# The other pages are built in this process, and list the methods that they know of.
nr.unregister_estimator("rule-of-thumb")
# sphinx_gallery_end_ignore

# sphinx_gallery_thumbnail_number = 1
