"""The published figures, held to the tables and sentences of the paper."""

import re

import pytest

from neoranging.lab.study.metrics import METRICS
from neoranging.lab.study.published import PUBLISHED

NETWORKS = {
    "mae_rho": (0.286, 0.304),
    "medae_rho": (0.219, 0.208),
    "corr_rho": (0.391, 0.317),
    "spread_rho": (0.40, 0.62),
    "mae_rho_dot": (0.0045, 0.0047),
    "medae_rho_dot": (0.0040, 0.0042),
    "corr_rho_dot": (0.438, 0.411),
    "spread_rho_dot": (0.46, 0.63),
    "p_ar": (76.5, 85.1),
    "p_ar_truth": (99.4, 99.4),
    "elliptic_pseudo": (76.0837, 84.7322),
    "d_sh_pseudo": (0.543, 0.550),
    "d_sh_pseudo_below": (8.2, 7.9),
    "solved": (100.0, 100.0),
}
CLASSICAL = {
    "mae_rho": (0.442, 0.441),
    "medae_rho": (0.309, 0.309),
    "corr_rho": (0.015, 0.010),
    "spread_rho": (0.174, 0.154),
    "collapsed": (92.3, 88.9),
    "solved": (45.0, 47.3),
}


def test_the_figures_one_by_one():
    mlp, pinn, gauss, laplace = PUBLISHED
    assert [each.method for each in PUBLISHED] == ["MLP", "PINN", "Gauss", "Laplace"]
    assert [each.n_arcs for each in PUBLISHED] == [56_773, 56_773, 23_298, 23_298]
    for pair, table in (((mlp, pinn), NETWORKS), ((gauss, laplace), CLASSICAL)):
        for k, one in enumerate(pair):
            expected = {name: row[k] for name, row in table.items()}
            assert dict(one.values) == pytest.approx(expected, rel=1e-5)


def test_they_are_figures_of_a_study():
    assert {name for each in PUBLISHED for name in each.values} <= set(METRICS)


@pytest.fixture(scope="module")
def paper(shared):
    """Text of the paper without its marks of TeX."""
    files = sorted((shared / "paper").glob("*.txt")) if (shared / "paper").is_dir() else []
    if not files:
        pytest.skip("the paper is not here")
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    text = re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", text)
    text = re.sub(r"\\bm\{([^}]*)\}", r"\1", text)
    return re.sub(r"[$\\]|\{,\}", "", text)


def numbers(text):
    return [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


def test_networks_are_those_of_the_paper(paper):
    mlp, pinn, *_ = (each.values for each in PUBLISHED)
    table = paper[paper.index("tab:MLPvsPINN}") :]
    for label, metric in {
        "MAE ": "mae",
        "medAE ": "medae",
        "correlation ": "corr",
        "spread ratio ": "spread",
    }.items():
        row = next(line for line in table.splitlines() if line.startswith(label))
        names = [f"{metric}_rho", f"{metric}_rho_dot"]
        expected = [of[name] for name in names for of in (pinn, mlp)]
        assert numbers(row) == pytest.approx(expected, rel=1e-9)
    assert f"PINN: P_{{mathrm{{AR}}}} = {pinn['p_ar']}%" in paper
    assert f"MLP: P_{{mathrm{{AR}}}} = {mlp['p_ar']}%" in paper
    elliptic = re.search(r"both elliptic \((\d+) for the PINN, (\d+) for the MLP\)", paper)
    shares = [100.0 * int(n) / 56_773 for n in elliptic.groups()]
    assert shares == pytest.approx([pinn["elliptic_pseudo"], mlp["elliptic_pseudo"]])
    sentence = paper[elliptic.end() :].split("threshold", 1)[0]
    expected = [each["d_sh_pseudo"] for each in (pinn, mlp)]
    expected += [each["d_sh_pseudo_below"] for each in (pinn, mlp)]
    assert numbers(sentence)[:4] == pytest.approx(expected)


def test_classical_methods_are_those_of_the_paper(paper):
    table = paper[paper.index("tab:classical}") :]
    collapsed = re.search(r"\(([\d.]+)% of Gauss's and ([\d.]+)% of Laplace's", paper).groups()
    for name, share in zip(("Gauss", "Laplace"), collapsed, strict=True):
        (values,) = (each.values for each in PUBLISHED if each.method == name)
        row = next(line for line in table.splitlines() if line.startswith(name))
        mae, medae, corr, spread, _, solved = numbers(row)
        found = dict(zip(values, (solved, mae, medae, corr, spread, float(share)), strict=True))
        assert dict(values) == pytest.approx(found)
