"""Migrations are history: they say by themselves what they did, whatever becomes of the code around them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for app in ("bandit", "grading") for path in sorted((ROOT / app / "migrations").glob("*.py"))]
OURS = ("bandit", "grading", "gradingsite")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.pure
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_migration_imports_no_code_that_changes(path):
    """Copy what it needs into the migration, or beside it into a file that begins with an underscore."""
    ours = [name for name in imported(path) if name.partition(".")[0] in OURS]
    assert [name for name in ours if ".migrations" not in name] == []
