"""Files about the project say the same as its metadata, and name files that exist."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import neoranging

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def citation():
    """Plain entries at the first level of CITATION.cff."""
    text = (ROOT / "CITATION.cff").read_text()
    return dict(re.findall(r'^([a-z-]+): "?([^"\n]+)"?$', text, re.MULTILINE))


@pytest.fixture(scope="module")
def codemeta():
    return json.loads((ROOT / "codemeta.json").read_text())


def test_versions_are_one(citation, codemeta):
    assert citation["version"] == codemeta["version"] == neoranging.__version__


def test_names_are_one(citation, codemeta):
    assert citation["title"].partition(":")[0] == codemeta["name"] == PROJECT["name"]
    assert codemeta["description"] == PROJECT["description"]
    assert codemeta["keywords"] == PROJECT["keywords"]
    assert [author["name"] for author in codemeta["author"]] == [
        author["name"] for author in PROJECT["authors"]
    ]


def test_licences_are_one(citation, codemeta):
    assert citation["license"] == PROJECT["license"]
    assert codemeta["license"] == f"https://spdx.org/licenses/{PROJECT['license']}"


def test_the_version_has_its_section_of_the_changelog():
    assert f"## [{neoranging.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_makefile_names_tests_that_exist():
    listed = re.search(
        r"^NUMERIC :=((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert listed is not None
    paths = re.findall(r"tests/\S+", listed[1])
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_plan_names_files_that_exist():
    plan = (ROOT / "docs" / "development" / "plan.rst").read_text()
    paths = re.findall(r"``((?:neoranging|tests|docs|benchmarks)/[\w./-]+)``", plan)
    assert len(paths) > 20
    assert not [path for path in paths if not (ROOT / path).exists()]
