"""Replicated graphs: two replicas of two IPUs of four tiles, in the compiler and in the report."""

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
from pva.check import check
from pva.formats import registry
from pva.report import openReport
from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.graph.program import CrossReplicaCopy
from simulator.graph.tensors.views import replication_factor
from simulator.poplar import FLOAT, program


def machine(ipus: int = 4) -> Any:
    return poplar.IPUModel("tiny", numIPUs=ipus).createDevice()


def variables(graph: Any) -> tuple[Any, Any]:
    """Add two variables of four floats a tile: `a` on tiles 0 to 3, `b` on the last four."""
    pair = tuple(graph.addVariable(FLOAT, [16], name) for name in ("a", "b"))
    last = graph.target.num_tiles - 4
    for tile in range(4):
        graph.setTileMapping(pair[0][4 * tile : 4 * tile + 4], tile)
        graph.setTileMapping(pair[1][4 * tile : 4 * tile + 4], last + tile)
    return pair


def swapped(graph: Any, replicas: int = 2) -> Any:
    """Compile a copy of `a` to `b` of the next replica."""
    a, b = variables(graph)
    to = {replica: (replica + 1) % replicas for replica in range(replicas)}
    copy = CrossReplicaCopy(a, b, to, "next")
    top = graph if graph.replication > 1 else graph.getTopLevelGraph()
    return compile_graph(top, [program.Sequence(copy)])


def test_a_copy_between_replicas_is_one_global_exchange() -> None:
    executable = swapped(poplar.Graph(machine().getTarget(), replication_factor(2)))
    rows = [(p.type, p.sync_type, p.name) for p in executable.lowered.programs[-2:]]
    assert rows == [
        ("Sync", "External", ""),
        ("GlobalExchange", "None", "next/GlobalPre/GlobalExchange"),
    ]
    exchange = executable.lowered.global_exchanges[-1]
    assert exchange.sent.tolist() == [16] * 4 + [0] * 4
    assert exchange.received.tolist() == [0] * 4 + [16] * 4
    # From IPU 0 to IPU 3, across the rung and up: 119 + 2 hops of 19.95 cycles, four words.
    assert exchange.cycles.tolist() == [119 + 40 + 4] * 8


def test_a_ring_of_replicas_takes_as_long_as_its_longest_way() -> None:
    one_ipu_each = poplar.Graph(machine().getTarget(), replication_factor(4))
    exchange = swapped(one_ipu_each, 4).lowered.global_exchanges[-1]
    # 0 to 1 and 2 to 3 stay on their cards; 1 to 2 and 3 to 0 cross the rung and go on.
    assert exchange.cycles.tolist() == [119 + 40 + 4] * 4


def test_replicas_inside_a_graph_copy_as_its_other_tiles_do() -> None:
    top = poplar.Graph(machine().getTarget())
    executable = swapped(top.createReplicatedGraph(2))
    exchange = executable.lowered.global_exchanges[-1]
    # All four IPUs are in this graph: a of either replica goes to b of the other.
    assert exchange.sent.tolist() == ([16] * 4 + [0] * 4) * 2
    assert exchange.received.tolist() == ([0] * 4 + [16] * 4) * 2


def test_an_external_sync_of_replicas_of_one_ipu_costs_the_way_between_all() -> None:
    alone, apart = (_cycles_of_the_preamble(machine(ipus), ipus) for ipus in (1, 4))
    # Four IPUs are two hops: ceil(15 ns * 1.33 GHz * 2 * 2) = 80 cycles more, in each of two.
    assert apart == alone + 2 * 80


def _cycles_of_the_preamble(device: Any, replicas: int) -> int:
    graph = poplar.Graph(device.getTarget(), replication_factor(replicas))
    engine = poplar.Engine(graph, program.Sequence())
    engine.load(device)
    engine.run(0)
    return int(engine._runner._clock.max())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a copy inside each replica and one between them."""
    out = tmp_path_factory.mktemp("replicas")
    device = machine()
    graph = poplar.Graph(device.getTarget(), replication_factor(2))
    a, b = variables(graph)
    graph.createHostWrite("a", a)
    graph.createHostRead("b", b)
    swap = CrossReplicaCopy(b, a, {0: 1, 1: 0}, "swap")
    steps = program.Sequence(program.Copy(a, b), swap, program.Copy(a, b))
    options = {"autoReport.all": True, "autoReport.directory": str(out)}
    engine = poplar.Engine(graph, steps, options)
    engine.load(device)
    values = np.arange(32, dtype=np.float32).reshape(2, 16)
    engine.writeTensor("a", values)
    engine.run(0)
    assert engine.readTensor("b").tolist() == values[::-1].tolist()
    return out


def test_the_report_counts_all_replicas_and_holds_one(report: Path) -> None:
    data = registry.read(report)
    assert check(data) == []
    names = ("num_ipus", "num_tiles", "num_replicas", "total_memory")
    found = [data.value("target", name) for name in names]
    assert found == [4, 16, 2, 16 * data.value("target", "bytes_per_tile")]
    assert data.array("external_exchange_cycles").shape == (4, 8)
    assert data.length("memory_by_tile") == 8
    assert set(data.column("steps_by_ipu", "ipu").tolist()) == {0, 1}


def test_shares_of_cycles_are_of_the_profiled_replica(report: Path) -> None:
    data = registry.read(report)
    spent = {name: int(values[0]) for name, values in data.table("tile_cycles").items()}
    del spent["active_compute"]
    assert sum(spent.values()) == 8 * data.value("execution", "cycles")
    rows = data.array("external_exchange_cycles").sum()
    assert spent["global_exchange"] == rows


@pytest.mark.parametrize("command", [check_command, info, summary], ids=lambda c: c.name)
def test_commands_tell_of_a_report_of_replicas(report: Path, command: Any) -> None:
    result = CliRunner().invoke(command, [str(report)], catch_exceptions=False)
    assert result.exit_code == 0
    assert command is check_command or "replicas" in result.output.lower()


def test_every_page_of_a_report_of_replicas_is_laid_out(report: Path) -> None:
    store = Store([report])
    lanes = endpoint.timeline(store, "device", "").lanes
    assert [lane.name for lane in lanes] == ["IPU 0", "IPU 1"]
    shown = [page for page in PAGES if page.available(store, "")]
    assert len(shown) >= 4
    for page in shown:
        layout = json.dumps(page.layout(store, Address()), cls=PlotlyJSONEncoder)
        assert page.PAGE.question in layout


def test_libpva_lists_the_tiles_of_all_replicas(report: Path) -> None:
    compilation = openReport(str(report)).compilation
    assert len(compilation.tiles) == compilation.target.numTiles == 16
    assert compilation.tiles[12].memory.total == compilation.tiles[4].memory.total
    assert compilation.tiles[4].memory.total != compilation.tiles[0].memory.total
