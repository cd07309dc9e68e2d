"""Which tiles take part in a step: all of them, those that compute, or the I/O tiles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset

ALL, COMPUTE, IO = range(len(schema.TILE_SETS))


def has_io_tiles(data: Dataset) -> bool:
    """Return whether some tiles only exchange, while the others compute."""
    return data.length("io_tiles") > 0 and data.has("target")


def tiles_of_sets(data: Dataset) -> npt.NDArray[np.bool_]:
    """Return by [tile set][tile] of a replica which tiles are of it; all are, without I/O tiles."""
    tiles = max(data.of_replica("num_tiles"), 0)
    result = np.ones((len(schema.TILE_SETS), tiles), dtype=np.bool_)
    if has_io_tiles(data):
        per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
        result[IO] = np.isin(np.arange(tiles) % per_ipu, data.column("io_tiles", "tile"))
        result[COMPUTE] = ~result[IO]
    return result


def sets_of_steps(data: Dataset) -> npt.NDArray[np.integer]:
    """Return the code of each step's tile set, a place in schema.TILE_SETS."""
    if not (has_io_tiles(data) and data.has("programs")):
        return np.zeros(data.length("steps"), dtype=np.int64)
    codes: npt.NDArray[np.integer] = np.append(data.column("programs", "tile_set"), ALL)
    return codes[data.column("steps", "program")]
