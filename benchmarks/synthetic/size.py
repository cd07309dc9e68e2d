"""How large a made report is, and the numbers that all of its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]
Columns = dict[str, npt.ArrayLike]


@dataclass(frozen=True, slots=True)
class Size:
    """Counts of a report; the defaults are those of a training step on four Mk2 IPUs."""

    ipus: int = 4
    tiles_per_ipu: int = 1472
    compute_sets: int = 500
    vertex_types: int = 60
    exchanges: int = 700
    external_exchanges: int = 40
    host_exchanges: int = 40
    programs: int = 20_000
    body_segments: int = 583
    variables: int = 40_000
    pieces_per_variable: int = 4
    debug_contexts: int = 3_000
    runs: int = 2
    steps: int = 3_500

    @property
    def tiles(self) -> int:
        """Tiles of all IPUs."""
        return self.ipus * self.tiles_per_ipu

    @property
    def body_steps(self) -> int:
        """Steps of one pass through the body: three a segment, and a stream copy."""
        return 3 * self.body_segments + 1

    @property
    def iterations(self) -> int:
        """Passes through the body in each run, so that there are at least `steps` steps."""
        return -(-self.steps // (self.runs * self.body_steps))


BYTES_PER_TILE = 638_976
INTERLEAVED_BASE = 319_488
CLOCK = 1.33e9
LAYERS = ("embedding", "attention/query", "attention/scores", "mlp/up", "mlp/down", "norm", "loss")


def names(what: str, count: int) -> list[str]:
    """Return debug names as a model of several layers has them."""
    return [
        f"layer{row // len(LAYERS) % 48}/{LAYERS[row % len(LAYERS)]}/{what}_{row}"
        for row in range(count)
    ]


def used_tiles(numbers: np.random.Generator, rows: int, size: Size) -> Values:
    """Draw which tiles take part, [row][tile]: a range on each IPU, never empty."""
    place = np.arange(size.tiles_per_ipu)
    first = numbers.integers(0, size.tiles_per_ipu, rows)[:, None]
    length = numbers.integers(size.tiles_per_ipu // 2, size.tiles_per_ipu + 1, rows)[:, None]
    return np.tile((place - first) % size.tiles_per_ipu < length, (1, size.ipus))
