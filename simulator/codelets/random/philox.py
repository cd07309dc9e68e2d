"""Random words by counting: a generator of each worker, whose state is a key and a position.

Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): four words are
a function of a key and a counter, so that whole arrays are drawn at once. The machine's generators
are others (xoroshiro128aox); their state is as large, four words for each worker.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simulator.codelets.costs import ceil_div
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import IntArray

Words = npt.NDArray[np.uint32]
_Long = npt.NDArray[np.uint64]

STATE_WORDS = 4  # key (2), position (2)
_BLOCK = 4  # words that one count gives
_ROUNDS = 10
_AT_ONCE = 1 << 14  # counts, so that what they become stays in the processor's cache
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_HALF = np.uint64(32)


def philox(counter: Words, key: Words) -> Words:
    """Return four words for each row of counters [n, 4] and keys [n, 2]."""
    first, second, third, fourth = counter.T
    left, right = key.T
    for _ in range(_ROUNDS):
        low, high = _product(first, 0)
        other_low, other_high = _product(third, 1)
        first, third = other_high ^ second ^ left, high ^ fourth ^ right
        second, fourth = other_low, low
        left, right = left + _KEY_STEPS[0], right + _KEY_STEPS[1]
    return np.stack([first, second, third, fourth], axis=1)


def _product(words: Words, which: int) -> tuple[Words, Words]:
    """Return the lower and the higher word of the products with a multiplier."""
    long: _Long = words.astype(np.uint64) * _MULTIPLIERS[which]
    return long.astype(np.uint32), (long >> _HALF).astype(np.uint32)


def seeded(seed: Words, colour: Words) -> Words:
    """Return the states [n, 4] that a seed ([2] or [n, 2]) and a colour [n, 4] lead to."""
    return philox(colour, np.broadcast_to(seed, (len(colour), 2)))


def draw(state: Words, words: IntArray) -> tuple[Words, Words]:
    """Draw `words[i]` words of the generator in row i, one generator after another.

    Gives the words and the states after it: a generator goes on with a whole block.
    """
    blocks = ceil_div(words, _BLOCK)
    generator = np.repeat(np.arange(len(words), dtype=np.int64), blocks)
    position = state[:, 2].astype(np.uint64) | state[:, 3].astype(np.uint64) << _HALF
    at = position[generator] + spread(np.zeros_like(blocks), blocks).astype(np.uint64)
    drawn = np.empty((len(at), _BLOCK), dtype=np.uint32)
    for first in range(0, len(at), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        counter = np.zeros((len(at[part]), 4), dtype=np.uint32)
        counter[:, :2] = _halves(at[part])
        drawn[part] = philox(counter, state[generator[part], :2])
    after = np.column_stack([state[:, :2], _halves(position + blocks.astype(np.uint64))])
    if (words % _BLOCK == 0).all():
        return drawn.reshape(-1), after
    return drawn.reshape(-1)[spread(offsets_of(blocks)[:-1] * _BLOCK, words)], after


def _halves(long: _Long) -> Words:
    """Return the lower and the higher words of an array of 64-bit numbers, as columns."""
    return np.column_stack([long.astype(np.uint32), (long >> _HALF).astype(np.uint32)])
