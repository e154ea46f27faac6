"""Figures of the source tree that the page on its plan quotes.

``python docs/tools/house_figures.py [FOLDER]`` prints, for the package in FOLDER (this one by
default): lines in all and by room, public names, private functions and how many of them are called
from one place. Only the text of the modules is read; nothing is imported.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_names(tree: ast.Module) -> set[str]:
    """Names that a module hands to its users: those of its ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
                return {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
    return set()


def stub_names(tree: ast.Module) -> set[str]:
    """Names that the stub of a lazy package lists, its submodules left out."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def used_names(tree: ast.Module) -> Counter[str]:
    """How often a module mentions each name or attribute, definitions and imports aside."""
    return Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )


def main(folder: Path) -> None:
    """Print the figures of a package."""
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.py"))}
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in trees}
    uses = sum(map(used_names, trees.values()), Counter())
    private = [
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and node.name.startswith("_")
        and not node.name.startswith("__")
    ]
    public = {(p, name) for p, tree in trees.items() for name in public_names(tree)}
    for stub in folder.rglob("*.pyi"):
        tree = ast.parse(stub.read_text(encoding="utf-8"))
        public |= {(stub, name) for name in stub_names(tree)}

    rooms: Counter[str] = Counter()
    for path, n in lines.items():
        parts = path.relative_to(folder).parts[:-1]
        rooms["/".join(parts[: 2 if parts[:1] == ("lab",) else 1]) or "(top)"] += n
    laboratory = sum(n for room, n in rooms.items() if room.startswith("lab"))
    total = sum(lines.values())
    print(f"files                          {len(trees)}")
    print(f"lines                          {total}")
    print(f"  instrument                   {total - laboratory}")
    print(f"  laboratory                   {laboratory}")
    for room, n in sorted(rooms.items(), key=lambda item: -item[1]):
        print(f"    {room:26} {n}")
    print(f"public names                   {len({name for _, name in public})}")
    print(f"private functions              {len(private)}")
    print(f"  called from one place        {sum(uses[name] == 1 for name in private)}")


if __name__ == "__main__":
    default = Path(__file__).parents[2] / "neoranging"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
