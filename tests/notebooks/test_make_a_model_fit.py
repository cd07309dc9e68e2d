"""The notebook takes a model that does not fit to a configuration that does."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("pyarrow")
from tests.notebooks.notebook_runs import is_bare, kept, outputs, printed, run

pytestmark = pytest.mark.xdist_group("fit notebook")  # run in one process

NAME = "make_a_model_fit.ipynb"
TILE = 638_976  # bytes of a tile of an Mk2


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(NAME, tmp_path_factory.mktemp("fit"))


def test_the_notebook_is_kept_bare() -> None:
    assert is_bare(kept(NAME))


def test_a_model_that_lacks_memory_is_brought_to_fit(ran: Any) -> None:
    assert printed(ran, "stderr") == ""
    said = printed(ran)
    lacking = re.search(r"exit code 1: tile 0 lacks ([\d,]+) bytes", said)
    full = re.search(r"--precision=half: the fullest tile is ([\d.]+)% full", said)
    assert lacking and int(lacking[1].replace(",", "")) > 0
    assert full and float(full[1]) <= 100
    assert "precision=half | " in said


def test_each_point_of_the_front_fits_and_faster_ones_need_more(ran: Any) -> None:
    (table,) = [o.data["text/plain"] for o in outputs(ran) if "text/plain" in o.get("data", {})]
    rows = [line.split() for line in table.splitlines()[1:]]
    points = sorted((float(row[-2]), int(float(row[-1]))) for row in rows)
    memory = [fullest for _, fullest in points]
    assert memory == sorted(memory) and memory[-1] <= TILE and len(points) > 1
