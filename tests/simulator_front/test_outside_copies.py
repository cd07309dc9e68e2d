"""Programs that copy with streams and remote buffers, whole: values, reports, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_ends import mapped

from pva.check import check
from simulator.compiler.compile import compile_graph
from simulator.device import IPUModel
from simulator.engine import Engine
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.program import Copy, Repeat, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.poplar import StreamCallback

MEGABYTE = 1 << 20


def engine(graph: Graph, program: Any, **options: object) -> Engine:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return Engine(graph, program, named)


def model(ipus: int = 1) -> tuple[Any, Graph]:
    device = IPUModel("tiny", numIPUs=ipus).createDevice()
    return device, Graph(device.getTarget())


def test_a_stream_that_is_split_gives_the_same_values() -> None:
    device, graph = model()
    tensor = mapped(graph, 10, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 10, options={"splitLimit": 12})
    out = graph.addDeviceToHostFIFO("out", INT, 10, options={"splitLimit": "20"})
    session = engine(graph, Sequence(Copy(into, tensor), Copy(tensor, out)))
    session.load(device)
    found = np.zeros(10, np.int32)
    session.connectStream("in", np.arange(10, dtype=np.int32))
    session.connectStream("out", found)
    session.run()
    assert found.tolist() == list(range(10))


def test_a_program_runs_again_after_a_callback_that_failed() -> None:
    device, graph = model()
    tensor = mapped(graph, 2, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 2)
    out = graph.addDeviceToHostFIFO("out", INT, 2)
    session = engine(graph, Sequence(Copy(into, tensor), Copy(tensor, out)))
    session.load(device)
    found = np.zeros(2, np.int32)
    session.connectStream("out", found)
    given = iter([np.array([1], np.int32), np.array([3, 4], np.int32)])
    session.connectStreamToCallback("in", lambda buffer: next(given))
    with pytest.raises(PoplarError, match="stream 'in': its callback gave 1 elements; 2 are"):
        session.run()
    session.run()
    assert found.tolist() == [3, 4]
    with pytest.raises(PoplarError, match="stream 'in': its callback raised StopIteration"):
        session.run()


def remote_program(
    graph: Graph, rows: int = 2, repeats: int = 4, tile: int = 1
) -> tuple[Tensor, Tensor, Sequence]:
    """Store a tensor's rows in a buffer, where the offsets say."""
    tensor, offset = mapped(graph, 3 * rows, INT, tile), mapped(graph, rows, UNSIGNED_INT, tile)
    buffer = graph.addRemoteBuffer("w", INT, 3, repeats)
    graph.createHostWrite("values", tensor)
    graph.createHostWrite("offset", offset)
    graph.createHostRead("found", tensor)
    return tensor, offset, Sequence(Copy(tensor, buffer, offset))


def test_rows_are_stored_and_loaded_by_offset() -> None:
    device, graph = model()
    tensor, offset, store = remote_program(graph)
    load = Sequence(Copy(graph.remote_buffers[0], tensor, offset))
    first = Sequence(Copy(graph.remote_buffers[0], tensor[:3]))
    session = engine(graph, [store, load, first])
    session.load(device)
    session.writeTensor("values", np.arange(6))
    session.writeTensor("offset", [3, 0])
    session.run(0)
    session.writeTensor("offset", [2, 3])
    session.run(1)
    assert session.readTensor("found").tolist() == [0, 0, 0, 0, 1, 2]
    session.run(2)  # without an offset: row 0
    assert session.readTensor("found").tolist() == [3, 4, 5, 0, 1, 2]


def test_the_host_reaches_the_rows_of_a_remote_buffer() -> None:
    device, graph = model()
    tensor, offset, store = remote_program(graph)
    load = Sequence(Copy(graph.remote_buffers[0], tensor, offset))
    session = engine(graph, [store, load])
    session.load(device)
    session.copyToRemoteBuffer(np.array([7, 8, 9], np.int32), "w", 2)
    session.writeTensor("offset", [2, 1])
    session.run(1)
    assert session.readTensor("found").tolist() == [7, 8, 9, 0, 0, 0]
    session.run(0)
    row = np.ones(3, np.int32)
    session.copyFromRemoteBuffer("w", row, 1)
    assert row.tolist() == [0, 0, 0]


def test_an_offset_beyond_the_rows_ends_the_run_and_names_the_buffer() -> None:
    device, graph = model()
    *_, store = remote_program(graph)
    session = engine(graph, store)
    session.load(device)
    session.writeTensor("offset", [1, 4])
    with pytest.raises(PoplarError, match="remote buffer 'w': offset 4; it has 4 rows"):
        session.run()
    session.writeTensor("offset", [1, 3])
    session.run()


def test_a_remote_buffer_belongs_to_one_ipu() -> None:
    _, graph = model(ipus=2)
    *_, store = remote_program(graph)
    other = mapped(graph, 3, INT, tile=5)
    store.add(Repeat(2, Copy(graph.remote_buffers[0], other)))
    said = "remote buffer 'w': .*; all its copies have to be of one IPU"
    with pytest.raises(PoplarError, match=said):
        engine(graph, store)


def test_a_tensor_of_two_ipus_cannot_be_a_row() -> None:
    _, graph = model(ipus=2)
    tensor = graph.addVariable(INT, [4], "t")
    graph.setTileMapping(tensor, [[(0, 2)], [], [], [], [(2, 4)]])
    with pytest.raises(PoplarError, match="remote buffer 'w': t is on IPU 0, t on IPU 1; all"):
        engine(graph, Copy(tensor, graph.addRemoteBuffer("w", INT, 4)))


def test_there_are_no_more_offsets_than_rows() -> None:
    _, graph = model()
    *_, store = remote_program(graph, rows=3, repeats=2)
    said = r"remote buffer 'w': 3 offsets; it has 2 rows \(repeats\)"
    with pytest.raises(PoplarError, match=said):
        engine(graph, store)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_offsets_are_whole_numbers(dtype: Type) -> None:
    _, graph = model()
    tensor, offset = mapped(graph, 3, INT), mapped(graph, 1, dtype)
    buffer = graph.addRemoteBuffer("w", INT, 3, 2)
    with pytest.raises(PoplarError, match="a tensor of unsigned int is needed"):
        Copy(tensor, buffer, offset)


def test_several_rows_need_offsets() -> None:
    _, graph = model()
    tensor = mapped(graph, 6, INT)
    buffer = graph.addRemoteBuffer("w", INT, 3, 2)
    with pytest.raises(PoplarError, match=r"t0 \(6 x int\) to remote buffer 'w' \(3 x int\)"):
        Copy(tensor, buffer)


def test_remote_buffers_beyond_16_gigabytes_need_an_option() -> None:
    _, graph = model()
    tensor = mapped(graph, 3, INT)
    small = graph.addRemoteBuffer("small", INT, 3)
    graph.addRemoteBuffer("huge", INT, 64 * MEGABYTE, 63)
    with pytest.raises(PoplarError, match="remote buffer 'huge': with it IPU 0 has 16,911,433,740"):
        engine(graph, Copy(tensor, small))
    engine(graph, Copy(tensor, small), target_extendedMemory=True)


def test_a_stream_cannot_be_split_when_buffers_do_not_overlap() -> None:
    _, graph = model()
    tensor = mapped(graph, 10, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 10, options={"splitLimit": 12})
    engine(graph, Copy(into, tensor), exchange_streamBufferOverlap="HostRearrangeOnly")
    said = "stream 'in': 40 bytes on IPU 0; a transfer above 12 cannot be split while exchange"
    with pytest.raises(PoplarError, match=said):
        engine(graph, Copy(into, tensor), exchange_streamBufferOverlap="None")


def test_buffers_that_do_not_overlap_have_to_fit_beside_one_another() -> None:
    target = make_target("tiny", stream_copy_limit=100)
    graph = Graph(target)
    tensor = mapped(graph, 10, INT)
    streams = [graph.addHostToDeviceFIFO(name, INT, 10) for name in "ab"]
    deep = graph.addHostToDeviceFIFO("c", INT, 10, options={"bufferingDepth": 3})
    engine(
        graph, Sequence(*(Copy(s, tensor) for s in streams)), exchange_streamBufferOverlap="None"
    )
    said = "stream 'c': with it the stream buffers of IPU 0 take 120 bytes; at most 100 fit"
    with pytest.raises(PoplarError, match=said):
        engine(graph, Copy(deep, tensor), exchange_streamBufferOverlap="None")


def test_prefetch_is_an_option_of_the_engine() -> None:
    device, graph = model()
    tensor = mapped(graph, 2, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 2, options={"bufferingDepth": 2})
    options = {"exchange_enablePrefetch": "true", "exchange_streamBufferOverlap": "None"}
    session = engine(graph, Copy(into, tensor), **options)
    session.load(device)
    calls: list[str] = []

    class Source:
        def fetch(self, buffer: Any) -> None:
            calls.append("fetch")

        def prefetch(self, buffer: Any) -> Any:
            calls.append("prefetch")
            return StreamCallback.Result.Success

        def invalidatePrefetched(self) -> None:
            calls.append("invalidate")

    session.connectStreamToCallback("in", Source())
    session.run()
    session.run()
    session.load(device)
    assert calls == ["fetch", "prefetch", "prefetch", "prefetch", "invalidate"]


def test_a_report_of_split_streams_and_rows_keeps_every_law(tmp_path: Path) -> None:
    device, graph = model()
    tensor, _, program = remote_program(graph)
    into = graph.addHostToDeviceFIFO("in", INT, 6, options={"splitLimit": 8})
    program.add(Copy(into, tensor))
    named = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    session = Engine(graph, program, named)
    session.load(device)
    session.connectStream("in", np.arange(6, dtype=np.int32))
    session.run()
    report = session.getReport()
    names = [step.program.name for step in report.execution.steps]
    copies = np.repeat(["w/0", "w/1", "in/0", "in/1", "in/2"], 3).tolist()
    assert [name for name in names if "/" in name][-15:] == copies
    assert [str(violation) for violation in check(report.dataset)] == []


def test_a_report_survives_a_callback_that_failed(tmp_path: Path) -> None:
    device, graph = model()
    tensor = mapped(graph, 2, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 2)
    named = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    session = Engine(graph, Copy(into, tensor), named)
    session.load(device)
    session.connectStreamToCallback("in", lambda buffer: [1])
    with pytest.raises(PoplarError, match="gave 1 elements"):
        session.run()
    session.connectStreamToCallback("in", lambda buffer: [1, 2])
    session.run()
    report = session.getReport()
    assert len(report.execution.runs) == 1
    assert [str(violation) for violation in check(report.dataset)] == []


def test_what_a_split_stream_overwrites_is_not_alive_before_it() -> None:
    _, graph = model()
    tensor = mapped(graph, 4, INT)
    into = graph.addHostToDeviceFIFO("in", INT, 4, options={"splitLimit": 8})
    out = graph.addDeviceToHostFIFO("out", INT, 4)
    executable = compile_graph(graph, [Sequence(Copy(into, tensor), Copy(tensor, out))])
    live = executable.liveness
    programs = [executable.lowered.programs[row].name for row in live.program.tolist()]
    (interval,) = np.flatnonzero(live.variable == 0)
    begin, end = int(live.begin[interval]), int(live.end[interval])
    # From the middle of the first copy to the middle of the last one.
    assert programs[begin:end] == ["in/0", "in/0", *["in/1"] * 3, "out", "out"]
