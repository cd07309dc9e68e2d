"""The tree of programs, by hand on the small report and by recursion on all."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from pva.analysis.programs.details import (
    contexts_of_program,
    program_by_tile,
    program_figures,
    variables_of_program,
    vertices_of_program,
)
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.outline import program_stages
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, executed, longer, opened, rows, small
from tests.builders import TILE, code


def test_lines_are_the_programs_depth_first_functions_last() -> None:
    frame = program_tree(small())
    assert frame["program"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 13, 8, 9, 10, 11, 12]
    assert frame["depth"].tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 1, 1, 1, 1, 0, 1]
    assert frame["parent"].tolist() == [-1, 0, 0, 0, 3, 4, 4, 4, 0, 0, 0, 0, -1, 12]
    assert frame["end"].tolist() == [12, 2, 3, 8, 8, 6, 7, 8, 9, 10, 11, 12, 14, 14]
    assert frame["part"].tolist() == ["control"] * 12 + ["function"] * 2
    assert frame["function"].tolist()[7] == 0 and frame["count"].tolist()[3] == 2


def test_a_program_costs_what_its_parts_cost_and_a_call_what_its_function_does() -> None:
    frame = program_tree(small()).set_index("program")
    # Of two runs: multiply 2 * (49 + 48) and 2 * (114 + 108), add 2 * (21 + 30), each in the loop.
    cycles = {0: 1024, 3: 740, 4: 740, 5: 194, 6: 444, 7: 102, 8: 24, 9: 96, 11: 102}
    assert frame["cycles"][list(cycles)].to_dict() == cycles
    assert frame["share"][3] == pytest.approx(740 / 1024)
    assert frame["executions"].to_dict() == {
        **dict.fromkeys(range(14), 2), 4: 4, 5: 4, 6: 4, 7: 4, 11: 4, 12: 4,
    }  # fmt: skip
    assert frame.loc[[3, 6, 13], "mean_cycles"].tolist() == [370, 111, 34]
    assert frame.loc[[3, 12], "first_step"].tolist() == [-1, 4]
    assert frame.loc[[3, 12, 13], "liveness_step"].tolist() == [3, 9, 10]


def test_estimates_are_those_of_one_execution() -> None:
    frame = program_tree(small(steps=None)).set_index("program")
    # Slowest tiles: exchange 49, multiply 114, add 30; the loop runs them twice. Syncs 20 + 16.
    loop = 2 * (49 + 114 + 30)
    assert frame["estimated_cycles"][[3, 7, 11, 1]].tolist() == [loop, 30, 30, 36]
    assert frame["estimated_cycles"][0] == 36 + 7 + loop + 36 + 20 + 48 + 5
    assert set(frame["cycles"]) == set(frame["executions"]) == {-1}


def test_of_branches_the_longest_is_estimated() -> None:
    table = dict(small().dataset.table("programs"))
    kinds = np.array(table["type"])
    kinds[4] = code("programs", "type", "Switch")
    frame = program_tree(small(programs=table | {"type": kinds})).set_index("program")
    assert frame["estimated_cycles"][[4, 3]].tolist() == [114, 228]


def test_a_branch_that_was_not_taken_ran_never() -> None:
    data = small().dataset
    kinds = np.array(data.table("programs")["type"])
    kinds[3] = code("programs", "type", "If")
    steps = dict(data.table("steps"))
    # What the body executes is charged to no program: as if it had not been taken.
    inside = np.isin(steps["program"], [5, 6, 12])
    report = small(
        programs=data.table("programs") | {"type": kinds},
        steps=steps | {"program": np.where(inside, 1, steps["program"])},
    )
    frame = program_tree(report).set_index("program")
    assert frame["executions"][[3, 4, 5, 7, 11]].tolist() == [2 + 12, 0, 0, 0, 0]


def test_cycles_of_a_function_are_shared_out_among_its_calls_by_their_executions() -> None:
    data = small().dataset
    table = {name: list(values) for name, values in data.table("programs").items()}
    # A second call, in the outermost sequence: twice in all, and the one in the loop four times.
    for name, values in table.items():
        values.append(values[7] if name != "debug_context" else -1)
    children = {
        "program": [*data.column("program_children", "program"), 0],
        "child": [*data.column("program_children", "child"), 14],
    }
    report = small(programs=table, program_children=children, liveness_steps=None)
    frame = program_tree(report).set_index("program")
    assert frame["cycles"][[7, 14]].tolist() == [68, 34]
    assert frame["cycles"][0] == 1024


def test_programs_that_hang_nowhere_are_left_out() -> None:
    children = {"program": [0, 3], "child": [1, 4]}
    frame = program_tree(small(program_children=children, liveness_steps=None))
    assert frame["program"].tolist() == [0, 1, 11]


def test_a_deep_program_is_no_fault() -> None:
    depth = 3000
    programs = {"type": [code("programs", "type", "Sequence")] * depth, "name": ["deep"] * depth}
    children = {"program": range(depth - 1), "child": range(1, depth)}
    report = small(programs=programs, program_children=children, control_programs={"program": [0]},
                   function_programs=None, steps=None, liveness_steps=None)  # fmt: skip
    assert program_tree(report)["depth"].tolist() == list(range(depth))


@every_report
def test_lines_and_cycles_are_those_of_a_recursion(name: str) -> None:
    report = opened(name)
    spent: dict[int, int] = {}
    for _, step, _ in executed(report):
        spent[step["program"]] = spent.get(step["program"], 0) + longer(step)
    children: dict[int, list[int]] = {}
    for row in rows(report, "program_children"):
        children.setdefault(row["program"], []).append(row["child"])

    @cache
    def below(program: int) -> tuple[int, ...]:
        parts = (below(child) for child in children.get(program, ()))
        return (program, *(line for part in parts for line in part))

    roots = [row["program"] for row in rows(report, "control_programs")]
    roots += [row["program"] for row in rows(report, "function_programs")]
    frame = program_tree(report)
    assert frame["program"].tolist() == [line for root in roots for line in below(root)]
    lines = frame.set_index("program")
    for program in lines.index:
        if "Call" not in set(lines["type"][list(below(program))]):
            assert lines["cycles"][program] == sum(spent.get(line, 0) for line in below(program))
    assert lines["cycles"][roots[0]] == report.execution.totalCycles.total


def test_stages_are_the_parts_of_what_takes_nearly_all() -> None:
    frame = program_stages(opened("mlp_digits_tiny"))
    around = frame[frame["role"] == "around"]
    assert around["name"].tolist()[-2:] == ["epoch", ""]
    parts = frame[frame["role"] == "part"]
    assert parts["name"].tolist() == ["(Sync)", "images", "labels", "Fwd", "Bwd", "Wu", "loss"]
    assert parts["cycles"].sum() == around["cycles"].iloc[-1]
    assert parts["line"].is_monotonic_increasing


def test_stages_follow_a_call_into_its_function() -> None:
    frame = program_stages(opened("newton_pipeline_replicas"))
    parts = frame[frame["role"] == "part"]
    assert parts["name"].tolist() == ["Load", "Newton", "Store"]


def test_a_compute_set_is_described_with_what_it_costs() -> None:
    found = program_figures(small(), program=6)
    assert (found.type, found.name, found.operand_name) == ("OnTileExecute", *["multiply"] * 2)
    assert (found.executions, found.cycles, found.max_cycles) == (4, 444, 114)
    assert (found.estimated_cycles, found.active_tiles, found.flops) == (114, 10, 20)
    assert (found.vertices, found.vertex_state, found.control_code) == (10, 120, 80)
    assert (found.first_step, found.liveness_step, found.bytes_sent) == (3, 6, -1)
    # 444 of the 1,024 cycles of both runs.
    assert found.share == pytest.approx(444 / 1024)


def test_an_exchange_is_described_with_its_bytes_and_its_code() -> None:
    found = program_figures(small(), program=5)
    assert (found.bytes_received, found.bytes_sent, found.exchange_code) == (40, 40, 40)
    assert (found.estimated_cycles, found.active_tiles, found.vertices) == (49, 10, -1)
    host = program_figures(small(), program=10)
    assert (host.bytes_received, host.bytes_sent, host.active_tiles) == (0, 4, 1)


def test_a_sync_of_all_ipus_takes_the_way_between_them_besides() -> None:
    target = small().dataset.table("target") | {"global_sync_cycles": [40]}
    report = small(target=target)
    internal, external = (program_figures(report, program=row) for row in (13, 1))
    assert (internal.estimated_cycles, external.estimated_cycles) == (20 + 16, 20 + 16 + 40)
    estimates = program_tree(report).set_index("program")["estimated_cycles"]
    assert estimates[[13, 1]].tolist() == [36, 76]


def test_a_sync_and_a_loop_have_neither() -> None:
    sync = program_figures(small(), program=1)
    assert (sync.sync_type, sync.estimated_cycles, sync.exchange_code) == ("External", 36, -1)
    loop = program_figures(small(), program=3)
    assert (loop.count, loop.executions, loop.cycles, loop.estimated_cycles) == (2, 0, 0, -1)
    with pytest.raises(SelectionError, match="programs 0 to 13"):
        program_figures(small(), program=14)


def test_what_a_program_does_on_each_tile() -> None:
    frame = program_by_tile(small(), program=6)
    assert frame["cycles"].tolist() == (60 + 6 * TILE).tolist()
    assert frame["active_cycles"].tolist() == (10 + TILE).tolist()
    assert program_by_tile(small(), program=5)["bytes_sent"].tolist() == [4] * 10
    assert len(program_by_tile(small(), program=3)) == 0


def test_vertices_variables_and_contexts_of_a_program() -> None:
    vertices = vertices_of_program(small(), program=9)
    table: Any = vertices.set_index("vertex_type")
    assert table["cycles"].to_dict() == {
        "popops::Reduce<float,float>": 14, "popops::Add<float>": 4,
    }  # fmt: skip
    variables = variables_of_program(small(), program=6).set_index("name")
    assert variables["access"].to_dict() == {
        "x": "read", "w": "read", "message": "read", "product": "written",
    }  # fmt: skip
    contexts = contexts_of_program(small(), program=6)
    assert contexts["name"].tolist() == ["model", "multiply"]
    assert contexts["line"].tolist() == [10, 12]
    assert len(contexts_of_program(small(), program=0)) == 0
