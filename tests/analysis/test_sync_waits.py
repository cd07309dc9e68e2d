"""The waits of IPUs one by one, and where stream copies go: computations that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva.analysis.execution.stream_tensors import stream_ends, stream_variables
from pva.analysis.waiting.longest_syncs import longest_waits
from pva.analysis.waiting.segments import joins_of
from pva.analysis.waiting.sync_arrivals import arrivals
from tests.analysis.samples import NAMES, opened
from tests.shared_work import THREADS, TILES, report_of

WITHOUT_SMALL = [name for name in NAMES if name != "small"]  # whose clocks are made up


def test_the_ipu_without_work_waits_for_the_tile_that_has_it(tmp_path: Path) -> None:
    """Tile 0 works for 1,000 loops of all threads, then the first tile of IPU 1 for 3,000."""
    report = report_of(tmp_path, [(0, "a", 1000), (1, "b", 3000)], in_turn=True)
    frame = longest_waits(report, count=2)
    assert frame[["ipu", "for_ipu", "for_tile", "name"]].to_numpy().tolist() == [
        [0, 1, TILES, "b"], [1, 0, 0, "a"]
    ]  # fmt: skip
    expected = [pytest.approx(work * THREADS, rel=0.02) for work in (3000, 1000)]
    assert frame["cycles"].tolist() == expected
    assert (frame["cycles_to"] - frame["cycles_from"] == frame["cycles"]).all()


@pytest.mark.parametrize("name", WITHOUT_SMALL)
def test_waits_are_those_of_each_sync_by_itself(name: str) -> None:
    report = opened(name)
    joins = joins_of(report)
    frame = longest_waits(report, count=10**6)
    for step in joins.step[(joins.step >= 0) & joins.external][-5:].tolist():
        of_step = arrivals(report, step=step).groupby("ipu")["waits"].min()
        mine = frame[frame["step"] == step].set_index("ipu")["cycles"]
        assert mine.to_dict() == of_step[of_step > 0].to_dict()


@pytest.mark.parametrize("name", WITHOUT_SMALL)
def test_a_stream_copy_ends_on_the_tiles_whose_bytes_its_exchange_has(name: str) -> None:
    data = opened(name).dataset
    kinds, programs = data.texts("steps", "type"), data.column("steps", "program")
    step = int(np.flatnonzero(kinds == "StreamCopy")[0])
    row = int(data.column("programs", "exchange")[programs[step]])
    frame = stream_ends(opened(name), step=step)
    for way, part in (("to the device", "received"), ("to the host", "sent")):
        moved = data.row(f"host_exchange_bytes_{part}", row)
        mine = frame[frame["way"] == way]
        assert int(mine["bytes"].sum()) == int(moved.sum())
        assert int(mine["tiles"].sum()) == int((moved > 0).sum())
    used = stream_variables(opened(name), step=step)
    assert len(used) == int((data.column("access", "program") == programs[step]).sum())


def test_what_is_no_stream_copy_has_no_ends() -> None:
    report = opened("matmul_chain_tiny")
    kinds = report.dataset.texts("steps", "type")
    assert not len(stream_ends(report, step=int((kinds == "OnTileExecute").argmax())))
