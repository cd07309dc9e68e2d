"""What random words become: numbers of a distribution. `words` are [words a number, numbers]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from simulator.codelets.random.philox import Words
from simulator.graph.types import Array, Type

Parameters = Mapping[str, float]
_WORDS = 2.0**32  # as many values has a word
_LEFT_OVER = -4.0  # log10 of how much may still lie outside after the last try; PopLibs poprand


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many words a number takes, and what they make with the parameters of a vertex."""

    words: Callable[[Parameters], int]
    values: Callable[[Words, Parameters, Type], Array]


def _share(words: Words) -> Array:
    """Return numbers in [0, 1)."""
    return words / _WORDS


def _uniform(words: Words, parameters: Parameters, dtype: Type) -> Array:
    least, most = parameters["minVal"], parameters["maxVal"]
    if dtype.numpy.kind == "f":
        return least + _share(words[0]) * (most - least)
    return np.floor(_share(words[0]) * (most - least + 1)) + least


def _standard(words: Words) -> Array:
    """Return numbers of the normal distribution, by Box and Muller's transform of two words."""
    radius = np.sqrt(-2 * np.log1p(-_share(words[0])))
    return np.asarray(radius * np.cos(2 * np.pi * _share(words[1])))


def _normal(words: Words, parameters: Parameters, dtype: Type) -> Array:
    return parameters["mean"] + parameters["stdDev"] * _standard(words)


def truncation_tries(alpha: float) -> int:
    """Return how often a number is drawn again until at most 1 in 10,000 lies outside."""
    outside = math.erfc(alpha / math.sqrt(2))
    return math.ceil(_LEFT_OVER / math.log10(outside)) if 0 < outside < 1 else 1


def _truncated_words(parameters: Parameters) -> int:
    return 2 * truncation_tries(parameters["alpha"]) + 1


def _truncated(words: Words, parameters: Parameters, dtype: Type) -> Array:
    """Take the first try that lies inside, else a uniform number."""
    alpha = parameters["alpha"]
    values = (2 * _share(words[-1]) - 1) * alpha
    for first in range(len(words) - 3, -1, -2):
        samples = _standard(words[first : first + 2])
        values = np.where(np.abs(samples) <= alpha, samples, values)
    return parameters["mean"] + parameters["stdDev"] * values


def bernoulli(words: Words, parameters: Parameters, dtype: Type) -> Array:
    """Return ones with probability `prob`, else zeros."""
    return np.asarray(words[0] < parameters["prob"] * _WORDS)


def _one_word(parameters: Parameters) -> int:
    return 1


DISTRIBUTIONS: dict[str, Distribution] = {
    "Uniform": Distribution(_one_word, _uniform),
    "Normal": Distribution(lambda parameters: 2, _normal),
    "TruncatedNormal": Distribution(_truncated_words, _truncated),
    "Bernoulli": Distribution(_one_word, bernoulli),
}


def as_type(values: Array, dtype: Type) -> Array:
    """Round numbers to an element type."""
    rounded: Array = values.astype(dtype.numpy)
    return rounded
