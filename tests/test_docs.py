"""The reference names everything that is public, and docstrings name what they take."""

from __future__ import annotations

import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import house_figures
import pytest
from numpydoc.validate import validate

import neoranging

ROOT = Path(neoranging.__file__).parent
DOCS = Path(__file__).resolve().parents[1] / "docs"
README = DOCS.parent / "README.md"
PAGES = sorted(set((DOCS / "api").glob("*.rst")) - {DOCS / "api" / "index.rst"})
STUBS = house_figures.stubs(ROOT)
SUBPACKAGES = [package.removeprefix("neoranging.") for package in STUBS if package != "neoranging"]
PUBLIC = house_figures.public_names(ROOT)
FAULTS = {"GL08", "PR02", "PR06", "RT05"}
"""No docstring; parameters that do not exist; types and results in a form numpydoc refuses."""


@pytest.fixture(scope="module")
def documented() -> list[str]:
    """Names that have a place in the reference, as often as they have one."""
    pages = "\n".join(path.read_text() for path in PAGES)
    directive = r"^\.\. (?:auto(?:class|function|exception)|data):: (\S+)$"
    return re.findall(directive, pages, re.MULTILINE)


def test_reference_names_everything_public_once(documented):
    assert sorted(documented) == PUBLIC


def test_every_public_name_can_be_imported():
    """From the stub's package, in a fresh interpreter: nothing else has loaded the modules."""
    lines = [
        f"from {package} import {name} as _" for package, names in STUBS.items() for name in names
    ]
    code = "import sys\nimport neoranging\n" + "\n".join(
        [*lines, *(f"neoranging.{package}" for package in SUBPACKAGES)]
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_of_the_reference_list_what_their_page_describes():
    for page in PAGES:
        tables = re.findall(r"^   (\w+)$", page.read_text(), re.MULTILINE)
        described = re.findall(
            r"^\.\. (?:auto\w+|data):: \S+\.(\w+)$", page.read_text(), re.MULTILINE
        )
        assert tables == [name for name in described if name != "constants"], page.name


def test_pages_of_the_reference_are_in_its_table_of_contents():
    index = (DOCS / "api" / "index.rst").read_text()
    assert {page.stem for page in PAGES} == set(re.findall(r"^   (\w+)$", index, re.MULTILINE))


def _docstrings() -> list[str]:
    names = []
    for path in PUBLIC:
        if path == "neoranging.lab.study.METRICS":  # a mapping, which has no docstring
            continue
        value = operator.attrgetter(path.removeprefix("neoranging."))(neoranging)
        home = f"{value.__module__}.{value.__qualname__}"
        names.append(home)
        if inspect.isclass(value):
            fields = re.findall(r"^ +([\w, ]+) : ", value.__doc__ or "", re.MULTILINE)
            attributes = set(", ".join(fields).split(", "))
            own = [member for member in vars(value) if not member.startswith("_")]
            names += [f"{home}.{member}" for member in own if member not in attributes]
    return names


@pytest.mark.parametrize("name", _docstrings())
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
