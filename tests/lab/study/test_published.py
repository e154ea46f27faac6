"""The published figures, held to the tables and sentences of the paper."""

import re

import pytest

from neoranging.lab.study.metrics import METRICS
from neoranging.lab.study.published import PUBLISHED, SOLVED, TERCILES
from neoranging.lab.study.strata import AXES

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
# of the arcs that both classical methods solve: Gauss, Laplace, MLP, PINN
SOLVED_ALIKE = {
    "mae_rho": (0.442, 0.441, 0.285, 0.305),
    "medae_rho": (0.309, 0.309, 0.219, 0.213),
    "corr_rho": (0.015, 0.010, 0.388, 0.315),
    "spread_rho": (0.174, 0.154, 0.400, 0.635),
    "median_rho": (5.1e-5, 5.6e-5, 0.442, 0.332),
    "median_rho_true": (0.310, 0.310, 0.310, 0.310),
    "collapsed": (92.3, 88.9, None, None),
    "solved": (45.0, 47.3, 100.0, 100.0),
}


def test_the_figures_one_by_one():
    of_all, of_solved = PUBLISHED[:2], PUBLISHED[2:]
    assert [each.method for each in of_all] == ["MLP", "PINN"]
    assert [each.method for each in of_solved] == ["Gauss", "Laplace", "MLP", "PINN"]
    assert {(each.subset, each.n_arcs) for each in of_all} == {("all", 56_773)}
    assert {(each.subset, each.n_arcs) for each in of_solved} == {(SOLVED, 23_298)}
    for rows, table in ((of_all, NETWORKS), (of_solved, SOLVED_ALIKE)):
        for k, one in enumerate(rows):
            expected = {name: row[k] for name, row in table.items() if row[k] is not None}
            assert dict(one.values) == pytest.approx(expected, rel=1e-5)


def test_cut_points_of_terciles():
    assert TERCILES == {"eta": (0.00979, 0.0227), "rho": (0.191, 0.484)}
    assert set(TERCILES) <= set(AXES)


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
    mlp, pinn = (each.values for each in PUBLISHED if each.subset == "all")
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


def test_figures_of_arcs_solved_alike_are_those_of_the_paper(paper):
    assert "23298 arcs" in paper
    table = paper[paper.index("tab:classical}") :]
    (true,) = numbers(re.search(r"True median rho = ([\d.]+)~AU", paper).group(1))
    shares = re.search(r"\(([\d.]+)% of Gauss's and ([\d.]+)% of Laplace's", paper).groups()
    collapsed = dict(zip(("Gauss", "Laplace"), map(float, shares), strict=True))
    names = ("mae_rho", "medae_rho", "corr_rho", "spread_rho", "median_rho", "solved")
    for each in PUBLISHED:
        if each.subset == SOLVED:
            row = next(line for line in table.splitlines() if line.startswith(each.method))
            expected = dict(zip(names, numbers(row), strict=True)) | {"median_rho_true": true}
            if each.method in collapsed:
                expected["collapsed"] = collapsed[each.method]
            assert dict(each.values) == pytest.approx(expected)


def test_cut_points_are_those_of_the_paper(paper):
    eta = re.search(r"slow: eta < (\S+) and fast: eta geq ([\d.e-]+)~rad/day", paper)
    rho = re.search(r"close: rho_\{true\} < (\S+) and far: rho_\{true\} geq ([\d.]+)~AU", paper)
    found = {axis: tuple(map(float, m.groups())) for axis, m in (("eta", eta), ("rho", rho))}
    assert dict(TERCILES) == found
