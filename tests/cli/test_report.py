"""The command ``report``: where the page goes, what is said meanwhile, and what is refused."""

from __future__ import annotations

import signal

import pytest
from click.testing import CliRunner

from neoranging.cli import main
from neoranging.night import NightPage
from neoranging.samples import sample

IMPACTORS = str(sample("impactors"))


def run(*arguments, **options):
    return CliRunner().invoke(main, ["report", *map(str, arguments)], **options)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "night.html"


def test_a_page_is_written_and_progress_told_on_standard_error(out):
    result = run(IMPACTORS, "--out", out, "--draws", 50, "--limit", 21, "--field", "20arcmin")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "34 records, 34 used, 0 set aside" in result.stderr
    assert "5 of 5 tracklets" in result.stderr
    assert f"{out}: 0." in result.stderr
    page = out.read_text()
    assert page.count("<article") == 5
    assert "limit V 21" in page
    assert "field of view 20′" in page


def test_quiet_says_nothing(out):
    result = run(sample("2024YR4"), "--out", out, "--draws", 50, "--quiet", "--at", "+30h")
    assert (result.exit_code, result.output) == (0, "")
    assert "30 h after the last observation" in out.read_text()


def test_standard_input_and_a_station(out):
    text = sample("2024YR4").read_text()
    options = ["--at", "2025-01-01T05:00", "--station", "W68", "--draws", "50"]
    result = run("-", "--out", out, *options, input=text)
    assert result.exit_code == 0, result.output
    assert "at 2025-01-01 05:00 UTC, from W68" in out.read_text()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--method", "nothing"], 2, "nothing"),
        (["--method", "gauss"], 2, "take systematic"),
        (["--station", "ZZZ"], 2, "ZZZ"),
        (["--field", "0"], 2, "is no angle"),
        (["--within", "1e6"], 2, "366"),
        (["--at", "yesterday"], 2, "is no time"),
        (["--at", "2300-01-01"], 2, "1800 to 2200"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(out, options, code, message):
    result = run(IMPACTORS, "--out", out, *options)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert not out.exists()


def test_a_folder_that_is_not_there_is_found_out_first(tmp_path):
    result = run("no-such-file", "--out", tmp_path / "nowhere" / "night.html")
    assert result.exit_code == 1
    assert "no such folder" in result.stderr


def test_an_interrupt_leaves_the_page_that_was_there(out, monkeypatch):
    out.write_text("old")

    def interrupted(page):
        raise KeyboardInterrupt(signal.SIGTERM)

    monkeypatch.setattr(NightPage, "_worked_out", interrupted)
    result = run(IMPACTORS, "--out", out)
    assert result.exit_code == 143
    assert out.read_text() == "old"
    assert [path.name for path in out.parent.iterdir()] == ["night.html"]
