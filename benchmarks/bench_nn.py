"""Cost of a training step of the PINN beside one of the MLP, and of an estimate.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_nn.py [steps]``. Steps are those of training from
the inputs of a batch on: features, loss, gradients and optimiser. Both kinds alternate in one
process, so that whatever else the machine does falls on both; times are of the processor, and
ratios the median of those of neighbours.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
import torch
from neoranging.nn.modules import RangingNetwork

from neoranging.constants import GM_SUN
from neoranging.lab.training import NetworkConfig, TrainingConfig
from neoranging.lab.training.data import TrainingArcs
from neoranging.lab.training.memory import keep_freed_memory
from neoranging.lab.training.objective import Objective
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.scaling import Scaling

BATCH = TrainingConfig().batch_size
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
        "curved": np.ones(n),
        "observer": earth + 4e-5 * rng.standard_normal((n, 3)),
        "observer_rate": motion + 2e-4 * rng.standard_normal((n, 3)),
        "observer_acc": 1e-3 * rng.standard_normal((n, 3)),
        "observer_velocity": motion,
        "parallax": 10.0 ** rng.uniform(-1.0, 2.0, n),
        "log_sigma_parallax": rng.uniform(-2.0, 9.0, n),
        "magnitude": rng.uniform(18.0, 22.0, n),
        "has_magnitude": np.ones(n),
        "root": np.zeros(n),
        "root_rate": np.zeros(n),
        "log_error_root": np.zeros(n),
        "has_root": np.ones(n),
    }
    return ArcInputs(**{name: torch.from_numpy(column) for name, column in columns.items()})


class Steps:
    """Steps of either kind on networks of the same shape."""

    def __init__(self, network: NetworkConfig) -> None:
        n = 64 * BATCH
        rho = 0.25 * torch.exp(torch.randn(n, dtype=torch.float64))
        self.arcs = TrainingArcs(inputs(n), rho, 0.007 * torch.randn(n, dtype=torch.float64))
        self.network = RangingNetwork(network)
        self.network.fit(self.arcs.inputs, self.arcs.rho, self.arcs.rho_dot)
        population = Scaling(("rho", "rho_dot"))
        population.fit_range(torch.stack([self.arcs.rho, self.arcs.rho_dot], dim=-1))
        self.config = TrainingConfig()
        self.objectives = {
            kind: Objective(TrainingConfig(model=kind, network=network), population)
            for kind in ("mlp", "pinn")
        }
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=self.config.learning_rate, amsgrad=True, fused=True
        )

    def step(self, kind: str) -> float:
        """Seconds of one step."""
        start = time.process_time()
        rows = torch.randint(len(self.arcs), (BATCH,))
        arcs = self.arcs.map(lambda x: x[rows])
        self.optimiser.zero_grad(set_to_none=True)
        terms, _ = self.objectives[kind](self.network, arcs)
        terms["total"].backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip_norm)
        self.optimiser.step()
        return time.process_time() - start


def main() -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name, config in CASES.items():
        steps = Steps(config)
        for kind in ("mlp", "pinn") * 3:
            steps.step(kind)
        pairs = [(steps.step("mlp"), steps.step("pinn")) for _ in range(count)]
        mlp, pinn = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{name:22s} step of {BATCH}: MLP {mlp:6.2f} ms, PINN {pinn:6.2f} ms", end="; ")
        print(f"ratio {statistics.median(b / a for a, b in pairs):.2f}", end="; ", flush=True)
        steps.network.freeze()
        n, arcs = len(steps.arcs), steps.arcs.inputs
        with torch.no_grad():
            start = time.process_time()
            for part in range(0, n, 4096):
                steps.network(arcs.map(lambda x, a=part: x[a : a + 4096]))
            print(f"{n / (time.process_time() - start):9.0f} estimates/s", end="; ")
            one = arcs.map(lambda x: x[:1])
            times = []
            for _ in range(count):
                start = time.process_time()
                steps.network(one)
                times.append(time.process_time() - start)
            print(f"one: {1e3 * statistics.median(times):.2f} ms")


if __name__ == "__main__":
    main()
