"""Instrumented functions behave as before, and each call is an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import libpvti
import pvti
from pva.trace import Trace

Finish = Callable[[], Trace]
CHANNEL = pvti.createTraceChannel("instrumented")


class Loader:
    """Something like a data loader."""

    def __init__(self, items: list[int]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[int]:
        yield from self.items

    def first(self, default: int = 0) -> int:
        return self.items[0] if self.items else default

    @staticmethod
    def double(value: int) -> int:
        return 2 * value

    @classmethod
    def empty(cls) -> Loader:
        return cls([])

    @pvti.instrument_fn(CHANNEL)
    def decorated(self, *, scale: int) -> int:
        """Scale the first."""
        return scale * self.first()


def labels(trace: Trace) -> list[str]:
    return [trace.labels[i].removeprefix(f"{__name__}.") for i in trace.threads[0].columns.label]


def test_methods_of_an_object_are_recorded_and_of_others_not(finish: Finish) -> None:
    one, other = Loader([1, 2]), Loader([3])
    pvti.instrument(one, ("first",), CHANNEL)
    assert (one.first(default=7), other.first()) == (1, 3)
    assert labels(finish()) == ["Loader.first"]


def test_methods_of_a_class_are_recorded(finish: Finish) -> None:
    class Mine(Loader):
        pass

    pvti.instrument(Mine, ["first", "double", "empty", "__len__", "__iter__"], CHANNEL)
    pvti.instrument(Mine, ["first"], CHANNEL)  # once is enough
    loader = Mine([4, 5])
    assert (loader.first(), loader.double(3), len(loader), list(loader)) == (4, 6, 2, [4, 5])
    assert type(Mine.empty()) is Mine
    names = [label.rsplit(".", 1)[1] for label in labels(finish())]
    assert names == ["first", "double", "__len__", "__len__", "__iter__", "empty"]


def test_special_methods_of_an_object_are_recorded(finish: Finish) -> None:
    class Mine(Loader):
        pass

    loader = Mine([1, 2, 3])
    pvti.instrument(loader, ["__len__"], CHANNEL)
    assert len(loader) == 3
    assert [label.rsplit(".", 1)[1] for label in labels(finish())] == ["__len__"]


def test_a_decorated_method_keeps_its_name_and_result(finish: Finish) -> None:
    assert Loader([5]).decorated(scale=3) == 15
    assert Loader.decorated.__name__ == "decorated"
    assert Loader.decorated.__doc__ == "Scale the first."
    assert labels(finish()) == ["Loader.decorated"]


def test_a_coroutine_counts_what_it_awaits(finish: Finish) -> None:
    @pvti.instrument_fn(CHANNEL)
    async def wait() -> int:
        await asyncio.sleep(0.01)
        return 1

    assert asyncio.run(wait()) == 1
    columns = finish().threads[0].columns
    assert columns.duration_ns[0] >= 10_000_000


def test_a_generator_passes_values_both_ways(finish: Finish) -> None:
    @pvti.instrument_fn(CHANNEL)
    def echo() -> Any:
        received = yield "first"
        return received

    generator = echo()
    assert next(generator) == "first"
    with pytest.raises(StopIteration) as end:
        generator.send("second")
    assert end.value.value == "second"
    assert len(finish().threads[0].columns) == 1


def test_a_method_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        pvti.instrument(Loader([]), ["nothing"], CHANNEL)


def test_the_name_that_scripts_import_hands_on_all() -> None:
    assert libpvti.__all__ == pvti.__all__
    assert all(getattr(libpvti, name) is getattr(pvti, name) for name in pvti.__all__)
