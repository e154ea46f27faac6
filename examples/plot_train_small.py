"""
Train a small network of your own
=================================

A network is no oracle. It is experience, drawn smooth: shown enough nights with known ranges, it
answers for a new night with what such nights turned out to be. This example makes the nights,
trains a small network on one core in a few seconds, and judges it on asteroids that it never met.
The networks of the package are made in the same way, of many times as many nights.
"""

# %%
# Nights to learn from
# --------------------
# To learn, one needs nights whose range is known. Here are simulated ones: orbits of the catalogue
# of near-Earth objects, observed by stations and with errors like those of the surveys. Eight
# hundred asteroids are enough to see the point.

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import neoranging as nr
from neoranging.estimators import MLPEstimator
from neoranging.lab.sets import read_arcs, split_set
from neoranging.lab.simulation import Twin, make_twin
from neoranging.lab.study import plot_estimates, predict, score, side_by_side, summarise
from neoranging.lab.training import NetworkConfig, TrainingConfig, train

folder = tempfile.TemporaryDirectory()
work = Path(folder.name)
checks = make_twin(work / "twin", Twin(objects=800, seed=5), workers=1)

# %%
# Divide by asteroid
# ------------------
# A pupil is not examined on the exercises. So the asteroids are divided: some for training, some
# for validation (when to stop), some for the examination. Whole asteroids are divided, not nights,
# since two nights of one asteroid are much alike.

division = split_set(work / "twin", ratios=(0.6, 0.2, 0.2))
print(division)

# %%
# Train
# -----
# The recipe is that of the package, for a smaller network and fewer epochs. In each epoch the
# network sees every night once, with other errors than in the epoch before, and is corrected a
# little where it was wrong. The folder of the run keeps the log, the best network, and what it
# takes to go on after an interruption.

recipe = TrainingConfig.invariant(
    "mlp",
    network=NetworkConfig(width=64, blocks=2),
    epochs=15,
    batch_size=256,
    learning_rate=2e-3,
)
own = train(MLPEstimator(), work / "twin", work / "run", recipe=recipe, threads=1, device="cpu")
print(f"kept: epoch {own.card['best_epoch']} of {own.card['epochs_done']}")

# %%
# The log tells how it went. On the left is what training makes small, on the nights to learn from
# and on the others. The two need not meet: some asteroids are harder than others, and the one is a
# mean over the epoch while the other is taken at its end. When the second no longer falls while the
# first still does, the network learns its exercises by heart, and it is time to stop. On the right
# is what it means to an observer.

with (work / "run" / "log.csv").open() as file:
    log = list(csv.DictReader(file))
curve = {name: np.array([float(row[name]) for row in log]) for name in log[0]}

fig, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.8), layout="constrained")
left.plot(curve["epoch"], curve["train_total"], "o-", color="#E69F00", label="training")
left.plot(curve["epoch"], curve["val_total"], "s-", color="#0072B2", label="validation")
left.set_title("loss on the asteroids of training and of validation")
left.set_ylabel("loss")
left.legend(title="asteroids")
right.plot(curve["epoch"], 100 * curve["val_median_relative_error"], "s-", color="#0072B2")
right.set_ylim(0, 110 * curve["val_median_relative_error"].max())
right.set_title("median error on those of validation")
right.set_ylabel("median error of the range [%]")
for ax in (left, right):
    ax.set_xlabel("epoch")
    ax.grid(alpha=0.25)

# %%
# Examine
# -------
# Now the asteroids that had no part in any of this. Two others sit the same examination: somebody
# who knows nothing and always says the same, the median range of the nights to learn from; and the
# network of the package. That one may have learnt from other nights of these very asteroids.

arcs = read_arcs(work / "twin", split="test")
usual = np.median(read_arcs(work / "twin", ["rho_topo_au"], split="train")["rho_topo_au"])
blind = np.median(np.abs(usual / arcs["rho_topo_au"] - 1.0))
print(f"always {usual:.2f} au: median error {blind:.0%} of the range")

scored = [
    score(arcs, predict(own, arcs, label="own")),
    score(arcs, predict("mlp", arcs, label="mlp of the package")),
]
figures = ("median_relative_error", "medae_rho", "corr_rho", "p_ar", "d_sh_pseudo")
table = pd.concat(summarise(scores, metrics=figures) for scores in scored)
print(side_by_side(table).to_string(index=False))

# %%
# The brackets are 95 % intervals by drawing the asteroids of the examination anew. Below are all
# answers against the truth, and how both are distributed.

fig = plot_estimates(scored)
fig.set_size_inches(10.0, 5.4)

# %%
# A network that is not sure answers near the middle of what it has seen. The far end of the ranges
# shows it, and the range-rates even more: there the cloud is flatter than the broken line. More
# nights to learn from make the clouds slimmer, but not without end. What a short arc does not hold,
# no training can put there.
#
# Save and load
# -------------
# The file holds the numbers of the network, nothing that could run. The model card lies beside it.

own.save(work / "small.safetensors")
print(sorted(path.name for path in work.glob("small.*")))

again = MLPEstimator.from_pretrained(work / "small.safetensors")
tracklets = nr.read_tracklets(nr.sample("2024YR4"))
print(tracklets.estimate(again))
print(np.array_equal(tracklets.estimate(again).range, tracklets.estimate(own).range))

# %%
# From a terminal, with a network of full size:
#
# .. code-block:: console
#
#    $ neoranging dataset twin --objects 800 --seed 5 --out twin
#    $ neoranging dataset split twin
#    $ neoranging train --model mlp --data twin --out run --epochs 15
#
# What to take away
# -----------------
# - A network is as good as the nights it has seen. Making the nights is most of the work.
# - Judge it on asteroids that it never met, and beside somebody who knows nothing.
# - It comes without errors. To learn how far off it is: :doc:`/gallery/plot_intervals`.
#
# Recipes, representations, and all that a run leaves: :doc:`/guide/networks`. The sets:
# :doc:`/guide/datasets`.

folder.cleanup()
plt.show()

# sphinx_gallery_thumbnail_number = 2
