"""A `profile.pop` of many numbers has larger pages, and holds the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva.data.dataset import Dataset
from pva.formats.database import pop
from tests.builders import small_report


@pytest.mark.parametrize(("more", "page"), [(0, pop.PAGE_BYTES), (1, 4096)])
def test_many_numbers_have_larger_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int, page: int
) -> None:
    data = small_report()
    columns = [np.size(v) for name in data.tables for v in data.table(name).values()]
    numbers = sum(columns) + sum(np.size(data.array(name)) for name in data.arrays)
    monkeypatch.setattr(pop, "MANY", numbers + more)
    pop.write(data, tmp_path / "profile.pop")
    assert int.from_bytes((tmp_path / "profile.pop").read_bytes()[16:18]) == page
    assert pop.read(tmp_path / "profile.pop") == data


def test_a_file_that_is_written_on_keeps_its_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_report()
    monkeypatch.setattr(pop, "MANY", 1)
    content = pop.content_of(data)
    monkeypatch.undo()
    pop.ReportWriter(tmp_path / "profile.pop", Dataset.of({}), "id", content).close()
    assert int.from_bytes((tmp_path / "profile.pop").read_bytes()[16:18]) == pop.PAGE_BYTES
