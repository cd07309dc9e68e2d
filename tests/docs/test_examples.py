"""The examples in the docstrings of what users call first: they run as they stand."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = (
    "pva.report",
    "pva.trace",
    "pvti.instrument",
    "pvti.tracepoint",
    "simulator.device",
    "simulator.engine",
    "simulator.graph.graph",
    "simulator.popart.builder",
    "simulator.poplibs.poplin.matmul",
    "simulator.poplibs.poputil.tile_mapping",
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_give_what_they_show(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    outcome = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0
