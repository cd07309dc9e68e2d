"""The drawer of a variable: what it says, where it is shown, and how it is closed."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard import drawer
from dashboard.address import Address, AddressError, parse
from dashboard.store import Store
from pva.analysis.selection import SelectionError
from tests.analysis.samples import SAMPLES
from tests.dashboard.layouts import parts, words


@pytest.fixture(scope="module")
def store() -> Store:
    """Give a store of a report whose source lines were recorded."""
    return Store([SAMPLES / "mlp_digits_tiny"])


def text(store: Store, search: str) -> str:
    made = drawer.drawer(store, parse("/liveness", search), "light")
    return words(made).replace("\u00a0", " ")


def test_the_drawer_says_where_a_variable_was_created_and_who_reads_it_last(store: Store) -> None:
    names = store.report().dataset.column("variables", "name").tolist()
    shown = text(store, f"?variable={names.index('Layer1/Fwd/weights')}")
    assert "Created at mlp_digits.py:" in shown
    assert "Read by 3 programs, last" in shown
    assert "Show in Memory" in shown and "Show in Liveness" not in shown


def test_no_variable_no_drawer(store: Store) -> None:
    assert drawer.drawer(store, Address("/liveness"), "light") is None


def test_close_leaves_the_rest_of_the_address(store: Store) -> None:
    made: Any = drawer.drawer(store, parse("/liveness", "?tab=always&variable=3"), "light")
    links = [part.href for part in parts(made) if getattr(part, "children", "") == "Close"]
    assert links == ["/liveness?tab=always"]


@pytest.mark.parametrize(("search", "fault"), [("?variable=9999", SelectionError),
                                               ("?variable=x", AddressError)])  # fmt: skip
def test_a_variable_that_is_not_there_is_one_line(
    store: Store, search: str, fault: type[Exception]
) -> None:
    with pytest.raises(fault):
        text(store, search)
