"""Laws about tables that say the same thing twice: names, sizes, counts and shares."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()
BYTES = {
    "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "quarter": 1,
    "half": 2, "short": 2, "unsigned short": 2,
    "float": 4, "int": 4, "unsigned int": 4, "long": 4, "unsigned long": 4,
    "long long": 8, "unsigned long long": 8, "double": 8,
}  # fmt: skip
NONE = math.nan
SHAPE = re.compile(r"\d{1,18}(x\d{1,18})*")
PARTS = ("copy_pointers", "descriptors", "edge_pointers", "padding", "vertex_data")
PART_OF = ("instrumentationResults",)  # counters of a tile have memory beside variables
ALIGNMENT = 8  # bytes by which the state of a vertex may differ from its type's, at most
POINTER = 8  # bytes of one to an edge at most, its length among them
LEAST_POINTER = 2
PLAIN_HOLDERS = ("Sequence", "Repeat", "Call")
COPY_POINTERS = "memory_by_vertex_type_copy_pointers"


@LAWS.needing("variables", "target")
def variables_have_the_bytes_of_their_shape(data: Dataset) -> Iterator[Violation]:
    """A variable has the bytes of its shape, or those of one replica's part of it."""
    types, shapes, sizes = (data.column("variables", name) for name in ("type", "shape", "bytes"))
    counts = {shape: _elements(shape) for shape in set(shapes)}
    shape_bytes = [
        BYTES.get(kind, NONE) * counts[shape] for kind, shape in zip(types, shapes, strict=True)
    ]
    bytes_of_shape = np.array(shape_bytes, dtype=float)
    has_shape = ~np.isnan(bytes_of_shape)
    recorded, expected = sizes[has_shape].astype(float), bytes_of_shape[has_shape]
    replicas = max(int(data.value("target", "num_replicas")), 1)
    expected = np.where(recorded * replicas == expected, recorded, expected)
    yield from equal(recorded, expected, "bytes", "variable with a shape", "its shape has")


def _elements(shape: str) -> float:
    """Return the elements of a shape such as 16x64; not a number where the text is none."""
    return math.prod(map(int, shape.split("x"))) if SHAPE.fullmatch(shape) else NONE


@LAWS.needing("variables", "variable_pieces", "memory_by_category")
def pieces_are_those_of_their_category(data: Dataset) -> Iterator[Violation]:
    """The pieces of the variables of a category are its memory on each tile."""
    pieces = data.table("variable_pieces")
    category = data.column("variables", "category")[pieces["variable"]]
    memory = data.array("memory_by_category").sum(axis=(1, 2))
    of_pieces = np.zeros_like(memory)
    np.add.at(of_pieces, (category, pieces["tile"]), pieces["bytes"])
    has_variables = np.isin(np.arange(len(memory)), category)
    for row in np.flatnonzero(has_variables):
        subject = f"bytes of {schema.CATEGORIES[row]}"
        compare = at_most if schema.CATEGORIES[row] in PART_OF else equal
        yield from compare(of_pieces[row], memory[row], subject, "tile")


@LAWS.needing("always_live_variables", "variables", "memory_by_category")
def always_live_names_are_known(data: Dataset) -> Iterator[Violation]:
    """Each always-live name is a variable that is always live, or a category, with its bytes."""
    always = data.column("variables", "always_live")
    bytes_of_name = dict.fromkeys(schema.CATEGORIES, 0)
    sums = data.array("memory_by_category").sum(axis=(1, 2, 3)).tolist()
    bytes_of_name.update(zip(schema.CATEGORIES, sums, strict=True))
    variables: dict[str, int] = {}
    names, sizes = (data.column("variables", name)[always] for name in ("name", "bytes"))
    for name, size in zip(names, sizes.tolist(), strict=True):
        variables[name] = variables.get(name, 0) + size
    listed: dict[str, int] = {}
    rows = (data.column("always_live_variables", name).tolist() for name in ("name", "bytes"))
    for name, size in zip(*rows, strict=True):
        listed[name] = listed.get(name, 0) + size
    bytes_of_name.update(variables)
    if variables:  # other writers list no variables that are always live
        is_listed = [name in bytes_of_name for name in listed]
        yield from equal(
            is_listed, True, "whether it is an always-live variable or a category", "name"
        )
    for owners, compare in ((variables, equal), (set(bytes_of_name) - set(variables), at_most)):
        pairs = [(size, bytes_of_name[name]) for name, size in listed.items() if name in owners]
        recorded, expected = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        yield from compare(recorded, expected, "bytes", "name")
    yield from equal([name in listed for name in variables], True, "whether it is listed", "name")


@LAWS.needing("variables", "variable_intervals")
def what_is_always_live_has_no_interval(data: Dataset) -> Iterator[Violation]:
    """A variable is always live, or it has a time at which it is."""
    rows = data.column("variable_intervals", "variable")
    always = data.column("variables", "always_live")
    yield from equal(always[rows], False, "always_live", "interval")


@LAWS.needing("variables", "variable_pieces", "always_live_bytes")
def always_live_pieces_are_part_of_the_tile(data: Dataset) -> Iterator[Violation]:
    """A tile has at least the always-live bytes that variables have on it."""
    limit = data.array("always_live_bytes")
    rows = data.column("variable_pieces", "variable")
    mine = data.column("variables", "always_live")[rows]
    tile, size = (data.column("variable_pieces", name)[mine] for name in ("tile", "bytes"))
    of_variables = np.zeros_like(limit)
    np.add.at(of_variables, tile, size)
    yield from at_most(of_variables, limit, "bytes of always-live variables", "tile")


@LAWS.needing("variables", "variable_pieces", "always_live_variables", "always_live_bytes",
              "memory_by_category")  # fmt: skip
def always_live_bytes_are_those_of_the_names(data: Dataset) -> Iterator[Violation]:
    """What is always live on a tile is that of the variables and categories that are named."""
    names, sizes = (data.column("always_live_variables", c) for c in ("name", "bytes"))
    memory = data.array("memory_by_category").sum(axis=(1, 2))
    rows = data.column("variable_pieces", "variable")
    mine = data.column("variables", "always_live")[rows]
    tile, size = (data.column("variable_pieces", name)[mine] for name in ("tile", "bytes"))
    expected = np.bincount(tile, size, minlength=memory.shape[1]).astype(np.int64)
    variables = set(data.column("variables", "name")[data.column("variables", "always_live")])
    total = int(size.sum())
    for row, category in enumerate(schema.CATEGORIES):
        if category not in variables and memory[row].sum() == sizes[names == category].sum():
            expected += memory[row]
            total += int(memory[row].sum())
    if total == int(sizes.sum()):  # other writers name parts of categories
        yield from equal(data.array("always_live_bytes"), expected, "always-live bytes", "tile")


@LAWS.needing("always_live_bytes", "not_always_live_max_bytes", "memory_by_tile")
def live_bytes_fit_in_the_tile(data: Dataset) -> Iterator[Violation]:
    """What is live at once on a tile is no more than what the tile needs."""
    live = data.array("always_live_bytes") + data.array("not_always_live_max_bytes")
    limit = data.column("memory_by_tile", "total_including_gaps")
    yield from at_most(live, limit, "live bytes", "tile", "its memory is")


@LAWS.needing("vertex_types", "compute_set_vertices", "vertex_count_by_tile", "memory_by_category")
def vertices_have_the_size_of_their_type(data: Dataset) -> Iterator[Violation]:
    """The state of the vertices on a tile is their number times the size of their type."""
    sizes = data.column("vertex_types", "size")
    sizes = sizes[data.column("compute_set_vertices", "vertex_type")]
    count = data.array("vertex_count_by_tile")
    state = (count * sizes[:, None]).sum(axis=0)
    row = schema.CATEGORIES.index("vertexInstanceState")
    memory = data.array("memory_by_category")[row].sum(axis=(0, 1))
    # Vertices of one type may be filled up, and have fields of other lengths.
    slack = (ALIGNMENT - 1) * count.sum(axis=0)
    yield from at_most(memory, state + slack, "vertexInstanceState", "tile", "its vertices need")
    yield from at_most(state - slack, memory, "least that vertices need", "tile", "their state is")


@LAWS.needing("graph.num_vars", "variable_pieces")
def graph_counts_the_lowered_variables(data: Dataset) -> Iterator[Violation]:
    """Lowered variables are the pieces of variables, and at most one a category on a tile more."""
    pieces, count = data.length("variable_pieces"), data.value("graph", "num_vars")
    yield from at_most(pieces, count, "pieces", "", "num_vars is")
    if data.has("memory_by_category") and data.has("variables"):
        used = data.array("memory_by_category").sum(axis=(1, 2)) > 0
        listed = data.column("variables", "category")[data.column("variable_pieces", "variable")]
        unlisted = int(used.sum()) - int(used[np.unique(listed)].sum())
        yield from at_most(count, pieces + unlisted, "num_vars", "", "pieces, and others at most")


@LAWS.needing("graph.num_edges", "memory_by_vertex_type_edge_pointers")
def graph_counts_the_edges(data: Dataset) -> Iterator[Violation]:
    """The pointers of the vertices are to edges, each of 2 to 8 bytes."""
    pointers = int(data.array("memory_by_vertex_type_edge_pointers").sum())
    count = data.value("graph", "num_edges")
    yield from at_most(-(-pointers // POINTER), count, "pointers", "", "num_edges is")
    if data.has(COPY_POINTERS):
        pointers += int(data.array(COPY_POINTERS).sum())
        yield from at_most(count, pointers // LEAST_POINTER, "num_edges", "", "pointers at most")


@LAWS.needing("physical_tile")
def each_tile_has_a_place_of_its_own(data: Dataset) -> Iterator[Violation]:
    """The tiles of an IPU stand in places of their own, one each."""
    places = data.array("physical_tile")
    yield from equal(np.sort(places), np.arange(len(places)), "physical tile in order", "place")


@LAWS.needing("compute_set_vertices", "vertex_count_by_tile", "compute_set_active_cycles_by_tile")
def tiles_that_compute_have_vertices(data: Dataset) -> Iterator[Violation]:
    """A tile that is active in a compute set has vertices of it; those may have nothing to do."""
    active = data.array("compute_set_active_cycles_by_tile") > 0
    counts = np.zeros(active.shape, dtype=np.int64)
    rows = data.column("compute_set_vertices", "compute_set")
    np.add.at(counts, rows, data.array("vertex_count_by_tile"))
    yield from equal(counts[active] > 0, True, "whether it has vertices", "active tile")


@LAWS.needing("compute_set_vertices", "compute_set_active_cycles_by_vertex_type")
def types_that_compute_have_vertices(data: Dataset) -> Iterator[Violation]:
    """A vertex type that is active in a compute set has vertices of it, listed once."""
    active = data.array("compute_set_active_cycles_by_vertex_type") > 0
    listed = np.zeros(active.shape, np.int64)
    rows = tuple(data.column("compute_set_vertices", c) for c in ("compute_set", "vertex_type"))
    np.add.at(listed, rows, 1)
    yield from equal(listed[active] > 0, True, "whether it has vertices", "active vertex type")
    yield from at_most(listed, 1, "times listed", "compute set, vertex type")


@LAWS.needing("access", "variables", "variable_intervals", "liveness_steps")
def what_a_program_uses_is_live(data: Dataset) -> Iterator[Violation]:
    """A variable that a program reads or writes is live at a liveness step of the program."""
    program, variable = (data.column("access", name) for name in ("program", "variable"))
    steps = data.column("liveness_steps", "program")
    order = np.argsort(steps, kind="stable")
    first, end = (np.searchsorted(steps[order], program, side) for side in ("left", "right"))
    uses = np.flatnonzero(~data.column("variables", "always_live")[variable] & (end > first))
    counts = (end - first)[uses]
    owner = np.repeat(np.arange(len(uses)), counts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = order[first[uses][owner] + place]
    live = np.zeros(len(uses), np.bool_)
    np.logical_or.at(live, owner, _is_live(data, variable[uses][owner], at))
    yield from equal(live, True, "whether it is live then", "use of a variable")


@LAWS.needing("access", "variables", "programs", "liveness_steps")
def what_is_read_is_written(data: Dataset) -> Iterator[Violation]:
    """What a program that is reached reads is written somewhere or always live.

    What only holds programs uses nothing.
    """
    program, variable, write = (data.column("access", c) for c in ("program", "variable", "write"))
    holds = np.isin(data.texts("programs", "type")[program], PLAIN_HOLDERS)
    yield from equal(holds, False, "whether a program that holds others uses it", "access")
    is_written = data.column("variables", "always_live").copy()
    is_written[variable[write]] = True
    read = ~write & np.isin(program, data.column("liveness_steps", "program"))
    yield from equal(is_written[variable[read]], True, "whether it is written", "read")


def _is_live(data: Dataset, variable: Values, step: Values) -> Values:
    """Return whether each variable is live at a step; lives of one do not overlap."""
    owner, begin, end = (
        data.column("variable_intervals", name) for name in ("variable", "begin", "end")
    )
    many = data.length("liveness_steps") + 1
    order = np.lexsort((begin, owner))
    last = np.searchsorted((owner * many + begin)[order], variable * many + step, "right") - 1
    of = order[np.maximum(last, 0)] if len(order) else np.zeros(0, np.int64)
    if not len(order):
        return np.zeros(len(step), np.bool_)
    live: Values = (last >= 0) & (owner[of] == variable) & (end[of] > step)
    return live


@LAWS.needing("debug_contexts", "programs", "variables")
def debug_contexts_are_listed(data: Dataset) -> Iterator[Violation]:
    """The debug context of a program or variable is one of those listed."""
    listed = data.column("debug_contexts", "id")
    for table in ("programs", "variables"):
        used = data.column(table, "debug_context")
        is_listed = np.isin(used[used >= 0], listed)
        yield from equal(is_listed, True, f"whether its debug context is listed, {table}", "number")


@LAWS.needing("liveness_steps", "programs", "program_children", "function_programs")
def liveness_steps_lie_in_each_other_as_programs(data: Dataset) -> Iterator[Violation]:
    """What a liveness step lies in runs its program, as a child or as its function."""
    program, parent = (data.column("liveness_steps", name) for name in ("program", "parent"))
    inside = np.flatnonzero(parent >= 0)
    count = data.length("programs")
    functions, targets = (
        data.column("function_programs", "program"),
        data.column("programs", "target"),
    )
    callers = np.flatnonzero(targets >= 0)
    above = np.append(data.column("program_children", "program"), callers)
    below = np.append(data.column("program_children", "child"), functions[targets[callers]])
    pairs = program[parent[inside]] * count + program[inside]
    is_nested = np.isin(pairs, above * count + below)
    yield from equal(
        is_nested, True, "whether it is in the program around it", "inner liveness step"
    )


@LAWS.needing("steps", "programs")
def steps_are_of_their_programs(data: Dataset) -> Iterator[Violation]:
    """A step is of the type of its program."""
    program = data.column("steps", "program")
    comparable = program >= 0
    types = data.texts("programs", "type")[program[comparable]]
    yield from equal(
        data.texts("steps", "type")[comparable], types, "type", "step", "its program is"
    )
    of_step, of_program = (
        data.column("steps", "sync_type"),
        data.column("programs", "sync_type")[program],
    )
    # Documents of other writers leave out the kind of a Sync: 0.
    untold = (of_program == 0) & (data.texts("programs", "type")[program] == "Sync")
    comparable &= (of_step >= 0) & (of_program >= 0) & ~untold
    yield from equal(
        of_step[comparable], of_program[comparable], "sync_type", "number", "its program is"
    )


@LAWS.needing("steps", "programs")
def steps_have_a_program(data: Dataset) -> Iterator[Violation]:
    """A step is of a program, where any step tells its program."""
    program = data.column("steps", "program")
    if (program >= 0).any():
        yield from at_most(0, program, "least program", "step", "its program is")


@LAWS.needing(*(f"memory_by_{o}_{p}" for o in ("compute_set", "vertex_type") for p in PARTS))
def compute_sets_have_the_state_of_their_types(data: Dataset) -> Iterator[Violation]:
    """What vertices hold on a tile, beside shared code, is the same by compute set and by type."""
    for part in PARTS:
        by_set, by_type = (
            data.array(f"memory_by_{owner}_{part}").sum(axis=0)
            for owner in ("compute_set", "vertex_type")
        )
        yield from equal(by_set, by_type, f"{part} of compute sets", "tile", "by vertex type")
