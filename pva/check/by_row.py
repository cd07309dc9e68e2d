"""What several laws ask of the rows of an array by tile: found once a report, and kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import InconsistentDataError


class Rows(NamedTuple):
    """Of rows, or of rows on each IPU: the sum, the most, how many tiles are above 0, and all."""

    sums: Values
    most: Values
    active: Values
    tiles: int


def of_tiles(data: Dataset, array: str) -> Rows:
    """Return the figures of each row of an array over all tiles."""
    return data.kept(("rows", array), lambda read: _figures(read.array(array)))


def of_ipus(data: Dataset, array: str) -> Rows:
    """Return the figures of each row of an array on each IPU: [row][IPU].

    Raises InconsistentDataError when the tiles are not those of whole IPUs.
    """
    return data.kept(("rows by ipu", array), lambda read: _figures(on_ipus(read, array)))


def on_ipus(data: Dataset, array: str) -> Values:
    """Return an array by row, IPU and tile of the IPU; raises InconsistentDataError."""
    values = data.array(array)
    per_ipu = int(data.value("target", "tiles_per_ipu"))
    ipus, remainder = divmod(values.shape[1], per_ipu)
    if remainder:
        problem, remedy = f"{values.shape[1]} tiles", f"IPUs of {per_ipu}"
        raise InconsistentDataError(array, problem, remedy, place="target.tiles_per_ipu")
    return values.reshape(len(values), ipus, per_ipu)


def _figures(values: Values) -> Rows:
    active = np.count_nonzero(values > 0, axis=-1)
    sums, most = values.sum(axis=-1), values.max(axis=-1, initial=0)
    return Rows(sums, most, active, values.shape[-1])
