"""The binary answer: what is packed comes back, and it stays small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.timeline.packing import COLUMNS, NO_LABEL, pack, unpack
from pva.analysis.level_of_detail import MAX_RECTANGLES, Rectangles

LIMIT = 100_000


def rectangles(count: int, seed: int, labels: int) -> Rectangles:
    """Make rectangles of random numbers that fit the columns."""
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, 2**50, count))
    return Rectangles(
        row=random.integers(0, 2**16, count),
        begin=begin,
        end=begin + random.integers(0, 2**40, count),
        colour=random.integers(0, 256, count),
        label=random.integers(0, labels, count),
        item=random.integers(-1, 2**31, count),
        count=random.integers(1, 2**32, count),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 300), st.integers(0, 1000), st.lists(st.text(max_size=8), min_size=1))
def test_packed_rectangles_come_back(count: int, seed: int, texts: list[str]) -> None:
    given_ = rectangles(count, seed, len(texts))
    header, columns = unpack(pack(given_, texts, {"unit": "cycles"}))
    assert (header["n"], header["unit"]) == (count, "cycles")
    for name, _ in COLUMNS:
        if name != "label":
            assert columns[name].tolist() == getattr(given_, name).tolist()
    shown = [header["labels"][label] for label in columns["label"].tolist()]
    assert shown == [texts[label] for label in given_.label.tolist()]


def test_largest_answer_stays_below_its_limit() -> None:
    texts = [f"a/name/as/long/as/they/come/{number:05}/" + "ü" * 30 for number in range(3000)]
    answer = pack(rectangles(MAX_RECTANGLES, 1, len(texts)), texts, {})
    assert len(answer) < LIMIT


def test_texts_of_the_widest_rectangles_are_sent_first() -> None:
    three = np.arange(3)
    wide = Rectangles(three, 0 * three, np.array([10, 30, 20]), three, three, three, three)
    header, columns = unpack(pack(wide, ["x" * 6000, "wide", "y" * 6000], {}))
    assert header["labels"] == ["wide", "y" * 6000]
    assert columns["label"].tolist() == [NO_LABEL, 0, 1]


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="it must begin with"):
        unpack(b"<html>")
