"""Remote buffers: their rows, what the host copies, and what is refused."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.host.streams import RemoteBuffer, check_remote_buffers
from simulator.graph.types import FLOAT, HALF, INT, Type
from simulator.runtime.remote_buffers import RemoteBuffers


def buffer(elements: int = 2, repeats: int = 4, dtype: Type = INT, **more: Any) -> RemoteBuffer:
    return RemoteBuffer(0, "w", dtype, elements, repeats, **more)


def rows(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint32)


def test_rows_that_were_never_written_hold_zeros() -> None:
    assert RemoteBuffers([buffer()]).load(buffer(), rows(3, 0)).tolist() == [0, 0, 0, 0]


def test_rows_are_found_by_their_offsets() -> None:
    remote = RemoteBuffers([buffer()])
    remote.store(buffer(), rows(3, 1), np.array([1, 2, 3, 4], np.int32))
    assert remote.load(buffer(), rows(1, 0, 3)).tolist() == [3, 4, 0, 0, 1, 2]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_rows_are_those_of_an_array(data: st.DataObject) -> None:
    # Rows of 100,000 elements: two a page, so that pages are crossed.
    made = buffer(elements=100_000, repeats=7)
    remote, held = RemoteBuffers([made]), np.zeros((7, 100_000), np.int32)
    for number in range(1, 5):
        drawn = data.draw(st.lists(st.integers(0, 6), max_size=5))
        values = np.arange(len(drawn) * 100_000, dtype=np.int32).reshape(-1, 100_000) * number
        held[drawn] = values
        remote.store(made, rows(*drawn), values.reshape(-1))
    assert (remote.load(made, rows(*range(7))).reshape(7, -1) == held).all()


def test_a_huge_buffer_takes_memory_only_for_what_is_written() -> None:
    huge = buffer(elements=1024, repeats=1 << 40)
    remote = RemoteBuffers([huge])
    last = np.array([(1 << 40) - 1])
    remote.store(huge, last, np.full(1024, 7, np.int32))
    assert remote.load(huge, last).sum() == 7 * 1024


def test_each_replica_has_rows_of_its_own() -> None:
    remote = RemoteBuffers([buffer()], replicas=2)
    remote.store(buffer(), rows(0), np.array([1, 2], np.int32), 1)
    assert remote.load(buffer(), rows(0), 0).tolist() == [0, 0]
    assert remote.load(buffer(), rows(0), 1).tolist() == [1, 2]


def test_a_replicated_view_moves_the_rows_of_all_its_replicas() -> None:
    both = buffer(replicas=2)
    remote = RemoteBuffers([both])
    remote.store(both, rows(1, 2), np.array([1, 2, 3, 4], np.int32))
    read = np.zeros(2, np.int32)
    remote.read("w", read, 2, 1)
    assert read.tolist() == [3, 4]
    assert remote.load(both, rows(1)).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize(("row", "found"), [(4, "4"), (-1, "-1")])
def test_a_row_that_is_not_there_is_named(row: int, found: str) -> None:
    said = rf"remote buffer 'w': offset {found}; it has 4 rows \(repeats\), 0 to 3"
    remote = RemoteBuffers([buffer()])
    for number in (np.array([0, row]), np.array([row])):
        with pytest.raises(PoplarError, match=said):
            remote.load(buffer(), number)
        with pytest.raises(PoplarError, match=said):
            remote.store(buffer(), number, np.zeros(2 * len(number), np.int32))


# From the host
def test_the_host_writes_and_reads_rows() -> None:
    remote = RemoteBuffers([buffer()])
    remote.write(array.array("i", [5, 6]), "w", 2)
    out = bytearray(8)
    remote.read("w", out, 2)
    assert bytes(out) == np.array([5, 6], "<i4").tobytes()
    assert remote.load(buffer(), rows(2)).tolist() == [5, 6]
    remote.write(array.array("i", [7, 8]), buffer(), 2)  # by the buffer itself, too
    assert remote.load(buffer(), rows(2)).tolist() == [7, 8]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.zeros(2, np.int32), "v", 0), "remote buffer 'v': unknown; remote buffers are w"),
        ((np.zeros(2), "w", 0), "remote buffer 'w': array of float64; one of int is needed"),
        ((np.zeros(3, np.int32), "w", 0), "array of 3 elements; a row has 2"),
        ((np.zeros(2, np.int32), "w", 4), "offset 4; it has 4 rows"),
        ((np.zeros(2, np.int32), "w", -1), "offset -1; it has 4 rows"),
        ((np.zeros(2, np.int32), "w", 0, 1), "replica 1; there are replicas 0 to 0"),
        ((np.zeros(2, np.int32), "w", "a"), "row 'a' of replica 0; numbers are needed"),
    ],
)
def test_what_the_host_cannot_write_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        RemoteBuffers([buffer()]).write(*arguments)


def test_the_host_cannot_read_into_memory_that_is_read_only() -> None:
    with pytest.raises(HostAccessError, match="remote buffer 'w': the array is read-only"):
        RemoteBuffers([buffer()]).read("w", bytes(8), 0)


# Adding buffers
def test_a_graph_gives_the_buffer_that_it_adds() -> None:
    made = Values().graph.addRemoteBuffer("w", HALF, 3, 5, True, optimiseMemory=True)
    assert (made.handle, made.elementType()) == ("w", HALF)
    assert (made.getNumElements(), made.numElements(), made.getRepeats()) == (3, 3, 5)
    assert made.isRearrangeOnHost() and made.isOptimisedForMemory()
    assert (made.row_bytes, made.bytes) == (6, 30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("w", FLOAT, 2), "remote buffer 'w': there is one of this name already"),
        (("", FLOAT, 2), "remote buffer '': a name is needed"),
        (("v", "float", 2), "remote buffer 'v': type is 'float'"),
        (("v", FLOAT, 0), "remote buffer 'v': 0 numElements; at least 1 is needed"),
        (("v", FLOAT, 2, 0), "remote buffer 'v': 0 repeats; at least 1 is needed"),
        (("v", FLOAT, 2, "a"), "remote buffer 'v': repeats is 'a'; a number is needed"),
        (
            ("v", FLOAT, (64 << 20) + 1),
            "a row of 67,108,865 x float is 268,435,460 bytes; a transfer is at most 268,435,456",
        ),
    ],
)
def test_a_buffer_that_cannot_be_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    graph = Values().graph
    graph.addRemoteBuffer("w", FLOAT, 64 << 20)
    with pytest.raises(PoplarError, match=said):
        graph.addRemoteBuffer(*arguments)
    assert len(graph.remote_buffers) == 1


def test_more_than_16_gigabytes_an_ipu_need_extended_memory() -> None:
    graph = Values().graph
    graph.addRemoteBuffer("w", FLOAT, 64 << 20, 63)  # 16 GB - 256 MB
    check_remote_buffers(graph.remote_buffers, extended_memory=False)
    graph.addRemoteBuffer("v", FLOAT, 1)
    check_remote_buffers(graph.remote_buffers, extended_memory=False, ipus={(0, 0): 0, (1, 0): 1})
    check_remote_buffers(graph.remote_buffers, extended_memory=True)
    said = (
        "remote buffer 'v': with it IPU 0 has 16,911,433,732 bytes of remote buffers; without the "
        "engine option target.extendedMemory it may have 16,911,433,728"
    )
    with pytest.raises(PoplarError, match=said):
        check_remote_buffers(graph.remote_buffers, extended_memory=False)
