"""Stream copies that follow one another, against the same ones with work between."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from simulator import gcl, poplar, popops, poputil
from simulator.graph.machine.target import make_target
from simulator.graph.program import Copy, Sequence
from tests.io_tiles import machine

COUNT = 256


def streamed(
    folder: Path, copies: Any, *, io: bool = True, limit: int = 1 << 20
) -> tuple[Dataset, list[np.ndarray]]:
    """Run copies between tensors and streams; return the report and what came back."""
    device = machine()
    graph = poplar.Graph(replace(device.getTarget(), stream_copy_limit=limit))
    aside = graph.createVirtualGraph(gcl.perIPUTiles(graph, 0, 2)) if io else graph
    compute = graph.createVirtualGraph(gcl.perIPUTiles(graph, 2, 6)) if io else graph
    tensors = [aside.addVariable(poplar.FLOAT, [COUNT], name) for name in "ab"]
    other = compute.addVariable(poplar.FLOAT, [COUNT], "other")
    for tensor in tensors:
        poputil.mapTensorLinearly(aside, tensor)
    poputil.mapTensorLinearly(compute, other)
    into = [graph.addHostToDeviceFIFO(f"in{n}", poplar.FLOAT, COUNT) for n in range(2)]
    out = [graph.addDeviceToHostFIFO(f"out{n}", poplar.FLOAT, COUNT) for n in range(2)]
    prog = Sequence(*copies(tensors, into, out))
    popops.zero(compute, other, prog, "zero")
    options = {"autoReport.all": True, "autoReport.directory": str(folder)}
    engine = poplar.Engine(graph, prog, options)
    engine.load(device)
    given = [np.arange(COUNT, dtype=np.float32), np.full(COUNT, 7, dtype=np.float32)]
    taken = [np.zeros(COUNT, dtype=np.float32) for _ in range(2)]
    for n in range(2):
        engine.connectStream(f"in{n}", given[n])
        engine.connectStream(f"out{n}", taken[n])
    engine.run(0)
    return registry.read(folder), taken


def transactions(data: Dataset) -> int:
    """Count the transactions with the host, but for the two that fetch the program's number."""
    return int((data.texts("steps", "type") == "StreamCopyBegin").sum()) - 2


def test_copies_that_follow_one_another_share_their_syncs(tmp_path: Path) -> None:
    data, _ = streamed(tmp_path, lambda t, into, out: [Copy(into[0], t[0]), Copy(into[1], t[1])])
    names = data.column("programs", "name")[data.column("steps", "program")]
    moves = data.texts("steps", "type") == "StreamCopy"
    assert transactions(data) == 1
    assert [name for name in names[moves] if name] == ["in0", "in1"]
    assert check(data) == []


def test_values_are_those_of_copies_that_stay_apart(tmp_path: Path) -> None:
    def both(t: Any, into: Any, out: Any) -> list[Copy]:
        return [Copy(into[n], t[n]) for n in range(2)] + [Copy(t[n], out[n]) for n in range(2)]

    data, taken = streamed(tmp_path / "together", both)
    assert transactions(data) == 2
    assert [values.tolist() for values in taken] == [list(range(COUNT)), [7] * COUNT]


def test_what_reads_what_the_one_before_wrote_has_a_transaction_of_its_own(tmp_path: Path) -> None:
    data, taken = streamed(tmp_path, lambda t, into, out: [Copy(into[0], t[0]), Copy(t[0], out[0])])
    assert transactions(data) == 2
    assert taken[0].tolist() == list(range(COUNT))


def test_both_directions_go_together_where_they_are_of_other_data(tmp_path: Path) -> None:
    data, taken = streamed(
        tmp_path,
        lambda t, into, out: [Copy(into[0], t[0]), Copy(t[1], out[1]), Copy(into[1], t[1])],
    )
    assert transactions(data) == 2  # the third writes what the second reads
    assert not taken[1].any()


@pytest.mark.parametrize(("io", "wanted"), [(True, 1), (False, 2)])
def test_only_io_tiles_move_both_directions_at_once(tmp_path: Path, io: bool, wanted: int) -> None:
    data, _ = streamed(
        tmp_path, lambda t, into, out: [Copy(t[1], out[1]), Copy(into[0], t[0])], io=io
    )
    assert transactions(data) == wanted


def test_all_tiles_of_a_transaction_take_part_in_each_of_its_copies(tmp_path: Path) -> None:
    # 200 bytes for tile 0: 5 cycles, and two for each of the 32 words of a packet. 400 for tile 1:
    # 5 cycles, and 67 at 8 GB/s and 1.33 GHz.
    graph, prog = poplar.Graph(machine(tiles=4).getTarget()), Sequence()
    for tile, count in enumerate((50, 100)):
        tensor = graph.addVariable(poplar.FLOAT, [count], f"t{tile}")
        graph.setTileMapping(tensor, tile)
        prog.add(Copy(graph.addHostToDeviceFIFO(f"in{tile}", poplar.FLOAT, count), tensor))
    lowered = poplar.Engine(graph, prog)._executable.lowered
    copies = [part for part in lowered.programs if part.type == "StreamCopy" and part.name]
    costs = [lowered.host_exchanges[part.exchange] for part in copies]
    assert [cost.cycles.tolist() for cost in costs] == [[69, 69, 0, 0], [72, 72, 0, 0]]
    assert [cost.received.tolist() for cost in costs] == [[200, 0, 0, 0], [0, 400, 0, 0]]


def test_packets_are_put_into_place_behind_the_transaction_in_the_order_of_the_copies() -> None:
    # 320 bytes on 40 and on 20 tiles come in packets of 64; those of tile 3 as they are.
    graph, prog, called = poplar.Graph(make_target("mk1")), Sequence(), list[str]()
    spread = {"words": 40, "row": 1, "more": 20}
    for name, tiles in spread.items():
        tensor, share = graph.addVariable(poplar.INT, [80], name), np.arange(0, 80, 80 // tiles)
        graph.map_ranges(tensor, share, share + 80 // tiles, 3 + np.arange(tiles))
        prog.add(Copy(graph.addHostToDeviceFIFO(name, poplar.INT, 80), tensor))
        graph.createHostRead(name, tensor)
    engine = poplar.Engine(graph, prog)
    for number, name in enumerate(spread):
        engine.connectStreamToCallback(name, partial(answer, called, name, number))
    engine.load(poplar.IPUModel("ipu1").createDevice())
    engine.run(0)
    names = [part.name for part in engine._executable.lowered.programs if "Post" in part.name]
    put = ["PostArrange-0", "ExchangePost"]
    assert names == [f"{name}/{step}" for name in ("words", "more") for step in put]
    assert called == list(spread)
    values = {name: np.zeros(80, dtype=np.int32) for name in spread}
    for name, array in values.items():
        engine.readTensor(name, array)
    assert [set(array.tolist()) for array in values.values()] == [{0}, {1}, {2}]


def answer(called: list[str], name: str, number: int, buffer: np.ndarray) -> None:
    """Note the name of a stream, and fill its buffer."""
    called.append(name)
    buffer[...] = number


@pytest.mark.parametrize(("limit", "wanted"), [(2 * COUNT * 4, 1), (2 * COUNT * 4 - 4, 2)])
def test_no_transaction_is_above_the_limit(tmp_path: Path, limit: int, wanted: int) -> None:
    data, _ = streamed(
        tmp_path, lambda t, into, out: [Copy(into[0], t[0]), Copy(into[1], t[1])], limit=limit
    )
    assert transactions(data) == wanted
