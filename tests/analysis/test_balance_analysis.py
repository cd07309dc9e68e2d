"""Balance of tiles, IPUs and threads, by hand on the small report and by loops on all."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pva.analysis.execution import balance
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError
from tests.analysis.samples import ARRAYS, every_report, executed, longer, never_run, opened, small
from tests.builders import COMPUTE_CYCLES, code

PARTS = {"OnTileExecute": "compute", "DoExchange": "exchange", "GlobalExchange": "exchange",
         "StreamCopy": "host_exchange"}  # fmt: skip


def by_tile(kind: str) -> str:
    return f"{ARRAYS[kind][1]}_cycles" + "_by_tile" * (kind == "OnTileExecute")


def test_lost_cycles_are_those_above_the_mean_tile() -> None:
    frame = balance.tile_balance(small()).set_index("name")
    # multiply: tiles 60, 66, ..., 114, mean 87; reduce: 48 on tile 0, 36 on tile 5, one a IPU of
    # five tiles, mean 8.4.
    row = frame.loc["multiply"]
    assert row[["executions", "cycles", "mean_cycles", "active_tiles"]].tolist() == [4, 114, 87, 10]
    assert row["lost_cycles"] == 4 * (114 - 87)
    assert frame.loc["reduce", "lost_cycles"] == round(2 * (48 - 8.4))
    assert frame.loc["reduce", "tile_balance"] == pytest.approx(8.4 / 48)
    assert frame["lost_cycles"].is_monotonic_decreasing


@pytest.mark.parametrize(("tile", "mean", "tiles"), [(0, 9.6, 5), (5, 8.4, 10)])
def test_tiles_are_those_of_the_ipus_that_a_compute_set_runs_on(
    tile: int, mean: float, tiles: int
) -> None:
    cycles = COMPUTE_CYCLES.copy()
    cycles[1] = 0
    cycles[1, 0] = 48
    cycles[1, tile] += 36 * (tile > 0)  # five tiles of an IPU
    report = small(compute_set_cycles_by_tile=cycles)
    row = balance.tile_balance(report).set_index("name").loc["reduce"]
    assert row[["mean_cycles", "tiles"]].tolist() == [mean, tiles]
    assert row["lost_cycles"] == round(2 * (48 - mean))


@every_report
def test_lost_cycles_are_those_of_a_loop_over_steps(name: str) -> None:
    report = opened(name)
    lost: Counter[int] = Counter()
    for kind, step, row in executed(report):
        if kind in ARRAYS:
            cycles = report.dataset.array(by_tile(kind))[row]
            busy = [part for part in np.split(cycles, report.dataset.of_replica("num_ipus"))
                    if part.any()]  # fmt: skip
            mean = float(np.mean(busy)) if busy else 0.0
            lost[step["program"]] += int(cycles.max()) - mean
    frame = balance.tile_balance(report)
    for row in frame.to_dict("records"):
        assert row["lost_cycles"] == pytest.approx(lost[row["program"]], abs=0.51)
    assert set(frame["program"]) == set(lost)


def test_idle_threads_are_told_by_compute_set() -> None:
    frame = balance.thread_balance(small()).set_index("name")
    # multiply: 870 cycles of tiles, 145 active, four times; one vertex on each of ten tiles.
    assert frame.loc["multiply", "idle_cycles"] == 4 * (870 - 145)
    assert frame.loc["multiply", "thread_balance"] == pytest.approx(145 / 870)
    assert frame["vertices_per_tile"].to_dict() == {"multiply": 1, "reduce": 1.5, "add": 1}


@every_report
def test_idle_threads_add_up_to_the_idle_part_of_compute(name: str) -> None:
    report = opened(name)
    spent = report.dataset.table("tile_cycles")
    idle = int(spent["compute"][0] - spent["active_compute"][0])
    assert balance.thread_balance(report)["idle_cycles"].sum() == idle


@every_report
def test_cycles_by_tile_are_those_of_a_loop_over_steps(name: str) -> None:
    report = opened(name)
    tiles = report.dataset.of_replica("num_tiles")
    spent = {part: np.zeros(tiles, dtype=np.int64) for part in PARTS.values()}
    for kind, _, row in executed(report):
        if kind in PARTS:
            spent[PARTS[kind]] += report.dataset.array(by_tile(kind))[row]
    frame = balance.cycles_by_tile(report).sort_values("tile")
    for part, cycles in spent.items():
        assert frame[part].tolist() == cycles.tolist()
    waiting = report.dataset.table("tile_cycles")
    assert frame["waiting"].sum() == int(waiting["sync"][0] + waiting["idle_at_end"][0])


def test_the_busiest_tile_and_ipu_come_first() -> None:
    # Tile 9: multiply 4 * 114, exchange 4 * 49, copy in 2 * 7; nothing else runs there.
    row = balance.cycles_by_tile(small()).set_index("tile").loc[9]
    assert row[["compute", "exchange", "host_exchange"]].tolist() == [456, 196, 14]
    # Tile 8: 4 * 108 + 4 * 30 + 4 * 48 + 14 = 758; tile 0: 4 * 60 + 4 * 30 + 2 * 48 + 4 * 40 +
    # 2 * 20 + 2 * 12 = 680.
    assert balance.cycles_by_tile(small())["tile"].iloc[0] == 8
    ipus = balance.cycles_by_ipu(small())
    shares = [name for name in ipus if name.endswith("_share") and name != "busiest_share"]
    assert ipus[shares].sum(axis=1).tolist() == pytest.approx([1, 1])
    assert ipus[["ipu", "tiles", "busiest_tile"]].to_numpy().tolist() == [[1, 5, 8], [0, 5, 0]]


def test_slowest_tiles_of_a_step_stand_first() -> None:
    frame = balance.slowest_tiles(small(), step=3, count=2)
    assert frame[["tile", "ipu", "cycles", "active_cycles"]].to_numpy().tolist() == [
        [9, 1, 114, 19], [8, 1, 108, 18],
    ]  # fmt: skip
    assert frame["over_mean"].tolist() == pytest.approx([114 / 87, 108 / 87])
    exchange = balance.slowest_tiles(small(), step=2, count=1).iloc[0]
    assert exchange[["tile", "cycles", "bytes_received", "bytes_sent"]].tolist() == [9, 49, 4, 4]


def test_without_a_step_the_longest_one_is_looked_at() -> None:
    frame = balance.slowest_tiles(small())
    assert set(frame["name"]) == {"multiply"} and set(frame["step"]) == {3}
    assert len(balance.slowest_tiles(small(), step=0)) == 0  # a sync
    with pytest.raises(SelectionError, match="steps 0 to 23"):
        balance.slowest_tiles(small(), step=24)


@every_report
def test_syncs_are_charged_to_the_program_before_them(name: str) -> None:
    cost: Counter[tuple[str, str]] = Counter()
    before = (-1, "")
    for kind, step, _ in executed(opened(name)):
        if kind == "Sync":
            after = before[1] if before[0] == step["run"] else "(begin of the run)"
            cost[step["sync_type"], after] += longer(step)
        else:
            before = step["run"], step["name"] or f"({kind})"
    frame = balance.sync_waits(opened(name))
    keys = zip(frame["sync_type"], frame["after"], strict=True)
    assert dict(zip(keys, frame["cycles"], strict=True)) == cost


def test_syncs_of_the_small_report_follow_the_begin_and_the_addition() -> None:
    assert balance.sync_waits(small()).drop(columns="share").to_numpy().tolist() == [
        ["External", "(begin of the run)", 2, 72], ["Internal", "add", 2, 68],
    ]  # fmt: skip


def test_cycles_by_tile_that_were_not_recorded_are_named() -> None:
    with pytest.raises(NotRecordedError, match=r"compute_set_cycles_by_tile not recorded"):
        balance.cycles_by_tile(small(compute_set_cycles_by_tile=None))


def test_slowest_vertices_are_grouped_by_compute_set_and_type() -> None:
    frame = balance.slowest_vertices(small())
    # multiply: 60, 66, ..., 114; reduce: a sum of 24 and two reductions of 48 and 36; add: 30.
    columns = ["name", "vertex_type", "vertices", "min_cycles", "mean_cycles", "max_cycles"]
    assert frame[columns].to_numpy().tolist() == [
        ["multiply", "popops::Multiply<float>", 10, 60, 87, 114],
        ["reduce", "popops::Reduce<float,float>", 2, 36, 42, 48],
        ["add", "popops::Add<float>", 5, 30, 30, 30],
        ["reduce", "popops::Add<float>", 1, 24, 24, 24],
    ]
    assert frame["balance"].tolist() == pytest.approx([87 / 114, 42 / 48, 1, 1])
    with pytest.raises(NotRecordedError, match=r"debug\.instrumentCompute"):
        balance.slowest_vertices(small(measured_vertex_cycles=None))


def test_vertices_that_never_ran_are_left_out() -> None:
    cycles = small().dataset.array("measured_vertex_cycles").copy()
    cycles[:10] = 0
    frame = balance.slowest_vertices(small(measured_vertex_cycles=cycles))
    assert "multiply" not in set(frame["name"]) and len(frame) == 3


def test_equal_losses_stay_in_the_order_of_the_programs() -> None:
    """Without cycles nothing is lost: compute sets first, then exchanges and stream copies."""
    arrays = ("compute_set_cycles_by_tile", "exchange_cycles", "external_exchange_cycles",
              "host_exchange_cycles")  # fmt: skip
    data = small().dataset
    nothing = {name: np.zeros_like(data.array(name)) for name in arrays if data.has(name)}
    table = balance.tile_balance(small(**nothing)).arrays
    order = [list(PARTS).index(kind) for kind in table["type"]]
    assert order == sorted(order) and len(set(order)) > 1
    assert set(table["tile_balance"]) == set(table["mean_cycles"]) == {0}
    assert set(table["tiles"]) == {10} and set(table["active_tiles"]) == {0}


def test_what_balance_counts_is_whole() -> None:
    whole = {
        "tile_balance": "program executions cycles tiles active_tiles lost_cycles",
        "thread_balance": "compute_set executions vertices active_tiles tile_cycles active_cycles "
                          "idle_cycles",
        "slowest_vertices": "compute_set vertices min_cycles max_cycles",
        "slowest_tiles": "step tile ipu cycles active_cycles",
        "cycles_by_tile": "tile ipu compute exchange host_exchange busy waiting",
        "cycles_by_ipu": "ipu tiles busiest_tile",
        "sync_waits": "syncs cycles",
    }  # fmt: skip
    for name, columns in whole.items():
        arrays = getattr(balance, name)(small()).arrays
        for column in columns.split():
            assert arrays[column].dtype.kind in "iu", (name, column)


def test_a_program_that_never_ran_is_left_out_and_one_without_a_name_has_its_type() -> None:
    assert len(balance.tile_balance(never_run())) == 0
    assert len(balance.sync_waits(never_run())) == len(balance.thread_balance(never_run())) == 0
    assert balance.cycles_by_ipu(never_run())["busiest_share"].tolist() == [0, 0]
    assert balance.cycles_by_ipu(never_run())["ipu"].tolist() == [0, 1]


def test_threads_of_a_compute_set_without_cycles_are_in_balance_nowhere() -> None:
    cycles = COMPUTE_CYCLES.copy()
    cycles[2] = 0
    table = balance.thread_balance(small(compute_set_cycles_by_tile=cycles)).set_index("name")
    row = table.loc["add"]
    assert row[["active_tiles", "tile_cycles"]].tolist() == [0, 0]
    assert row["vertices_per_tile"] == 5  # as if on one tile


def test_the_tile_that_is_busy_longest_comes_first_among_equals_by_its_number() -> None:
    table = balance.slowest_tiles(small(compute_set_cycles_by_tile=np.full((3, 10), 7)), step=3)
    assert table["tile"].tolist() == list(range(10))
    assert set(table["over_mean"]) == {1.0}
    none = balance.slowest_tiles(small(compute_set_cycles_by_tile=np.zeros((3, 10), int)), step=3)
    assert set(none["over_mean"]) == {0.0} and len(none) == 10


def test_shares_of_an_ipu_are_of_its_own_tiles() -> None:
    # 1,024 cycles on five tiles; by tile: cycles_by_tile.
    tiles = balance.cycles_by_tile(small()).frame()
    ipus = balance.cycles_by_ipu(small()).set_index("ipu")
    for ipu in (0, 1):
        mine = tiles[tiles["ipu"] == ipu]
        for name in ("compute", "exchange", "host_exchange", "waiting"):
            assert ipus.loc[ipu, f"{name}_share"] == mine[name].sum() / 5 / 1024
        assert ipus.loc[ipu, "busiest_share"] == mine["busy"].max() / 1024
    assert ipus["waiting_share"].is_monotonic_increasing


def test_missing_vertex_cycles_are_an_error_that_names_both_options() -> None:
    report = small(measured_vertex_cycles=None)
    with pytest.raises(NotRecordedError) as missing:
        balance.slowest_vertices(report)
    assert str(missing.value) == (
        f"{report.dataset.name}: measured_vertex_cycles not recorded; run the program with the "
        "engine options debug.instrumentCompute true and debug.computeInstrumentationLevel vertex"
    )


def test_a_tile_of_one_cycle_is_active_and_its_ipu_run_on() -> None:
    cycles = COMPUTE_CYCLES.copy()
    cycles[1] = np.arange(10) == 7
    table = balance.tile_balance(small(compute_set_cycles_by_tile=cycles)).set_index("name")
    row = table.loc["reduce"]
    assert row[["cycles", "active_tiles", "tiles"]].tolist() == [1, 1, 5]
    assert row[["mean_cycles", "tile_balance"]].tolist() == [0.2, 0.2]


def test_a_step_without_a_program_has_no_tiles() -> None:
    data = small().dataset
    programs = data.column("steps", "program").copy()
    programs[3] = -1
    report = small(steps=dict(data.table("steps")) | {"program": programs})
    table = balance.slowest_tiles(report, step=3)
    assert len(table) == 0 and table.arrays["cycles"].dtype == np.int64


def with_step(program: int, **rows: int) -> Any:
    """Make the small report whose step 3 is of another program; `rows` are of its compute set 0."""
    tables = small().dataset.table("steps"), small().dataset.table("programs")
    steps, programs = ({name: np.array(of) for name, of in table.items()} for table in tables)
    steps["program"][3] = program
    for name, row in rows.items():
        value = {"type": code("programs", "type", "OnTileExecute"), "compute_set": 0}[name]
        programs[name][row] = value
    return small(steps=steps, programs=programs)


def test_a_step_of_an_unknown_program_has_no_tiles_whatever_the_last_program_is() -> None:
    report = with_step(-1, type=-1, compute_set=-1)
    assert len(balance.slowest_tiles(report, step=3)) == 0


def test_a_step_of_the_first_program_has_the_tiles_of_its_compute_set() -> None:
    table = balance.slowest_tiles(with_step(0, type=0, compute_set=0), step=3, count=2)
    assert table.arrays["cycles"].tolist() == [114, 108]


def test_exchanges_that_never_ran_need_no_cycles() -> None:
    steps = {name: np.array(of) for name, of in small().dataset.table("steps").items()}
    steps["program"][steps["program"] == 8] = -1
    whole = balance.cycles_by_tile(small(steps=steps))
    without = balance.cycles_by_tile(small(steps=steps, external_exchange_cycles=None))
    assert without.equals(whole)


def test_the_mean_is_over_the_tiles_that_a_program_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "_tiles_run_on", lambda _, cycles: np.ones(len(cycles), int))
    row = balance.tile_balance(small()).set_index("name").loc["multiply"]
    assert row["mean_cycles"] == sum(range(60, 120, 6))
