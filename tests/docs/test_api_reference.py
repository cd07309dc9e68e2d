"""The references of packages are what their docstrings say."""

from __future__ import annotations

from pathlib import Path

import pytest

import pvti
from simulator import poplar, poplin, popops
from tools.api_reference import MODULES, arguments, first_sentence, markdown

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("package", MODULES)
def test_the_page_is_what_the_docstrings_say(package: str) -> None:
    page = (DOCS / f"api-{package}.md").read_text(encoding="utf-8")
    assert page == markdown(package), "write it again: make documents"


def test_each_public_name_stands_in_its_page() -> None:
    text = markdown("simulator")
    functions = [name for module in (popops, poplin) for name in module.__all__]
    names = [name for name in functions if callable(getattr(popops, name, None))]
    assert [name for name in names if f"`{name}(" not in text and f"`{name}`" not in text] == []
    assert [name for name in pvti.__all__ if f"`{name}" not in markdown("pvti")] == []


def test_arguments_have_their_defaults_and_a_long_list_is_cut() -> None:
    def short(one: int, /, two: str = "x", *, three: float | None = None) -> None: ...

    assert arguments(short) == "one, /, two='x', *, three=None"
    many = "def long(" + ", ".join(f"argument_{n}" for n in range(20)) + "): ..."
    space: dict[str, object] = {}
    exec(many, space)
    assert arguments(space["long"]).endswith(", ...") and len(arguments(space["long"])) < 100


def test_a_description_ends_at_its_first_full_stop() -> None:
    assert first_sentence(poplar.IPUModel).startswith("A part by its name (mk1, mk2")
    assert "." not in first_sentence(pvti.createTraceChannel)[:-1]
