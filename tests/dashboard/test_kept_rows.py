"""Rows of a table that are asked for again: made once for an address, files, units and order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard import address, tables
from dashboard.app import application
from dashboard.elements.components import Column
from dashboard.store import Store
from tests.builders import write_report


@pytest.fixture
def made() -> list[str]:
    return []


@pytest.fixture
def ask(tmp_path: Path, made: list[str]) -> Any:
    store = Store([write_report(tmp_path / "a")])
    app = application(store)

    def frame(_store: Store, chosen: Any) -> pd.DataFrame:
        made.append(address.write(chosen))
        return pd.DataFrame({"number": [3, 1, 2]})

    tables.serve(app, store, "/memory", "numbers", [Column("number", "Number", "number")], frame)
    client = app.server.test_client()
    return lambda **asked: client.post("/rows/numbers", json=asked).json


def test_the_same_rows_are_made_once(ask: Any, made: list[str]) -> None:
    assert ask(search="?tile=3") == ask(search="?tile=3")
    assert len(ask(search="?tile=3")["rowData"]) == 3
    assert made == ["/memory?tile=3"]


def test_another_address_order_or_part_is_made_anew(ask: Any, made: list[str]) -> None:
    ask(search="?tile=3")
    ask(search="?tile=4")
    ascending = ask(search="?tile=4", sortModel=[{"colId": "number", "sort": "asc"}])
    part = ask(search="?tile=4", startRow=0, endRow=2)
    assert made == ["/memory?tile=3", *["/memory?tile=4"] * 3]
    assert [row["number"] for row in ascending["rowData"]] == [1, 2, 3]
    assert (len(part["rowData"]), part["rowCount"]) == (2, 3)


def test_files_that_change_are_read_again(tmp_path: Path, ask: Any, made: list[str]) -> None:
    ask(search="?tile=3")
    file = next((tmp_path / "a").glob("profile.pop"))
    os.utime(file, ns=(1, 1))
    ask(search="?tile=3")
    assert made == ["/memory?tile=3"] * 2
