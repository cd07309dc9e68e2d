"""Arithmetic against the peak, by hand on the small report and by loops on all."""

from __future__ import annotations

import math

import pytest

from pva.analysis.execution import flops
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, executed, opened, small


def test_utilisation_is_operations_over_what_all_tiles_could_do() -> None:
    found = flops.flop_utilisation(small())
    # Twice in each of two runs: multiply 20, add 10; once: reduce 8. Ten tiles of 32 a cycle.
    assert (found.flops, found.cycles, found.compute_cycles) == (136, 1024, 642)
    assert found.float_peak_share == pytest.approx(136 / (1024 * 10 * 32))
    assert found.compute_half_peak_share == pytest.approx(136 / (642 * 10 * 128))
    assert found.flops_per_second == pytest.approx(136 / 1.024e-6)
    assert found.float_peak == 10 * 32 * 1e9


@pytest.mark.parametrize(
    ("part", "tiles", "clock", "teraflops"),
    [("ipu1", 1216, 1.6e9, (31.1, 124.5)), ("ipu2", 1472, 1.33e9, (62.6, 250.6))],
)
def test_peaks_are_the_published_ones(
    part: str, tiles: int, clock: float, teraflops: tuple[float, float]
) -> None:
    peak = flops.PEAKS[part]
    found = [each * tiles * clock / 1e12 for each in (peak.float, peak.half)]
    assert found == pytest.approx(teraflops, abs=0.05)


def test_the_peak_of_an_unknown_part_is_not_guessed() -> None:
    target = dict(small().dataset.table("target")) | {"architecture": ["ipu9"]}
    found = flops.flop_utilisation(small(target=target))
    assert found.float_peak == 0 and math.isnan(found.float_peak_share)
    assert flops.flops_by_compute_set(small(target=target))["half_peak_share"].isna().all()


def test_compute_sets_that_tell_nothing_are_counted() -> None:
    table = dict(small().dataset.table("compute_sets")) | {"flops": [20, -1, 10]}
    assert flops.flop_utilisation(small(compute_sets=table)).unknown_compute_sets == 1
    assert flops.flop_utilisation(small(compute_sets=table)).flops == 120
    table["flops"] = [-1, -1, -1]
    with pytest.raises(NotRecordedError, match=r"profiler\.includeFlopEstimates"):
        flops.flop_utilisation(small(compute_sets=table))


def test_compute_sets_stand_by_the_operations_of_all_executions() -> None:
    frame = flops.flops_by_compute_set(small())
    assert frame[["name", "executions", "flops", "cycles"]].to_numpy().tolist() == [
        ["multiply", 4, 20, 114], ["add", 4, 10, 30], ["reduce", 2, 8, 48],
    ]  # fmt: skip
    assert frame["float_peak_share"].tolist() == pytest.approx(
        [20 / (114 * 320), 10 / (30 * 320), 8 / (48 * 320)]
    )


@every_report
def test_operations_are_those_of_a_loop_over_steps(name: str) -> None:
    told = opened(name).dataset.column("compute_sets", "flops").tolist()
    steps = [row for kind, _, row in executed(opened(name)) if kind == "OnTileExecute"]
    total = sum(max(told[row], 0) for row in steps)
    assert flops.flop_utilisation(opened(name)).flops == total
    frame = flops.flops_by_compute_set(opened(name))
    assert (frame["executions"] * frame["flops"]).sum() == total
