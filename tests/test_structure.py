"""Ceilings that keep the code readable: sizes of modules and functions, public and private names.

One test to a rule; each names all modules that break it.
"""

import ast
import io
import tokenize
from pathlib import Path

import house_figures
import pytest

import neoranging

ROOT = Path(neoranging.__file__).parent
MODULE_CEILING, FUNCTION_CEILING, TYPICAL_FUNCTION = 600, 60, 10
PUBLIC_CEILING, CALLED_ONCE_CEILING = 138, 220
VAGUE = {"utils", "util", "helpers", "misc", "common", "tools"}
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


@pytest.fixture(scope="module")
def sources():
    """Text of every module by its path below the package."""
    paths = sorted(ROOT.rglob("*.py"))
    assert paths
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}


@pytest.fixture(scope="module")
def trees(sources):
    return {module: ast.parse(source) for module, source in sources.items()}


@pytest.fixture(scope="module")
def functions(sources, trees):
    """Number of code lines, signature and decorators included, by module and function."""
    return {
        f"{module}:{node.name}:{node.lineno}": len(
            lines & set(range(node.lineno, node.end_lineno + 1))
        )
        for module, tree in trees.items()
        for lines in [code_lines(sources[module], tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def code_lines(source, tree):
    """Numbers of the lines that carry code: no comment, no blank, no docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return lines


def test_code_lines_are_those_that_run():
    source = 'def f(\n    a,\n):\n    """Doc.\n\n    More."""\n\n    # why\n    return a  # so\n'
    assert code_lines(source, ast.parse(source)) == {1, 2, 3, 9}


def test_no_module_is_too_long(sources):
    lengths = {str(module): len(source.splitlines()) for module, source in sources.items()}
    assert not {module: n for module, n in lengths.items() if n > MODULE_CEILING}


def test_no_function_is_too_long(functions):
    assert not {name: n for name, n in functions.items() if n > FUNCTION_CEILING}


def test_functions_are_typically_short(functions):
    sizes = sorted(functions.values())
    assert sizes[len(sizes) // 2] <= TYPICAL_FUNCTION


@pytest.fixture(scope="module")
def house():
    return house_figures.survey(ROOT)


def test_a_person_can_read_the_reference(house):
    assert len(house.public) <= PUBLIC_CEILING


def test_helpers_say_more_than_the_lines_in_them(house):
    assert len(house.called_once) <= CALLED_ONCE_CEILING


def test_only_stubs_list_public_names(sources):
    """``__all__`` stands in packages alone, whose names come from the stub beside them."""
    listing = {module for module, source in sources.items() if "__all__" in source}
    stubs = {path.relative_to(ROOT).with_suffix(".py") for path in ROOT.rglob("*.pyi")}
    assert listing == stubs
    assert not [str(module) for module in stubs if "attach_stub(" not in sources[module]]


def test_the_stub_of_a_package_lists_its_rooms():
    """A package with public names is reached from the root by its name alone."""
    for stub in ROOT.rglob("*/__init__.pyi"):
        package = stub.parent
        assert f"from . import {package.name} as" in (package.parent / stub.name).read_text()


def test_every_module_says_what_it_is_for(trees):
    assert not [str(m) for m, tree in trees.items() if not (ast.get_docstring(tree) or "").strip()]


def test_names_are_of_concepts(trees):
    assert not [str(module) for module in trees if module.stem in VAGUE]
