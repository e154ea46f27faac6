"""Times beside other programs, as benchmarks/peers takes them and writes them down."""

from __future__ import annotations

import re
import sys

import pytest
from documentation_tools import PEERS, ROOT, load

import neoranging as nr

GUIDE = ROOT / "docs" / "guide"

if not PEERS.exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture(scope="module")
def page():
    return load("page", PEERS)


@pytest.fixture(scope="module")
def run():
    return load("run", PEERS)


class TestTables:
    def test_ratio_is_that_of_each_round(self, page):
        # the second round ran on a machine twice as slow
        seconds = {"theirs": [6.0, 12.0, 6.0], "ours": [1.0, 2.0, 2.0]}
        assert page.ratios(seconds, "theirs", "ours") == "6 (3 to 6)"
        assert page.times(seconds, "theirs", 1e-3) == "6,000 / 6,000"

    def test_program_that_cannot_be_had_has_no_number(self, page):
        ours = {"neoranging whole": [1e-6], "neoranging single": [2e-6]}
        results = {"gauss": {"seconds": ours}, "peers": dict.fromkeys(("layup", "adam_core"))}
        rows = re.findall(r'^   "(layup|adam_core).*?", (.*)$', page.gauss(results), re.MULTILINE)
        assert len(rows) == 3
        for _, cells in rows:
            assert re.findall(r'"(.*?)"', cells) == [page.ABSENT] * 4

    def test_aim_is_met_by_the_median_of_the_rounds(self, page):
        seconds = {
            "neoranging whole": [1.0, 1.0, 1.0],
            "layup gauss": [5.0, 7.0, 8.0],
            "neoranging single": [2.0, 2.0, 2.0],
            "adam_core whole": [1.0, 1.0, 9.0],
        }
        part = page.targets({"gauss": {"seconds": seconds}})
        assert '"at least 6", "7 (5 to 8)", "yes"' in part
        assert '"at least 1", "0.5 (0.5 to 4.5)", "no"' in part

    def test_parts_of_the_page_are_all_there(self, page):
        text = (GUIDE / "performance.rst").read_text()
        included = set(re.findall(r"^\.\. include:: (performance_\w+\.inc)$", text, re.MULTILINE))
        names = {*page.PARTS, "targets", "machine"}
        assert included == {f"performance_{name}.inc" for name in names}
        for name in included:
            assert (GUIDE / name).read_text().startswith(page.HEAD)

    def test_all_methods_that_ship_are_timed(self, page):
        assert set(page.METHODS) == set(nr.available_methods())


class TestPrograms:
    def program(self, run, tmp_path, code):
        script = tmp_path / "program.py"
        script.write_text(f"import sys\nsys.path.append({str(PEERS)!r})\n{code}")
        return run.Program([sys.executable, script], tmp_path / "log")

    def test_runs_a_case_whenever_it_is_asked(self, run, tmp_path):
        code = (
            "from serve import serve\n"
            "def work():\n"
            "    print('words of its own')\n"
            "    return sum(k > 0 for k in range(1_000_000)) + 1\n"
            "serve({'work': work})\n"
        )
        program = self.program(run, tmp_path, code)
        first, second = program.ask("work"), program.ask("work")
        program.close()
        assert 0.0 < first < 1e-3  # of each of a million
        assert 0.0 < second < 1e-3
        assert program.process.returncode == 0

    def test_end_of_a_program_is_told_with_its_last_words(self, run, tmp_path):
        with pytest.raises(run.UnavailableError, match=r"ended with 1: .*no kernels here"):
            self.program(run, tmp_path, "raise SystemExit('no kernels here')")

    def test_case_that_fails_leaves_the_others(self, run, tmp_path, capsys):
        def fails():
            raise run.UnavailableError("it will not")

        turns = run.Run(run.Work(tmp_path))
        turns.cases = {"good": lambda: 1.0, "bad": fails}
        assert turns.seconds(2) == {"good": [1.0, 1.0]}
        assert turns.missing == {"bad": "it will not"}
        assert "bad: it will not" in capsys.readouterr().err


class TestEnvironments:
    @pytest.fixture
    def environments(self):
        return load("environments", PEERS)

    def test_are_built_once(self, environments, tmp_path, monkeypatch):
        built = []
        monkeypatch.setitem(
            environments.BUILDERS,
            "kete",
            lambda work, version: built.append(work.environment("kete").mkdir() or version),
        )
        work = environments.Work(tmp_path)
        version = environments.VERSIONS["kete"]
        assert [environments.prepared("kete", work) for _ in range(2)] == [version] * 2
        assert built == [version]

    def test_failed_build_says_how_it_ended(self, environments, tmp_path):
        (tmp_path / "env").mkdir()
        work = environments.Work(tmp_path)
        code = "raise SystemExit('no such package')"
        with pytest.raises(environments.UnavailableError, match="ended with 1: no such package"):
            work.run("kete", sys.executable, "-c", code)
