"""Programs on two IPUs of four tiles, worked out by hand: programs, bytes, cycles, memory, report.

The tiles of an IPU have sync delays of 60, 82, 104 and 126 cycles; the way between the two IPUs
costs ceil(15 ns * 1.33 GHz * 2) = 40 more.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from plotly.utils import PlotlyJSONEncoder

from cli.check import check as check_command
from cli.info import info
from cli.summary import summary
from dashboard.address import Address
from dashboard.pages import PAGES
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva import schema
from pva.check import check
from pva.formats import registry
from pva.report import openReport
from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.poplar import FLOAT, program
from tests.stream_copies import PHASES

PREAMBLE = 16  # rows: the control Sequence, its preamble and the Switch


class Add(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self) -> None:
        self.out[:] = self.in_.sum()


def machine(**changes: Any) -> Any:
    return poplar.IPUModel("tiny", numIPUs=2, **changes).createDevice()


@pytest.fixture
def graph() -> Any:
    return poplar.Graph(machine().getTarget())


def variable(graph: Any, name: str, *tiles: int, each: int = 1) -> Any:
    """Add a variable of `each` floats on each of `tiles`."""
    tensor = graph.addVariable(FLOAT, [each * len(tiles)], name)
    for position, tile in enumerate(tiles):
        graph.setTileMapping(tensor[each * position : each * (position + 1)], tile)
    return tensor


def add(graph: Any, source: Any, destination: Any, tile: int) -> Any:
    compute_set = graph.addComputeSet("add")
    vertex = graph.addVertex(compute_set, Add, {"in": source, "out": destination}, tile=tile)
    graph.setPerfEstimate(vertex, 20)
    return program.Execute(compute_set)


def compiled(graph: Any, *nodes: Any) -> tuple[Any, list[tuple[str, str]]]:
    """Compile; give the executable and of the user's programs type, and name or kind of sync."""
    executable = compile_graph(graph, [program.Sequence(*nodes)])
    rows = executable.lowered.programs[PREAMBLE + 1 :]
    return executable, [(p.type, p.sync_type if p.type == "Sync" else p.name) for p in rows]


def written(executable: Any) -> list[tuple[str, str, bool]]:
    """List the writes of exchanges and copies: type, variable, whether it is whole."""
    access, names = executable.lowered.access, executable.variable_names()
    types = [p.type for p in executable.lowered.programs]
    rows = np.flatnonzero(access.write & (access.program > PREAMBLE))
    return [
        (types[access.program[r]], names[access.variable[r]], bool(access.whole[r])) for r in rows
    ]


def test_a_copy_to_another_ipu_is_a_global_exchange_after_an_external_sync(graph: Any) -> None:
    copy = program.Copy(variable(graph, "a", 0, 1), variable(graph, "b", 4, 6))
    executable, rows = compiled(graph, copy)
    assert rows == [("Sync", "External"), ("GlobalExchange", "b/Copy/GlobalPre/GlobalExchange")]
    exchange = executable.lowered.global_exchanges[1]
    assert exchange.sent.tolist() == [4, 4, 0, 0, 0, 0, 0, 0]
    assert exchange.received.tolist() == [0, 0, 0, 0, 4, 0, 4, 0]
    # 119 cycles through the IPUs, 20 over a link, one word.
    assert exchange.cycles.tolist() == [140, 140, 0, 0, 140, 0, 140, 0]


def test_a_copy_goes_inside_ipus_then_between_them_then_on_tiles(graph: Any) -> None:
    copy = program.Copy(variable(graph, "a", 0, 1, 2), variable(graph, "b", 1, 5, 2))
    executable, rows = compiled(graph, copy)
    assert rows == [
        ("Sync", "Internal"),
        ("DoExchange", "b/Copy/ExchangePre"),
        ("Sync", "External"),
        ("GlobalExchange", "b/Copy/GlobalPre/GlobalExchange"),
        ("OnTileExecute", "b/Copy/OnTileCopy-0"),
    ]
    # The first to write b begins its life, the others must not end it.
    assert written(executable) == [
        ("DoExchange", "b", True),
        ("GlobalExchange", "b", False),
        ("OnTileExecute", "b", False),
    ]


def test_an_input_that_comes_both_ways_is_one_global_message(graph: Any) -> None:
    source = variable(graph, "a", 1, 5)
    executable, rows = compiled(graph, add(graph, source, variable(graph, "b", 0), 0))
    assert [name for kind, name in rows if kind != "Sync"] == [
        "add/ExchangePre",
        "add/GlobalPre/GlobalExchange",
        "add",
    ]
    made = [v for v in executable.lowered.variables if v.name == "<message:a>"]
    assert [(v.category, v.tile.tolist(), v.bytes.tolist()) for v in made] == [
        ("globalMessage", [0], [8]),
    ]
    assert [row for row in written(executable) if row[1] == "<message:a>"] == [
        ("DoExchange", "<message:a>", True),
        ("GlobalExchange", "<message:a>", False),
    ]


def test_inputs_of_either_kind_arrive_in_messages_of_their_own(graph: Any) -> None:
    source, results = variable(graph, "a", 1, 5), variable(graph, "b", 0, 0)
    compute_set = graph.addComputeSet("add")
    for number, tile in enumerate((0, 2)):
        fields = {"in": source[number : number + 1], "out": results[number]}
        graph.setPerfEstimate(graph.addVertex(compute_set, Add, fields, tile=tile), 20)
    executable, _ = compiled(graph, program.Execute(compute_set))
    made = [v for v in executable.lowered.variables if v.name == "<message:a>"]
    assert [(v.category, v.tile.tolist(), v.bytes.tolist()) for v in made] == [
        ("message", [0], [4]),
        ("globalMessage", [2], [4]),
    ]


def test_outputs_leave_by_a_global_exchange_after_the_compute_set(graph: Any) -> None:
    executable, rows = compiled(
        graph, add(graph, variable(graph, "a", 0), variable(graph, "b", 5), 0)
    )
    assert rows == [
        ("OnTileExecute", "add"),
        ("Sync", "External"),
        ("GlobalExchange", "add/GlobalPost/GlobalExchange"),
    ]
    (edge,) = [v for v in executable.lowered.variables if v.category == "outputEdge"]
    assert (edge.tile.tolist(), edge.bytes.tolist()) == ([0], [4])


def test_program_number_is_told_to_each_ipu_its_own_way(graph: Any) -> None:
    executable, _ = compiled(graph)
    inside, between = executable.lowered.exchanges[0], executable.lowered.global_exchanges[0]
    assert inside.received.tolist() == [0, 4, 4, 4, 0, 0, 0, 0]
    assert between.received.tolist() == [0, 0, 0, 0, 4, 4, 4, 4]
    assert between.sent.tolist() == [4, 0, 0, 0, 0, 0, 0, 0]  # a multicast crosses once


def test_code_and_headers_of_global_exchanges_are_counted_on_their_tiles() -> None:
    graph = poplar.Graph(machine(compileIPUCode=True).getTarget())
    copy = program.Copy(variable(graph, "a", 0, 1), variable(graph, "b", 4, 6))
    executable, _ = compiled(graph, copy)
    memory = executable.memory.by_category.sum(axis=(1, 2))
    rows = {name: memory[number].tolist() for number, name in enumerate(schema.CATEGORIES)}
    # A packet is 128 bytes: each tile has one for the program number, and one for the copy. A
    # header is 8 bytes where it is sent from; two instructions of 4 bytes at both ends.
    assert rows["globalExchangePacketHeader"] == [16, 8, 0, 0, 0, 0, 0, 0]
    assert rows["globalExchangeCode"] == [16, 8, 0, 0, 16, 8, 16, 8]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a compute set on IPU 0, an internal exchange there, and a copy to IPU 1."""
    out = tmp_path_factory.mktemp("ipus")
    device = machine()
    graph = poplar.Graph(device.getTarget())
    a, b = variable(graph, "a", 0, each=4), variable(graph, "b", 1)
    c, d = variable(graph, "c", 2), variable(graph, "d", 5)
    graph.createHostWrite("a", a)
    graph.createHostRead("d", d)
    steps = [add(graph, a, b[0:1], 0), program.Copy(b, c), program.Copy(c, d)]
    options = {"autoReport.all": True, "autoReport.directory": str(out)}
    engine = poplar.Engine(graph, program.Sequence(*steps), options)
    engine.load(device)
    engine.writeTensor("a", [1, 2, 3, 4])
    engine.run(0)
    assert engine.readTensor("d").tolist() == [10]
    return out


def test_a_report_of_two_ipus_breaks_no_law(report: Path) -> None:
    assert [str(violation) for violation in check(registry.read(report))] == []


@pytest.mark.parametrize("command", [check_command, info, summary], ids=lambda c: c.name)
def test_commands_tell_of_a_report_of_two_ipus(report: Path, command: Any) -> None:
    result = CliRunner().invoke(command, [str(report)], catch_exceptions=False)
    assert result.exit_code == 0


def test_clocks_of_the_run_are_those_worked_out_by_hand(report: Path) -> None:
    data = registry.read(report)
    columns = [data.texts("steps", "type").tolist(), data.texts("steps", "sync_type").tolist()]
    columns += [data.column("steps", name).tolist() for name in ("cycles_from", "cycles_to")]
    steps = list(zip(*columns, strict=True))
    # The preamble: an external sync costs 126 + 40 cycles; tile 0 is free long before the rest.
    assert steps[0] == ("Sync", "External", 0, 166)
    assert steps[1:3] == [(phase, "None", 166, 166) for phase in PHASES[:2]]
    assert steps[12:] == [
        # After a broadcast of 61 cycles to the farthest tile of IPU 0: 126 + 40 more.
        ("Sync", "External", 771, 937),
        ("GlobalExchange", "None", 937, 1077),
        # Tile 0 is free at 1077 - 33; a worker of six takes 20 cycles. The frontier is tile 7.
        ("OnTileExecute", "None", 1077, 1164),
        # IPU 0 alone waits: 1164 + 30 to ask, 63 back to the farthest tile.
        ("Sync", "Internal", 1164, 1257),
        # b on tile 1, released at 1194 + 41: 60 cycles before the first word, and one word.
        ("DoExchange", "None", 1257, 1296),
        # Tile 1 asks last, at 1296 + 41; 63 back to tile 3.
        ("Sync", "Internal", 1296, 1400),
        # c on tile 2, released at 1337 + 52.
        ("DoExchange", "None", 1400, 1450),
        # Tile 2 asks last, at 1450 + 52; 40 between the IPUs, 63 back.
        ("Sync", "External", 1450, 1605),
        # Tile 2 sends from 1542 + 52 on.
        ("GlobalExchange", "None", 1605, 1734),
    ]


def test_an_internal_sync_lets_the_other_ipu_run_ahead(report: Path) -> None:
    data = registry.read(report)
    rows = data.rows_where("steps_by_ipu", "step", 15)
    ends = [data.column("steps_by_ipu", name)[rows].tolist() for name in ("to_min", "to_max")]
    # IPU 0: asked at 1164 + 30 by tile 0. IPU 1: at 1077 + 63 by tile 7, whose release is 63 away.
    assert ends == [[1194 + 30, 1140 + 30], [1194 + 63, 1140 + 63]]


def test_each_ipu_has_a_lane_and_every_page_is_laid_out(report: Path) -> None:
    store = Store([report])
    lanes = endpoint.timeline(store, "device", "").lanes
    assert [lane.name for lane in lanes] == ["IPU 0", "IPU 1"]
    shown = [page for page in PAGES if page.available(store, "")]
    assert len(shown) >= 4
    for page in shown:
        layout = json.dumps(page.layout(store, Address()), cls=PlotlyJSONEncoder)
        assert page.PAGE.question in layout


def test_libpva_tells_of_both_ipus(report: Path) -> None:
    opened = openReport(str(report))
    last = opened.execution.steps[-1]
    assert last.program.type is type(last.program).Type.GlobalExchange
    assert [(ipu.dataIn, ipu.dataOut) for ipu in last.ipus] == [(0, 4), (4, 0)]
    assert list(last.cyclesByTile) == [0, 0, 140, 0, 0, 140, 0, 0]
