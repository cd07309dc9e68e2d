"""The accuracy page shows what the model gives today."""

from __future__ import annotations

from pathlib import Path

from benchmarks import accuracy

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def test_page_has_the_rows_of_the_guides_sample_and_of_tutorial_4() -> None:
    lines = PAGE.read_text().splitlines()
    rows = (*accuracy.guide(), *accuracy.chain_balance(), *accuracy.chain_phases())
    assert [row.what for row in rows if row.markdown() not in lines] == []
