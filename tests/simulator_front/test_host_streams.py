"""The host's end of streams, and the values of stored tensors."""

from __future__ import annotations

import numpy as np
import pytest
from value_program import Values

from simulator.graph.errors import PoplarError
from simulator.graph.types import FLOAT
from simulator.runtime.execute import format_values
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.storage import Storage


def streams() -> tuple[HostStreams, Values]:
    values = Values()
    values.graph.addHostToDeviceFIFO("images", FLOAT, 2)
    values.graph.addDeviceToHostFIFO("losses", FLOAT, 2)
    return HostStreams(values.graph.streams), values


def test_an_array_is_read_round_and_round() -> None:
    host, values = streams()
    host.connect("images", np.arange(6, dtype=np.float32))
    stream = values.graph.streams[0]
    fetched = [host.fetch(stream).tolist() for _ in range(4)]
    assert fetched == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_an_array_is_written_round_and_round() -> None:
    host, values = streams()
    losses = np.zeros(4, np.float32)
    host.connect("losses", losses)
    for i in range(3):
        host.store(values.graph.streams[1], np.full(2, i, np.float32))
    assert losses.tolist() == [2, 2, 1, 1]


def test_a_callback_fills_or_reads_each_transfer() -> None:
    host, values = streams()
    seen: list[list[float]] = []
    host.connect("images", lambda buffer: buffer.fill(7))
    host.connect("losses", lambda buffer: seen.append(buffer.tolist()))
    host.store(values.graph.streams[1], host.fetch(values.graph.streams[0]))
    assert seen == [[7, 7]]


@pytest.mark.parametrize(
    ("handle", "end", "said"),
    [
        ("image", np.zeros(2, np.float32), "stream 'image': unknown; streams are images, losses"),
        ("images", np.zeros(2), "array of float64; the stream is of float"),
        ("images", np.zeros(3, np.float32), "array of 3 elements; a multiple of 2"),
        ("losses", np.zeros(4, np.float32)[::2], "needs a contiguous NumPy array"),
        ("losses", [np.float32(1), np.float32(2)], "needs a contiguous NumPy array"),
    ],
)
def test_an_end_that_does_not_fit_is_refused(handle: str, end: object, said: str) -> None:
    host, _ = streams()
    with pytest.raises(PoplarError, match=said):
        host.connect(handle, end)


def test_a_stream_that_is_not_connected_is_named() -> None:
    host, values = streams()
    with pytest.raises(PoplarError, match="stream 'images': not connected"):
        host.fetch(values.graph.streams[0])


def test_values_of_the_wrong_size_are_refused() -> None:
    values = Values()
    tensor = values.tensor([1, 2, 3], "weights")
    with pytest.raises(PoplarError, match="host write: 2 values for weights of 3 elements"):
        Storage(values.graph).write(tensor, [1, 2], "host write")


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([1, 1.5, 1e-7, 123456789], np.float32), "{1,1.5,1e-07,1.23457e+08}"),
        (np.array([True, False]), "{1,0}"),
        (np.array(5), "5"),
        (np.array([[1, 2], [3, 4]]), "{\n {1,2},\n {3,4}\n}"),
        (np.array([[[1], [2]]]), "{\n {\n  {1},\n  {2}\n }\n}"),
    ],
)
def test_tensors_print_as_poplar_prints_them(array: np.ndarray, text: str) -> None:  # type: ignore[type-arg]
    assert format_values(array) == text
