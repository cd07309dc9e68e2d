"""Regions of interest, pooled at fractions of elements (popnn::experimental::roiAlign)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers import roi_align as vertices
from simulator.codelets.layers.roi_align import Grid
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, BoolArray, IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popops.regions import debug_name

__all__ = ["roiAlignFwd", "roiAlignInputGradient", "roiAlignParams"]


@dataclass(frozen=True, slots=True)
class roiAlignParams:  # noqa: N801 - PopLibs' name
    """Samples of a bin by dimension, bins of a region, and how its coordinates are taken.

    `aligned` shifts them by half an element; `spatialScale` are elements of the map for one of the
    image.
    """

    samplingRatio: int
    poolH: int
    poolW: int
    aligned: bool
    spatialScale: float


@library_call("POPNN")
def roiAlignFwd(
    graph: Graph,
    prog: Sequence,
    bottomData: Tensor,
    bottomRois: Tensor,
    bottomBatchIndex: Tensor,
    params: roiAlignParams,
    debugContext: str = "",
) -> Tensor:
    """Return [regions, channels, poolH, poolW]: the mean of samples of each bin of a region.

    A map is [batch, channels, height, width], regions [regions, 4] are x1, y1, x2, y2, of the image
    that `bottomBatchIndex` [regions] of int says. Samples are linear between four elements.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.experimental.roiAlignParams(1, 1, 1, False, 1.0)
    >>> image = trial.tensor([[[[1.0, 2.0], [3.0, 8.0]]]])
    >>> region = trial.tensor([[0.0, 0.0, 2.0, 2.0]])  # its middle is the element below right
    >>> sample = trial.tensor([0])
    >>> operands = image, region, sample, params
    >>> trial.values(popnn.experimental.roiAlignFwd(trial.graph, trial.prog, *operands))
    [[[[8.0]]]]
    """
    name = debug_name(debugContext, "roiAlign")
    grid = _grid(name, bottomData, bottomRois, bottomBatchIndex, params)
    batch, channels, *_ = bottomData.shape
    regions, samples = bottomRois.dim(0), params.samplingRatio
    bins = params.poolH * params.poolW
    with graph.debug_scope(name, "popnn"):
        shape = [regions, channels, samples, samples, params.poolH, params.poolW]
        values = graph.addVariable(bottomData.dtype, shape, f"{name}/topDataGrid")
        work = _Work.of(regions, channels, samples)
        count = work.region * 0 + bins
        tile = np.arange(len(count)) % graph.target.num_tiles
        begin = np.arange(len(count)) * bins
        graph.map_ranges(values, begin, begin + bins, tile)
        fields = work.inputs(bottomRois, bottomBatchIndex)
        fields["bottom_data"] = _maps("bottom_data", bottomData, work.channel)
        fields["top_data_grid"] = cut_field(
            "top_data_grid", "output", values.flatten(), begin, begin + bins
        )
        compute_set = graph.addComputeSet(f"{name}/roiAlignCS")
        codelet = vertices.roi_align_codelet(bottomData.dtype, grid)
        cycles = vertices.roi_align(count)
        graph.add_vertices(
            VertexGroup(compute_set.id, codelet, tile, fields, work.parameters(), cycles)
        )
        prog.add(Execute(compute_set))
        total = popops.reduce(
            graph, values, values.dtype, [2, 3], popops.Operation.ADD, prog, f"{name}/topData"
        )
        return popops.div(graph, total, float(samples**2), prog, f"{name}/topDataDiv")


@library_call("POPNN")
def roiAlignInputGradient(
    graph: Graph,
    prog: Sequence,
    bottomData: Tensor,
    bottomRois: Tensor,
    bottomBatchIndex: Tensor,
    topDataGrad: Tensor,
    params: roiAlignParams,
    debugContext: str = "",
) -> Tensor:
    """Return the gradient of the map by that of the pooled regions.

    As many regions as keep all workers busy are added to maps of their own at once, then summed.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.experimental.roiAlignParams(1, 1, 1, False, 1.0)
    >>> image = trial.tensor([[[[1.0, 2.0], [3.0, 8.0]]]])
    >>> region = trial.tensor([[0.0, 0.0, 2.0, 2.0]])  # its middle is the element below right
    >>> operands = image, region, trial.tensor([0]), trial.tensor([[[[10.0]]]]), params
    >>> back = popnn.experimental.roiAlignInputGradient(trial.graph, trial.prog, *operands)
    >>> trial.values(back)
    [[[[0.0, 0.0], [0.0, 10.0]]]]
    """
    name = debug_name(debugContext, "roiAlignGrad")
    grid = _grid(name, bottomData, bottomRois, bottomBatchIndex, params)
    regions, channels, samples = bottomRois.dim(0), bottomData.dim(1), params.samplingRatio
    _check_gradient(name, topDataGrad, bottomData, (regions, channels, params.poolH, params.poolW))
    bins, target = params.poolH * params.poolW, graph.target
    least = ceil_div(target.workers * target.num_tiles, channels * samples**2)
    together = min(regions, least)
    with graph.debug_scope(name, "popnn"):
        maps = _empty_maps(graph, bottomData, together, samples, prog, name)
        work = _Work.of(regions, channels, samples)
        slot = work.region % together
        by_slot = maps.dimShuffle([1, 2, 3, 4, 0, 5, 6]).flatten()
        elements = bottomData.numElements() // channels
        place = (((work.channel * together + slot) * samples + work.iy) * samples) + work.ix
        head = (work.region * channels + work.channel) * bins
        codelet = vertices.roi_align_gradient_codelet(bottomData.dtype, grid)
        for first in range(0, regions, together):  # each adds to the maps of the one before
            mine = (work.region >= first) & (work.region < first + together)
            part = work.where(mine)
            fields = part.inputs(bottomRois, bottomBatchIndex)
            fields["top_diff"] = cut_field(
                "top_diff", "input", topDataGrad.flatten(), head[mine], head[mine] + bins
            )
            at = place[mine] * elements
            fields["bottom_diff"] = cut_field("bottom_diff", "inout", by_slot, at, at + elements)
            compute_set = graph.addComputeSet(f"{name}/roiAlignGradCS_{first // together}")
            cycles = vertices.roi_align_gradient(np.full(len(at), bins))
            tiles = (part.channel * together + slot[mine]) % target.num_tiles
            graph.add_vertices(
                VertexGroup(compute_set.id, codelet, tiles, fields, part.parameters(), cycles)
            )
            prog.add(Execute(compute_set))
        return popops.reduce(
            graph, maps, maps.dtype, [2, 3, 4], popops.Operation.ADD, prog, f"{name}/gradCSReduce"
        )


def _check_gradient(name: str, gradient: Tensor, data: Tensor, pooled: tuple[int, ...]) -> None:
    """Raise poplibs_error where a gradient is not of the pooled regions' shape and type."""
    if gradient.shape != pooled or gradient.dtype != data.dtype:
        needed = f"{data.dtype}{list(pooled)}"
        raise poplibs_error(f"{name}: gradient {gradient!r}; {needed} is needed")


def _empty_maps(
    graph: Graph, data: Tensor, together: int, samples: int, prog: Sequence, name: str
) -> Tensor:
    """Add maps of zeros, [batch, channel, region, sample, sample, height, width].

    Those of a channel and region lie on one tile.
    """
    batch, channels, height, width = data.shape
    shape = [batch, channels, together, samples, samples, height, width]
    maps = graph.addVariable(data.dtype, shape, f"{name}/bottomBuffGrad")
    own, elements = channels * together, samples**2 * height * width
    begin = np.arange(batch * own) * elements
    tile = np.tile(np.arange(own) % graph.target.num_tiles, batch)
    graph.map_ranges(maps, begin, begin + elements, tile)
    popops.fill(graph, maps, prog, 0.0, f"{name}/zero")
    return maps


def _grid(name: str, data: Tensor, rois: Tensor, index: Tensor, params: roiAlignParams) -> Grid:
    """Return the sizes of a pooling; raises poplibs_error for what does not fit."""
    if data.rank() != 4 or data.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: map {data!r}; float or half of four dimensions is needed")
    if rois.rank() != 2 or rois.dim(1) != 4 or rois.dtype != data.dtype:
        raise poplibs_error(f"{name}: regions {rois!r}; {data.dtype}[regions, 4] is needed")
    if index.shape != rois.shape[:1] or index.dtype != INT:
        raise poplibs_error(f"{name}: images {index!r}; int[{rois.dim(0)}] is needed")
    if min(params.samplingRatio, params.poolH, params.poolW) < 1 or params.spatialScale <= 0:
        raise poplibs_error(f"{name}: {params}; samples, bins and scale are above 0")
    height, width = data.shape[2:]
    bins = (params.poolH, params.poolW)
    return Grid(height, width, *bins, params.samplingRatio, params.aligned, params.spatialScale)


def _maps(label: str, data: Tensor, channel: IntArray) -> Field:
    """Return for each vertex the maps of its channel, of all images."""
    batch, channels, height, width = data.shape
    size = height * width
    first = (np.arange(batch) * channels + channel[:, None]).reshape(-1) * size
    return cut_ranges(
        label,
        "input",
        data.flatten(),
        first,
        first + size,
        np.full(len(channel), batch),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The region, channel and sample of a bin of each vertex."""

    region: IntArray
    channel: IntArray
    iy: IntArray
    ix: IntArray

    @staticmethod
    def of(regions: int, channels: int, samples: int) -> _Work:
        indices = np.indices((regions, channels, samples, samples)).reshape(4, -1)
        return _Work(*indices)

    def where(self, mask: BoolArray) -> _Work:
        """Return the work of some vertices."""
        return _Work(*(part[mask] for part in (self.region, self.channel, self.iy, self.ix)))

    def inputs(self, rois: Tensor, index: Tensor) -> dict[str, Field]:
        """Return the fields of a region and its image."""
        region = self.region
        return {
            "bottom_rois": cut_field(
                "bottom_rois", "input", rois.flatten(), region * 4, region * 4 + 4
            ),
            "batch_index": cut_field("batch_index", "input", index, region, region + 1),
        }

    def parameters(self) -> dict[str, IntArray]:
        """Return what each vertex holds."""
        return {"iy": self.iy, "ix": self.ix}
