"""The page of the architecture knows all modules, each in its layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import jobinfo_cache
from tests.docs.tables import codes, page, table

SOURCE = Path(jobinfo_cache.__file__).parent
ROWS = [codes(row["modules"]) for row in table(page("explanation/architecture"), "## Modules")]
LAYER = {module: number for number, row in enumerate(ROWS) for module in row}


def test_every_module_is_there() -> None:
    """The table has each module of the package, once."""
    found = [path.stem for path in SOURCE.iterdir() if path.stem[0] != "_" and _is_module(path)]

    assert sorted(module for row in ROWS for module in row) == sorted(found)


def test_no_module_imports_from_a_higher_row() -> None:
    """What the page says of layers holds for its own table."""
    wrong = [
        f"{importer} imports {imported}"
        for importer in LAYER
        for imported in _imports(importer)
        if LAYER.get(imported, len(ROWS)) < LAYER[importer]
    ]

    assert wrong == []


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").exists()


def _imports(module: str) -> Iterator[str]:
    """The modules that it imports when it runs; not those for type checkers only."""
    path = SOURCE / module
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    for file in files:
        for node in _running(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jobinfo_cache"):
                parts = str(node.module).split(".")[1:2]
                yield from parts or [alias.name for alias in node.names]


def _running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _running(child)
