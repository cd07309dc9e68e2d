"""The page Exchange: what moves most, between whom, and what is exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dashboard.address import Address, parse
from dashboard.pages import exchange
from dashboard.store import Store
from pva.analysis import largest_exchanges
from tests.dashboard.layouts import words

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "newton_pipeline_replicas"


@pytest.fixture(scope="module")
def store() -> Store:
    return Store([SAMPLE])


def chosen(search: str = "") -> Address:
    return parse("/exchange", search)


def test_the_exchange_that_moves_most_heads_the_page(store: Store) -> None:
    row = largest_exchanges(store.report())[["name", "bytes_received", "bytes_sent"]].iloc[0]
    said = words(exchange.answer(store, chosen(), "light"))
    assert said.startswith(f"{row['name']} moves most: 2.0")
    assert "between IPUs, most from IPU 0 to IPU 1 (100.0" in said


def test_a_chosen_exchange_heads_the_page_and_fills_the_matrix(store: Store) -> None:
    search = "moved=between-IPUs-0"
    row = exchange.picked(store, chosen(search))
    said = words(exchange.answer(store, chosen(search), "light"))
    assert said.startswith(f"{row['name']} moves ") and "from IPU 0 to IPU 1" in said
    figure = exchange.matrix(store, chosen(f"{search}&by=ipus"), "dark")
    cells = np.asarray(figure.data[0].z, dtype=float)
    assert np.isfinite(cells).tolist() == [[False, True], [False, False]]
    assert len(figure.layout.annotations) == 1


def test_an_exchange_with_the_host_has_no_matrix(store: Store) -> None:
    shown = exchange.note(store, chosen("moved=host-0"), "light")
    assert "a tile at one end only" in words(shown)
    assert not len(exchange.flows(store, chosen("moved=host-0")))


def test_exchanges_are_filtered_by_name(store: Store) -> None:
    every = exchange.rows(store, chosen())
    some = exchange.rows(store, chosen("filter=name~global"))
    assert 0 < len(some) < len(every)
    assert some["name"].str.contains("global", case=False).all()
