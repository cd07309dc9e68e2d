"""PackedDataBlock: a graph computes sequences that lie in rows, one behind another."""

from __future__ import annotations

import numpy as np
import pytest
from models import tiny

from simulator import popart
from simulator.graph.types import Array

LENGTHS = np.array([3, 1, 4, 2], np.uint32)
OFFSETS = np.array([0, 3, 4, 8], np.uint32)
RANDOM = np.random.default_rng(4)
ROWS = RANDOM.normal(size=(11, 5)).astype(np.float32)  # one more than the sequences have
LONGEST = 4


def packed(size: int, longest: int = LONGEST) -> Array:
    """Run x transposed(x) of each sequence, `size` of them at a time."""
    builder = popart.Builder(opsets={"ai.onnx": 10, "ai.graphcore": 1})
    rows = builder.addInputTensor(popart.TensorInfo(ROWS), "rows")
    offsets, lengths = (
        builder.addInputTensor(popart.TensorInfo(array), name)
        for array, name in ((OFFSETS, "offsets"), (LENGTHS, "lengths"))
    )
    inner = builder.createSubgraphBuilder()
    x = inner.addUntypedInputTensor()
    inner.addOutputTensor(inner.aiOnnx.matmul([x, inner.aiOnnx.transpose([x], [0, 2, 1])]))
    out = builder.aiGraphcore.packedDataBlock(
        [rows, offsets, lengths, offsets, lengths], [longest], len(ROWS), size, inner
    )
    builder.addOutputTensor(out)
    session = popart.InferenceSession(
        builder.getModelProto(), popart.DataFlow(1, [out]), tiny(1)
    )  # fmt: skip
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    inputs = {"rows": ROWS, "offsets": OFFSETS, "lengths": LENGTHS}
    session.run(popart.PyStepIO(inputs, anchors))
    return anchors[out]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_each_sequence_is_computed_by_itself(size: int) -> None:
    expected = np.zeros((len(ROWS), LONGEST))
    for begin, length in zip(OFFSETS, LENGTHS, strict=True):
        sequence = ROWS[begin : begin + length]
        expected[begin : begin + length, :length] = sequence @ sequence.T
    np.testing.assert_allclose(packed(size), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [0, 3])
def test_groups_that_are_not_whole_are_refused(size: int) -> None:
    with pytest.raises(popart.popart_exception, match=f"4 sequences, {size} at a time; as many"):
        packed(size)
