"""Tables of the guide from the numbers of a study: docs/tools/study_tables.py."""

import re

import pytest
from documentation_tools import load

from neoranging.lab.study.folder import write_report
from neoranging.lab.study.run import run_study


@pytest.fixture(scope="module")
def tool():
    return load("study_tables")


@pytest.fixture(scope="module")
def judged(folder):
    """Networks of both forms, and classical methods."""
    methods = ["gauss", "laplace", "mlp", "pinn", "mlp-paper=mlp@paper", "pinn-paper=pinn@paper"]
    return run_study(folder, methods, n_boot=20, folds=4, allow_learnt=True)


@pytest.fixture(scope="module")
def told(tool, judged, tmp_path_factory):
    """What the tool reads."""
    path = tmp_path_factory.mktemp("study")
    write_report(judged, [], path)
    return tool.Study.read(path)


def lines_of(table):
    """Cells of a table by the first cell of their line."""
    rows = re.findall(r'^   "(.*?)"(?=\n   "|\n*\Z)', table, re.MULTILINE | re.DOTALL)
    return {cells[0]: cells[1:] for cells in (row.split('", "') for row in rows)}


def test_table_of_the_paper_is_whole(tool, told, judged):
    _, table, _ = tool.paper(told)
    lines = lines_of(table)
    assert lines[""] == ["mlp-paper", "pinn-paper", "MLP, published", "PINN, published"]
    # its table 2
    assert lines["range, mean error [au]"][2:] == ["0.286", "0.304"]
    assert lines["range-rate, mean error [au/d]"][2:] == ["0.00450", "0.00470"]
    assert lines["range-rate, correlation"][2:] == ["0.438", "0.411"]
    assert lines["range-rate, spread ratio"][2:] == ["0.460", "0.630"]
    figures = judged.tables["figures"].set_index(["method", "metric"])["value"]
    for label, metric in (("correlation", "corr"), ("spread ratio", "spread")):
        ours = figures["pinn-paper", f"{metric}_rho_dot"]
        assert lines[f"range-rate, {label}"][1].startswith(f"| {tool.figure(ours)}\n")


def test_cross_of_a_form_has_both_networks_of_it(tool, told, judged):
    for form, first, second in (("paper", "pinn-paper", "mlp-paper"), ("invariant", "pinn", "mlp")):
        text = tool.cross(told, form)
        assert f"{second} → {first}" in text
        rows = judged.tables["cross"]
        mine = rows.query(f"first == '{first}' and second == '{second}'")
        row = mine.query("metric == 'p_ar' and eta == 'fast' and rho == 'all'").iloc[0]
        pair = f"{tool.number(row.value_second)} → {tool.number(row.value_first)}"
        (line,) = re.findall(r'"fast", "all", "[\d,]+", "([^"]*)"', text)
        assert line.removeprefix("| ").split("\n")[0] == pair
        cells = re.findall(r'^   "(slow|mid|fast|all)", "(close|mid|far|all)"', text, re.MULTILINE)
        assert len(set(cells)) == len(cells) == 16
    assert tool.cross(told, "other") == ""


def test_arcs_solved_alike_have_the_paper_beside_them(tool, told):
    tables = {text.split("\n")[0]: text for text in tool.classical(told)}
    (alike,) = (lines_of(t) for head, t in tables.items() if "solve from the geocentre" in head)
    published = ["Gauss, published", "Laplace, published", "MLP, published", "PINN, published"]
    assert alike[""][-4:] == published
    assert alike["median range [au]"][-4:] == ["5.10e-05", "5.60e-05", "0.442", "0.332"]
    for head, table in tables.items():
        assert ("published" in table) is ("solve from the geocentre" in head)


def test_headline_has_each_published_method_once(tool, told):
    heads = [head for text in tool.headline(told) for head in lines_of(text)[""]]
    assert [head for head in heads if "published" in head] == [
        *("Gauss, published", "Laplace, published"),
        *("MLP, published", "PINN, published"),
    ]


def test_a_study_without_networks_of_the_paper_tells_nothing_of_them(tool, told):
    methods = {k: v for k, v in told.settings["methods"].items() if not k.endswith("-paper")}
    without = told._replace(settings={**told.settings, "methods": methods})
    assert list(tool.paper(without)) == []
