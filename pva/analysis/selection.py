"""What every analysis needs: a chosen tile, step or run that exists, and the names of programs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.errors import PvaError

if TYPE_CHECKING:
    from pva.report import Report


class SelectionError(PvaError):
    """A tile, step, IPU or run was asked for that the report does not have."""


def chosen(noun: str, number: int, count: int) -> int:
    """Return `number` back when it is one of 0 to `count` - 1; raises SelectionError.

    A row of a frame may have it as a float: 3.0 is 3, and 3.5 is not there.
    """
    with suppress(TypeError, ValueError):  # a text, an array
        if 0 <= number < count and int(number) == number:
            return int(number)
    valid = f"the report has {noun}s 0 to {count - 1:,}" if count else f"the report has no {noun}s"
    shown = repr(number) if isinstance(number, str) else number
    raise SelectionError(f"{noun} {shown}", "not there", valid)


def several(noun: str, numbers: int | Iterable[int], count: int) -> list[int]:
    """Return the numbers chosen, each once: of a list, of an array, or one by itself.

    Raises SelectionError.
    """
    values: Any = [numbers] if isinstance(numbers, str) else np.ravel(np.asarray(numbers)).tolist()
    return list(dict.fromkeys(chosen(noun, number, count) for number in values))


def rows_wanted(count: int) -> int:
    """Return `count` back when so many rows can be given; raises SelectionError."""
    if isinstance(count, str):
        raise SelectionError(f"count {count!r}", "no number", "give how many rows")
    if count < 0:
        raise SelectionError(f"count {count}", "less than 0", "give how many rows")
    return count


def tile_count(report: Report) -> int:
    """Count the tiles of one replica: what is held by tile is of one, as all are alike."""
    return report.dataset.of_replica("num_tiles")


def program_texts(report: Report, programs: npt.NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Return the type and the name of each program; a row outside the table is "unknown"."""
    types = np.append(report.dataset.texts("programs", "type"), "unknown")
    names = np.append(report.dataset.column("programs", "name"), "")
    last = len(types) - 1
    rows = np.where((programs >= 0) & (programs < last), programs, last)
    return types[rows].tolist(), names[rows].tolist()


def tiles_of(
    report: Report,
    *,
    ipu: int | None = None,
    replica: int | None = None,
    tile: int | None = None,
) -> slice:
    """Return one tile, the tiles of an IPU, or by default all; of any replica the same ones.

    Raises SelectionError when it is not there, or has no tiles.
    """
    data = report.dataset
    count = tile_count(report)
    if tile is not None:
        first = chosen("tile", tile, count)
        return slice(first, first + 1)
    if ipu is not None:
        per_ipu = int(data.value("target", "tiles_per_ipu"))
        number = chosen("IPU", ipu, data.of_replica("num_ipus"))
    else:
        per_ipu, number = count, 0
    if replica is not None:
        chosen("replica", replica, max(int(data.value("target", "num_replicas")), 1))
    if not 0 < per_ipu <= count:
        raise SelectionError(f"IPU or replica {number}", f"{per_ipu:,} tiles, of {count:,} in all")
    return slice(number * per_ipu, (number + 1) * per_ipu)
