"""The memory of a made report: what lies where on each tile, and what is live when.

A variable is always live, or live in the first or in the second half of the program; the two
halves share their addresses. In each region of a tile code comes first (non-interleaved), then
what is always live, then what is not always live.
"""

from __future__ import annotations

import numpy as np

from benchmarks.synthetic.size import INTERLEAVED_BASE, Columns, Size, Values, names, used_tiles
from pva import schema

ALWAYS, FIRST, SECOND = range(3)
HALF = 2  # bytes of an element
CODE = {
    "controlCode": 6000, "internalExchangeCode": 20_000, "vertexCode": 12_000, "stack": 1024,
    "vertexInstanceState": 9000, "vertexFieldData": 3000, "hostExchangeCode": 800,
    "globalExchangeCode": 900, "vectorListDescriptor": 1500, "copyDescriptor": 400,
}  # fmt: skip
KINDS = ("variable", "constant", "message", "rearrangement", "outputEdge")
CATEGORY = {name: code for code, name in enumerate(schema.CATEGORIES)}


def contents(
    size: Size, numbers: np.random.Generator
) -> tuple[dict[str, Columns], dict[str, Values]]:
    """Return the tables and arrays of memory and liveness."""
    code = np.stack([at_most - numbers.integers(0, at_most // 4, size.tiles) // 4 * 4
                     for at_most in CODE.values()])  # fmt: skip
    variables, when = _variables(size, numbers)
    pieces = _pieces(size, numbers, code.sum(axis=0), when)
    sizes = np.bincount(pieces["variable"], pieces["bytes"], size.variables).astype(np.int64)
    variables["bytes"] = sizes
    variables["shape"] = [f"{size // HALF}" for size in sizes.tolist()]
    lives = _lives(size, numbers, when)
    tables, arrays = _liveness(size, pieces, lives, code, variables)
    tables |= {"variables": variables, "variable_pieces": pieces, "variable_intervals": lives}
    more, by_category = _regions(size, code, pieces, when, np.asarray(variables["category"]))
    arrays |= {"memory_by_category": by_category, **_vertex_types(size, numbers)}
    return tables | more, arrays


def _variables(size: Size, numbers: np.random.Generator) -> tuple[Columns, Values]:
    when = numbers.choice(3, size.variables, p=(0.25, 0.375, 0.375))
    kinds = np.array([CATEGORY[kind] for kind in KINDS])
    category = kinds[numbers.integers(2, len(KINDS), size.variables)]
    constants = kinds[(np.arange(size.variables) % 10 == 0).astype(int)]
    columns: Columns = {
        "name": names("weights", size.variables), "type": ["half"] * size.variables,
        "category": np.where(when == ALWAYS, constants, category), "always_live": when == ALWAYS,
        "debug_context": np.arange(size.variables) % size.debug_contexts + 1,
    }  # fmt: skip
    return columns, when


def _pieces(size: Size, numbers: np.random.Generator, code: Values, when: Values) -> Columns:
    """Lay pieces one behind the other on their tile, in their region and half of the program."""
    variable = np.repeat(np.arange(size.variables), size.pieces_per_variable)
    first = numbers.integers(0, size.tiles, size.variables)
    tile = (first[variable] + np.tile(np.arange(size.pieces_per_variable), size.variables)) % (
        size.tiles
    )
    region = (variable % 5 == 0).astype(np.int64)
    length = 4 * numbers.integers(8, 800, len(variable))
    group = (tile * 2 + region) * 3 + when[variable]
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(length[order])
    starts = np.searchsorted(group[order], group[order])
    inside = np.empty_like(ends)
    inside[order] = ends - length[order] - (ends - length[order])[starts]
    always = np.bincount(group, length, size.tiles * 6).astype(np.int64).reshape(-1, 2, 3)[..., 0]
    begin = np.where(region, INTERLEAVED_BASE, code[tile])
    begin += np.where(when[variable] == ALWAYS, 0, always[tile, region])
    return {"variable": variable, "tile": tile, "address": begin + inside, "region": region,
            "bytes": length}  # fmt: skip


def _lives(size: Size, numbers: np.random.Generator, when: Values) -> Columns:
    """Draw one life for each variable that is not always live, within its half."""
    variable = np.flatnonzero(when != ALWAYS)
    half = size.programs // 2
    begin = numbers.integers(0, half, len(variable))
    length = 1 + np.minimum(half - begin - 1, numbers.geometric(20 / half, len(variable)))
    begin += half * (when[variable] == SECOND)
    return {"variable": variable, "begin": begin, "end": begin + length}


def _liveness(
    size: Size, pieces: Columns, lives: Columns, code: Values, variables: Columns
) -> tuple[dict[str, Columns], dict[str, Values]]:
    """Return what is live at each program step, and what is always live."""
    variable, begin, end = (np.asarray(values) for values in lives.values())
    sizes, tile = np.asarray(pieces["bytes"]), np.asarray(pieces["tile"])
    by_ipu = np.zeros((size.variables, size.ipus), dtype=np.int64)
    np.add.at(by_ipu, (np.asarray(pieces["variable"]), tile // size.tiles_per_ipu), sizes)
    change = np.zeros((size.programs + 1, size.ipus), dtype=np.int64)
    np.add.at(change, begin, by_ipu[variable])
    np.subtract.at(change, end, by_ipu[variable])
    live = np.cumsum(change, axis=0)[:-1]
    always = np.asarray(variables["always_live"])
    fixed = always[np.asarray(pieces["variable"])]
    always_bytes = code.sum(axis=0) + np.bincount(tile[fixed], sizes[fixed], size.tiles).astype(int)
    always_names = [*CODE, *np.asarray(variables["name"], dtype=object)[always]]
    always_sizes = np.concatenate((code.sum(axis=1), np.asarray(variables["bytes"])[always]))
    tables: dict[str, Columns] = {
        "liveness": {"max_bytes": [int(live.sum(axis=1).max())]},
        "liveness_steps": {"program": np.arange(size.programs), "bytes": live.sum(axis=1)},
        "always_live_variables": {"name": always_names, "bytes": always_sizes},
    }
    return tables, {
        "always_live_bytes": always_bytes,
        "not_always_live_max_bytes": _peaks(size, pieces, lives),
        "liveness_bytes_by_ipu": live,
    }


def _peaks(size: Size, pieces: Columns, lives: Columns) -> Values:
    """Return the most that is live on each tile: what dies at a step leaves before what is born."""
    life = np.full(size.variables, -1)
    life[np.asarray(lives["variable"])] = np.arange(len(np.asarray(lives["variable"])))
    rows = life[np.asarray(pieces["variable"])]
    going = rows >= 0
    tile, sizes = np.asarray(pieces["tile"])[going], np.asarray(pieces["bytes"])[going]
    when = np.concatenate([np.asarray(lives[name])[rows[going]] for name in ("end", "begin")])
    change = np.concatenate((-sizes, sizes))
    where = np.concatenate((tile, tile))
    order = np.lexsort((change, when, where))
    peaks = np.zeros(size.tiles, dtype=np.int64)
    np.maximum.at(peaks, where[order], np.cumsum(change[order]))
    return peaks


def _regions(
    size: Size, code: Values, pieces: Columns, when: Values, category: Values
) -> tuple[dict[str, Columns], Values]:
    """Return memory by tile and category; what shares addresses with the other half overlaps."""
    rows = np.asarray(pieces["variable"])
    tile, region, sizes = (np.asarray(pieces[name]) for name in ("tile", "region", "bytes"))
    by_category = np.zeros((len(schema.CATEGORIES), 3, 2, size.tiles), dtype=np.int64)
    np.add.at(by_category, (category[rows], region, (when[rows] != ALWAYS) + 0, tile), sizes)
    for name, values in zip(CODE, code, strict=True):
        by_category[CATEGORY[name], 0, 0] += values
    halves = np.zeros((3, 2, size.tiles), dtype=np.int64)
    np.add.at(halves, (when[rows], region, tile), sizes)
    plain, interleaved = halves[ALWAYS] + np.maximum(halves[FIRST], halves[SECOND])
    plain += code.sum(axis=0)
    nothing = np.zeros(size.tiles, dtype=np.int64)
    needs = np.where(interleaved > 0, INTERLEAVED_BASE + interleaved, plain)
    columns: Columns = {}
    for name, values in (
        ("interleaved", interleaved), ("non_interleaved", plain), ("overflowed", nothing),
    ):  # fmt: skip
        columns |= {name: values, f"{name}_including_gaps": values}
    columns |= {"total": plain + interleaved, "total_including_gaps": needs}
    return {"memory_by_tile": columns}, by_category


def _vertex_types(size: Size, numbers: np.random.Generator) -> dict[str, Values]:
    parts = [name for name, _, _ in schema.VERTEX_MEMORY_PARTS if name != "total"]
    used = used_tiles(numbers, size.vertex_types, size)
    found = {
        f"memory_by_vertex_type_{part}": np.where(used, 4 * numbers.integers(0, 600, used.shape), 0)
        for part in parts
    }
    total: Values = np.sum(list(found.values()), axis=0)
    return found | {"memory_by_vertex_type_total": total}
