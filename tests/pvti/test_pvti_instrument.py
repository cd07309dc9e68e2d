"""Instrumented functions behave as before, and each call is an event."""

from __future__ import annotations

import asyncio
import enum
import functools
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

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


def test_static_and_class_methods_take_the_decorator_on_either_side(finish: Finish) -> None:
    class Mine:
        @pvti.instrument_fn(CHANNEL)
        @staticmethod
        def inside(value: int) -> int:
            return value + 1

        @classmethod
        @pvti.instrument_fn(CHANNEL)
        def outside(cls) -> str:
            return cls.__name__

    assert (Mine.inside(1), Mine().inside(2), Mine.outside()) == (2, 3, "Mine")
    names = [label.rsplit(".", 1)[1] for label in labels(finish())]
    assert names == ["inside", "inside", "outside"]


def test_functions_of_a_module_are_recorded(
    finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    import textwrap

    monkeypatch.setattr(textwrap, "dedent", textwrap.dedent)  # put back afterwards
    pvti.instrument(textwrap, ["dedent"], CHANNEL)
    assert textwrap.dedent("  a") == "a"
    assert labels(finish()) == ["textwrap.dedent"]


def test_what_is_no_function_can_be_called_and_recorded(finish: Finish) -> None:
    class Doubling:
        def __call__(self, value: int) -> int:
            return value * 2

    assert pvti.instrument_fn(CHANNEL)(Doubling())(4) == 8
    assert pvti.instrument_fn(CHANNEL)(len)([1, 2]) == 2
    assert labels(finish())[1] == "builtins.len"


def test_a_method_that_fails_ends_its_event_and_goes_on_failing(finish: Finish) -> None:
    @pvti.instrument_fn(CHANNEL)
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    (event,) = finish().threads[0].events
    assert not event.isOpen


def test_coroutine_functions_stay_what_they_are() -> None:
    async def coroutine() -> None: ...

    async def values() -> AsyncIterator[int]:
        yield 1

    def generator() -> Iterator[int]:
        yield 1

    wrap = pvti.instrument_fn(CHANNEL)
    assert inspect.iscoroutinefunction(wrap(coroutine))
    assert inspect.isasyncgenfunction(wrap(values))
    assert inspect.isgeneratorfunction(wrap(generator))


def test_an_asynchronous_generator_counts_what_it_awaits(finish: Finish) -> None:
    @pvti.instrument_fn(CHANNEL)
    async def count() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0.005)
            yield number

    async def use() -> list[int]:
        return [number async for number in count()]

    assert asyncio.run(use()) == [0, 1, 2]
    (event,) = finish().threads[0].events
    assert event.label.endswith("count")
    assert event.duration >= 15_000


def test_an_asynchronous_generator_passes_values_and_exceptions_both_ways(finish: Finish) -> None:
    seen: list[object] = []

    @pvti.instrument_fn(CHANNEL)
    async def echo() -> Any:
        try:
            seen.append((yield "first"))
            yield "second"
        except ValueError as error:
            seen.append(str(error))
            yield "third"
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def use() -> list[str]:
        values = echo()
        got = [
            await anext(values),
            await values.asend("sent"),
            await values.athrow(ValueError("v")),
        ]
        await values.aclose()
        return got

    assert asyncio.run(use()) == ["first", "second", "third"]
    assert seen == ["sent", "v", "closed"]
    (event,) = finish().threads[0].events
    assert not event.isOpen


def test_generators_that_end_in_any_order_keep_their_own_times(finish: Finish, clock: Any) -> None:
    @pvti.instrument_fn(CHANNEL)
    def values() -> Iterator[int]:
        yield from range(9)

    first, second = values(), values()
    next(first)  # begins at 1000
    next(second)  # at 2000
    clock.skip(7_000)
    first.close()  # at 10,000
    second.close()
    columns = finish().threads[0].columns
    assert list(zip(columns.begin_ns, columns.end_ns, strict=True)) == [
        (1000, 10_000), (2000, 11_000),
    ]  # fmt: skip


def test_trace_is_a_block_and_a_decorator(finish: Finish, channel: pvti.TraceChannel) -> None:
    @pvti.trace("named", channel)
    def one() -> int:
        return 1

    @pvti.trace
    def two() -> int:
        return 2

    @pvti.trace("awaited")
    async def three() -> int:
        return 3

    with pvti.trace("block", channel, {"step": 1}):
        assert (one(), two()) == (1, 2)
    assert asyncio.run(three()) == 3
    trace = finish()
    (block,) = trace.threads[0].events
    assert (block.label, block.channel, block.metadata) == ("block", channel.name, '{"step": 1}')
    assert [(e.label.rsplit(".", 1)[-1], e.channel) for e in block.children()] == [
        ("named", channel.name), ("two", "Program"),
    ]  # fmt: skip
    assert [event.label for event in trace.threads[1].events] == ["awaited"]


def test_generators_that_another_thread_finishes_end(finish: Finish, clock: Any) -> None:
    @pvti.instrument_fn(CHANNEL)
    def rows() -> Iterator[int]:
        yield from range(3)

    generators = [rows() for _ in range(3)]
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(lambda: [next(generator) for generator in generators]).result()
        other.submit(lambda: [list(generator) for generator in generators]).result()
    (thread,) = finish().threads
    assert not thread.columns.is_open.any()
    assert thread.columns.duration_ns.tolist() == [3000, 3000, 3000]  # on the clock


def test_a_class_method_is_traced_by_any_decorator(finish: Finish) -> None:
    class Model:
        @pvti.trace
        @classmethod
        def one(cls) -> str:
            return cls.__name__

        @pvti.trace("two")
        @classmethod
        def two(cls) -> str:
            return cls.__name__

    assert (Model.one(), Model().two()) == ("Model", "Model")
    assert [event.label[-3:] for event in finish().threads[0].events] == ["one", "two"]


def test_a_generator_that_may_be_awaited_still_may(finish: Finish) -> None:
    @pvti.instrument_fn(CHANNEL)
    @types.coroutine
    def turn() -> Iterator[None]:
        yield

    async def wait() -> str:
        await turn()
        return "waited"

    assert asyncio.run(wait()) == "waited"
    assert [len(thread.columns) for thread in finish().threads] == [1]


class Odd:
    attribute = 5

    @property
    def rate(self) -> int:
        return 1

    @functools.cached_property
    def cached(self) -> int:
        return 2


@pytest.mark.parametrize("target", [Odd, Odd()])
@pytest.mark.parametrize("name", ["attribute", "rate", "cached"])
def test_what_is_no_method_is_refused_and_stays_as_it_is(target: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"\.Odd\.{name}: a function or method was expected"):
        pvti.instrument(target, [name], CHANNEL)
    assert (Odd.attribute, Odd().rate, Odd().cached) == (5, 1, 2)
    with pytest.raises(TypeError, match="not property"):
        pvti.instrument_fn(CHANNEL)(Odd.__dict__["rate"])


@pytest.mark.parametrize(("kind", "name"), [(enum.Enum, "__len__"), (Odd, "__new__")])
def test_what_a_class_has_from_elsewhere_is_no_method_of_it(kind: type, name: str) -> None:
    with pytest.raises(AttributeError, match=f"{kind.__name__} has no method {name} of its own"):
        pvti.instrument(kind, [name], CHANNEL)
