"""The host's end of streams, and the values of stored tensors."""

from __future__ import annotations

import array
import ctypes
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.streams import DataStream, ReplicatedStreamMode, Stream
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_CHAR, Type
from simulator.runtime.callbacks import Result, StreamCallback
from simulator.runtime.execute import format_values
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.storage import Storage

IN, OUT = 0, 1


def streams() -> tuple[HostStreams, list[Stream]]:
    graph = Values().graph
    graph.addHostToDeviceFIFO("images", FLOAT, 2)
    graph.addDeviceToHostFIFO("losses", FLOAT, 2)
    return HostStreams(graph.streams), graph.streams


def stream(dtype: Type = FLOAT, elements: int = 2, replicas: int = 1, **options: Any) -> Stream:
    return Stream(0, "s", dtype, elements, "in", replicas=replicas, **options)


def test_an_array_is_read_round_and_round() -> None:
    host, made = streams()
    host.connect("images", np.arange(6, dtype=np.float32))
    fetched = [host.fetch(made[IN]).tolist() for _ in range(4)]
    assert fetched == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_an_end_cuts_the_ring_short() -> None:
    host, made = streams()
    host.connect(made[IN], np.arange(6, dtype=np.float32), 4)
    assert [host.fetch(made[IN]).tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]


def test_an_array_is_written_round_and_round() -> None:
    host, made = streams()
    losses = np.zeros(4, np.float32)
    host.connect("losses", losses)
    for i in range(3):
        host.store(made[OUT], np.full(2, i, np.float32))
    assert losses.tolist() == [2, 2, 1, 1]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.lists(st.integers(0, 2), max_size=20))
def test_rings_give_every_replica_what_a_list_of_transfers_would(
    elements: int, transfers: int, order: list[int]
) -> None:
    made = stream(elements=elements)
    host = HostStreams([made], replicas=3)
    data = np.arange(elements * transfers, dtype=np.float32)
    host.connect("s", data)
    rows, counts = data.reshape(transfers, elements), [0, 0, 0]
    for replica in order:
        wanted = rows[(counts[replica] * 3 + replica) % transfers]
        counts[replica] += 1
        assert host.fetch(made, replica).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "memory",
    [
        np.array([1.5, 2.5], np.float32),
        np.array([[1.5], [2.5]], np.float32),
        array.array("f", [1.5, 2.5]),
        (ctypes.c_float * 2)(1.5, 2.5),
        np.array([1.5, 2.5], np.float32).tobytes(),
        bytearray(np.array([1.5, 2.5], np.float32).tobytes()),
        memoryview(np.array([1.5, 2.5], np.float32)),
    ],
    ids=lambda memory: type(memory).__name__,
)
def test_any_object_with_the_buffer_protocol_feeds_a_stream(memory: Any) -> None:
    host, made = streams()
    host.connect("images", memory)
    assert host.fetch(made[IN]).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "memory",
    [array.array("f", [0, 0]), (ctypes.c_float * 2)(), bytearray(8), memoryview(bytearray(8))],
    ids=lambda memory: type(memory).__name__,
)
def test_any_object_that_can_be_written_takes_a_stream(memory: Any) -> None:
    host, made = streams()
    host.connect("losses", memory)
    host.store(made[OUT], np.array([1.5, 2.5], np.float32))
    assert bytes(memory) == np.array([1.5, 2.5], "<f4").tobytes()


@pytest.mark.parametrize(
    ("dtype", "memory", "values"),
    [
        (HALF, np.array([0.5, 1], np.float16), [0.5, 1]),
        (BOOL, (ctypes.c_bool * 2)(True, False), [True, False]),
        (UNSIGNED_CHAR, b"\x01\xff", [1, 255]),
        (INT, array.array("i", [-1, 7]), [-1, 7]),
    ],
)
def test_memory_of_each_type_is_understood(dtype: Type, memory: Any, values: list[Any]) -> None:
    host = HostStreams([stream(dtype)])
    host.connect("s", memory)
    assert host.fetch(stream(dtype)).tolist() == values


def test_a_ring_shows_what_the_host_changes_between_transfers() -> None:
    host, made = streams()
    numbers = np.zeros(2, np.float32)
    host.connect("images", numbers)
    numbers[:] = 5
    assert host.fetch(made[IN]).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("handle", "ends", "said"),
    [
        ("image", [np.zeros(2, np.float32)], "stream 'image': unknown; streams are images, losses"),
        ("images", [np.zeros(2)], "stream 'images': array of float64; one of float is needed"),
        ("images", [np.zeros(2, ">f4")], "array of >f4; one of float is needed"),
        ("images", [np.zeros(3, np.float32)], "array of 3 elements; a multiple of 2"),
        ("images", [np.zeros(0, np.float32)], "array of 0 elements; a multiple of 2"),
        ("images", [b"123"], "3 bytes; a multiple of 4, the size of float, is needed"),
        ("images", [[1.0, 2.0]], "list does not show its memory"),
        ("images", [np.zeros((2, 2), np.float32).T], "a contiguous array is needed"),
        ("images", [np.zeros(2, np.float32), 3], "end is 3; the array has 2 elements"),
        ("images", [np.zeros(2, np.float32), "x"], "end is 'x'; a number of elements is needed"),
        ("images", [1, np.zeros(2, np.float32)], "replica 1; there are replicas 0 to 0"),
        ("images", [], "connected to 0 things; memory and at most its end is needed"),
        ("losses", [np.zeros(4, np.float32)[::2]], "a contiguous array is needed"),
        ("losses", [bytes(8)], "the array is read-only; one that can be written is needed"),
        ("losses", [np.float32(1)], "the array is read-only"),
    ],
)
def test_an_end_that_does_not_fit_is_refused(handle: str, ends: list[Any], said: str) -> None:
    host, _ = streams()
    with pytest.raises(HostAccessError, match=said):
        host.connect(handle, *ends)


def test_a_stream_that_is_not_connected_is_named() -> None:
    host, made = streams()
    with pytest.raises(HostAccessError, match="stream 'images': not connected; see connectStream"):
        host.fetch(made[IN])


# Callbacks
def test_a_callback_fills_or_reads_each_transfer() -> None:
    host, made = streams()
    seen: list[list[float]] = []
    host.connect("images", lambda buffer: buffer.fill(7), callback=True)
    host.connect("losses", lambda buffer: seen.append(buffer.tolist()))
    host.store(made[OUT], host.fetch(made[IN]))
    assert seen == [[7, 7]]


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 2], np.float32),
        np.array([[1, 2], [3, 4]], np.float32)[0],
        np.array([1, 2], np.float32).tobytes(),
        array.array("f", [1, 2]),
        [1, 2],
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_callback_may_give_the_values(given: Any) -> None:
    host, made = streams()
    host.connect("images", lambda buffer: given, callback=True)
    assert host.fetch(made[IN]).tolist() == [1, 2]


def test_readinto_is_a_callback() -> None:
    host, made = streams()
    file = io.BytesIO(np.array([1, 2, 3], np.float32).tobytes())
    host.connect("images", file.readinto, callback=True)
    assert host.fetch(made[IN]).tolist() == [1, 2]
    with pytest.raises(HostAccessError, match="its callback gave 4 bytes; 8 are needed"):
        host.fetch(made[IN])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(1, np.float32), "stream 'images': its callback gave 1 elements; 2 are needed"),
        (np.zeros(3, np.float32), "gave 3 elements; 2 are needed"),
        (bytes(4), "gave 1 elements; 2 are needed"),
        ([1], "gave 1 elements; 2 are needed"),
        (False, "gave 0 elements; 2 are needed"),
        (Result.NotAvailable, "gave 0 elements; 2 are needed"),
        (0, "gave 0 bytes; 8 are needed"),
        (np.zeros(2), "its callback: array of float64; one of float is needed"),
        (["a", "b"], "its callback gave no float: could not convert"),
        (object(), "its callback: object does not show its memory"),
    ],
)
def test_a_callback_that_gives_too_little_is_refused(given: object, said: str) -> None:
    host, made = streams()
    host.connect("images", lambda buffer: given, callback=True)
    with pytest.raises(HostAccessError, match=said):
        host.fetch(made[IN])


def test_what_a_callback_raises_is_the_cause() -> None:
    host, made = streams()

    def broken(buffer: Any) -> None:
        raise KeyError("no more images")

    host.connect("images", broken, callback=True)
    said = "stream 'images': its callback raised KeyError: 'no more images'"
    with pytest.raises(PoplarError, match=said) as caught:
        host.fetch(made[IN])
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("given", [3, [1, 2], np.zeros(2, np.float32)])
def test_what_cannot_be_called_is_no_callback(given: object) -> None:
    host, _ = streams()
    with pytest.raises(HostAccessError, match="stream 'images': .* cannot be called"):
        host.connect("images", given, callback=True)


class Counter(StreamCallback):
    """Counts up to a limit, and writes down how it is called."""

    def __init__(self, available: int) -> None:
        self.next, self.available, self.calls = 0, available, ""

    def fetch(self, buffer: Any) -> None:
        self.calls += "F"
        self._give(buffer)

    def prefetch(self, buffer: Any) -> StreamCallback.Result:
        if self.next >= self.available:
            self.calls += "n"
            return Result.NotAvailable
        self.calls += "p"
        self._give(buffer)
        return Result.Success

    def complete(self) -> None:
        self.calls += "c"

    def invalidatePrefetched(self) -> None:
        self.calls += "i"

    def _give(self, buffer: Any) -> None:
        buffer[:] = self.next
        self.next += 1


def counted(transfers: int, available: int, depth: int = 1, **options: Any) -> tuple[str, Any]:
    host = HostStreams([stream(bufferingDepth=depth)], **options)
    counter = Counter(available)
    host.connect("s", counter, callback=True)
    values = [host.fetch(stream(bufferingDepth=depth))[0] for _ in range(transfers)]
    return counter.calls, values


def test_without_prefetch_each_transfer_is_fetched_and_completed() -> None:
    assert counted(3, available=9) == ("FcFcFc", [0, 1, 2])


def test_with_prefetch_the_next_buffer_is_filled_after_each_transfer() -> None:
    calls, values = counted(3, available=9, prefetch=True, overlap="None")
    assert (calls, values) == ("Fcp" + "cp" + "cp", [0, 1, 2])


def test_a_transfer_without_prefetched_data_is_fetched_when_it_is_due() -> None:
    calls, values = counted(4, available=2, prefetch=True, overlap="HostRearrangeOnly")
    assert (calls, values) == ("Fcp" + "cn" + "Fcn" + "Fcn", [0, 1, 2, 3])


def test_as_many_buffers_as_the_depth_are_filled_ahead() -> None:
    calls, values = counted(3, available=9, depth=3, prefetch=True, overlap="None")
    assert (calls, values) == ("Fcppp" + "cp" + "cp", [0, 1, 2])


def test_overlapping_buffers_cannot_be_prefetched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "WARN")
    assert counted(2, available=9, prefetch=True) == ("FcFc", [0, 1])
    assert "W: exchange.enablePrefetch has no effect" in capsys.readouterr().err


def test_what_was_prefetched_is_invalidated_on_a_new_connection_and_a_new_load() -> None:
    host = HostStreams([stream()], prefetch=True, overlap="None")
    counter = Counter(9)
    host.connect("s", counter, callback=True)
    host.fetch(stream())
    host.reset()
    assert host.fetch(stream()).tolist() == [2, 2]  # 1 was thrown away
    host.connect("s", lambda buffer: None, callback=True)
    assert counter.calls == "Fcp" + "i" + "Fcp" + "i"


def test_prefetch_has_to_say_what_it_found() -> None:
    class Silent(Counter):
        def prefetch(self, buffer: Any) -> Any:
            return None

    host = HostStreams([stream()], prefetch=True, overlap="None")
    host.connect("s", Silent(9), callback=True)
    with pytest.raises(HostAccessError, match="prefetch gave None; Result.Success or"):
        host.fetch(stream())


def test_a_callback_from_the_device_is_told_when_a_transfer_is_complete() -> None:
    host, made = streams()
    counter = Counter(0)
    host.connect("losses", counter, callback=True)
    host.store(made[OUT], np.zeros(2, np.float32))
    assert counter.calls == "Fc"


def test_a_callback_may_keep_the_buffer_of_a_transfer_from_the_device() -> None:
    host, made = streams()
    kept: list[Any] = []
    host.connect("losses", kept.append, callback=True)
    values = np.ones(2, np.float32)
    host.store(made[OUT], values)
    values[:] = 2
    assert kept[0].tolist() == [1, 1]


# Replicas
def test_replicas_share_a_ring_round_by_round() -> None:
    host = HostStreams([stream()], replicas=2)
    host.connect("s", np.arange(8, dtype=np.float32))
    first = [host.fetch(stream(), 0).tolist() for _ in range(3)]
    second = [host.fetch(stream(), 1).tolist() for _ in range(3)]
    assert first == [[0, 1], [4, 5], [0, 1]]
    assert second == [[2, 3], [6, 7], [2, 3]]


def test_each_replica_may_have_an_end_of_its_own() -> None:
    host = HostStreams([stream()], replicas=2)
    host.connect("s", 1, np.array([3, 4], np.float32))
    assert host.fetch(stream(), 1).tolist() == [3, 4]
    with pytest.raises(HostAccessError, match="stream 's': replica 0 not connected"):
        host.fetch(stream(), 0)
    host.connect("s", 0, lambda buffer: buffer.fill(9), callback=True)
    assert host.fetch(stream(), 0).tolist() == [9, 9]


def test_a_replicated_view_moves_the_transfers_of_all_its_replicas_at_once() -> None:
    both = stream(replicas=2)
    host = HostStreams([both])
    host.connect("s", np.arange(8, dtype=np.float32))
    assert [host.fetch(both).tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    out = Stream(1, "o", FLOAT, 2, "out", replicas=2)
    host = HostStreams([out])
    ends = np.zeros((2, 2), np.float32)
    for replica in range(2):
        host.connect("o", replica, ends[replica])
    host.store(out, np.arange(4, dtype=np.float32))
    assert ends.tolist() == [[0, 1], [2, 3]]


def broadcast(replicas: int = 1) -> Stream:
    return stream(replicas=replicas, replicated_mode=ReplicatedStreamMode.BROADCAST)


def test_a_broadcast_transfer_is_fetched_once_for_all_replicas() -> None:
    host = HostStreams([broadcast()], replicas=3)
    counter = Counter(0)
    host.connect("s", counter, callback=True)
    order = [0, 0, 1, 0, 2, 1, 1, 2, 2]  # replicas that run ahead of one another
    got: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for replica in order:
        got[replica].append(host.fetch(broadcast(), replica)[0])
    assert got == {replica: [0, 1, 2] for replica in range(3)}
    assert counter.calls == "FcFcFc"


def test_a_broadcast_fills_each_replica_of_a_view() -> None:
    host = HostStreams([broadcast(2)])
    host.connect("s", np.arange(4, dtype=np.float32))
    assert [host.fetch(broadcast(2)).tolist() for _ in range(2)] == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_a_run_begins_without_the_broadcasts_that_a_failed_one_left() -> None:
    host = HostStreams([broadcast()], replicas=2)
    host.connect("s", np.arange(4, dtype=np.float32))
    host.fetch(broadcast(), 0)
    host.start_run()
    assert [host.fetch(broadcast(), r).tolist() for r in range(2)] == [[2, 3], [2, 3]]


def test_a_broadcast_stream_is_connected_as_a_whole() -> None:
    host = HostStreams([broadcast()], replicas=2)
    with pytest.raises(HostAccessError, match="replica 0; a broadcast stream is connected once"):
        host.connect("s", 0, np.zeros(2, np.float32))


# Adding streams
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("images", FLOAT, 2), "stream 'images': there is one of this name already"),
        (("", FLOAT, 2), "stream '': a name is needed"),
        ((5, FLOAT, 2), "stream 5: a name is needed"),
        (("s", "float", 2), "stream 's': type is 'float'"),
        (("s", FLOAT, 0), "stream 's': 0 elements; at least 1 is needed"),
        (("s", FLOAT, 1.5), "stream 's': elements is 1.5; a number is needed"),
        (("s", FLOAT, 2, "broadcast"), "mode is 'broadcast'; ReplicatedStreamMode.REPLICATE or"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    graph = Values().graph
    graph.addHostToDeviceFIFO("images", FLOAT, 2)
    with pytest.raises(PoplarError, match=said):
        graph.addHostToDeviceFIFO(*arguments)
    assert len(graph.streams) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bufferDepth": 2}, "no option 'bufferDepth'; did you mean bufferingDepth"),
        ({"qqq": 2}, "no option 'qqq'; known: bufferingDepth, splitLimit"),
        ({"bufferingDepth": 0}, "bufferingDepth is 0; a number from 1 on is needed"),
        ({"bufferingDepth": "two"}, "bufferingDepth is 'two'; a number from 1 on"),
        ({"bufferingDepth": True}, "bufferingDepth is True; a number from 1 on"),
        ({"splitLimit": 3}, "splitLimit is 3; a number from 4 to 268,435,456 is needed"),
        ({"splitLimit": (256 << 20) + 1}, "splitLimit is 268435457; a number from 4 to"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(HostAccessError, match=f"stream 's': {said}"):
        Values().graph.addHostToDeviceFIFO("s", FLOAT, 2, options=options)


def test_options_may_be_numbers_or_texts() -> None:
    graph = Values().graph
    made = graph.addDeviceToHostFIFO(
        "s", FLOAT, 2, options={"bufferingDepth": "2", "splitLimit": 64}
    )
    assert isinstance(made, DataStream)
    assert made.options == {"bufferingDepth": 2, "splitLimit": 64}
    assert (made.numElements(), made.elementType()) == (2, FLOAT)


# Stored tensors
def test_values_of_the_wrong_size_are_refused() -> None:
    values = Values()
    tensor = values.tensor([1, 2, 3], "weights")
    with pytest.raises(PoplarError, match="host write: 2 values for weights of 3 elements"):
        Storage(values.graph).write(tensor, [1, 2], "host write")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.array([1, 1.5, 1e-7, 123456789], np.float32), "{1,1.5,1e-07,1.23457e+08}"),
        (np.array([True, False]), "{1,0}"),
        (np.array(5), "5"),
        (np.array([[1, 2], [3, 4]]), "{\n {1,2},\n {3,4}\n}"),
        (np.array([[[1], [2]]]), "{\n {\n  {1},\n  {2}\n }\n}"),
    ],
)
def test_tensors_print_as_poplar_prints_them(values: np.ndarray, text: str) -> None:  # type: ignore[type-arg]
    assert format_values(values) == text
