"""The passes over traces that are in C give what those in NumPy and msgspec give."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pva import kernels
from pva.formats.memory_limit import Budget
from pva.formats.traces import chrome_events, chrome_order, chrome_pieces
from pva.formats.traces.chrome_flows import FlowPoints
from pva.formats.traces.json_pieces import Piece, scan
from pva.formats.traces.pvti_trace import RECORD_TYPE, RawEvents, _spread
from pva.model.host_trace.label_sums import label_sums
from pva.model.host_trace.nesting import begin_order, nest, self_times
from pva.model.host_trace.trace_lanes import Stretch

pytestmark = pytest.mark.skipif(
    kernels.compiled is None, reason="not built: all tests run without it as they are"
)
_PLAIN: dict[str, list[str]] = {
    "ph": [
        '"X"',
        '"B"',
        '"E"',
        '"i"',
        '"b"',
        '"e"',
        '"n"',
        '"C"',
        '"M"',
        '"s"',
        '"t"',
        '"f"',
        '"P"',
    ],
    "ts": ["1", "0", "12.5", "-3", "1e3", "1700000000123456.789", "10.264000000000001", "0.1"],
    "dur": ["0", "2.25", "17.000000000000002", "123456789.0123"],
    "pid": ["1", '"a"', "1.0", "true", "null"],
    "tid": ["1", "2", '"main"', "-7"],
    "name": ['"a"', '"ä"', '"\\u0061"', '"<T, \\"x\\">"', '"process_name"', '""', '"\\\\"'],
    "cat": ['"c"', '""', '"c,d"', '"\\ud83d\\ude00"'],
    "args": ["{}", '{"name":"n"}', '{"v":1.5}', '{"a":[1,{"b":[]},"]"],"c":null}', "[]", '"{"'],
    "id": ["1", '"0x1"', "[1]"],
}
_ODD = ["null", "01", "1.", "-", '"', "1e999", "{", "]", '"\\x"', '"\t"', "nul", "1" * 30, "NaN",
        '"\\ud800"', '{"a":1,}', "[1 2]", "[" * 70 + "]" * 70, "true", "-0.0", "\\",
        '"X"']  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Elements of an array: events as most are, and now and then one that is not quite JSON."""
    random_of = draw(st.randoms(use_true_random=False))
    odd = random_of.random() < 0.5
    return ",".join(_event(random_of, odd) for _ in range(random_of.randrange(6))).encode(
        random_of.choice(["utf-8", "utf-8", "latin-1"]), "ignore"
    )


def _event(of: random.Random, odd: bool) -> str:
    keys = [key for key in _PLAIN if key in ("ph", "ts", "dur") or of.random() < 0.7]
    of.shuffle(keys)
    values = {key: of.choice(_PLAIN[key]) for key in keys}
    if odd and of.random() < 0.3:
        values[of.choice([*_PLAIN, "x", "ä"])] = of.choice(_ODD)
    if odd and of.random() < 0.2:
        values["args"] = f'{{"a":[{of.choice(_ODD)}],{of.choice(_ODD)}:1}}'
    space = of.choice(["", "", " ", "\n\t"])
    told = f",{space}".join(f'"{key}":{space}{value}' for key, value in values.items())
    return f"{space}{{{told}}}{space}"


def told_of(text: bytes, *, in_c: bool) -> dict[str, Any]:
    """Return all that a piece tells, numbers of things in their order too."""
    with pytest.MonkeyPatch.context() as patch:
        if not in_c:
            patch.setattr(kernels, "compiled", None)
        found = scan(text)
        piece = Piece(text[: found.ends[-1]] if len(found.ends) else b"", found.ends)
        source: Any = [piece]
        read = chrome_pieces.read(source, Budget("a file", 1 << 20, held=0))
    told = dict(vars(read))
    for name, value in told.items():
        if isinstance(value, chrome_events.Growing | chrome_events.GrowingTexts):
            told[name] = list(value.taken())
        elif isinstance(value, FlowPoints):
            told[name] = [list(column.taken()) for column in vars(value).values()]
        elif isinstance(value, dict):
            told[name] = [*map(repr, value.items())]
    return told | {
        "ends": found.ends.tolist(),
        "closed": found.closed,
        "budget": 0,
        "categories": 0,
    }


@settings(max_examples=150, deadline=None)
@given(texts())
def test_events_read_in_c_are_those_read_by_msgspec(text: bytes) -> None:
    assert told_of(text, in_c=True) == told_of(text, in_c=False)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{}[]",\\a', max_size=40))
def test_elements_end_where_numpy_has_them_end(text: str) -> None:
    told = told_of(text.encode(), in_c=True), told_of(text.encode(), in_c=False)
    assert told[0]["ends"] == told[1]["ends"]
    assert told[0]["closed"] == told[1]["closed"]


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(-24, 24), st.booleans())
def test_numbers_are_the_nearest_doubles(digits: int, tens: int, as_point: bool) -> None:
    text = f"{digits}e{tens}"
    if as_point:
        text = f"{digits // 1000}.{digits % 1000:03}"
    event = b'{"ph":"X","ts":0,"dur":%b}' % text.encode()
    columns = kernels.compiled.events(event, chrome_pieces._PHASES)
    if columns is None:  # for the other way
        return
    whole = np.floor(float(text))
    expected = int(whole) * 1000 + round((float(text) - whole) * 1000)
    assert np.frombuffer(columns[2], np.int64).tolist() == [expected]


@pytest.mark.parametrize("cut", range(0, 90, 3))
def test_a_text_that_is_cut_off_is_not_taken(cut: int) -> None:
    event = b'{"ph":"X","ts":1.5,"dur":2,"name":"a\\u00e4","args":{"a":[1,true,"x"]},"tid":-3e1}'
    assert kernels.compiled.events(event, chrome_pieces._PHASES) is not None
    if cut < len(event):
        text = event[:cut]
        assert (kernels.compiled.events(text, chrome_pieces._PHASES) is None) is bool(text)


def test_many_labels_that_are_hard_to_find_are_still_numbered_once() -> None:
    events = ",".join(f'{{"ph":"i","ts":{n},"name":"{n % 700}"}}' for n in range(3000))
    assert told_of(events.encode(), in_c=True) == told_of(events.encode(), in_c=False)


def test_the_kernel_is_not_used_where_it_is_not_wanted() -> None:
    program = "from pva import kernels; print(kernels.compiled)"
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PVA_KERNELS": wanted},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for wanted in ("0", "1")
    ]  # fmt: skip
    assert told[0] == "None" != told[1]


@pytest.mark.parametrize("few", [0, 64])
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(-3, 3), st.integers(0, 2)), max_size=30),
    st.sampled_from(["as it is", "by begin", "by thread"]),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_events_stand_in_reverse_order_of_begin(
    monkeypatch: pytest.MonkeyPatch, few: int, events: list[tuple[int, int, int]], by: str
) -> None:
    monkeypatch.setattr(chrome_order, "FEW", few)
    if by == "by begin":
        events.sort(key=lambda event: event[1])
    if by == "by thread":
        events.sort(reverse=True)
    columns = np.array(events, np.int64).reshape(-1, 3).T
    thread, begin, end = columns[0].astype(np.int32), columns[1], columns[1] + columns[2]
    rows = chrome_order.backward(thread, begin, end)
    places = range(len(events))
    expected = sorted(places, key=lambda n: (thread[n], -begin[n], end[n], -n))
    assert chrome_order.taken(np.arange(len(events)), rows).tolist() == expected


def spans(of: random.Random, scale: int) -> tuple[Any, Any, Any]:
    """Begin and end of some events in the order of their begin, and a label of each."""
    pairs = [(of.randrange(20), of.choice([0, 1, of.randrange(20)])) for _ in range(30)]
    pairs.sort(key=lambda pair: (pair[0], -pair[1]))
    begin, length = scale * np.array(pairs[: of.randrange(31)], np.int64).reshape(-1, 2).T
    return begin, begin + length, (begin % 5).astype(np.int32)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([1, -3, 1 << 40]))
def test_events_nest_in_c_as_they_do_in_numpy(of: random.Random, scale: int) -> None:
    begin, end, label = spans(of, abs(scale))
    if scale < 0:  # backward, and not without gaps
        begin, end, label = -end[::-1], -begin[::-1], label[::-1]
        order = np.argsort(begin, kind="stable")
        begin, end, label = begin[order], end[order], label[::-1][::-1][order]
    lanes = [Stretch(begin, end, label)]
    told = []
    for compiled in (kernels.compiled, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "compiled", compiled)
            sums = label_sums(lanes, 5 * abs(scale), lambda _: None) if abs(scale) < 5 else None
            told.append(
                (
                    [*map(np.ndarray.tolist, nest(begin, end, lambda _: None))],
                    self_times(begin, end, lambda _: None).tolist(),
                    sums and [value.tolist() for value in astuple(sums)],
                )
            )
    assert told[0] == told[1]


def test_more_open_events_than_asked_for_are_for_numpy() -> None:
    begin, end, own = np.arange(5), np.full(5, 9), np.zeros(5, np.int64)
    assert kernels.compiled.nest(begin, end, own, 4) is None
    assert kernels.compiled.nest(begin, end, own, 5) is True
    assert own.tolist() == [1, 1, 1, 1, 5]


@pytest.mark.parametrize("kind", [np.uint32, np.int64])
def test_lengths_stand_label_by_label_in_the_order_of_events(kind: type) -> None:
    begin, end = np.array([10, 20, 30, 40]), np.array([11, 22, 33, 44])
    label, places = np.array([1, 0, 1, 1], np.int32), np.array([0, 1])
    lengths = np.zeros(4, kind)
    assert kernels.compiled.group(begin, end, label, places, lengths) is True
    assert lengths.tolist() == [2, 1, 3, 4] and places.tolist() == [1, 4]


@pytest.mark.parametrize(("label", "place"), [(-1, 0), (1, 0), (0, 2), (0, -1)])
def test_a_length_without_a_place_is_not_put_anywhere(label: int, place: int) -> None:
    events = np.array([1]), np.array([5]), np.array([label], np.int32)
    lengths = np.zeros(2, np.uint32)
    assert kernels.compiled.group(*events, np.array([place]), lengths) is None
    assert lengths.tolist() == [0, 0]


@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_none_is_not_counted(label: int) -> None:
    events = np.array([1]), np.array([2]), np.array([label], np.int32)
    assert kernels.compiled.sums(*events, 9, *np.zeros((3, 3), np.int64)) is None


def _records(of: random.Random, sizes: list[int]) -> tuple[bytes, Any]:
    rows = [(of.randrange(1 << 64), of.choice([0, 1, (1 << 32) - 1]), of.randrange(1 << 32))
            for _ in range(sum(sizes))]  # fmt: skip
    return np.array(rows, RECORD_TYPE).tobytes(), np.array(sizes, np.int64)


@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 4), max_size=4))
def test_records_are_spread_in_c_as_numpy_spreads_them(of: random.Random, sizes: list[int]) -> None:
    data, counts = _records(of, sizes)
    both = []
    for compiled in (kernels.compiled, None):
        columns = [np.zeros(sum(sizes), kind) for kind in (np.int64, np.int64, np.int32, np.uint8)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "compiled", compiled)
            facts = _spread(data, RawEvents(*columns, counts), counts)
        both.append([*(column.tolist() for column in columns), facts.tolist()])
    assert both[0] == both[1]


@pytest.mark.parametrize("sizes", [[3], [1], [-1, 3], [1 << 62, 1 << 62], [2, -1]])
def test_records_of_other_sizes_than_said_are_not_spread(sizes: list[int]) -> None:
    data, _ = _records(random.Random(0), [2])
    columns = [np.zeros(2, kind) for kind in (np.int64, np.int64, np.int32, np.uint8)]
    facts = np.zeros(5 * len(sizes), np.int64)
    assert kernels.compiled.records(data, np.array(sizes), *columns, facts) is None
    assert not any(column.any() for column in columns)


@given(st.lists(st.sampled_from([0, 1, 2, 1 << 40, (1 << 60) - 1]), max_size=30))
def test_events_are_sorted_by_begin_the_last_to_end_first(begins: list[int]) -> None:
    ordered = sorted(range(len(begins)), key=lambda row: (begins[row], -row))
    assert begin_order(np.array(begins, np.int64)).tolist() == ordered


def _sorted(begin: Any) -> list[int]:
    """Sort events by begin, the last first of equal ones, as Python sorts pairs."""
    return sorted(range(len(begin)), key=lambda event: (begin[event], -event))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=40))
def test_events_by_their_end_are_turned_to_their_begin_or_overlap(
    lengths: list[tuple[int, int]],
) -> None:
    spans = sorted(((b, b + d) for b, d in lengths), key=lambda pair: (pair[1], -pair[0]))
    begin = np.array([b for b, _ in spans], np.int64)
    order = np.empty(len(begin), np.int64)
    if kernels.compiled.forward(begin, order):
        assert order.tolist() == _sorted(begin.tolist())
    assert begin_order(begin).tolist() == _sorted(begin.tolist())
    # Those that begin within what ends before them, and those of no length, may be left to NumPy.
    across = any(a < c < b for a, b in spans for c, d in spans if d > b)
    empty = any(a == b for a, b in spans)
    assert across or empty or kernels.compiled.forward(begin, order)


@pytest.mark.parametrize("count", [0, 1, 2, 5000])
def test_events_in_each_other_and_after_each_other_are_turned(count: int) -> None:
    for begin in (np.arange(count), np.arange(count)[::-1], np.zeros(count, np.int64)):
        order = np.empty(count, np.int64)
        assert kernels.compiled.forward(begin, order)
        assert order.tolist() == _sorted(begin.tolist())


@pytest.mark.parametrize(
    ("begin", "order"),
    [
        (np.zeros(3, np.int64), np.empty(2, np.int64)),
        (np.zeros(3, np.int32), np.empty(3, np.int64)),
        (np.zeros((3, 1), np.int64), np.empty(3, np.int64)),
        (np.zeros(3, np.int64), np.empty(6, np.int64)[::2]),
    ],
)
def test_columns_that_do_not_fit_are_not_turned(begin: Any, order: Any) -> None:
    assert kernels.compiled.forward(begin, order) is None


def test_pieces_keep_their_order_while_a_second_thread_parses_them() -> None:
    texts = [b"%d" % number for number in range(20)]
    pieces: Any = [Piece(text, np.zeros(0, np.int32)) for text in texts]
    assert [piece.text for piece, _ in chrome_pieces._parsed(pieces)] == texts
