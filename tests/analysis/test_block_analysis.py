"""The analysis of blocks, against sums worked out by hand for the small report."""

from types import SimpleNamespace
from typing import Any

import pytest

from pva.analysis.execution.profiled_blocks import blocks
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError
from tests.builders import small_report

# multiply: 180 - 90 on IPU 0, 814 - 700 on IPU 1
ALL = [
    ["multiply", "common", "OnTileExecute", 1, 1, 114, 114.0, 114, 114],
    ["multiply", "common", "OnTileExecute", 0, 1, 90, 90.0, 90, 90],
    ["y/StreamCopy", "blockFlush", "StreamCopy", 1, 1, 10, 10.0, 10, 10],
    ["x/StreamCopy", "streamCopy", "StreamCopy", 0, 1, 8, 8.0, 8, 8],
    ["overflow", "overflow", "", 1, 1, 0, 0.0, 0, 0],
]


def report(**changes: Any) -> Any:
    return SimpleNamespace(dataset=small_report(**changes))


def test_blocks_are_summed_by_name_and_ipu() -> None:
    frame = blocks(report())
    assert frame.to_numpy().tolist() == ALL
    assert list(frame)[:5] == ["name", "kind", "type", "ipu", "count"]


def test_mean_least_and_most_are_of_the_blocks_of_one_name() -> None:
    table = dict(small_report().table("blocks"), ipu=[0] * 5)
    (row,) = blocks(report(blocks=table)).query("name == 'multiply'").to_numpy().tolist()
    assert row == ["multiply", "common", "OnTileExecute", 0, 2, 204, 102.0, 90, 114]


def test_blocks_of_one_run_are_chosen() -> None:
    assert blocks(report(), run=0).to_numpy().tolist() == [ALL[1], ALL[3]]
    with pytest.raises(SelectionError, match="run 2: not there; the report has runs 0 to 1"):
        blocks(report(), run=2)


def test_a_report_without_blocks_says_which_option_records_them() -> None:
    with pytest.raises(NotRecordedError, match=r"profiler\.blocks\.filter"):
        blocks(report(blocks=None))
