"""Numbers of the guide are of the weights that ship."""

import hashlib
import re
from pathlib import Path

import pytest

import neoranging
from neoranging.lab.study.methods import study_methods

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide"
WEIGHTS = Path(neoranging.__file__).parent / "data" / "weights"


@pytest.mark.parametrize(
    "part",
    [
        *("study_headline.inc", "study_paper.inc", "study_coverage.inc", "study_posterior.inc"),
        "shift.inc",
    ],
)
def test_studies_are_of_the_weights_that_ship(part):
    told = set(re.findall(r"``([\w-]+)`` ``([0-9a-f]{8})``", (GUIDE / part).read_text()))
    assert {"mlp", "pinn"} <= {name for name, _ in told}
    held = [hashlib.sha256(path.read_bytes()).hexdigest() for path in WEIGHTS.glob("*.safetensors")]
    for name, digest in sorted(told):
        assert any(each.startswith(digest) for each in held), (
            f"{part} is of other weights of {name}: make its studies anew, then run "
            "docs/tools/study_tables.py"
        )


def test_published_values_stand_beside_networks_that_ship():
    told = set(re.findall(r"``([0-9a-f]{8})``", (GUIDE / "paper_values.inc").read_text()))
    for model in ("mlp", "pinn"):
        held = hashlib.sha256((WEIGHTS / f"{model}-paper.safetensors").read_bytes()).hexdigest()
        assert held[:8] in told, (
            f"paper_values.inc is of other weights of {model}: make it anew with "
            "docs/tools/paper_values.py"
        )


@pytest.mark.parametrize("part", ["study_headline.inc", "study_coverage.inc"])
def test_printed_commands_name_methods_that_ship(part):
    printed = re.findall(r"neoranging study .*--methods (\S+)", (GUIDE / part).read_text())
    assert printed
    for methods in printed:
        labels = [each.label for each in study_methods(methods.split(","))]
        assert labels[:6] == ["gauss", "laplace", "mlp", "pinn", "mlp-paper", "pinn-paper"]
        assert all(label.startswith("systematic-") for label in labels[6:])


def test_posteriors_are_judged_under_the_priors_that_their_labels_name():
    text = (GUIDE / "study_posterior.inc").read_text()
    printed = re.findall(r"neoranging study .*--methods (\S+)", text)
    assert len(printed) == 2  # of simulated arcs and of real ones
    for methods in printed:
        judged = [one for one in study_methods(methods.split(",")) if "systematic" in one.label]
        assert judged
        for one in judged:
            assert one.label == f"systematic-{one.estimator.prior}"
