"""Cost of an estimate beside its matrix products, and of a PINN's training step beside an MLP's.

Run ``OMP_NUM_THREADS=1 python benchmarks/bench_nn.py [steps]``. Estimates are numpy's: the pass
through the layers, and the whole network from its inputs on, beside the bare products of matrices
of the same shapes, as many arcs at once. Steps are those of training from the inputs of a batch on:
features, loss, gradients and optimiser; without torch they are left out. The sides of a ratio
alternate in one process, so that whatever else the machine does falls on both; times are of the
processor, and ratios the median of those of neighbours.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from neoranging.constants import GM_SUN
from neoranging.estimators import get_estimator
from neoranging.nn.inputs import ArcInputs
from neoranging.nn.network import NetworkConfig, RangingNetwork
from neoranging.nn.scaling import Scaling
from neoranging.nn.trunks import Layer

try:
    import torch
except ImportError:
    torch = None

ARCS = 8192
ROWS = 256
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
    return ArcInputs(**columns)


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def against(
    one: Callable[[], object], other: Callable[[], object], count: int
) -> tuple[float, ...]:
    """Median seconds of two functions that alternate, and the median of their ratios."""
    for function in (one, other):
        function()
    pairs = [(seconds(one), seconds(other)) for _ in range(count)]
    medians = (statistics.median(times) for times in zip(*pairs, strict=True))
    return (*medians, statistics.median(b / a for a, b in pairs))


def products(network: RangingNetwork, x: np.ndarray) -> Callable[[], object]:
    """The matrix products of a network alone, some rows at once, into memory that is there."""
    layers: list[Layer] = []
    for part in network.trunk:
        layers += [part] if isinstance(part, Layer) else part
    weights = [layer.weight.T for layer in (*layers, network.heads)]
    inner = [np.zeros((ROWS, len(weight)), dtype=np.float32) for weight in weights]
    outs = [np.empty((ROWS, weight.shape[1]), dtype=np.float32) for weight in weights]

    def run() -> None:
        for start in range(0, len(x), ROWS):
            inner[0] = x[start : start + ROWS]
            for a, weight, out in zip(inner, weights, outs, strict=True):
                np.matmul(a, weight, out=out)

    return run


def estimates(name: str, count: int) -> None:
    """Cost of a network that comes with the package."""
    network = get_estimator(name).network
    arcs = inputs(ARCS)
    shown = network.features.show(arcs)
    bare = products(network, shown.scaled.astype(np.float32))
    for what, function in (
        ("layers", lambda: network.raw(shown.scaled)),
        ("network", lambda: network.estimate(arcs)),
    ):
        alone, whole, ratio = against(bare, function, count)
        print(
            f"{name:12s} {what:8s} {1e6 * whole / ARCS:6.2f} us an arc, products "
            f"{1e6 * alone / ARCS:6.2f} us; ratio {ratio:.2f}"
        )
    one = arcs.map(lambda x: x[:1])
    times = [seconds(lambda: [network.estimate(one) for _ in range(20)]) / 20 for _ in range(count)]
    print(f"{name:12s} one arc  {1e6 * statistics.median(times):6.0f} us")


def steps(count: int) -> None:
    """Ratios of the steps of training."""
    from neoranging.lab.training import TrainingConfig
    from neoranging.lab.training.data import TrainingArcs
    from neoranging.lab.training.memory import keep_freed_memory
    from neoranging.lab.training.network import TrainableNetwork
    from neoranging.lab.training.objective import Objective

    keep_freed_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = TrainingConfig()
    batch = config.batch_size
    n = 64 * batch
    for name, shape in CASES.items():
        rho = 0.25 * torch.exp(torch.randn(n, dtype=torch.float64))
        rho_dot = 0.007 * torch.randn(n, dtype=torch.float64)
        arcs = TrainingArcs(inputs(n).map(torch.from_numpy), rho, rho_dot)
        network = TrainableNetwork(shape).fit(arcs.inputs, rho, rho_dot)
        population = Scaling(("rho", "rho_dot"))
        population.fit_range(torch.stack([rho, rho_dot], dim=-1))
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=config.learning_rate, amsgrad=True, fused=True
        )

        def step(kind: str) -> Callable[[], None]:
            objective = Objective(TrainingConfig(model=kind, network=shape), population)  # noqa: B023

            def run() -> None:
                rows = torch.randint(n, (batch,))
                optimiser.zero_grad(set_to_none=True)  # noqa: B023
                terms, _ = objective(network, arcs.map(lambda x: x[rows]))  # noqa: B023
                terms["total"].backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_norm)  # noqa: B023
                optimiser.step()  # noqa: B023

            return run

        mlp, pinn, ratio = against(step("mlp"), step("pinn"), count)
        print(
            f"{name:22s} step of {batch}: MLP {1e3 * mlp:6.2f} ms, PINN {1e3 * pinn:6.2f} ms; "
            f"ratio {ratio:.2f}",
            flush=True,
        )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name in ("pinn", "pinn@paper"):
        estimates(name, count)
    if torch is None:
        print("no torch is installed: steps of training are left out")
    else:
        steps(count)


if __name__ == "__main__":
    main()
