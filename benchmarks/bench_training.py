"""Time of training by several processes beside that of one, on the same batches.

Run ``python benchmarks/bench_training.py``, with ``--processes`` the number of cores or GPUs.
Runs of one process and of several alternate. Printed are, per step and for the first process, the
time of its processor and that of the clock, and their ratios to those of one process: half is the
best that two can reach. The clock says little where cores are shared with other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from bench_nn import inputs

from neoranging.lab.training import NetworkConfig, TrainingConfig
from neoranging.lab.training.data import TrainingArcs
from neoranging.lab.training.fit import fit_network

EPOCHS = 4


def train(kind: str, n_arcs: int, batch: int, device: str, out: Path) -> None:
    """Train on made-up arcs; the first process writes seconds per step of its last epochs."""
    torch.manual_seed(0)
    rho = 0.25 * torch.exp(torch.randn(n_arcs, dtype=torch.float64))
    arcs = TrainingArcs(inputs(n_arcs), rho, 0.007 * torch.randn(n_arcs, dtype=torch.float64))
    few = arcs.map(lambda x: x[:64])
    config = TrainingConfig(
        model=kind, epochs=EPOCHS, batch_size=batch, drawings=0, network=NetworkConfig()
    )
    instants: list[tuple[float, float]] = []
    fit_network(
        config,
        arcs,
        few,
        out,
        device=device,
        threads=1,
        on_epoch=lambda _: instants.append((time.process_time(), time.perf_counter())),
    )
    if instants:
        steps = (EPOCHS - 1) * (n_arcs // batch)
        pairs = zip(instants[0], instants[-1], strict=True)
        (out / "times.json").write_text(json.dumps([(b - a) / steps for a, b in pairs]))


def measure(processes: int, arguments: list[str]) -> list[float]:
    """Seconds per step of the processor and of the clock."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    with TemporaryDirectory() as folder:
        command = [*(launcher if processes > 1 else []), __file__, "--worker", folder, *arguments]
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        times: list[float] = json.loads((Path(folder) / "times.json").read_text())
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kind", choices=["mlp", "pinn"], default="pinn")
    parser.add_argument("--arcs", type=int, default=8192)
    parser.add_argument("--batch", type=int, default=TrainingConfig().batch_size)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        train(options.kind, options.arcs, options.batch, options.device, options.worker)
        return
    names = ("kind", "arcs", "batch", "device")
    arguments = [word for name in names for word in (f"--{name}", str(getattr(options, name)))]
    rounds = [
        [measure(count, arguments) for count in (1, options.processes)]
        for _ in range(options.rounds)
    ]
    for k, clock in enumerate(("processor", "clock")):
        one, several = ([pair[j][k] for pair in rounds] for j in (0, 1))
        ratios = [b / a for a, b in zip(one, several, strict=True)]
        print(
            f"{clock:10} ms per step: one {min(one) * 1e3:.1f}, {options.processes} processes "
            f"{min(several) * 1e3:.1f}; ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
