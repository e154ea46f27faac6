"""What a training step of the PINN costs beside one of the MLP, and what an estimate costs.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_nn.py [steps]``. Steps of both kinds alternate in
one process, so that whatever else the machine does falls on both; times are of the processor.
Features and their derivatives, which hold no parameter, are made beforehand as in training.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
import torch

from neoranging.constants import GM_SUN
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.losses import LossWeights, physics_loss, residual_loss, transport_loss
from neoranging.nn.modules import NetworkConfig, RangingNetwork
from neoranging.nn.outputs import MinMaxOutput
from neoranging.nn.physics import SightGeometry, residuals

BATCH = 512
CASES = {
    "paper": NetworkConfig.paper(),
    "invariant": NetworkConfig(),
    "the same, 384 x 4": NetworkConfig(width=384, blocks=4),
    "the same, log output": NetworkConfig(output="log"),
}


def inputs(n: int, seed: int = 0) -> ArcInputs:
    """Arcs of an hour and a half, shaped like those of surveys."""
    rng = np.random.default_rng(seed)
    longitude, turn, ra = rng.uniform(0.0, 2.0 * np.pi, (3, n))
    dec, rate = np.arcsin(rng.uniform(-0.9, 0.9, n)), 10.0 ** rng.uniform(-2.5, -1.0, n)
    dt = np.stack([-rng.uniform(0.01, 0.04, n), np.zeros(n), rng.uniform(0.01, 0.04, n)], axis=1)
    earth = np.stack([np.cos(longitude), np.sin(longitude), np.zeros(n)], axis=1)
    motion = np.sqrt(GM_SUN) * np.stack([-earth[:, 1], earth[:, 0], np.zeros(n)], axis=1)
    sky_rate = rate[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    columns = {
        "dt1": dt[:, 0],
        "dt3": dt[:, 2],
        "ra": ra[:, None] + sky_rate[:, :1] / np.cos(dec)[:, None] * dt,
        "dec": dec[:, None] + sky_rate[:, 1:] * dt,
        "earth": earth,
        "earth_rate": motion,
        "sky": np.stack([ra, dec], axis=1),
        "sky_rate": sky_rate,
        "sky_acc": 1e-2 * rng.standard_normal((n, 2)),
        "log_span": np.log(dt[:, 2] - dt[:, 0]),
        "log_sigma_acc": np.log(1e-2 * rng.uniform(0.3, 3.0, (n, 2))),
        "n_obs": rng.integers(3, 12, n).astype(float),
        "curved": np.ones(n),
        "observer": earth + 4e-5 * rng.standard_normal((n, 3)),
        "observer_rate": motion + 2e-4 * rng.standard_normal((n, 3)),
        "observer_acc": 1e-3 * rng.standard_normal((n, 3)),
        "observer_velocity": motion,
        "parallax": 10.0 ** rng.uniform(-1.0, 2.0, n),
        "log_sigma_parallax": rng.uniform(-2.0, 9.0, n),
    }
    return ArcInputs(**{name: torch.from_numpy(column) for name, column in columns.items()})


class Steps:
    """One step of either kind on networks of the same shape, optimiser included."""

    def __init__(self, config: NetworkConfig) -> None:
        n = 64 * BATCH
        self.inputs = inputs(n)
        self.rho = 0.25 * torch.exp(torch.randn(n, dtype=torch.float64))
        self.rho_dot = 0.007 * torch.randn(n, dtype=torch.float64)
        self.network = RangingNetwork(config)
        self.network.fit(self.inputs, self.rho, self.rho_dot)
        self.tangent = self.inputs.tangent()
        self.features = self.network.features.with_tangent(self.inputs, self.tangent)
        self.linear = MinMaxOutput(self.network.origin)
        self.linear.fit(self.inputs, self.rho, self.rho_dot)
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=2e-4, amsgrad=True)

    def mlp(self, rows: torch.Tensor) -> torch.Tensor:
        arcs, truth = self.inputs.map(lambda x: x[rows]), (self.rho[rows], self.rho_dot[rows])
        normalise = self.network.output.normalise
        estimate = normalise(*self.network(arcs, self.features[0][rows]))
        return (estimate - normalise(*truth)).square().mean()

    def pinn(self, rows: torch.Tensor) -> torch.Tensor:
        arcs, truth = self.inputs.map(lambda x: x[rows]), (self.rho[rows], self.rho_dot[rows])
        output, weights = self.network.output, LossWeights()
        tangent, features = self.tangent.map(lambda x: x[rows]), [x[rows] for x in self.features]
        state, rate = self.network.with_tangent(arcs, tangent, features)
        geometry = SightGeometry.of(arcs, self.network.origin)
        physics = physics_loss(residuals(geometry, state, rate))
        transport = transport_loss(
            self.linear.normalise(*state),
            self.linear.normalise(*truth),
            geometry.proper_motion_square,
            arcs.dec[:, 1],
        )
        return (
            weights.residual * residual_loss(output.normalise(*state), output.normalise(*truth))
            + weights.kinematic * physics.kinematic
            + weights.motion * physics.motion
            + weights.transport * torch.stack(transport).sum()
        )

    def step(self, kind: str) -> float:
        """Seconds of one step."""
        start = time.process_time()
        self.optimiser.zero_grad(set_to_none=True)
        rows = torch.randint(len(self.rho), (BATCH,))
        getattr(self, kind)(rows).backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 10.0)
        self.optimiser.step()
        return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    for name, config in CASES.items():
        steps = Steps(config)
        for kind in ("mlp", "pinn") * 3:
            steps.step(kind)
        seconds = {kind: [] for kind in ("mlp", "pinn")}
        for _ in range(count):
            for kind, each in seconds.items():
                each.append(steps.step(kind))
        mlp, pinn = (1e3 * statistics.median(each) for each in seconds.values())
        print(f"{name:22s} step of {BATCH}: MLP {mlp:6.2f} ms, PINN {pinn:6.2f} ms", end="; ")
        print(f"ratio {pinn / mlp:.2f}", end="; ")
        steps.network.freeze()
        with torch.no_grad():
            start = time.process_time()
            for part in range(0, len(steps.rho), 4096):
                steps.network(steps.inputs.map(lambda x, a=part: x[a : a + 4096]))
            print(f"{len(steps.rho) / (time.process_time() - start):9.0f} estimates/s", end="; ")
            one = steps.inputs.map(lambda x: x[:1])
            times = []
            for _ in range(count):
                start = time.process_time()
                steps.network(one)
                times.append(time.process_time() - start)
            print(f"one: {1e3 * statistics.median(times):.2f} ms")


if __name__ == "__main__":
    main()
