"""Scripts of docs/tools as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[1] / "docs" / "tools"


def load(name: str) -> ModuleType:
    """Module of a script, which finds the other scripts as when it is run."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        spec.loader.exec_module(module)
    return module
