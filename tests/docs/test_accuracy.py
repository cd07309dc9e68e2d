"""The accuracy page shows what the model gives today."""

from __future__ import annotations

from pathlib import Path

from benchmarks import accuracy

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def test_page_has_the_rows_of_the_guides_sample() -> None:
    lines = PAGE.read_text().splitlines()
    assert [row.what for row in accuracy.guide() if row.markdown() not in lines] == []
