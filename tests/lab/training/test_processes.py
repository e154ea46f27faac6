"""Several processes that train one network: as one alone does, and all end when one does."""

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from neoranging.exceptions import TrainingError
from neoranging.files import FolderLock
from neoranging.lab.training.config import TrainingConfig
from neoranging.lab.training.fit import fit_on_set
from neoranging.lab.training.processes import Processes, is_first, pick_device

SHAPE = ("--width", "8", "--blocks", "1", "--drawings", "1", "--batch-size", "65", "--epochs", "3")


def command(model, data, out, *options, count=None):
    """Arguments that train on the CPU, in ``count`` processes or in one without torchrun."""
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}")
    run = ("-m", "neoranging", "train", "--model", model, "--data", data, "--out", out)
    options = (*run, "--device", "cpu", "--threads", "1", *SHAPE, *options)
    return [sys.executable, *(launcher if count else ()), *map(str, options)]


def run(*arguments, **options):
    return subprocess.run(
        command(*arguments, **options), capture_output=True, text=True, check=False, timeout=300
    )


def log(folder):
    with (folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "seconds"]
    return names, np.array([[float(row[name]) for name in names] for row in rows])


def weights(folder):
    return torch.load(folder / "state.pt", weights_only=True)["network"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "options"),
    [("pinn", ("--second-output",)), ("posterior", ("--drawings", "0"))],
)
def test_two_processes_do_what_one_does(model, options, arc_set, tmp_path):
    """Batches of an odd number of arcs, of which the parts differ in size."""
    alone = run(model, arc_set, tmp_path / "one", *options)
    assert alone.returncode == 0, alone.stderr
    both = run(model, arc_set, tmp_path / "two", *options, count=2)
    assert both.returncode == 0, both.stderr
    assert both.stdout.count("3 epochs, the best") == 1
    (names, expected), (same, got) = log(tmp_path / "one"), log(tmp_path / "two")
    assert names == same
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-9)
    for name, weight in weights(tmp_path / "one").items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], weight, rtol=1e-3, atol=1e-5)
    left = sorted(path.name for path in (tmp_path / "two").iterdir())
    assert left == sorted(path.name for path in (tmp_path / "one").iterdir())


@pytest.mark.slow
def test_two_processes_go_on_with_the_run_of_one(arc_set, tmp_path):
    config = TrainingConfig.default("mlp", epochs=3, batch_size=65, drawings=1)
    config = replace(config, network=replace(config.network, width=8, blocks=1))
    whole = fit_on_set(config, arc_set, tmp_path / "one", device="cpu")

    class StoppedError(Exception):
        pass

    def stop(row):
        raise StoppedError

    with pytest.raises(StoppedError):
        fit_on_set(config, arc_set, tmp_path / "two", device="cpu", on_epoch=stop)
    refused = run("mlp", arc_set, tmp_path / "two", count=2)
    assert refused.returncode != 0
    assert "holds a run already; resume it, or overwrite it" in refused.stderr
    resumed = run("mlp", arc_set, tmp_path / "two", "--resume", count=2)
    assert resumed.returncode == 0, resumed.stderr
    names, rows = log(tmp_path / "two")
    expected = [[row[name] for name in names] for row in whole.history]
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-9)
    for name, weight in weights(tmp_path / "one").items():
        torch.testing.assert_close(weights(tmp_path / "two")[name], weight, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are those of /proc")
@pytest.mark.parametrize("victim", ["launcher", "second"])
def test_all_end_together(victim, arc_set, tmp_path):
    """By a signal to the launcher, or when one of them is killed; what is there stays whole."""
    out = tmp_path / "run"
    arguments = command("mlp", arc_set, out, "--epochs", "100000", count=2)
    launcher = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 200.0
    while not (out / "network.safetensors").exists():
        assert launcher.poll() is None, launcher.communicate()[0].decode()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    with open(f"/proc/{launcher.pid}/task/{launcher.pid}/children") as file:
        children = file.read().split()
    workers = [int(child) for child in children if b"neoranging" in cmdline(child)]
    assert len(workers) == 2
    if victim == "launcher":
        launcher.send_signal(signal.SIGTERM)
    else:
        os.kill(workers[1], signal.SIGKILL)
    launcher.communicate(timeout=100)
    assert launcher.returncode != 0
    assert not any(b"neoranging" in cmdline(worker) for worker in workers)
    FolderLock(out).release()
    assert torch.load(out / "state.pt", weights_only=True)["state"]["epoch"] >= 1


def cmdline(process):
    """Command of a process; nothing once it has ended."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_parts_make_up_the_batch():
    batch = torch.arange(7)
    parts = [Processes(number, 3).part(batch) for number in range(3)]
    assert sorted(torch.cat(parts).tolist()) == batch.tolist()
    assert [len(part) for part in parts] == [3, 2, 2]
    assert Processes(0, 3).require_batch(3) == 3
    with pytest.raises(TrainingError, match="a batch of 2 arcs cannot be divided among 3"):
        Processes(0, 3).require_batch(2)


@pytest.fixture
def second_of_two(monkeypatch):
    """The environment of a process that torchrun started."""
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_RANK", "1")


def test_every_process_has_a_gpu_of_its_own(second_of_two, monkeypatch):
    assert not is_first()
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto").type == "cpu"
    with pytest.raises(TrainingError, match="no device 'mps' for several processes"):
        pick_device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device("auto") == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(TrainingError, match=r"process 2 .* has no GPU, there are 1"):
        pick_device("cuda")


def test_one_alone_is_the_first_whatever_else_is_set(second_of_two, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")  # as other launchers leave the rest behind
    assert is_first()
    assert pick_device("cpu") == torch.device("cpu")
