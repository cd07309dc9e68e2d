"""The examples of PopTorch learn, and leave the reports that their notes speak of."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from pva import openReport  # noqa: E402 - asked for behind torch
from pva.analysis.operations.costs import operation_costs  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples" / "poptorch"


def ran(name: str, directory: Path, capsys: Any) -> tuple[list[float], Any]:
    """Run an example; return the losses that it prints, and the modules of its training by cost."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](str(directory))
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", capsys.readouterr().out)]
    costs = operation_costs(openReport(directory / "training"), by="module")
    return losses, costs.set_index("operation")


def test_digits_are_learnt_and_pooling_costs_most(tmp_path: Path, capsys: Any) -> None:
    losses, costs = ran("digits", tmp_path, capsys)
    assert losses[-1] < 0.3 < losses[0]
    layers = costs[costs.index.str.startswith("features.")]
    assert layers["cycles"].idxmax() == "features.3"


def test_a_pipeline_learns_and_its_halves_cost_alike(tmp_path: Path, capsys: Any) -> None:
    losses, costs = ran("transformer_pipeline", tmp_path, capsys)
    assert losses[-1] < losses[0]
    assert 0.8 < costs.loc["first", "cycles"] / costs.loc["second", "cycles"] < 1
