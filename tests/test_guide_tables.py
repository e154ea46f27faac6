"""Numbers of the guide are of the weights that ship."""

import hashlib
import re
from pathlib import Path

import pytest

import neoranging

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide"
WEIGHTS = Path(neoranging.__file__).parent / "data" / "weights"


@pytest.mark.parametrize("part", ["study_headline.inc", "study_coverage.inc"])
def test_studies_are_of_the_weights_that_ship(part):
    told = set(re.findall(r"``(mlp|pinn)`` ``([0-9a-f]{8})``", (GUIDE / part).read_text()))
    assert {name for name, _ in told} == {"mlp", "pinn"}
    for name, digest in sorted(told):
        held = (WEIGHTS / f"{name}-invariant.safetensors").read_bytes()
        assert hashlib.sha256(held).hexdigest().startswith(digest), (
            f"{part} is of other weights of {name}: make its studies anew, then run "
            "docs/tools/study_tables.py"
        )
