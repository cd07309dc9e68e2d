"""Cycles by phase, operation and layer, by hand on the small report and by loops on all."""

from __future__ import annotations

from collections import Counter

import pytest

from pva import OperationAnalysis
from pva.analysis import attribution
from pva.analysis.execution.totals import execution_overview
from pva.analysis.operations import cycle_breakdown
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, executed, longer, opened, small

WORDS = {"OnTileExecute": "compute", "DoExchange": "exchange", "GlobalExchange": "exchange",
         "StreamCopy": "host_exchange", "StreamCopyBegin": "host_exchange",
         "StreamCopyEnd": "host_exchange", "Sync": "sync"}  # fmt: skip


def test_phases_share_out_the_cycles_and_the_tile_cycles() -> None:
    frame = cycle_breakdown.cycles_by_phase(small()).set_index("phase")
    # Of each of two runs of 512 cycles; see the test of the time shares.
    assert frame["cycles"].to_dict() == {
        "compute": 642, "exchange": 218, "sync": 140, "host exchange": 24, "idle at end": 0,
    }  # fmt: skip
    assert frame["steps"].tolist() == [10, 6, 4, 4, 0]
    assert frame["tile_cycles"].sum() == 1024 * 10
    assert frame["share"].sum() == frame["tile_share"].sum() == pytest.approx(1)


@every_report
def test_cycles_by_phase_are_those_of_a_loop_over_steps(name: str) -> None:
    cycles: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    for kind, step, _ in executed(opened(name)):
        cycles[WORDS[kind].replace("_", " ")] += longer(step)
        hidden[WORDS[kind].replace("_", " ")] += step["cycles"] - longer(step)
    frame = cycle_breakdown.cycles_by_phase(opened(name)).set_index("phase")
    assert frame["cycles"].drop("idle at end").to_dict() == {
        w: cycles[w] for w in attribution.PHASES
    }
    assert frame["overlapped_cycles"].drop("idle at end").to_dict() == {
        word: hidden[word] for word in attribution.PHASES
    }
    assert frame["cycles"].sum() == opened(name).execution.totalCycles.total
    shares = execution_overview(opened(name)).time_shares
    assert {word: frame["share"][word] for word in shares} == pytest.approx(shares)


def test_operations_of_the_small_report_are_its_library_calls() -> None:
    frame = cycle_breakdown.cycles_by_operation(small())
    # Each of two runs: multiply 49 + 114 + 48 + 108, sync 36 + 34, reduce 12 + 48, add 21 + 30.
    assert frame[["operation", "cycles"]].to_numpy().tolist() == [
        ["multiply", 638], ["(Sync)", 140], ["reduce", 120], ["add", 102], ["x", 14], ["y", 10],
    ]  # fmt: skip
    assert frame["exchange"].tolist() == [194, 0, 24, 0, 0, 0]
    # Twice in each run: multiply 20 flops, add 10; once: reduce 8.
    assert frame["flops"].tolist() == [80, 0, 16, 40, 0, 0]


def test_without_debug_contexts_an_operation_is_a_path_without_its_last_stage() -> None:
    names = ["Layer1/Fwd/Conv_1/Convolve/ExchangePre", "Layer1/Fwd/Conv_1/Convolve",
             "copy/GlobalPre/GlobalExchange", "Layer1/Fwd/Conv_1/Reduce/PreArrange-0"]  # fmt: skip
    table = dict(small().dataset.table("programs"))
    table["name"] = [*names, *table["name"][4:]]
    found = attribution.operations(small(programs=table, debug_contexts=None)).tolist()
    assert found[:5] == [*["Layer1/Fwd/Conv_1"] * 2, "copy", "Layer1/Fwd/Conv_1", "(Sequence)"]
    assert found[6] == "multiply" and found[-1] == "(unknown)"


def test_a_copy_of_the_compiler_goes_to_the_operation_of_its_path() -> None:
    table = dict(small().dataset.table("programs"))
    table["name"] = ["multiply/weights/regroup/OnTileCopy-0", *table["name"][1:]]
    assert attribution.operations(small(programs=table))[0] == "multiply"


def test_the_nearest_operation_of_a_framework_is_the_operation() -> None:
    contexts = dict(small().dataset.table("debug_contexts"))
    # reduce (5) is part of multiply (3), an operation of popart that is part of model (1).
    contexts |= {
        "parent": [-1, 1, 1, 1, 3, 1],
        "layer": ["onnx", "poplar", "popart", *["popops"] * 3],
    }
    found = attribution.operations(small(debug_contexts=contexts)).tolist()
    assert [found[6], found[9], found[12], found[2]] == ["multiply", "multiply", "model", "model"]


@every_report
def test_operations_are_those_of_the_operation_analysis(name: str) -> None:
    found = attribution.operations(opened(name)).tolist()
    for operation in OperationAnalysis(opened(name)).operations:
        assert {found[program._id] for program in operation.programs()} == {operation.name}


def test_debug_contexts_that_run_in_a_circle_come_to_an_end() -> None:
    contexts = dict(small().dataset.table("debug_contexts"))
    contexts["parent"] = [2, 3, 4, 5, 6, 1]
    found = attribution.operations(small(debug_contexts=contexts)).tolist()
    assert set(found[5:7]) <= set(contexts["name"])


@every_report
def test_cycles_by_operation_are_those_of_a_loop_and_add_up_to_layers(name: str) -> None:
    report = opened(name)
    owners = attribution.operations(report).tolist()
    cycles: Counter[tuple[str, str]] = Counter()
    flops: Counter[str] = Counter()
    for kind, step, row in executed(report):
        owner = owners[step["program"]]
        cycles[owner, WORDS[kind]] += longer(step)
        if kind == "OnTileExecute":
            flops[owner] += max(int(report.dataset.column("compute_sets", "flops")[row]), 0)
    frame = cycle_breakdown.cycles_by_operation(report)
    assert frame["cycles"].sum() == report.execution.totalCycles.total
    for row in frame.to_dict("records"):
        assert [row[w] for w in WORDS.values()] == [
            cycles[row["operation"], word] for word in WORDS.values()
        ]
        assert row["flops"] == flops[row["operation"]]
    layers = cycle_breakdown.cycles_by_layer(report).set_index("layer")
    numbers = ["steps", "cycles", "compute", "exchange", "host_exchange", "sync", "flops"]
    summed = frame.groupby("layer")[numbers].sum()
    assert layers[numbers].sort_index().equals(summed.sort_index())


def test_a_report_without_steps_says_which_option_records_them() -> None:
    with pytest.raises(NotRecordedError, match=r"autoReport\.outputExecutionProfile"):
        cycle_breakdown.cycles_by_layer(small(steps=None))
