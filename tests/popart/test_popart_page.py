"""The page on ONNX models shows what runs, and names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulator.popart import logging
from simulator.popart.representation import patterns
from simulator.popart.sessions import dot, tile_map
from simulator.popart.sessions import options as session_options

PAGE = (Path(__file__).parents[2] / "docs" / "popart.md").read_text()


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "popart.md", "exec"), {})
    assert "Total cycles" in capsys.readouterr().out


def test_options_patterns_and_variables_are_all_named() -> None:
    variables = (dot.VARIABLE, dot.DUMP, tile_map.VARIABLE, "POPART_LOG_LEVEL")
    for name in (*session_options.OPTIONS, *patterns.NAMES, *variables, *dot.STAGES):
        assert name in PAGE
    assert all(f"`{level}`" in PAGE for level in logging.LEVELS)
