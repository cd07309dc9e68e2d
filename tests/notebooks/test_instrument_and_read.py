"""The notebook that traces a training loop runs, and finds what it recorded."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np
import pytest

from tests.notebooks.notebook_runs import is_bare, kept, outputs, printed, run

pytest.importorskip("plotly")

NAME = "instrument_and_read.ipynb"
FIGURE = "application/vnd.plotly.v1+json"
EPOCHS, BATCHES, WEIGHTS = 6, 40, 64  # as the notebook has them


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(NAME, tmp_path_factory.mktemp("jupyter"))


def array(value: Any) -> Any:
    """Read an array as plotly writes it: dtype and base64, or a list."""
    if not isinstance(value, dict):
        return np.array(value)
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(n) for n in value["shape"].split(",")]) if "shape" in value else flat


def test_the_notebook_is_kept_bare() -> None:
    assert is_bare(kept(NAME))


def test_every_cell_runs_without_a_word_on_stderr(ran: Any) -> None:
    assert printed(ran, "stderr") == ""


def test_every_epoch_holds_its_steps(ran: Any) -> None:
    assert re.search(rf"epoch on Training: [\d,]+ us, {BATCHES} inside", printed(ran))
    assert f"{EPOCHS} epochs of" in printed(ran)
    tables = [o.data["text/plain"] for o in outputs(ran) if "text/plain" in o.get("data", {})]
    by_epoch = next(table for table in tables if "share of the epoch" in table)
    rows = [line.split() for line in by_epoch.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[str(n), str(BATCHES)] for n in range(EPOCHS)]
    assert all(0 < float(row[-1]) <= 1 for row in rows)


def test_the_figures_show_every_loss_and_every_weight(ran: Any) -> None:
    figures = [o.data[FIGURE] for o in outputs(ran) if FIGURE in o.get("data", {})]
    loss, weights = (figure["data"][0] for figure in figures[2:])
    values = array(loss["y"])
    assert len(values) == EPOCHS * BATCHES
    assert values[-1] < values[0] / 10
    assert array(weights["z"]).sum(axis=0).tolist() == [WEIGHTS] * EPOCHS


def test_the_timeline_names_the_channels_and_the_bars_the_labels(ran: Any) -> None:
    timeline, labels = [o.data[FIGURE] for o in outputs(ran) if FIGURE in o.get("data", {})][:2]
    assert {"Training", "Data"} <= {trace["name"] for trace in timeline["data"]}
    assert "load_batch" in " ".join(labels["layout"]["yaxis"]["ticktext"])
