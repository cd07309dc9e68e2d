"""Sequences that come again are those that brute force finds; the choice is worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.popart.scheduling.repeats import Repeat, chosen_repeats, maximal_repeats


def ids(text: str) -> np.ndarray:
    return np.array(list(map(ord, text)), dtype=np.int64)


def chosen(text: str, threshold: float = 1.0, **values: float) -> dict[str, tuple[int, ...]]:
    """Choose among letters that are worth 0.1, but for those told."""
    found = chosen_repeats(
        ids(text), [values.get(letter, 0.1) for letter in text],
        lambda repeat: [repeat.starts], threshold,
    )  # fmt: skip
    return {text[starts[0] : starts[0] + length]: starts for length, starts in found}


@pytest.mark.parametrize("seed", range(20))
def test_maximal_repeats_are_those_of_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    text = "".join(random.choice(list("abc"), size=int(random.integers(1, 40))))
    wanted = set()
    for length in range(1, len(text)):
        for part in {text[n : n + length] for n in range(len(text) - length + 1)}:
            starts = [n for n in range(len(text)) if text.startswith(part, n)]
            before = {text[n - 1] if n else n for n in starts}
            behind = {text[n + length : n + length + 1] for n in starts}
            if len(starts) > 1 and len(before) > 1 and (len(behind) > 1 or "" in behind):
                wanted.add(Repeat(length, tuple(starts)))
    assert set(maximal_repeats(ids(text))) == wanted


def test_layers_are_chosen_one_by_one_and_not_in_pairs() -> None:
    found = chosen("s" + "Xabcdefghijkl" * 4 + "t", X=1000)
    assert found == {"Xabcdefghijkl": (1, 14, 27, 40)}


def test_what_comes_oftener_than_its_layer_is_a_function_within() -> None:
    found = chosen("XaXbXcdefghijklm" * 3, X=1000)
    assert found["X"] == (0, 2, 4, 16, 18, 20, 32, 34, 36)
    assert found["XaXbXcdefghijklm"] == (0, 16, 32)


def test_a_function_is_worth_more_than_those_within_by_the_threshold() -> None:
    # Ten letters of 0.1 beside what is a function already are not worth more than 1; eleven are.
    assert set(chosen("XaXbcdefghij" * 2 + "X", 1.05, X=1000)) == {"X"}
    assert set(chosen("XaXbcdefghijk" * 2 + "X", 1.05, X=1000)) == {"X", "XaXbcdefghijk"}
    assert set(chosen("abcdefghij" * 2, 1.05)) == set()
    assert set(chosen("abcdefghijk" * 2, 1.05)) == {"abcdefghijk"}


def test_of_a_long_row_as_many_are_one_as_are_worth_it() -> None:
    # Each of 60 letters is worth 0.1, and 11 of them 1.1; 5 times 11 are 55.
    assert chosen("s" + "a" * 60 + "t", 1.05) == {"a" * 11: (1, 12, 23, 34, 45)}
    assert chosen("s" + "a" * 60 + "t")["a" * 11] == (1, 12, 23, 34, 45)
    assert chosen("s" + "ab" * 1000 + "t", 1.05)["ab" * 6] == tuple(range(1, 1993, 12))


def test_nodes_that_are_connected_differently_are_no_repeat() -> None:
    found = chosen_repeats(
        ids("XXXX"), [1000.0] * 4,
        lambda repeat: [(start,) for start in repeat.starts], 1.0,
    )  # fmt: skip
    assert found == []


@pytest.mark.parametrize("seed", range(20))
def test_what_is_chosen_lies_within_or_beside(seed: int) -> None:
    random = np.random.default_rng(seed)
    text = "".join(random.choice(list("Xab"), size=60))
    spans = [(start, start + len(part)) for part, starts in chosen(text, X=1000).items() for
             start in starts if text.startswith(part, start)]  # fmt: skip
    for a, b in spans:
        for c, d in spans:
            assert b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)
