"""Vertices that sample a feature map in regions of interest, and spread gradients over it.

PopLibs has no formula of theirs (its estimator says 10). Ours, ESTIMATE: 120 cycles of a sample of
the C++ codelet forward, 180 backward, as codelets of the same kind of arithmetic take.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from simulator.codelets.vertex_type import VertexTypes, worker
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands

SAMPLE, GRADIENT = 120, 180
ESTIMATE = "our estimate, of a C++ codelet"


def roi_align(samples: IntArray) -> IntArray:
    """120 a sample, a worker."""
    return SAMPLE * samples


def roi_align_gradient(samples: IntArray) -> IntArray:
    """180 a sample, a worker."""
    return GRADIENT * samples


TYPES = VertexTypes(
    (
        worker(
            "popnn::ROIAlignForward<type>",
            "bottom_data bottom_rois batch_index top_data_grid",
            roi_align,
            ESTIMATE,
            (80, 500),
            exact=False,
        ),
        worker(
            "popnn::ROIAlignBackward<type>",
            "top_diff bottom_rois batch_index bottom_diff",
            roi_align_gradient,
            ESTIMATE,
            (80, 560),
            exact=False,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Grid:
    """The sizes of a map, of the pooled region and of the grid of samples in each of its bins."""

    height: int
    width: int
    pooled_height: int
    pooled_width: int
    samples: int
    aligned: bool
    scale: float

    def corners(self, rois: Array, iy: IntArray, ix: IntArray) -> tuple[IntArray, Array]:
        """Return the four elements of a map [vertex, bin, 4] of each sample, and their weights.

        `iy` and `ix` are which sample of its bin. A sample beyond the map has no weights.
        """
        dtype = rois.dtype.type
        shift, least = (dtype(0.5), dtype(0)) if self.aligned else (dtype(0), dtype(1))
        edges = rois * dtype(self.scale) - shift
        starts = [edges[:, 1], edges[:, 0]]
        lengths = [np.maximum(edges[:, axis + 2] - edges[:, axis], least) for axis in (1, 0)]
        pooled, sizes = (self.pooled_height, self.pooled_width), (self.height, self.width)
        low, high, ratio, inside = [], [], [], []
        for start, length, bins, size, which in zip(
            starts, lengths, pooled, sizes, (iy, ix), strict=True
        ):
            step = length / dtype(bins)
            at = start + (dtype(0.5) + which.astype(dtype)) * (step / dtype(self.samples))
            place = at[:, None] + np.arange(bins, dtype=dtype) * step[:, None]
            inside.append(place <= size)
            place = np.maximum(place, dtype(0))
            floor = np.minimum(np.floor(place).astype(np.int64), size - 1)
            low.append(floor)
            high.append(np.where(floor >= size - 1, floor, floor + 1))
            ratio.append(place - floor.astype(dtype))
        rows = [low[0][:, :, None], high[0][:, :, None]]
        columns = [low[1][:, None, :], high[1][:, None, :]]
        by_row = [1 - ratio[0][:, :, None], ratio[0][:, :, None]]
        by_column = [1 - ratio[1][:, None, :], ratio[1][:, None, :]]
        pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
        places = np.stack([rows[a] * self.width + columns[b] for a, b in pairs], -1)
        weights = np.stack([by_row[a] * by_column[b] for a, b in pairs], -1)
        valid = inside[0][:, :, None] & inside[1][:, None, :]
        weights = np.where(valid[..., None], weights, dtype(0))
        count = len(rois)
        return places.reshape(count, -1, 4), weights.reshape(count, -1, 4)


def _samples(operands: Operands, grid: Grid) -> tuple[IntArray, Array, IntArray]:
    """Return the elements and weights of all samples, and where each vertex's map begins."""
    parameters, arrays = operands.group.parameters, operands.arrays
    vertices = len(operands.group)
    rois = arrays["bottom_rois"].reshape(vertices, 4)
    places, weights = grid.corners(rois, parameters["iy"], parameters["ix"])
    image = arrays["batch_index"].astype(np.int64)
    return places, weights, image * (grid.height * grid.width)


@cache
def roi_align_codelet(dtype: Type, grid: Grid) -> Codelet:
    """Return the worker that takes a sample of each bin of a region, of one channel."""

    def compute(operands: Operands) -> dict[str, Array]:
        places, weights, image = _samples(operands, grid)
        begins = offsets_of(operands.counts["bottom_data"])[:-1] + image
        values = operands.arrays["bottom_data"][places + begins[:, None, None]]
        return {"top_data_grid": (values * weights).sum(axis=2, dtype=dtype.numpy).reshape(-1)}

    return TYPES.codelet(f"popnn::ROIAlignForward<{dtype}>", compute)


@cache
def roi_align_gradient_codelet(dtype: Type, grid: Grid) -> Codelet:
    """Return the worker that adds the gradients of a sample of each bin to a map."""

    def compute(operands: Operands) -> dict[str, Array]:
        places, weights, image = _samples(operands, grid)
        begins = offsets_of(operands.counts["bottom_diff"])[:-1] + image
        gradient = operands.arrays["top_diff"].reshape(len(places), -1, 1)
        shares = weights * gradient / dtype.numpy.type(grid.samples**2)
        out = operands.arrays["bottom_diff"]
        np.add.at(out, places + begins[:, None, None], shares)
        return {"bottom_diff": out}

    return TYPES.codelet(f"popnn::ROIAlignBackward<{dtype}>", compute)
