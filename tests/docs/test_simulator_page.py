"""What docs/simulator.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_the_examples_of_the_page_give_what_they_show() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert (failed, tried) == (0, 18)
