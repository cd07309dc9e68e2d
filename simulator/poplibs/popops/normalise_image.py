"""Images of three channels, normalised and padded to four."""

from __future__ import annotations

from collections.abc import Sequence as Numbers

import numpy as np

from simulator.codelets.indexing.sorting_cycles import normalise_image
from simulator.codelets.layers.images import CHANNELS, PADDED, normalise_image_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, UNSIGNED_CHAR, Type, checked_shape, checked_type
from simulator.graph.vertices.vertex import Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.popops.regions import debug_name

_WORD = 4  # bytes; workers write whole words


@library_call("POPOPS")
def createNormaliseImageInput(
    graph: Graph, type: Type, shape: Numbers[int], debugContext: str = ""
) -> Tensor:
    """Add a variable for `normaliseImage`, spread in order in whole pixels [..., 3].

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> popops.createNormaliseImageInput(trial.graph, poplar.HALF, [2, 4, 4, 3]).shape
    (2, 4, 4, 3)
    """
    name = debug_name(debugContext, "createNormaliseImageInput")
    _check(name, checked_type(type, name), checked_shape(shape, name))
    tensor = graph.addVariable(type, shape, name)
    grain = CHANNELS * (_WORD // type.size)
    poputil.mapTensorLinearly(graph, tensor, grain * graph.target.workers, grain)
    return tensor


@library_call("POPOPS")
def normaliseImage(
    graph: Graph,
    seq: Sequence,
    tIn: Tensor,
    inScale: float,
    offsets: Tensor,
    scales: Tensor,
    debugContext: str = "",
) -> Tensor:
    """Return (in * inScale - offset) * scale for each channel, and a fourth channel of zeros.

    Of an image [..., 3] of float, half or unsigned char, which becomes half; offsets and scales
    are [3] of the type of the result.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> pixel = trial.tensor([[10.0, 20.0, 30.0]])
    >>> offsets, scales = trial.tensor([1.0, 2.0, 3.0]), trial.tensor([2.0, 1.0, 0.5])
    >>> out = popops.normaliseImage(trial.graph, trial.prog, pixel, 0.5, offsets, scales)
    >>> trial.values(out)
    [[8.0, 8.0, 6.0, 0.0]]
    """
    name = debug_name(debugContext, "normaliseImage")
    _check(name, tIn.dtype, tIn.shape)
    out_type = HALF if tIn.dtype == UNSIGNED_CHAR else tIn.dtype
    for tensor in (offsets, scales):
        if tensor.shape != (CHANNELS,) or tensor.dtype != out_type:
            raise poplibs_error(f"{name}: offsets or scales {tensor!r}; needs {out_type}[3]")
    if not inScale:
        raise poplibs_error(f"{name}: inScale is {inScale}; one other than 0 is needed")
    with graph.debug_scope(name, "popops"):
        out = graph.addVariable(out_type, (*tIn.shape[:-1], PADDED), f"{name}/normalised")
        _add_vertices(graph, seq, name, (tIn, out, offsets, scales), inScale)
    return out


def _check(name: str, dtype: Type, shape: tuple[int, ...]) -> None:
    if dtype not in (UNSIGNED_CHAR, HALF, FLOAT):
        raise poplibs_error(f"{name}: type is {dtype}; known for unsigned char, half, float")
    if len(shape) < 2 or shape[-1] != CHANNELS:
        raise poplibs_error(f"{name}: shape is {list(shape)}; an image [..., 3] is needed")


def _add_vertices(
    graph: Graph,
    seq: Sequence,
    name: str,
    tensors: tuple[Tensor, Tensor, Tensor, Tensor],
    in_scale: float,
) -> None:
    """Put each pixel where its first channel lies, and add a supervisor for each tile."""
    image, out, offsets, scales = tensors
    low, high, tile = graph.tile_ranges(image.slice(0, 1, image.rank() - 1).flatten())
    graph.map_ranges(out, low * PADDED, high * PADDED, tile)
    order = np.argsort(tile, kind="stable")
    low, high = low[order], high[order]
    tiles, ranges = np.unique(tile, return_counts=True)
    begin = np.zeros_like(tiles)
    fields: dict[str, Field] = {
        "in": cut_ranges("in", "input", image, low * CHANNELS, high * CHANNELS, ranges),
        "out": cut_ranges("out", "output", out, low * PADDED, high * PADDED, ranges),
        "scales": cut_field("scales", "input", scales, begin, begin + CHANNELS),
        "offsets": cut_field("offsets", "input", offsets, begin, begin + CHANNELS),
    }
    compute_set = graph.addComputeSet(name)
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=normalise_image_codelet(image.dtype, out.dtype),
            tile=tiles,
            fields=fields,
            parameters={"inScale": np.full(len(tiles), in_scale)},
            cycles=normalise_image(fields["in"].counts() // CHANNELS, image.dtype, graph.target),
        )
    )
    seq.add(Execute(compute_set))
