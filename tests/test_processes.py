"""Work in several processes: order, losses, errors, and an end with whoever deals it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neoranging.exceptions import NeoRangingError
from neoranging.processes import TRIES, deal, in_processes

pytestmark = pytest.mark.slow


def shy(item):
    """Work that kills its process the first times: as often as the file of marks is short."""
    marks, number, deaths = item
    with open(marks, "ab") as file:
        file.write(b"%d" % number)
    if Path(marks).read_bytes().count(b"%d" % number) <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuse(number):
    if number == 2:
        raise ValueError(f"no {number}")
    return number


def unsendable(number):
    return lambda: number


def threads(_):
    return os.environ["OMP_NUM_THREADS"], os.environ["NUMBA_NUM_THREADS"]


def test_results_come_in_order_and_workers_end_with_their_reader():
    dealt = in_processes(abs, range(-5, 0), 2)
    assert next(dealt) == 5
    dealt.close()
    assert list(in_processes(abs, range(-5, 0), 2)) == [5, 4, 3, 2, 1]
    assert list(in_processes(abs, [], 2)) == []


def test_one_worker_is_this_process():
    assert list(deal(lambda x: x + 1, range(3))) == [1, 2, 3]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_the_item_of_a_killed_worker_is_done_again(tmp_path):
    marks = str(tmp_path / "marks")
    items = [(marks, k, TRIES - 1 if k == 4 else 0) for k in range(9)]
    assert list(in_processes(shy, items, 2)) == list(range(9))
    done = Path(marks).read_bytes()
    assert done.count(b"4") == TRIES
    assert all(done.count(b"%d" % k) == 1 for k in range(9) if k != 4)  # nothing else twice


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_an_item_that_kills_every_worker_is_named(tmp_path):
    items = [(str(tmp_path / "marks"), k, 99 if k == 3 else 0) for k in range(5)]
    with pytest.raises(NeoRangingError, match=r"3 worker processes ended by signal 9 over .*, 3, "):
        list(in_processes(shy, items, 2))


def test_errors_are_raised_where_results_are_read():
    dealt = in_processes(refuse, range(4), 2)
    with pytest.raises(ValueError, match="no 2"):
        list(dealt)
    with pytest.raises(NeoRangingError, match="cannot be sent"):
        list(in_processes(unsendable, range(2), 2))


def test_workers_have_one_thread_and_the_environment_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert list(in_processes(threads, range(2), 2)) == [("1", "1")] * 2
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_items_are_read_a_few_at_a_time():
    read = []

    def items():
        for k in range(1000):
            read.append(k)
            yield k

    dealt = in_processes(abs, items(), 2)
    for due in range(5):
        assert next(dealt) == due
        assert len(read) <= due + 1 + 3 * 2
    dealt.close()


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    script = tmp_path / "dealer.py"
    script.write_text(
        "import os, time\n"
        "from neoranging.processes import in_processes\n"
        "def work(k):\n"
        "    time.sleep(0.2)\n"
        "    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    for pid in in_processes(work, range(10_000), 2):\n"
        "        print(pid, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    pids = {int(process.stdout.readline()) for _ in range(4)}
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 20.0
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in filter(is_alive, pids):  # none is left behind by a test that fails
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        pytest.fail(f"process {pid} is alive")
