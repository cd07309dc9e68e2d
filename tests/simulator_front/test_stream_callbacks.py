"""What a program calls back for the transfers of a stream, at once or ahead."""

from __future__ import annotations

import array
import io
from typing import Any

import numpy as np
import pytest
from stream_ends import IN, OUT, Counter, stream, streams

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.runtime.callbacks import Result
from simulator.runtime.host_streams import HostStreams


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
