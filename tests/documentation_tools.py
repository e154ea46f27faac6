"""Scripts of docs/tools and of the benchmarks as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "docs" / "tools"
PEERS = ROOT / "benchmarks" / "peers"


def load(name: str, folder: Path = TOOLS) -> ModuleType:
    """Module of a script, which finds the other scripts as when it is run."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        spec.loader.exec_module(module)
    return module
