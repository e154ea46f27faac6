"""The reference names everything that can be imported, and docstrings name what they take."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import neoranging
from neoranging import core as core_package

DOCS = Path(__file__).resolve().parents[1] / "docs"
README = DOCS.parent / "README.md"
CORE = "neoranging.core."
EXPORTED = sorted(
    name
    for name in set(neoranging.__all__) - {"__version__"}
    if not inspect.ismodule(getattr(neoranging, name))
)
FAULTS = {"GL08", "PR02", "PR06", "RT05"}
"""No docstring; parameters that do not exist; types and results in a form numpydoc refuses."""


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """Modules that have a place in the reference."""
    pages = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.rst"))
    return set(re.findall(r"^\.\. automodule:: (\S+)$", pages, re.MULTILINE))


def test_every_module_of_the_core_is_documented(documented):
    core = {module.name for module in pkgutil.iter_modules(core_package.__path__, CORE)}
    assert core == {name for name in documented if name.startswith(CORE)}


def test_every_exported_name_is_in_a_documented_module(documented):
    missing = []
    for name in EXPORTED:
        home = getattr(neoranging, name).__module__
        if home not in documented:
            missing.append(f"{home}.{name}")
    assert not missing


def test_index_of_the_reference_lists_every_exported_name():
    listed = re.findall(r"^   ~(\S+)$", (DOCS / "api" / "index.rst").read_text(), re.MULTILINE)
    objects = {}
    for entry in listed:
        module, _, name = entry.rpartition(".")
        objects[name] = getattr(importlib.import_module(f"neoranging.{module}"), name)
    assert sorted(objects) == EXPORTED
    for name, value in objects.items():
        assert value is getattr(neoranging, name)


def test_pages_of_the_reference_are_in_its_table_of_contents():
    index = (DOCS / "api" / "index.rst").read_text()
    pages = {path.stem for path in (DOCS / "api").glob("*.rst")} - {"index"}
    assert pages == set(re.findall(r"^   ([a-z_]+)$", index, re.MULTILINE))


def _documented_objects() -> list[str]:
    names = []
    for name in EXPORTED:
        value = getattr(neoranging, name)
        home = f"{value.__module__}.{name}"
        names.append(home)
        if inspect.isclass(value):
            names += [f"{home}.{member}" for member in vars(value) if not member.startswith("_")]
    return names


@pytest.mark.parametrize("name", _documented_objects())
def test_docstring_agrees_with_what_it_documents(name):
    try:
        errors = validate(name)["errors"]
    except ImportError:  # attributes of an instance have no docstring of their own
        return
    assert [error for error in errors if error[0] in FAULTS] == []


def test_readme_promises_only_what_is_there():
    readme = README.read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", readme):
        assert (DOCS.parent / target).exists(), target
    for target in re.findall(r"^make (\w+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:", (DOCS.parent / "Makefile").read_text(), re.MULTILINE)


def test_readme_shows_what_its_examples_print(capsys):
    blocks = re.findall(r"```(python|text)\n(.*?)```", README.read_text(), re.DOTALL)
    code = "".join(text for kind, text in blocks if kind == "python")
    printed = "".join(text for kind, text in blocks if kind == "text")
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == printed
