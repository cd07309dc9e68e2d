"""The passes over intervals that are in C give, byte for byte, what those in NumPy give."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.compiler import allocate, edges, liveness
from simulator.compiler.exchange import exchange_cost
from simulator.compiler.executable import Pieces
from simulator.compiler.lowering import state
from simulator.graph import kernels
from simulator.graph.geometry import intervals
from simulator.graph.machine.target import TARGETS
from simulator.graph.mapping import Mapping
from simulator.graph.tensors import regions
from simulator.graph.types import IntArray
from tests.every_program import engine

ROOT = Path(__file__).parents[2]
Cases = Callable[[np.random.Generator], tuple[Any, ...]]

pytestmark = pytest.mark.skipif(
    kernels.compiled is None, reason="not built: all tests run without it as they are"
)


def flat(result: Any) -> Iterator[Any]:
    if isinstance(result, edges.Touch):
        for name in edges.Touch.__dataclass_fields__:
            yield getattr(result, name)
    elif isinstance(result, tuple):
        for part in result:
            yield from flat(part)
    else:
        yield result


def without(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compiled", None)
        return list(flat(function(*arguments)))


def lengths(rng: np.random.Generator, count: int, least: int = 0) -> IntArray:
    if rng.random() < 0.3:
        return intervals.uniform(int(rng.integers(1, 5)), count)
    return rng.integers(least, 6, count)


def disjoint(rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
    size = rng.integers(1, 9, count)
    begins = np.cumsum(size + rng.integers(0, 3, count)) - size
    return begins, begins + size


def some(rng: np.random.Generator) -> tuple[Any, ...]:
    count = int(rng.integers(0, 30))
    return rng.integers(0, 90, count), lengths(rng, count)


def numbers(rng: np.random.Generator) -> tuple[Any, ...]:
    return (intervals.spread(*some(rng)),)


def in_a_row(rng: np.random.Generator) -> tuple[Any, ...]:
    _, sizes = some(rng)
    return np.cumsum(sizes + (rng.random(len(sizes)) < 0.5)) - sizes, sizes


def some_numbers(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.integers(0, int(rng.choice([5, 1 << 14, 1 << 40])), int(rng.integers(0, 40))),)


def ranges(rng: np.random.Generator) -> tuple[Any, ...]:
    begins, sizes = some(rng)
    ends = np.sort(rng.integers(0, sizes.sum() + 1, (2, int(rng.integers(0, 20)))), axis=0)
    return begins, sizes, *(ends if rng.random() < 0.5 else np.sort(ends))


def pieces(rng: np.random.Generator) -> tuple[Any, ...]:
    begins, sizes = some(rng)
    return begins, begins + sizes, *disjoint(rng, int(rng.integers(0, 25)))


def far_apart(rng: np.random.Generator) -> tuple[Any, ...]:
    count = int(rng.integers(0, 30))
    return rng.integers(0, 1 << 33, count), lengths(rng, count, 1)


def filled(rng: np.random.Generator) -> tuple[Any, ...]:
    count = int(rng.integers(0, 30))
    return rng.integers(0, int(rng.integers(40, 900)), count), lengths(rng, count, 1)


def reach(rng: np.random.Generator) -> tuple[Any, ...]:
    begin, end = disjoint(rng, mapped := int(rng.integers(1, 25)))
    mapping = Mapping(begin, end, rng.integers(0, 3, mapped), np.sort(rng.integers(0, 4, mapped)))
    home = 1 + rng.permutation(np.cumsum(end - begin + rng.integers(0, 2, mapped)))
    taken, sizes = filled(rng)
    tile = rng.integers(0, 3, 9)
    edge = np.sort(rng.integers(0, 9, len(taken)))
    times = rng.integers(1, 3, len(taken))
    return (
        edges.Layout(mapping, home),
        edges._Reach(taken, taken + sizes, edge, tile[edge], times),
    )


def on_tiles(rng: np.random.Generator) -> tuple[Any, ...]:
    count = int(rng.integers(0, 40))
    begins, sizes = rng.integers(1, 60, count), rng.integers(1, 9, count)
    tile = rng.integers(0, 4, count)
    return (np.sort(tile) if rng.random() < 0.5 else tile), begins, begins + sizes


def remote(rng: np.random.Generator) -> tuple[Any, ...]:
    user, home, end = on_tiles(rng)
    low, owner, variable = rng.integers(0, 90, (3, len(user)))
    none = np.zeros(len(user), dtype=bool)
    return (edges.Touch(low, low + end - home, owner, user, variable, home, none, none, none),)


def elements(rng: np.random.Generator) -> tuple[Any, ...]:
    begins, sizes = some(rng)
    begin, end = disjoint(rng, int(rng.integers(0, 25)))
    size = int(rng.choice([1, 2, 3, 4, 8]))
    return begins, sizes, begin * size, end * size, size


def fragments(rng: np.random.Generator) -> tuple[Any, ...]:
    count, tiles = int(rng.integers(0, 60)), int(rng.integers(1, 6))
    pairs = rng.integers(0, tiles, (2, count))
    sizes, begins = rng.integers(1, 4, count), rng.integers(0, 5, count)
    order = np.lexsort((begins, pairs[1])) if rng.random() < 0.7 else np.arange(count)
    columns = (column[order] for column in (*pairs, sizes, begins))
    bus, delays = int(rng.integers(1, 4)), np.arange(tiles)
    changes = {"tiles_per_ipu": tiles, "relative_sync_delay": delays, "tiles_per_exchange_bus": bus}
    return replace(TARGETS["tiny"], **changes), *columns, bool(rng.integers(0, 2))


def exchanged(target: Any, *columns: Any) -> tuple[Any, ...]:
    *fragments, in_rows = columns
    cost = exchange_cost(target, *fragments, in_rows=in_rows)
    return cost.sent, cost.received, cost.cycles, cost.instructions, cost.code, cost.flows


def conflicting(rng: np.random.Generator) -> tuple[Any, ...]:
    variables, tiles = int(rng.integers(1, 9)), int(rng.integers(1, 6))
    sizes = rng.integers(1, 40, variables * tiles)
    here = np.flatnonzero(rng.random(variables * tiles) < 0.8)
    conflicts = rng.random((variables, variables)) < 0.6
    conflicts |= conflicts.T | np.eye(variables, dtype=bool)
    no = np.zeros(variables, dtype=bool)
    pieces = here // tiles, here % tiles, sizes[here]
    return allocate.Demand(*pieces, rng.random(variables) < 0.3, no, conflicts), tiles, 200, 100


def addresses(*demand: Any) -> tuple[IntArray, IntArray]:
    found = allocate.allocate(*demand)
    return found.address, found.region


def alive(rng: np.random.Generator) -> tuple[Any, ...]:
    variables, steps, tiles = int(rng.integers(1, 6)), int(rng.integers(1, 9)), 6
    counts = rng.integers(0, 4, variables)
    variable, total = np.repeat(np.arange(variables), counts), int(counts.sum())
    pieces = Pieces(variable, rng.integers(0, tiles, total), rng.integers(1, 50, total))
    begin = rng.integers(0, steps, 5)
    intervals_alive = rng.integers(0, variables, 5), begin, begin + rng.integers(1, 4, 5)
    return intervals_alive, pieces, steps, tiles, int(rng.choice([2, 3, 6]))


def shuffled(rng: np.random.Generator) -> tuple[Any, ...]:
    outer = tuple(rng.integers(1, 4, int(rng.integers(1, 5))).tolist())
    size, order = int(rng.integers(0, 5)), tuple(rng.permutation(len(outer)).tolist())
    total, ends = int(np.prod(outer)) * size, rng.integers(0, 1 << 9, int(rng.integers(0, 12)))
    sizes = np.diff(np.sort([0, *ends % (total + 1), total]))
    if size and rng.random() < 0.3:
        sizes = intervals.uniform(size, total // size)
    return rng.integers(0, 90, len(sizes)), sizes, outer, order, size


def places_of(rng: np.random.Generator) -> tuple[Any, ...]:
    begins, sizes = some(rng)
    total = int(sizes.sum())
    return begins, sizes, rng.integers(0, max(total, 1), int(rng.integers(0, 40)) * (total > 0))


def pairs(rng: np.random.Generator) -> tuple[Any, ...]:
    count, most = int(rng.integers(0, 40)), int(rng.choice([5, 300, 1 << 20]))
    return rng.integers(0, most, count), rng.integers(0, most, count), rng.integers(0, 9, count)


def copies_on_tiles(rng: np.random.Generator) -> tuple[Any, ...]:
    tile, begins, ends = on_tiles(rng)
    return tile * int(rng.choice([1, 1 << 20])), ends - begins, rng.integers(0, 3, len(tile))


def by_tile(*copies: IntArray) -> tuple[Any, ...]:
    return tuple(state._by_tile(*copies))


def brought(layout: edges.Layout, taken: edges._Reach) -> tuple[Any, ...]:
    found = edges._brought(layout, taken)
    spans = edges.union_by_tile(found.user, found.low, found.high)
    return *spans, intervals.present(found.direct), found.arranged


def live_bytes(*given: Any) -> tuple[IntArray, ...]:
    return tuple(liveness._bytes(*given).values())


CASES: dict[str, tuple[Callable[..., Any], Cases]] = {
    "spread": (intervals.spread, some),
    "from_elements": (intervals.from_elements, numbers),
    "join": (intervals.join, in_a_row),
    "cut": (intervals.cut, ranges),
    "crossings": (intervals.crossings, pieces),
    "overlap": (intervals.overlap, filled),
    "overlap of some far apart": (intervals.overlap, far_apart),
    "touch": (edges._pieces, reach),
    "brought": (brought, reach),
    "united by tile": (edges.union_by_tile, on_tiles),
    "united of senders": (edges.fragments_of_senders, remote),
    "parts": (regions.pieces_of, elements),
    "met": (regions.met, elements),
    "exchange": (exchanged, fragments),
    "kinds": (intervals.kinds, some_numbers),
    "present": (intervals.present, some_numbers),
    "live": (live_bytes, alive),
    "highest": (addresses, conflicting),
    "rearranged": (intervals.rearranged, shuffled),
    "gathered": (intervals.gathered, places_of),
    "summed": (edges.sum_pairs, pairs),
    "by tiles": (by_tile, copies_on_tiles),
}


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 1 << 32))
def test_a_kernel_gives_what_numpy_gives(name: str, seed: int) -> None:
    function, draw = CASES[name]
    arguments = draw(np.random.default_rng(seed))
    for mine, its in zip(flat(function(*arguments)), without(function, arguments), strict=True):
        assert np.asarray(mine).dtype == np.asarray(its).dtype
        np.testing.assert_array_equal(mine, its)


def test_a_profile_is_the_same_without_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    compiled = engine().getGraphProfile()
    monkeypatch.setattr(kernels, "compiled", None)
    assert engine().getGraphProfile() == compiled


@pytest.mark.parametrize("kernel", ["0", "1"])
def test_the_environment_says_whether_they_are_used(kernel: str) -> None:
    program = "from simulator.graph import kernels; print(kernels.compiled is not None)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SIMULATOR_KERNELS": kernel}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{kernel == '1'}\n"


def test_integers_of_32_bits_and_those_off_whole_words_are_joined_as_others() -> None:
    begins, lengths = np.array([0, 3, 9]), np.array([3, 4, 1])
    packed = b"\0\0\0" + lengths.tobytes()  # as a kept program gives them
    rows = {"off": np.frombuffer(packed, np.int64, offset=3), "narrow": lengths.astype(np.int32)}
    assert not rows["off"].flags.aligned
    for row in rows.values():
        assert [part.tolist() for part in intervals.join(begins, row)] == [[0, 9], [7, 1]]


ROW = np.arange(4)
WRONG = {
    "other numbers": ("spread", (ROW.astype(np.int32), ROW), TypeError, "column 0"),
    "two dimensions": ("from_elements", (np.eye(2, dtype=np.int64),), TypeError, "column 0"),
    "columns of two lengths": ("spread", (ROW, ROW[:2]), ValueError, "columns 0 and 1"),
    "too few columns": ("touch", (ROW,), TypeError, "10 columns"),
    "negative lengths": ("spread", (ROW, ROW - 1), ValueError, "negative"),
    "no size of an element": ("parts", (ROW, ROW, ROW, ROW, ROW), ValueError, "1 or more"),
    "no rules": ("exchange", (ROW,) * 7, ValueError, "tiles of a bus"),
    "other tiles": (
        "exchange",
        (*[ROW] * 4, *[ROW[:2]] * 2, np.full(11, 4)),
        IndexError,
        "no tile",
    ),
    "other groups": ("exchange", (*[ROW] * 6, np.full(11, 2)), IndexError, "tile 2 is of no group"),
    "rows that are not there": ("highest", (ROW, ROW, -ROW, ROW, ROW), IndexError, "row 1"),
    "no tile": ("united", (-ROW, ROW, ROW), IndexError, "row 1"),
    "no steps": ("live", (ROW,) * 7, ValueError, "number of steps"),
    "other pieces": ("live", (*[ROW] * 6, np.array([4, 4, 4])), IndexError, "change 3"),
    "pieces on no tile": (
        "live",
        (*[ROW[:1]] * 4, ROW + 1, ROW, np.array([1, 4, 4])),
        IndexError,
        "piece 3",
    ),
    "a place behind the end": ("gathered", (ROW, ROW, ROW + 5), IndexError, "place 6 of 6"),
    "loops without end": ("rearranged", (ROW, ROW, ROW + 4, ROW, ROW[1:2]), ValueError, "lead out"),
    "words of no bytes": ("by_tiles", (ROW, ROW, ROW, ROW[:1]), ValueError, "a byte or more"),
    "positions that are not there": ("cut", (ROW, ROW, ROW, ROW + 5), IndexError, "of 6"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_kernel_can_take_is_refused(name: str) -> None:
    kernel, arguments, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        getattr(kernels.compiled, kernel)(*arguments)


def test_a_kernel_without_memory_raises_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for _ in range(20):
        rooms = [bytes(range(1, 24)) for _ in range(50)]
        del rooms  # what Python hands out next holds no zeros
        with pytest.raises(MemoryError):
            kernels.compiled.spread(ROW[:2], np.array([1 << 45, 1]))
    assert capfd.readouterr() == ("", "")
