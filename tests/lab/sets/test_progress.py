"""Progress bars: there, silent, or not needed."""

import sys

from neoranging.lab.sets.progress import NoBar, progress_bar


def test_a_missing_package_stops_no_job(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with progress_bar(3, "work") as bar:
        assert isinstance(bar, NoBar)
        bar.update(1)
        bar.set_postfix_str("well")
