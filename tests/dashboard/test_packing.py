"""The binary answer: what is packed comes back, and it stays small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.timeline.packing import COLUMNS, LABEL_LETTERS, NO_LABEL, pack, unpack
from pva.analysis.timeline.viewport import MAX_RECTANGLES, MAX_ROWS, Rectangles

LIMIT = 100_000


def rectangles(count: int, seed: int, labels: int, rows: int = 3) -> Rectangles:
    """Make rectangles of random numbers that fit the columns."""
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, 2**50, count))
    time = random.integers(0, 2**30, count)
    return Rectangles(
        row=np.sort(random.integers(0, rows, count)),
        begin=begin,
        end=begin + random.integers(0, 2**40, count),
        event=random.integers(0, 2**31, count),
        count=random.integers(1, 3, count),
        label=random.integers(0, labels, count),
        time=time,
        label_time=(time * random.random(count)).astype(np.int64),
        kind=random.integers(0, 200, count),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 300), st.integers(0, 1000), st.lists(st.text(max_size=8), min_size=1))
def test_packed_rectangles_come_back(count: int, seed: int, texts: list[str]) -> None:
    made = rectangles(count, seed, len(texts))
    header, columns = unpack(pack(made, texts, made.event, {"window": (0, 9)}))
    assert (header["n"], header["window"]) == (count, [0, 9])
    for name, expected in (("row", made.row), ("begin", made.begin), ("count", made.count)):
        assert columns[name].tolist() == expected.tolist()
    assert columns["colour"].tolist() == made.kind.tolist()
    assert columns["length"] == pytest.approx(made.end - made.begin, rel=1e-6)
    assert columns["time"] == pytest.approx(made.time, rel=1e-6)
    single = made.count == 1
    assert columns["item"].tolist() == np.where(single, made.event, -1).tolist()
    shown = [header["labels"][label] for label in columns["label"].tolist()]
    assert shown == [texts[label] for label in made.label.tolist()]


def test_largest_answer_stays_below_its_limit() -> None:
    texts = [f"a/name/as/long/as/they/come/{number:05}/" + "ü" * 30 for number in range(3000)]
    made = rectangles(MAX_RECTANGLES, 1, len(texts), rows=MAX_ROWS)
    assert len(pack(made, texts, made.event, {"window": (2**60, 2**61)})) < LIMIT


def test_texts_of_the_widest_rectangles_are_sent_first() -> None:
    three = np.arange(3)
    wide = Rectangles(three, 0 * three, np.array([10, 30, 20]), *(three,) * 6)
    texts = [f"{letter}{'ü' * 150}" for letter in "abc"]
    rows = 40 * texts
    header, columns = unpack(pack(wide, rows, three, {}))
    assert header["labels"] == [texts[1], texts[2], texts[0]]
    assert columns["label"].tolist() == [2, 0, 1]


def test_labels_beyond_their_room_are_left_out() -> None:
    many = np.arange(100)
    made = Rectangles(many, 0 * many, 100 - many, *(many,) * 6)
    header, columns = unpack(pack(made, ["x" * 290 + f"{n:03}" for n in range(100)], many, {}))
    sent = len(header["labels"])
    assert 20 < sent < 40
    assert columns["label"].tolist() == [*range(sent), *[NO_LABEL] * (100 - sent)]


def test_a_label_of_a_megabyte_is_sent_without_its_middle() -> None:
    one = np.zeros(1, dtype=np.int64)
    header, _ = unpack(pack(Rectangles(*(one,) * 9), ["a" * 10**6 + "b"], one, {}))
    (label,) = header["labels"]
    assert label[0] == "a" and label[-1] == "b" and len(label) == LABEL_LETTERS + 1


def test_a_label_that_is_no_text_of_any_encoding_is_sent() -> None:
    one = np.zeros(1, dtype=np.int64)
    header, _ = unpack(pack(Rectangles(*(one,) * 9), ["\ud800<b>"], one, {}))
    assert header["labels"] == ["?<b>"]


def test_columns_of_eight_bytes_come_first() -> None:
    sizes = [np.dtype(dtype).itemsize for _, dtype in COLUMNS]
    assert sizes == sorted(sizes, reverse=True)  # so that each begins where its type may


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="it must begin with"):
        unpack(b"<html>")
