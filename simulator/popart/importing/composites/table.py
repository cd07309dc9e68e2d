"""The operators that are computed by nodes of others: for each its versions and its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx

from simulator.graph.types import Array
from simulator.popart.importing.composites import (
    determinant,
    grams,
    grouped,
    optimizer_steps,
    ordered,
    selection,
    signals,
    trees,
    windows,
)
from simulator.popart.importing.composites.body import Body
from simulator.popart.representation.ir import CLASSICAL, GRAPHCORE, ONNX, TRAINING, Node
from simulator.popart.representation.tensor_info import TensorInfo


@dataclass(frozen=True, slots=True)
class Composite:
    """An operator: what adds its nodes, its versions, the inputs that have to be constants.

    `only` are the values of an attribute that it is for; `bounded` is the axis along which only
    the first elements of the output count, as many as are chosen when the program runs.
    """

    nodes: Callable[[Body], None]
    versions: tuple[int, ...]
    static: tuple[int, ...] = ()
    only: tuple[str, str] | None = None
    bounded: int | None = None


COMPOSITES = {
    (ONNX, "Col2Im"): Composite(windows.images_of_columns, (18,), (1, 2)),
    (ONNX, "Compress"): Composite(selection.compressed, (9, 11, 28), (1,)),
    (ONNX, "DFT"): Composite(signals.fourier, (17, 20), (1, 2)),
    (ONNX, "DeformConv"): Composite(windows.deformed, (19, 22)),
    (ONNX, "Det"): Composite(determinant.determinant, (11, 22)),
    (ONNX, "MaxUnpool"): Composite(windows.unpooled, (9, 11, 22), (2,)),
    (ONNX, "NonMaxSuppression"): Composite(selection.suppressed, (10, 11), (2,), bounded=0),
    (ONNX, "NonZero"): Composite(selection.non_zero, (9, 13), bounded=1),
    (ONNX, "Resize"): Composite(
        windows.cropped, (11, 13, 18, 19), (1, 2, 3),
        ("coordinate_transformation_mode", "tf_crop_and_resize"),
    ),
    (ONNX, "RoiAlign"): Composite(windows.aligned_regions, (10, 16, 22)),
    (ONNX, "STFT"): Composite(signals.frames_transformed, (17,), (1, 3)),
    (ONNX, "TfIdfVectorizer"): Composite(grams.counted_grams, (9,)),
    (CLASSICAL, "ArrayFeatureExtractor"): Composite(trees.columns, (1,)),
    (CLASSICAL, "Binarizer"): Composite(trees.thresholded, (1,)),
    (CLASSICAL, "TreeEnsemble"): Composite(trees.tree_ensemble, (5,)),
    (TRAINING, "Adagrad"): Composite(optimizer_steps.adagrad, (1,)),
    (TRAINING, "Adam"): Composite(optimizer_steps.adam, (1,)),
    (TRAINING, "Momentum"): Composite(optimizer_steps.momentum, (1,)),
    (GRAPHCORE, "GroupedGather"): Composite(grouped.grouped_gather, (1,)),
    (GRAPHCORE, "MultiConv"): Composite(grouped.convolutions, (1,)),
    (GRAPHCORE, "ReduceMedian"): Composite(ordered.median, (1,)),
    (GRAPHCORE, "SequenceSlice"): Composite(grouped.sequences_moved, (1,)),
    (GRAPHCORE, "Sort"): Composite(ordered.sorted_elements, (1,)),
}  # fmt: skip


def composite_of(node: Node) -> Composite | None:
    """Return the row of a node, None where it has none."""
    row = COMPOSITES.get(node.key)
    if row is None or node.version not in row.versions:
        return None
    if row.only is not None and node.attributes.get(row.only[0]) != row.only[1]:
        return None
    return row


def nodes_of(
    row: Composite,
    node: Node,
    infos: Sequence[TensorInfo | None],
    constants: Sequence[Array | None],
    declared: Sequence[int | None] | None,
) -> onnx.FunctionProto:
    """Return the nodes of a node as a function; raises Unsupported."""
    body = Body(node, infos, constants, declared)
    row.nodes(body)
    return body.function()
