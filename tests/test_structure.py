"""Ceilings that keep the code readable: sizes of modules and functions, valid exports."""

import ast
import io
import tokenize
from importlib import import_module
from pathlib import Path

import pytest

import neoranging

ROOT = Path(neoranging.__file__).parent
MODULES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
MODULE_CEILING, FUNCTION_CEILING, TYPICAL_FUNCTION = 600, 60, 10

by_module = pytest.mark.parametrize("module", MODULES, ids=str)


def code_lines(source):
    """Numbers of the lines that carry code: no comment, no blank, no docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in {
            *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
            tokenize.ENDMARKER,
        }:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return lines


def functions(source):
    """Name and number of code lines of every function, decorators and signature included."""
    lines = code_lines(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, len(lines & set(range(node.lineno, node.end_lineno + 1)))


def read(module):
    return (ROOT / module).read_text(encoding="utf-8")


@by_module
def test_no_module_is_too_long(module):
    assert len(read(module).splitlines()) <= MODULE_CEILING


@by_module
def test_no_function_is_too_long(module):
    long = {name: n for name, n in functions(read(module)) if n > FUNCTION_CEILING}
    assert not long


def test_functions_are_typically_short():
    sizes = sorted(n for module in MODULES for _, n in functions(read(module)))
    assert sizes[len(sizes) // 2] <= TYPICAL_FUNCTION


@by_module
def test_exports_exist_and_are_sorted(module):
    source = read(module)
    if "__all__" not in source or module.name == "__main__.py":
        return
    name = ".".join(["neoranging", *module.with_suffix("").parts]).removesuffix(".__init__")
    loaded = import_module(name)
    exported = list(loaded.__all__)
    assert len(set(exported)) == len(exported)
    assert all(hasattr(loaded, each) for each in exported)


@by_module
def test_every_module_says_what_it_is_for(module):
    assert (ast.get_docstring(ast.parse(read(module))) or "").strip()


@by_module
def test_names_are_of_concepts(module):
    assert module.stem not in {"utils", "util", "helpers", "misc", "common", "tools"}
