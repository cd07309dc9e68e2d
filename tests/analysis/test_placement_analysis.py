"""Where variables lie, by hand on the small report and by loops on all."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from pva.analysis.memory import placement
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, opened, rows, small


def peak_of(name: str) -> int:
    live = opened(name).dataset.column("liveness_steps", "bytes").tolist()
    return live.index(max(live))


def live_at(name: str, step: int) -> set[int]:
    """Return the variables that are live at a program step, those always live among them."""
    always = {i for i, row in enumerate(rows(opened(name), "variables")) if row["always_live"]}
    spans = rows(opened(name), "variable_intervals")
    return always | {row["variable"] for row in spans if row["begin"] <= step < row["end"]}


def test_largest_variables_stand_first() -> None:
    frame = placement.largest_variables(small())
    assert frame["name"].tolist() == [
        "x", "w", "product", "message", "partials", "y", "step",
    ]  # fmt: skip
    assert frame["bytes"].tolist() == [80, 80, 80, 40, 32, 4, 4]
    # The peak is the multiplication, where x, product and the message are live.
    assert frame["at_peak"].tolist() == [True, True, True, True, False, False, True]
    assert frame["share"].sum() == pytest.approx(1)


@every_report
def test_variables_at_the_peak_are_those_of_a_loop(name: str) -> None:
    frame = placement.largest_variables(opened(name))
    assert set(frame["variable"][frame["at_peak"]]) == live_at(name, peak_of(name))
    moving = frame["at_peak"] & ~frame["always_live"]
    assert frame["bytes"][moving].sum() == liveness_overview(opened(name)).peak_bytes


@every_report
def test_types_and_layers_share_out_the_same_bytes(name: str) -> None:
    by_type = placement.memory_by_type(opened(name)).set_index("type")
    live = live_at(name, peak_of(name))
    wanted: dict[str, Counter[str]] = defaultdict(Counter)
    for place, row in enumerate(rows(opened(name), "variables")):
        size = row["bytes"]
        wanted[row["type"]].update(
            variables=1, bytes=size, always_live_bytes=size * row["always_live"],
            peak_bytes=size * (place in live),
        )  # fmt: skip
    for word, sums in wanted.items():
        assert {key: by_type.loc[word, key] for key in sums} == sums
    by_layer = placement.memory_by_layer(opened(name))
    numbers = ["variables", "bytes", "always_live_bytes", "peak_bytes"]
    assert by_layer[numbers].sum().tolist() == by_type[numbers].sum().tolist()


def test_layers_of_variables_are_those_of_their_debug_contexts() -> None:
    frame = placement.memory_by_layer(small()).set_index("layer")
    # x and w are of context x; product and the message of multiply.
    assert frame["variables"].to_dict() == {"x": 2, "multiply": 2, "add": 1, "reduce": 1, "y": 1}
    assert frame["bytes"]["multiply"] == frame["peak_bytes"]["multiply"] == 120
    assert frame["always_live_bytes"]["x"] == 80


@every_report
def test_spread_of_variables_is_that_of_a_loop(name: str) -> None:
    on_tile: dict[int, Counter[int]] = defaultdict(Counter)
    for piece in rows(opened(name), "variable_pieces"):
        on_tile[piece["variable"]][piece["tile"]] += piece["bytes"]
    tiles = opened(name).dataset.of_replica("num_tiles")
    frame = placement.variable_spread(opened(name)).set_index("variable")
    assert set(frame.index) == set(on_tile)
    for variable, sizes in on_tile.items():
        row, most = frame.loc[variable], max(sizes.values())
        fullest = min(tile for tile, size in sizes.items() if size == most)
        assert row[["tiles", "fullest_tile", "most_bytes"]].tolist() == [len(sizes), fullest, most]
        assert row["balance"] == pytest.approx(sizes.total() / len(sizes) / most)
        assert row["excess_bytes"] == most - sizes.total() // tiles


def test_a_variable_on_few_tiles_stands_out() -> None:
    row = placement.variable_spread(small()).iloc[0]
    # The partials: 16 bytes on tiles 0 and 5 alone; an even share of 32 bytes is 3.
    assert row[["name", "tiles", "fullest_tile", "excess_bytes"]].tolist() == ["partials", 2, 0, 13]
    with pytest.raises(NotRecordedError, match="variable_pieces not recorded"):
        placement.variable_spread(small(variable_pieces=None))


def test_tiles_of_a_variable_are_those_of_its_pieces() -> None:
    frame = placement.variable_by_tile(small(), variable=4)
    assert frame.to_numpy().tolist() == [[0, 0, 16, 1, 1024], [5, 1, 16, 1, 1024]]
    with pytest.raises(SelectionError, match="variables 0 to 6"):
        placement.variable_by_tile(small(), variable=7)


@every_report
def test_every_piece_is_on_the_map_of_its_tile(name: str) -> None:
    pieces = [row for row in rows(opened(name), "variable_pieces") if row["tile"] == 1]
    frame = placement.memory_map(opened(name), tile=1)
    found = frame[["address", "bytes", "region"]].to_numpy().tolist()
    assert sorted(found) == sorted([p["address"], p["bytes"], p["region"]] for p in pieces)
    assert frame["address"].is_monotonic_increasing


def test_map_of_the_fullest_tile_tells_when_its_pieces_are_live() -> None:
    frame = placement.memory_map(small())
    assert set(frame["tile"]) == {0}
    columns = ["address", "end", "name", "first_step", "last_step"]
    # The message and y share their address: they are not live together.
    assert frame[columns].to_numpy().tolist()[2:5] == [
        [528, 536, "product", 6, 11], [536, 540, "message", 5, 6], [536, 540, "y", 12, 13],
    ]  # fmt: skip
    assert frame.set_index("name").loc["w", ["first_step", "last_step"]].tolist() == [-1, -1]


def test_uses_of_a_variable_are_its_programs() -> None:
    frame = placement.variable_uses(small(), variable=2)
    # product: multiply and add write it, and the exchange between IPUs reads it.
    assert frame.drop(columns="program").to_numpy().tolist() == [
        ["OnTileExecute", "multiply", False, True, 4],
        ["GlobalExchange", "reduce/GlobalPre/GlobalExchange", True, False, 2],
        ["OnTileExecute", "add", False, True, 4],
    ]
    assert placement.variable_uses(small(steps=None), variable=2)["executions"].tolist() == [-1] * 3


@every_report
def test_uses_of_all_variables_are_all_accesses(name: str) -> None:
    found = set()
    for variable in range(opened(name).dataset.length("variables")):
        frame = placement.variable_uses(opened(name), variable=variable)
        for way, write in (("reads", False), ("writes", True)):
            found |= {(program, variable, write) for program in frame["program"][frame[way]]}
    wanted = {(r["program"], r["variable"], r["write"]) for r in rows(opened(name), "access")}
    assert found == wanted
