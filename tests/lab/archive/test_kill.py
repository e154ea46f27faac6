"""Killed at any instant, a download goes on with nothing lost and nothing twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from neoranging.lab.archive.manifest import MANIFEST, FileStore, Status, read_manifest

pytest.importorskip("requests")

SCRIPT = """
import sys
from neoranging.lab.archive import NeodysClient, Politeness

folder, url, *names = sys.argv[1:]
limits = Politeness(requests_per_second=2000.0, concurrency=4, timeout_s=5.0, backoff_s=1e-3)
with NeodysClient(folder, portal=url, politeness=limits) as neodys:
    print("ready", flush=True)
    report = neodys.download(neodys.observation_files(names))
print(report.count.n_used, report.n_asked, flush=True)
"""
NAMES = [f"2023A{letter}{n}" for n in range(6) for letter in "ABCDEFGHJKLMNOPQRSTUV"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_sigkill_at_random_instants(tmp_path, portal, make_rwo, mishaps, seed):
    text = make_rwo()
    for name in NAMES:
        portal.put(f"mpcobs/{name}.rwo", f"{text}! {name}\n")
    portal.put(f"mpcobs/{NAMES[50]}.rwo", "<html>no</html>\n")
    portal.goes_wrong(f"mpcobs/{NAMES[60]}.rwo", mishaps.cut(0.4), mishaps.status(503))
    portal.delay_s = 0.004
    rng = random.Random(seed)
    done = [0]
    for _ in range(5):
        finished = _run(tmp_path, portal, kill_after=rng.randint(4, 40))
        done.append(len(_check_whole(tmp_path, portal)))
        if finished:
            break
    kills = len(done) - 1
    assert done == sorted(done)
    assert len({n for n in done if 0 < n < len(NAMES)}) >= 2, "no kill in the midst of it"
    recorded = set(read_manifest(tmp_path))
    before = portal.asked.copy()
    assert _run(tmp_path, portal)
    assert not recorded & set(portal.asked - before)  # what is recorded is not asked for again
    entries = _check_whole(tmp_path, portal)
    assert len(entries) == len(NAMES)
    statuses = [entry.status for entry in entries.values()]
    assert statuses.count(Status.OK) == len(NAMES) - 1
    assert statuses.count(Status.SET_ASIDE) == 1
    keys = [line.split(b'"')[3] for line in (tmp_path / MANIFEST).read_bytes().splitlines()]
    assert len(keys) == len(set(keys)) == len(NAMES)
    assert sum(portal.asked.values()) <= len(NAMES) + 2 + 4 * kills
    assert not list(tmp_path.rglob("*.unfinished"))


def _run(folder, portal, kill_after: int | None = None) -> bool:
    """Download in a process of its own, killed after some requests; whether it got to its end."""
    command = [sys.executable, "-c", SCRIPT, str(folder), portal.url, *NAMES]
    before = sum(portal.asked.values())
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if kill_after is not None:
            while sum(portal.asked.values()) < before + kill_after and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
    if process.returncode == 0:
        assert rest.split()[0] == str(len(NAMES) - 1)
    return process.returncode == 0


def _check_whole(folder, portal):
    """Every file that is recorded as whole is, and is what the portal has."""
    with FileStore(folder) as store:
        for entry in store.records.values():
            if entry.status is Status.OK:
                assert store.is_whole(entry)
                assert store.path(entry.key).read_bytes() == portal.files[entry.key]
        return store.records
