"""What CONTRIBUTING shows a newcomer works: each addition is one source file and one test file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)
ROW = re.compile(r"```python\n# (\S+\.py), a row of (\w+)\n(.*?)```", re.DOTALL)
# The tests that hold what every analysis, command and page must have.
OF_ALL = (
    "tests/analysis/test_columns.py::test_declared_columns_are_those_given[emptiest_tiles]",
    "tests/cli/test_commands.py::test_every_command_has_one_sentence_of_help_and_examples[room]",
    "tests/cli/test_every_input.py::test_a_bad_report_is_one_line_that_names_it[missing-room IN]",
    "tests/dashboard/test_manual.py::test_every_page_has_a_chapter_a_letter_and_an_icon",
    "tests/dashboard/test_manual.py::test_every_column_of_a_table_is_explained",
)


def linked(source: Path, copy: Path, folders: set[Path]) -> None:
    """Copy a tree: links to all but the folders that get a file, which are made."""
    copy.mkdir()
    for path in source.iterdir():
        if path in folders:
            linked(path, copy / path.name, folders)
        elif path.name not in (".venv", "__pycache__", ".git"):
            (copy / path.name).symlink_to(path)


def blocks() -> dict[str, str]:
    """Return the files that CONTRIBUTING shows, by their paths."""
    return dict(BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))


def row() -> tuple[str, str]:
    """Return the file of a table, and its text with the row that CONTRIBUTING shows."""
    ((file, table, text),) = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    head, end = f"{table}: Table = table(\n", "\n)\n"
    before, _, rows = (ROOT / file).read_text(encoding="utf-8").partition(head)
    known, _, after = rows.partition(end)
    return file, f"{before}{head}{known}\n{text.rstrip()}{end}{after}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the tree with what CONTRIBUTING shows: files that are new, and a row."""
    file, table = row()
    parents = {ROOT / above for path in (*blocks(), file) for above in Path(path).parents}
    linked(ROOT, tmp_path / "tree", parents)
    (tmp_path / "tree" / file).unlink()
    (tmp_path / "tree" / file).write_text(table, encoding="utf-8")
    for file, text in blocks().items():
        assert not (ROOT / file).exists()
        (tmp_path / "tree" / file).write_text(text, encoding="utf-8")
    return tmp_path / "tree"


def test_an_operator_an_analysis_a_command_and_a_page_are_a_source_and_a_test_file_each(
    tree: Path,
) -> None:
    own = [file for file in blocks() if file.startswith("tests/")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *own, *OF_ALL],
        cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True,
    )  # fmt: skip
    assert len(own) == len(blocks()) - len(own) + 1 == 4  # of the operator a row
    assert done.returncode == 0, done.stdout
    assert f"{len(own) + len(OF_ALL)} passed" in done.stdout
