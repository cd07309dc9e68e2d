"""Counts of n-grams in sequences of whole numbers."""

from __future__ import annotations

import numpy as np
import onnx

from simulator.graph.types import Array
from simulator.popart.importing.composites.body import Body, Unsupported

FLOAT, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32


def counted_grams(body: Body) -> None:
    """Count how often each n-gram of a pool stands in a row, perhaps weighted (TfIdfVectorizer)."""
    pool, mode = body.attribute("pool_int64s"), body.attribute("mode")
    if pool is None:
        raise Unsupported("its pool is of strings; whole numbers would be needed")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise Unsupported(f"mode {mode!r}; known are TF, IDF, TFIDF")
    dims = body.dims()
    source = body("Cast", "x0", to=INT32)
    rows = source if len(dims) > 1 else body("Unsqueeze", source, [0])
    grams = _grams(body, np.asarray(pool, np.int32))
    parts = [part for grams_of in grams for part in _counts(body, rows, dims[-1], grams_of)]
    if not parts:
        raise Unsupported(f"no n-gram that it counts fits into {body.info()}")
    places = np.concatenate([hits for _, hits in parts])
    counts = body("Concat", *(part_counts for part_counts, _ in parts), axis=1)
    if mode == "IDF":
        counts = body("Sign", counts)
    table = _table(body, places, weighted=mode != "TF")
    weighted = body("MatMul", counts, table)
    body("Identity" if len(dims) > 1 else "Squeeze", weighted, *([] if len(dims) > 1 else [[0]]),
         out="y")  # fmt: skip


def _grams(body: Body, pool: Array) -> list[tuple[Array, Array]]:
    """Return the pool by length: n-grams [count, n], and their numbers."""
    starts = [*body.attribute("ngram_counts"), len(pool)]
    least, most = (int(body.attribute(f"{side}_gram_length")) for side in ("min", "max"))
    grams, before = [], 0
    for length, (begin, end) in enumerate(zip(starts, starts[1:], strict=False), 1):
        count = (end - begin) // length
        if least <= length <= most and count:
            numbers = np.arange(before, before + count)
            grams.append((pool[begin : begin + count * length].reshape(count, length), numbers))
        before += count
    return grams


def _counts(
    body: Body, rows: str, length: int, grams: tuple[Array, Array]
) -> list[tuple[str, Array]]:
    """Count n-grams of one length, with each number of elements skipped that fits."""
    pool, numbers = grams
    width = pool.shape[1]
    skips = range(1 if width == 1 else int(body.attribute("max_skip_count")) + 1)
    counts = []
    for skip in skips:
        places = length - (width - 1) * (skip + 1)
        if places < 1:
            break
        same = ""
        for n in range(width):
            first = n * (skip + 1)
            part = body("Unsqueeze", body("Slice", rows, [first], [first + places], [1]), [2])
            equal = body("Equal", part, pool[:, n][None, None])
            same = body("And", same, equal) if same else equal
        matches = body("Cast", same, to=FLOAT)
        counts.append(body("ReduceSum", matches, [1], keepdims=0))
    if not counts:
        return []
    return [(body("Sum", *counts) if len(counts) > 1 else counts[0], numbers)]


def _table(body: Body, numbers: Array, *, weighted: bool) -> Array:
    """Return which output each count goes to: [counts, outputs], 1 or the weight of the output.

    ONNX's text has weights in the order of the pool; its evaluator, and onnxruntime, in that of the
    outputs.
    """
    indexes = np.asarray(body.attribute("ngram_indexes"))
    weights = body.attribute("weights") if weighted else None
    table = np.zeros((len(numbers), int(indexes.max()) + 1), np.float32)
    table[np.arange(len(numbers)), indexes[numbers]] = (
        1.0 if weights is None else np.asarray(weights)[indexes[numbers]]
    )
    return table
