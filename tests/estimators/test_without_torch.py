"""Networks answer where torch is not installed."""

import os
import subprocess
import sys

import pytest

CODE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import numpy as np
import simulated_arcs
from neoranging.estimators import get_estimator

night = simulated_arcs.simulate(12, 0.08, seed=3).with_noise(np.random.default_rng(4)).tracklets()
method = sys.argv[1]
estimator = get_estimator(method)
estimates = night.estimate(method)
assert np.isfinite(estimates.range).any()
low, high = estimates.interval(0.9).T
assert ((low < high) | ~np.isfinite(estimates.range)).all()
if method == "posterior":
    rho, rho_dot = estimator.draw(night, 50, rng=1)
    assert np.isfinite(rho).all() and (rho > 0).all()
    assert rho.shape == rho_dot.shape == (12, 50)
    assert (estimator.draw(night, 50, rng=1)[0] == rho).all()
else:
    assert estimator.calibration is not None
    assert estimator.network.domain.is_fitted
    far = simulated_arcs.simulate(3, 4.0, seed=43).tracklets().estimate(method)
    assert all("outside the training domain" in text for text in far.diagnostics)
    one = night[0].estimate(method)
    assert np.isclose(one.range, estimates.range[0], rtol=1e-5)
assert "torch" not in sys.modules
print("answered")
"""


@pytest.mark.parametrize("method", ["pinn", "mlp", "pinn@paper", "mlp@paper", "posterior"])
def test_every_network_answers(method):
    done = subprocess.run(
        [sys.executable, "-c", CODE, method],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "answered\n"
