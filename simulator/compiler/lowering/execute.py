"""Lower the execution of a compute set: bring the inputs, compute, send the outputs.

Inputs on other tiles arrive in message variables by an exchange; inputs that are not in one row in
memory are copied before, outputs likewise after (names as in the public program trees).
"""

from __future__ import annotations

import numpy as np

from simulator.compiler.edges import (
    Arrays,
    Brought,
    Touch,
    brought,
    brought_by,
    fragments_of_senders,
    join_brought,
    join_touches,
    touch,
    union_by_tile,
)
from simulator.compiler.executable import LoweredProgram
from simulator.compiler.lowering.state import NONE, Building, Part, sides_of, with_access
from simulator.graph.geometry.intervals import among, kinds, present
from simulator.graph.types import BoolArray, IntArray

MESSAGE, REARRANGED, OUTPUT_EDGE = "<message:{}>", "{}Rearranged", "<outputEdge:{}>"
# The name of a copy of a variable, by its category.
FORMS = {
    "message": MESSAGE,
    "globalMessage": MESSAGE,
    "rearrangement": REARRANGED,
    "outputEdge": OUTPUT_EDGE,
}


def lower_compute_set(building: Building, compute_set: int) -> list[Part]:
    """Return the programs of one execution of a compute set, in order."""
    name = building.compute_sets[compute_set]
    reads, writes, read_too = _touches(building, compute_set)
    before, arrived = _bring(building, name, reads)
    after, copies, written, kills = _send(building, name, writes)
    run = with_access(
        Part(LoweredProgram("OnTileExecute", name, compute_set=compute_set)),
        [arrived, reads.direct],
        [written, copies],
        np.concatenate([kills & ~among(written, read_too), np.ones(len(copies), dtype=bool)]),
    )
    return [*before, run, *after]


def _touches(building: Building, compute_set: int) -> tuple[Brought, Touch, IntArray]:
    """Collect what the vertices read and write, and the variables of fields that do both."""
    reads, writes, both = [], [], [np.zeros(0, dtype=np.int64)]
    for group in building.graph.groups_of(compute_set):
        for item in group.fields.values():
            if item.direction == "input":
                reads.append(brought(building.layout, group, item))
                continue
            pieces = touch(building.layout, group, item)
            writes.append(pieces)
            if item.direction == "inout":
                reads.append(brought_by(pieces))
                both.append(pieces.variable)
    return join_brought(reads), join_touches(writes), np.concatenate(both)


def _bring(building: Building, name: str, reads: Brought) -> tuple[list[Part], IntArray]:
    """Exchange and arrange the inputs; give the programs and the variables that hold them."""
    parts: list[Part] = []
    holders = [np.zeros(0, dtype=np.int64)]
    arranged = reads.arranged
    at_hand = arranged.owner == arranged.user
    sources = [arranged.variable[at_hand]]
    sides, message_numbers = [], []
    if len(reads.user):
        sides.append(_in_place(building, reads))
        message_numbers.append(_messages(building, sides[-1]))
        holders.append(present(message_numbers[-1]))
    if not at_hand.all():
        sides.append(fragments_of_senders(arranged.where(~at_hand)))
        message_numbers.append(_messages(building, sides[-1]))
        sources.append(present(message_numbers[-1]))
    if sides:
        messages = np.concatenate(message_numbers)
        variable, owner, user, low, size = (
            sides[0] if len(sides) == 1 else map(np.concatenate, zip(*sides, strict=True))
        )
        begun = NONE
        for _, route in sides_of(building.crossing(owner, user)):
            written = present(messages[route])
            parts += building.exchange(
                f"{name}/ExchangePre",
                low[route],
                (low + size)[route],
                owner[route],
                user[route],
                reads=[variable[route]],
                writes=[written],
                whole=~among(written, begun),
                in_rows=True,
            )
            begun = written
    if len(arranged.user):
        rows = arranged.breaks.astype(np.int64)
        copies = building.copies_of(
            arranged.variable, arranged.user, arranged.bytes, "rearrangement", REARRANGED
        )
        copy = building.tile_copy(f"{name}/PreArrange-0", arranged.user, arranged.bytes, rows)
        parts.append(with_access(copy, sources, [copies]))
        holders.append(copies)
    return parts, np.concatenate(holders)


def _in_place(building: Building, reads: Brought) -> Arrays:
    """Cut what arrives in the order of the edges; each byte comes once to a tile."""
    user, low, high = union_by_tile(reads.user, reads.low, reads.high)
    which, low, high, owner = building.owners(low, high)
    return building.variables_at(low), owner, user[which], low, high - low


def _messages(building: Building, fragments: Arrays) -> IntArray:
    """Add message variables for the fragments that tiles receive; give the number of each one's.

    What a tile brings of a variable lies in one row, so that all of it is a global message when
    part of it comes from another IPU.
    """
    variable, owner, user, _, size = fragments
    outside = building.crossing(owner, user)
    if outside.any():
        _, of = kinds(variable)
        _, which = kinds(of * building.graph.target.num_tiles + user)
        outside = (np.bincount(which, weights=outside) > 0)[which]
    result = np.zeros(len(variable), dtype=np.int64)
    for is_outside, members in sides_of(outside):
        category = "globalMessage" if is_outside else "message"
        _, source = kinds(variable[members])
        numbers = building.copies_of(
            variable[members], user[members], size[members], category, MESSAGE
        )
        result[members] = numbers[source]
    return result


def _send(
    building: Building, name: str, writes: Touch
) -> tuple[list[Part], IntArray, IntArray, BoolArray]:
    """Arrange and exchange the outputs.

    Gives the programs, the compiler's variables that the vertices write, and the graph's variables
    that they write in place with whether the write is whole.
    """
    parts: list[Part] = []
    output_copies = [np.zeros(0, dtype=np.int64)]
    variables, kills = building.whole(writes.variable, writes.bytes)
    complete = variables[kills]
    direct = present(writes.variable[~writes.remote & ~writes.arranged])
    # What the vertices begin to write in place must not be taken for dead until the rest follows.
    finished_here = complete[~among(complete, direct)]
    if writes.arranged.any():
        arranged = writes.where(writes.arranged)
        rows = arranged.breaks.astype(np.int64)
        copies = building.copies_of(
            arranged.variable, arranged.user, arranged.bytes, "rearrangement", REARRANGED
        )
        copy = building.tile_copy(f"{name}/PostArrange-0", arranged.user, arranged.bytes, rows)
        written = present(arranged.variable)
        parts.append(with_access(copy, [copies], [written], among(written, finished_here)))
        finished_here = finished_here[~among(finished_here, written)]
        output_copies.append(copies)
    if writes.remote.any():
        remote = writes.where(writes.remote)
        for _, route in sides_of(building.crossing(remote.user, remote.owner)):
            part = remote if isinstance(route, slice) else remote.where(route)
            edges = building.copies_of(
                part.variable, part.user, part.bytes, "outputEdge", OUTPUT_EDGE
            )
            written = present(part.variable)
            parts += building.exchange(
                f"{name}/ExchangePost",
                part.low,
                part.high,
                part.user,
                part.owner,
                reads=[edges],
                writes=[written],
                whole=among(written, finished_here),
            )
            finished_here = finished_here[~among(finished_here, written)]
            output_copies.append(edges)
    return parts, np.concatenate(output_copies), direct, among(direct, complete)
