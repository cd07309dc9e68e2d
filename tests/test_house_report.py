"""The report that `make lint` ends with: counts by hand on small texts."""

from __future__ import annotations

import ast
import re

from tools.house_report import (
    MAX_ANY,
    MAX_VAGUE,
    ROOT,
    VAGUE_VERBS,
    bound_names,
    depth,
    report,
    row,
    share_of_any,
    share_of_vague,
    sources,
    vague_docstrings,
)

SOURCE = """
def outer(found, rows):
    for place in rows:
        if place:
            while place:
                place = found
        elif rows:
            other = 1
"""


def test_an_elif_is_no_deeper_than_its_if() -> None:
    assert depth(ast.parse(SOURCE).body[0]) == 3


def test_names_are_bound_by_arguments_and_assignments() -> None:
    assert sorted(bound_names(ast.parse(SOURCE))) == ["found", "other", "place", "place", "rows"]


def test_sizes_above_a_limit_are_named_the_largest_first() -> None:
    sizes = {"a": 3, "b": 12, "c": 11, "d": 1}
    assert row("lines", sizes, 10) == "lines: median 3, p90 11, most 12; 2 above 10: b 12, c 11"
    assert row("lines", sizes, 12) == "lines: median 3, p90 11, most 12"


def test_the_report_has_a_line_for_each_measure() -> None:
    lines = report({"one.py": SOURCE, "two.py": "x = 1\n"})
    assert lines[0] == "lines a file: median 1, p90 1, most 8"
    assert lines[1].startswith("lines a function: median 7")
    assert lines[3] == "vague names: 33.3 % of 6 (found 1, other 1)"
    assert lines[4] == "functions with Any in their signature: 0.0 %"


def test_any_counts_in_arguments_and_results_also_inside_and_quoted() -> None:
    signatures = [
        "(a: int) -> str", "(a: Any) -> str", "(a: int) -> dict[str, Any]", "(*a: Any)",
        "(a: 'list[Any]')", "(a: 'Anything')", "(a: object) -> AnyStr", "()",
    ]  # fmt: skip
    trees = [ast.parse(f"def f{signature}: x: Any = 1") for signature in signatures]
    assert share_of_any(trees) == 4 / 8
    assert share_of_any([ast.parse("")]) == 0


def test_few_functions_have_any_in_their_signature() -> None:
    share = share_of_any(map(ast.parse, sources().values()))
    assert share < MAX_ANY, f"{share:.2%} have Any: name the type, or object if nothing is asked"


def test_few_bound_names_are_vague() -> None:
    assert share_of_vague([ast.parse("found = 1; rows = 2")]) == 1 / 2
    assert share_of_vague(map(ast.parse, sources().values())) < MAX_VAGUE


def test_no_docstring_begins_with_a_verb_that_says_nothing() -> None:
    text = 'def f():\n    """Tell:\n    it."""\ndef g():\n    """Tellurium."""'
    assert list(vague_docstrings(ast.parse(text))) == ["Tell:"]
    tests = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    begins = re.compile(rf'"""({"|".join(VAGUE_VERBS)})\b')  # to parse few files
    texts = (text for text in (*sources().values(), *tests) if begins.search(text))
    assert [line for text in texts for line in vague_docstrings(ast.parse(text))] == []
