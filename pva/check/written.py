"""Laws about the programs as they were written and what they were compiled to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.by_row import of_tiles
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()
# Of a written program of a type: what one that it became, of another type, tells likewise.
KEPT = (
    ("Execute", "OnTileExecute", "compute_set"),
    ("Call", "Call", "target"),
    ("Repeat", "Repeat", "count"),
)


# The columns that programs of some types alone tell, in the stage before compilation and after it.
CARRIERS = {
    "DoExchange": "exchange", "GlobalExchange": "external_exchange", "StreamCopy": "host_exchange",
}  # fmt: skip
EXCHANGES = ("DoExchange", "GlobalExchange", "StreamCopy", "CopySharedStructure")
OF_TYPES = (
    ("written_programs", "compute_set", ("Execute",)),
    ("written_programs", "target", ("Call",)),
    ("written_programs", "count", ("Repeat",)),
    ("programs", "compute_set", ("OnTileExecute",)),
    ("programs", "exchange", EXCHANGES),
    ("programs", "target", ("Call",)),
    ("programs", "count", ("Repeat",)),
)


# What holds other programs, and which branch of it each of them is.
HOLDERS = {
    "Sequence": ("",), "Block": ("",), "Repeat": ("",), "RepeatWhile": ("condition", "body"),
    "RepeatWhileTrue": ("condition", "body"), "RepeatWhileFalse": ("condition", "body"),
    "If": ("true", "false"), "IfElse": ("true", "false"), "Switch": ("case", "default"),
    "OnEveryTileSwitch": ("case", "default"),
}  # fmt: skip
OUTERMOST = ""


@LAWS.needing("programs", "written_programs")
def programs_tell_only_what_their_type_has(data: Dataset) -> Iterator[Violation]:
    """Only what runs a compute set has one, only a call a function, only a repeat a count."""
    for table, column, tags in OF_TYPES:
        values, mine = data.column(table, column), np.isin(data.texts(table, "type"), tags)
        subject = f"{column} of no {' or '.join(tags)}, {table}"
        yield from equal(values[~mine], -1, subject, "number")
        if len(tags) == 1:  # not every exchange has a row
            yield from at_most(0, values[mine], f"least {column} of {tags[0]}, {table}", "number")


@LAWS.needing("programs", "program_children")
def only_some_programs_hold_others(data: Dataset) -> Iterator[Violation]:
    """What computes, exchanges, syncs or calls has no programs inside it."""
    above = data.texts("programs", "type")[data.column("program_children", "program")]
    yield from equal(np.isin(above, list(HOLDERS)), True, "whether it holds programs", "child")


@LAWS.needing("written_programs")
def written_programs_are_branches_of_those_around_them(data: Dataset) -> Iterator[Violation]:
    """A program as written is in one that holds others, as a branch that its type has."""
    parent = data.column("written_programs", "parent")
    types = np.append(data.texts("written_programs", "type"), OUTERMOST)[parent]
    roles = [str(role).partition(" ")[0] for role in data.column("written_programs", "role")]
    branches = {OUTERMOST: ("",)} | HOLDERS
    fits = [role in branches.get(kind, ()) for kind, role in zip(types, roles, strict=True)]
    yield from equal(fits, True, "whether that around it has such a branch", "written program")


@LAWS.needing("written_programs", "written_results", "programs", "host_exchange_bytes_sent")
def copies_move_what_their_exchanges_carry(data: Dataset) -> Iterator[Violation]:
    """A copy moves no less than what tiles get for it, and with the host no more than goes over."""
    origins, copy = _origins(data), schema.WRITTEN_TYPES.index("Copy")
    sizes = data.column("written_programs", "bytes")
    carried = {
        tag: _carried(data, tag, exchange, origins)
        for tag, exchange in CARRIERS.items()
        if data.has(f"{exchange}_bytes_received")
    }
    outside = carried.pop("StreamCopy", np.zeros_like(sizes))
    inside = sum(carried.values(), np.zeros_like(sizes))
    mine = (data.column("written_programs", "type") == copy) & (sizes >= 0)
    host, device = mine & (outside > 0), mine & (outside == 0)
    yield from at_most(sizes[host], outside[host], "bytes", "copy with the host", "carried are")
    yield from at_most(inside[device], sizes[device], "bytes that tiles get", "copy", "it moves")


@LAWS.needing("programs", "written_results")
def programs_are_made_of_one_written_program(data: Dataset) -> Iterator[Violation]:
    """No program was compiled from two places of the programs as written."""
    origin_counts = np.bincount(data.column("written_results", "program"), minlength=1)
    yield from equal(np.maximum(origin_counts, 1), 1, "written programs", "program")


@LAWS.needing("programs", "program_children", "written_programs", "written_results", walks=True)
def programs_lie_in_each_other_as_they_were_written(data: Dataset) -> Iterator[Violation]:
    """What a program lies in was made of the same written program, or of the one around that."""
    origins = _origins(data)
    above, below = (origins[data.column("program_children", c)] for c in ("program", "child"))
    around = np.append(data.column("written_programs", "parent"), -1)[below]
    # Of the compiler's own, -1, nothing is inside what was written.
    wrong = np.flatnonzero((above != below) & ((above != around) | (below < 0)))
    if len(wrong):
        child = data.column("program_children", "child")[wrong[0]]
        place = f"program {child}, of written program {below[wrong[0]]}"
        problem = f"in one of written program {above[wrong[0]]}"
        yield Violation(place, problem, f"in one of {around[wrong[0]]}", len(wrong))


@LAWS.needing("programs", "written_programs", "written_results")
def programs_do_what_was_written(data: Dataset) -> Iterator[Violation]:
    """A program that runs a compute set, a function or a loop is of one that says the same."""
    origins = _origins(data)
    types, written_types = (data.texts(t, "type") for t in ("programs", "written_programs"))
    for written, tag, column in KEPT:
        compiled = np.flatnonzero((types == tag) & (origins >= 0))
        compiled = compiled[written_types[origins[compiled]] == written]
        as_written = data.column("written_programs", column)[origins[compiled]]
        as_compiled = data.column("programs", column)[compiled]
        # Around the vertices of a compute set there are copies on tiles, in sets of their own.
        if written == "Execute":
            agrees = np.isin(origins[compiled], origins[compiled[as_compiled == as_written]])
            as_written, as_compiled = np.where(agrees, as_compiled, as_written), as_compiled
        yield from equal(as_compiled, as_written, f"{column} of {tag}", "number")


@LAWS.needing("steps", "runs", "programs", "written_programs", "written_results",
              "function_programs")  # fmt: skip
def runs_execute_their_program(data: Dataset) -> Iterator[Violation]:
    """The steps of a run come from the program that was run, or from a function."""
    parent = data.column("written_programs", "parent")
    outermost = np.where(parent < 0, np.arange(len(parent)), parent)
    for _ in range(len(parent).bit_length()):  # each time twice as far out
        outermost = outermost[outermost]
    roots = np.flatnonzero(parent < 0)
    roots = roots[: len(roots) - data.length("function_programs")]  # functions are the last
    program, run = (data.column("steps", name) for name in ("program", "run"))
    origin = _origins(data)[program]
    from_root = (program >= 0) & (run >= 0) & (origin >= 0)
    from_root &= np.isin(outermost[origin], roots)
    of_step = np.searchsorted(roots, outermost[origin])[from_root]
    of_run = data.column("runs", "program")[run][from_root]
    yield from equal(of_step, of_run, "program of a step", "number", "its run is of")


@LAWS.needing("runs", "written_programs", "function_programs")
def runs_are_of_programs_that_were_written(data: Dataset) -> Iterator[Violation]:
    """The program of a run is one of those that were given to the engine."""
    outermost = int((data.column("written_programs", "parent") < 0).sum())
    last = outermost - data.length("function_programs") - 1
    for table in ("runs", "other_runs"):
        if data.has(table):
            yield from at_most(data.column(table, "program"), last, f"program, {table}", "run")


def _carried(data: Dataset, tag: str, exchange: str, origins: Values) -> Values:
    """Sum by written program what its exchanges of a type carry; with the host, either way."""
    exchanges = data.column("programs", "exchange")
    rows = (data.texts("programs", "type") == tag) & (origins >= 0) & (exchanges >= 0)
    ways = ("received", "sent") if tag == "StreamCopy" else ("received",)
    moved = np.sum([of_tiles(data, f"{exchange}_bytes_{way}").sums for way in ways], axis=0)
    total = np.zeros(data.length("written_programs"), dtype=np.int64)
    np.add.at(total, origins[rows], moved[exchanges[rows]])
    return total


def _origins(data: Dataset) -> Values:
    """Return by program the row of the written program that it was made of, -1 for none."""
    origins = np.full(data.length("programs"), -1)
    results = data.table("written_results")
    origins[results["program"]] = results["written"]
    return origins
