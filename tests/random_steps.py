"""The kinds of programs that `tests/random_programs.py` draws, each beside what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulator import poplar, poplin, popops
from simulator.poplar import program
from tests.program_model import Array, Machine, Node, Place, printed, step
from tests.random_programs import (
    CODELETS,
    DEPTH,
    REAL,
    TYPES,
    WHOLE,
    Countdown,
    Drawn,
    Pair,
    View,
)

DECIDING = (*WHOLE, *REAL, poplar.BOOL)


def copying(source: Place, sink: Place) -> Node:
    return step(lambda machine, r: machine.write(r, sink, machine.read(r, source)))


# Leaves
def copy(drawn: Drawn, depth: int, decided: bool) -> Pair:
    source, sink = drawn.same_size(drawn.one_of(TYPES))
    return Pair(program.Copy(source.tensor, sink.tensor), copying(source, sink))


def stream_in(drawn: Drawn, depth: int, decided: bool) -> Pair:
    sink = drawn.view(to_write=True)
    name, count, replicas = drawn.name("in"), sink.at.size, drawn.machine.replicas
    broadcast, transfers = drawn.chance(), drawn.number(1, 3)
    modes = poplar.ReplicatedStreamMode
    stream = drawn.graph.addHostToDeviceFIFO(
        name,
        sink.tensor.dtype,
        count,
        modes.BROADCAST if broadcast else modes.REPLICATE,
        {"splitLimit": 8} if drawn.chance() else {},
    )
    same = drawn.values(sink.tensor.dtype, transfers, count)
    for replica in range(replicas):
        values = same if broadcast else drawn.values(sink.tensor.dtype, transfers, count)
        drawn.given[name, replica] = values
    drawn.streams.append((stream, broadcast))

    def take(machine: Machine, replica: int) -> None:
        machine.write(replica, sink, machine.fetch(name, replica).reshape(sink.at.shape))

    return Pair(program.Copy(stream, sink.tensor), step(take))


def stream_out(drawn: Drawn, depth: int, decided: bool) -> Pair:
    source, name = drawn.view(), drawn.name("out")
    options = {"splitLimit": 8} if drawn.chance() else {}
    stream = drawn.graph.addDeviceToHostFIFO(name, source.tensor.dtype, source.at.size, options)
    drawn.streams.append((stream, False))

    def send(machine: Machine, replica: int) -> None:
        values = machine.read(replica, source).reshape(-1)
        machine.sent.setdefault((name, replica), []).append(values)

    return Pair(program.Copy(source.tensor, stream), step(send))


def remote(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Store rows in a remote buffer and load others, with offsets or the first row alone."""
    ipu, rows = drawn.number(0, drawn.ipus - 1), drawn.number(1, 4)
    moved = drawn.number(1, rows)
    source, sink = drawn.same_size(drawn.one_of(TYPES), ipu)
    moved = moved if source.at.size >= moved else 1
    size = source.at.size // moved
    source, sink = drawn.cut(source, size * moved), drawn.cut(sink, size * moved)
    dtype, replicas = source.tensor.dtype, drawn.machine.replicas
    buffer = drawn.graph.addRemoteBuffer(drawn.name("rows"), dtype, size, rows)
    name = buffer.handle
    drawn.buffers[buffer] = (rows, [drawn.values(dtype, rows, size) for _ in range(replicas)])
    numbers = []
    for _ in range(2):
        index = drawn.values(poplar.INT, replicas, moved, most=rows)
        whole = drawn.one_of(WHOLE)
        numbers.append(
            drawn.variable(whole, [moved], written=False, initial=index.astype(whole.numpy))
        )
    offsets = [None if moved == 1 and drawn.chance() else one.view for one in numbers]

    def chosen(machine: Machine, replica: int, offset: View | None) -> Array:
        return np.zeros(1, int) if offset is None else machine.read(replica, offset).astype(int)

    def store(machine: Machine, replica: int) -> None:
        values = machine.read(replica, source).reshape(moved, size)
        for row, value in zip(chosen(machine, replica, offsets[0]), values, strict=True):
            machine.rows[name][replica][row] = value

    def load(machine: Machine, replica: int) -> None:
        values = machine.rows[name][replica][chosen(machine, replica, offsets[1])]
        machine.write(replica, sink, values.reshape(sink.at.shape))

    tensors = [None if offset is None else offset.tensor for offset in offsets]
    programs = program.Sequence(
        program.Copy(source.tensor, buffer, tensors[0]),
        program.Copy(buffer, sink.tensor, tensors[1]),
    )
    return Pair(programs, Node((step(store), step(load))))


def undefined(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Keep values in a variable of which nothing is needed afterwards."""
    source, sink = drawn.same_size(drawn.one_of(TYPES))
    local = drawn.variable(source.tensor.dtype, [source.at.size], pooled=False)
    scratch = local.view
    drawn.variables[:0] = [local] * 4  # often chosen by what runs before it is dropped
    between = [drawn.sequence(depth + 1, decided)] if depth < DEPTH else []
    drawn.variables = [one for one in drawn.variables if one is not local]
    again = Pair(program.Copy(scratch.tensor, sink.tensor), copying(scratch, sink))
    order = [again, *between] if drawn.chance() else [*between, again]
    turns = drawn.number(1, 3)
    loop = program.Repeat(turns, program.Sequence(*(pair.program for pair in order)))
    steps = [program.Copy(source.tensor, scratch.tensor), loop]
    if drawn.chance():
        steps.append(program.WriteUndef(scratch.tensor[drawn.number(0, source.at.size - 1) :]))
    body = Node(tuple(pair.node for pair in order), count=turns)
    return Pair(program.Sequence(*steps), Node((copying(source, scratch), body)))


def sync(drawn: Drawn, depth: int, decided: bool) -> Pair:
    return Pair(program.Sync(drawn.one_of(list(program.SyncType))), Node())


def print_tensor(drawn: Drawn, depth: int, decided: bool) -> Pair:
    view, title = drawn.view(), drawn.name("print")
    replicas = range(drawn.machine.replicas if drawn.together else 1)

    def show(machine: Machine, replica: int) -> None:
        if drawn.together and replica:
            return
        values = machine.read(replica, view)
        if len(replicas) > 1:
            values = np.stack([machine.read(each, view) for each in replicas])
        machine.text += f"{title}: {printed(values)}\n"

    return Pair(program.PrintTensor(title, view.tensor), step(show))


def vertices(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Run a few vertices, which all read before one writes."""
    dtype = drawn.one_of(TYPES)
    compute_set = drawn.graph.addComputeSet(drawn.name("set"))
    written = np.zeros(0, dtype=np.int64)
    tasks: list[Callable[[Machine, int], list[tuple[View, Array]]]] = []
    for _ in range(drawn.number(1, 3)):
        rows = [drawn.view([dtype]) for _ in range(drawn.number(1, 3))]
        held, out = drawn.view([dtype], to_write=True), drawn.view([dtype], to_write=True)
        held, out = drawn.cut(held, held.at.size), drawn.cut(out, len(rows))
        rows = rows[: out.at.size]
        here = np.concatenate([written, held.at, out.at])
        if len(np.unique(here)) == here.size:
            written = here
            tasks.append(_mix(drawn, compute_set, rows, held, out))

    def execute(machine: Machine, replica: int) -> None:
        for place, values in [found for task in tasks for found in task(machine, replica)]:
            machine.write(replica, place, values)

    return Pair(program.Execute(compute_set), step(execute))


def _mix(
    drawn: Drawn, compute_set: poplar.ComputeSet, rows: list[View], held: View, out: View
) -> Callable[[Machine, int], list[tuple[View, Array]]]:
    factor, dtype = drawn.number(0, 1), held.tensor.dtype
    fields: dict[str, Any] = {
        "rows": [row.tensor for row in rows],
        "held": held.tensor,
        "out": out.tensor,
    }
    graph, tile = drawn.place()
    vertex = graph.addVertex(compute_set, CODELETS[dtype], fields, tile=tile)
    drawn.graph.setInitialValue(vertex["factor"], factor)
    drawn.graph.setPerfEstimate(vertex, drawn.number(0, 50))

    def task(machine: Machine, replica: int) -> list[tuple[View, Array]]:
        firsts = [machine.read(replica, row).reshape(-1)[0] for row in rows]
        before = machine.read(replica, held)
        after = [x if y else factor for x, y in zip(before[::-1], before, strict=True)]
        return [(out, np.array(firsts)), (held, np.array(after))]

    return task


def elementwise(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Compute with two tensors; floating point stays small, each rounding in its type."""
    dtype = drawn.one_of([poplar.INT, poplar.UNSIGNED_INT, *REAL])
    in_place, name = drawn.chance(), drawn.one_of(["add", "sub", "mul"])
    left, right = drawn.view([dtype], to_write=in_place), drawn.view([dtype])
    count = min(left.at.size, right.at.size)
    left, right = drawn.cut(left, count), drawn.cut(right, drawn.one_of([1, count]))
    sequence = program.Sequence()
    if in_place:
        getattr(popops, f"{name}InPlace")(drawn.graph, left.tensor, right.tensor, sequence)
        out = left
    else:
        made = getattr(popops, name)(drawn.graph, left.tensor, right.tensor, sequence)
        out = drawn.result(made)
    half = None
    if dtype in REAL:
        half = drawn.variable(
            dtype,
            [1],
            written=False,
            initial=np.full((drawn.machine.replicas, 1), 0.5, dtype.numpy),
        ).view
        popops.mulInPlace(drawn.graph, out.tensor, half.tensor, sequence)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]

    def compute(machine: Machine, replica: int) -> None:
        values = function(machine.read(replica, left), machine.read(replica, right))
        values = values if half is None else values * machine.read(replica, half)
        machine.write(replica, out, values)

    return Pair(sequence, step(compute))


def cast(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Change the type of values that the other type holds."""
    source = drawn.view([*REAL, poplar.BOOL])
    dtype, sequence = drawn.one_of([poplar.INT, *REAL]), program.Sequence()
    out = drawn.result(popops.cast(drawn.graph, source.tensor, dtype, sequence))

    def change(machine: Machine, replica: int) -> None:
        machine.write(replica, out, machine.read(replica, source).astype(dtype.numpy))

    return Pair(sequence, step(change))


def reduce(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Reduce a dimension; sums of floating point have no order, so that they are only compared."""
    source = drawn.view(REAL)
    if not source.at.ndim:
        return Pair(program.Sequence(), Node())
    axis, name = drawn.number(0, source.at.ndim - 1), drawn.one_of(["ADD", "MAX", "MIN"])
    sequence = program.Sequence()
    kind = popops.Operation[name]
    made = popops.reduce(drawn.graph, source.tensor, [axis], kind, sequence)
    out = drawn.result(made, exact=name != "ADD")
    function: Any = {"ADD": np.add, "MAX": np.maximum, "MIN": np.minimum}[name]

    def compute(machine: Machine, replica: int) -> None:
        machine.write(replica, out, function.reduce(machine.read(replica, source), axis))

    return Pair(sequence, step(compute))


def product(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Multiply matrices of halves or floats; the sums have no order either."""
    dtype = drawn.one_of(REAL)
    rows, inner, columns = (drawn.number(1, 3) for _ in range(3))
    left = drawn.variable(dtype, [rows, inner]).view
    right = drawn.variable(dtype, [inner, columns]).view
    sequence = program.Sequence()
    made = poplin.matMul(drawn.graph, left.tensor, right.tensor, sequence)
    out = drawn.result(made, exact=False)

    def compute(machine: Machine, replica: int) -> None:
        a, b = machine.read(replica, left), machine.read(replica, right)
        machine.write(replica, out, a.astype(float) @ b.astype(float))

    return Pair(sequence, step(compute))


def call(drawn: Drawn, depth: int, decided: bool) -> Pair:
    if not drawn.functions or decided:
        return sync(drawn, depth, decided)
    function, node = drawn.one_of(drawn.functions)
    return Pair(program.Call(function), node)


# Containers
def block(drawn: Drawn, depth: int, decided: bool) -> Pair:
    body = drawn.sequence(depth + 1, decided)
    return Pair(program.Block(body.program, drawn.name("block")), body.node)


def repeat(drawn: Drawn, depth: int, decided: bool) -> Pair:
    body, count = drawn.sequence(depth + 1, decided), drawn.number(0, 3)
    return Pair(program.Repeat(count, body.program), Node((body.node,), count=count))


def _decision(drawn: Drawn, types: Any) -> View:
    """Draw one element to decide by; all replicas of a view must agree, so nobody may write it."""
    apart = drawn.machine.how == "view"
    if not apart:
        return drawn.cut(drawn.view(types), 1)
    dtype = drawn.one_of(types)
    same = np.tile(drawn.values(dtype, 1), (drawn.machine.replicas, 1))
    return drawn.variable(dtype, [1], written=False, initial=same).view


def choice(drawn: Drawn, depth: int, decided: bool) -> Pair:
    predicate = _decision(drawn, DECIDING)
    yes, no = drawn.sequence(depth + 1, True), drawn.sequence(depth + 1, True)

    def way(machine: Machine, replica: int) -> int:
        return 0 if machine.read(replica, predicate).item() else 1

    return Pair(
        program.If(predicate.tensor, yes.program, no.program), Node((yes.node, no.node), way=way)
    )


def switch(drawn: Drawn, depth: int, decided: bool) -> Pair:
    control = _decision(drawn, WHOLE)
    cases = sorted(set(drawn.some(range(8), 3)))
    pairs = [drawn.sequence(depth + 1, True) for _ in range(len(cases) + 1)]
    made = program.Switch(
        control.tensor,
        [(case, pair.program) for case, pair in zip(cases, pairs, strict=False)],
        pairs[-1].program,
    )

    def way(machine: Machine, replica: int) -> int:
        value = machine.read(replica, control).item()
        return cases.index(value) if value in cases else len(cases)

    return Pair(made, Node(tuple(pair.node for pair in pairs), way=way))


def loop(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Loop while a counter is not zero, or until one vertex finds that it is."""
    graph, replicas, turns = drawn.graph, drawn.machine.replicas, drawn.number(1, 3)
    start = drawn.variable(
        poplar.INT, [1], written=False, initial=np.full((replicas, 1), turns, np.int32)
    ).view
    left, done = (
        drawn.variable(kind, [1], pooled=False).view for kind in (poplar.INT, poplar.BOOL)
    )
    compute_set = graph.addComputeSet(drawn.name("count"))
    fields: dict[str, Any] = {"left": left.tensor, "done": done.tensor}
    vertex = graph.addVertex(compute_set, Countdown, fields, tile=drawn.number(0, drawn.tiles - 1))
    graph.setPerfEstimate(vertex, 10)
    extra, body = drawn.sequence(DEPTH_OF_CHECK, True), drawn.sequence(depth + 1, True)
    check = program.Sequence(program.Execute(compute_set), extra.program)
    until = drawn.chance()
    kind = program.RepeatWhileFalse if until else program.RepeatWhileTrue
    made = program.Sequence(
        program.Copy(start.tensor, left.tensor),
        kind(check, (done if until else left).tensor, body.program),
    )

    def count(machine: Machine, replica: int) -> None:
        number = machine.read(replica, left) - 1
        machine.write(replica, left, number)
        machine.write(replica, done, number == 0)

    def way(machine: Machine, replica: int) -> int:
        return int(machine.read(replica, left).item() != 0)

    again = Node((Node((step(count), extra.node)), body.node), way=way, loop=True)
    return Pair(made, Node((copying(start, left), again)))


DEPTH_OF_CHECK = 3


def counted(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Loop over a count that the body may read; its limit is known at run time, or before."""
    begin, by, limit = drawn.number(-2, 2), drawn.one_of([-1, 1, 2]), drawn.number(-2, 3)
    same = np.full((drawn.machine.replicas, 1), limit, np.int32)
    until = drawn.variable(poplar.INT, [1], written=False, initial=same).view
    counter = drawn.variable(poplar.INT, [1], written=False, pooled=False, initial=same * 0)
    count = counter.view
    if count.tensor.containsConstant():
        return Pair(program.Sequence(), Node())
    drawn.variables[:0] = [counter] * 2
    body = drawn.sequence(depth + 1, True)
    drawn.variables = [one for one in drawn.variables if one is not counter]
    end = until.tensor if drawn.chance() else limit
    made = popops.countedForLoop(drawn.graph, count.tensor, begin, end, by, body.program)

    def start(machine: Machine, replica: int) -> None:
        machine.write(replica, count, np.array([begin - by]))

    def advance(machine: Machine, replica: int) -> None:
        machine.write(replica, count, machine.read(replica, count) + by)

    def way(machine: Machine, replica: int) -> int:
        left = limit - machine.read(replica, count).item()
        return int(left > 0 if by > 0 else left < 0)

    turns = Node((step(advance), body.node), way=way, loop=True)
    return Pair(made, Node((step(start), turns)))


def between_replicas(drawn: Drawn, depth: int, decided: bool) -> Pair:
    """Copy through the parent of a replicated graph, which has all replicas as one tensor."""
    source, sink = drawn.same_size(drawn.one_of(TYPES))
    sender, receiver = (drawn.number(0, drawn.machine.replicas - 1) for _ in range(2))
    whole = drawn.whole.getNonReplicatedTensor
    made = program.Copy(whole(source.tensor)[sender], whole(sink.tensor)[receiver])

    def move(machine: Machine, replica: int) -> None:
        if replica == receiver:
            machine.write(receiver, sink, machine.read(sender, source))

    return Pair(made, step(move))


def cross_replica(drawn: Drawn, depth: int, decided: bool) -> Pair:
    source, sink = drawn.same_size(drawn.one_of(TYPES))
    count = drawn.machine.replicas
    shift = drawn.number(0, count - 1)
    receiver = {replica: (replica + shift) % count for replica in range(count)}

    def cross(machine: Machine) -> None:
        sent = [machine.read(replica, source) for replica in range(count)]
        for replica, to in receiver.items():
            machine.write(to, sink, sent[replica])

    made = program.CrossReplicaCopy(source.tensor, sink.tensor, receiver)
    return Pair(made, Node(crossing=cross))


LEAVES = (
    copy, copy, copy, stream_in, stream_out, remote, undefined, sync, print_tensor,
    vertices, vertices, elementwise, elementwise, cast, reduce, product, call, call, undefined,
)  # fmt: skip
CONTAINERS = (block, repeat, repeat, choice, choice, switch, loop, loop, counted)
CROSSINGS = (cross_replica, cross_replica)
BETWEEN = (between_replicas,) * 2
