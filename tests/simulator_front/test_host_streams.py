"""The host's end of streams, and the values of stored tensors."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_ends import IN, OUT, Counter, stream, streams
from value_program import Values

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.host.streams import ReplicatedStreamMode, Stream
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_CHAR, Type
from simulator.runtime.execute import format_values
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.storage import Storage


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
