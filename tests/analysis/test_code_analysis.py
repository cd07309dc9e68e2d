"""Code of programs and memory of operations, by hand on the small report and by loops on all."""

from __future__ import annotations

import pytest

from pva.analysis.memory import code
from pva.errors import NotRecordedError
from tests.analysis.samples import ARRAYS, WITHOUT_CODE, every_report, opened, rows, small

WITHOUT = {f"{name}_code_bytes": None for _, name in ARRAYS.values() if name != "compute_set"}


def test_programs_stand_by_their_code() -> None:
    frame = code.code_by_program(small()).set_index("name")
    # The exchange: 8 bytes of control code on ten tiles, 4 of exchange code.
    row = frame.loc["multiply/ExchangePre"]
    assert row[["code", "control_code", "exchange_code", "tiles"]].tolist() == [120, 80, 40, 10]
    assert frame.loc["y/StreamCopy", ["control_code", "exchange_code"]].tolist() == [8, 4]
    assert frame["code"].iloc[0] == 160  # the outermost sequence, 16 bytes a tile
    assert frame["most_on_a_tile"].iloc[0] == 16
    with pytest.raises(NotRecordedError, match="control_code not recorded"):
        code.code_by_program(small(control_code=None))


@every_report
def test_code_of_programs_is_that_of_a_loop(name: str) -> None:
    if name in WITHOUT_CODE:
        with pytest.raises(NotRecordedError, match="code was not counted; .* compileIPUCode"):
            code.code_by_program(opened(name))
        return
    data = opened(name).dataset
    programs = rows(opened(name), "programs")
    control = [0] * len(programs)
    for span in rows(opened(name), "control_code"):
        control[span["program"]] += span["bytes"] * (span["end_tile"] - span["tile"])
    frame = code.code_by_program(opened(name)).set_index("program")
    for place, program in enumerate(programs):
        exchange = 0
        if program["type"] in ARRAYS and program["type"] != "OnTileExecute":
            array = data.array(f"{ARRAYS[program['type']][1]}_code_bytes")
            exchange = int(array[program["exchange"]].sum())
        found = frame.loc[place, ["control_code", "exchange_code"]].tolist() if (
            place in frame.index
        ) else [0, 0]  # fmt: skip
        assert found == [control[place], exchange]


def test_exchange_code_is_that_of_its_instructions_where_no_more_is_told() -> None:
    report = small(**WITHOUT)
    assert code.code_of_exchanges(report, "DoExchange").tolist() == [40]
    assert code.code_of_exchanges(report, "StreamCopy").tolist() == [-1, -1]
    frame = code.code_by_program(report).set_index("name")
    assert frame.loc["y/StreamCopy", "exchange_code"] == 0


def test_operations_take_variables_vertices_and_code() -> None:
    frame = code.memory_by_operation(small()).set_index("operation")
    # multiply: product 80 and message 40; ten vertices of 12; two programs of 8 on ten tiles.
    parts = ["variables", "vertex_state", "control_code", "exchange_code"]
    assert frame.loc["multiply", parts].tolist() == [120, 120, 160, 40]
    assert frame.loc["x", parts].tolist() == [160, 0, 80, 20]
    assert frame.loc["reduce", parts].tolist() == [32, 32, 0, 0]
    assert frame.index[0] == "multiply" and frame["bytes"].iloc[0] == 440


@every_report
def test_operations_share_out_all_variables_state_and_code(name: str) -> None:
    data = opened(name).dataset
    frame = code.memory_by_operation(opened(name))
    parts = ("vertex_data", "edge_pointers", "copy_pointers", "padding", "descriptors")
    state = sum(int(data.array(f"memory_by_compute_set_{part}").sum()) for part in parts)
    exchange = sum(int(data.array(array).sum()) for array in WITHOUT)
    control = sum(
        span["bytes"] * (span["end_tile"] - span["tile"])
        for span in rows(opened(name), "control_code")
    )
    assert frame["variables"].sum() == data.column("variables", "bytes").sum()
    assert frame["vertex_state"].sum() == state
    if name in WITHOUT_CODE:
        assert {*frame["control_code"], *frame["exchange_code"]} == {-1}
        assert (frame["bytes"] == frame["variables"] + frame["vertex_state"]).all()
        return
    assert frame["control_code"].sum() == control
    assert frame["exchange_code"].sum() == exchange
