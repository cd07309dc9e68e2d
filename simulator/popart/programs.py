"""The programs of a session: weights in and out, and the steps of batches with their anchors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.engine import Engine
from simulator.graph.graph import Graph
from simulator.graph.program import Call, Copy, Program, Repeat
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Array
from simulator.popart.errors import popart_exception
from simulator.popart.operators.elements.drawn import DRAWS
from simulator.popart.representation.ir import Ir
from simulator.popart.scheduling.off_chip import OffChip
from simulator.popart.settings.dataflow import ONCE, DataFlow
from simulator.popart.settings.names import SyntheticDataMode
from simulator.poplibs import popops, poprand
from simulator.poplibs.float_control import (
    FloatingPointBehaviour,
    setFloatingPointBehaviour,
    setStochasticRounding,
)
from simulator.poplibs.popsys import cycleCount
from simulator.runtime.arrangement import in_memory_order

SEED_FROM_HOST, CYCLES_TO_HOST = "randomSeedFromHost", "cycleCountToHost"
RNG_FROM_HOST, RNG_TO_HOST = "rngStateFromHost", "rngStateToHost"
WEIGHTS_FROM_HOST, RUN, WEIGHTS_TO_HOST = "weightsFromHost", "run", "weightsToHost"


@dataclass(slots=True)
class Programs:
    """Programs by name, in the order of their numbers, and the handle of each tensor's stream."""

    programs: dict[str, Program] = field(default_factory=dict)
    counts: tuple[str, ...] = ("",)  # of cycles, by their names
    inputs: dict[str, str] = field(default_factory=dict)
    anchors: dict[str, str] = field(default_factory=dict)
    weights_in: dict[str, str] = field(default_factory=dict)
    weights_out: dict[str, str] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    arranged: dict[str, Tensor] = field(default_factory=dict)  # by input or anchor, on the host
    begin: Steps = field(default_factory=lambda: Steps(name="begin"))  # of a step
    last: list[Program] = field(default_factory=list)  # of a step: anchors that come once
    depth: int = 1  # buffers of each input's stream
    words: int = 0  # of the states of a replica's generators

    def number(self, name: str) -> int:
        """Return the number by which an engine runs a program."""
        return list(self.programs).index(name)

    def run_apart(self, engine: Engine, name: str) -> None:
        """Run what is not the model: the profile leaves it out, as PopART's does."""
        engine.disableExecutionProfiling()
        engine.run(self.number(name), name)


def host_to_device(
    graph: Graph, prefix: str, name: str, tensor: Tensor, depth: int = 1
) -> tuple[str, Copy]:
    """Add a stream to a tensor, with so many buffers; give its handle and the copy."""
    handle = f"{prefix}/{name}"
    options = {"bufferingDepth": depth}
    stream = graph.addHostToDeviceFIFO(handle, tensor.dtype, tensor.numElements(), options=options)
    return handle, Copy(stream, tensor, name=handle)


def device_to_host(graph: Graph, prefix: str, name: str, tensor: Tensor) -> tuple[str, Copy]:
    """Add a stream from a tensor; give its handle and the copy."""
    handle = f"{prefix}/{name}"
    stream = graph.addDeviceToHostFIFO(handle, tensor.dtype, tensor.numElements())
    return handle, Copy(tensor, stream, name=handle)


def add_weights(
    programs: Programs, graph: Graph, weights: Mapping[str, Tensor],
    off_chip: OffChip | None = None,
) -> None:  # fmt: skip
    """Add the programs that move weights from the host and back, but for empty ones.

    Those off the chip go to their remote buffers, and come from there, by way of the device.
    """
    remote = off_chip.buffers if off_chip else {}
    down, up = Steps(name=WEIGHTS_FROM_HOST), Steps(name=WEIGHTS_TO_HOST)
    programs.weights = dict(weights)
    for name, weight in weights.items():
        if not weight.numElements():
            continue
        tensor = in_memory_order(weight)
        programs.weights_in[name], copy = host_to_device(graph, "weights", name, tensor)
        down.add(copy)
        if off_chip and name in remote:
            off_chip.store(name, weight, down)
            off_chip.load(name, weight, up)
        programs.weights_out[name], back = device_to_host(graph, "weightsToHost", name, tensor)
        up.add(back)
    programs.programs[WEIGHTS_FROM_HOST], programs.programs[WEIGHTS_TO_HOST] = down, up


def add_seed(programs: Programs, graph: Graph, ir: Ir) -> None:
    """Add the program that seeds the generators, for a model that draws random numbers."""
    if not any(node.operator in DRAWS for node in ir.nodes):
        return
    seed = graph.addVariable(UNSIGNED_INT, [2], "randomSeed")
    graph.setTileMapping(seed, 0)
    stream = graph.addHostToDeviceFIFO(SEED_FROM_HOST, UNSIGNED_INT, 2)
    steps = Steps(Copy(stream, seed, name=SEED_FROM_HOST), name=SEED_FROM_HOST)
    poprand.setSeed(graph, seed, 0, steps, SEED_FROM_HOST)
    programs.programs[SEED_FROM_HOST] = steps


def add_rng_state(programs: Programs, graph: Graph) -> None:
    """Add the programs that move the states of the generators, where there is one for the seed."""
    if SEED_FROM_HOST not in programs.programs:
        return
    up = Steps(name=RNG_TO_HOST)
    states = poprand.getHwSeeds(graph, up, RNG_TO_HOST)
    up.add(_to_host(graph, RNG_TO_HOST, states))
    stream = graph.addHostToDeviceFIFO(RNG_FROM_HOST, UNSIGNED_INT, states.numElements())
    down = Steps(Copy(stream, states, name=RNG_FROM_HOST), name=RNG_FROM_HOST)
    poprand.setHwSeeds(graph, states, down, RNG_FROM_HOST)
    programs.programs[RNG_TO_HOST], programs.programs[RNG_FROM_HOST] = up, down
    programs.words = states.numElements()


def _to_host(graph: Graph, handle: str, tensor: Tensor) -> Copy:
    """Return the copy of a tensor to a stream of its own."""
    stream = graph.addDeviceToHostFIFO(handle, tensor.dtype, tensor.numElements())
    return Copy(tensor, stream, name=handle)


def add_float_control(programs: Programs, graph: Graph, *, checks: bool, rounding: bool) -> None:
    """Write the registers of traps and of stochastic rounding before each step, if asked for.

    As PopART's lowering (popx/irlowering.cpp). No value is other for it, which a warning says; a
    CPU has no such registers.
    """
    if checks:
        behaviour = FloatingPointBehaviour(esr=False)
        setFloatingPointBehaviour(graph, programs.begin, behaviour, "init")
    if rounding:
        setStochasticRounding(graph, programs.begin, True, "init")


def measured_batch(graph: Graph, batch: Steps) -> dict[str, Tensor]:
    """Let a batch measure itself on each IPU; return the counts by the names that PopART has.

    Each IPU's count has the measuring of those before it in it.
    """
    tiles = graph.getTarget().getTilesPerIPU()
    names = [f"inner_ipu_{ipu}" for ipu in range(graph.getTarget().getNumIPUs())]
    return {
        name: cycleCount(graph, batch, ipu * tiles, debugContext=cycles_handle(name))
        for ipu, name in enumerate(names)
    }


def cycles_handle(name: str) -> str:
    """Return the stream of a count; that of a whole step has no name."""
    return f"{CYCLES_TO_HOST}/{name}" if name else CYCLES_TO_HOST


def add_cycle_counts(
    programs: Programs, graph: Graph, inner: Mapping[str, Tensor], *, outer: bool
) -> None:
    """Let a step measure itself, if `outer`; add the program that brings counts to the host."""
    counts = dict(inner)
    if outer:
        step = programs.programs[RUN]
        timed = step if isinstance(step, Steps) else Steps(step, name=RUN)
        counts[""] = cycleCount(graph, timed, 0, debugContext=CYCLES_TO_HOST)
        programs.programs[RUN] = timed
    copies = [_to_host(graph, cycles_handle(name), count) for name, count in counts.items()]
    programs.programs[CYCLES_TO_HOST] = Steps(copies)
    programs.counts = tuple(counts)


def add_inputs(programs: Programs, graph: Graph, inputs: Mapping[str, Tensor], prog: Steps) -> None:
    """Add the copies of a batch's inputs; what has no elements is not moved."""
    for name, tensor in inputs.items():
        if tensor.numElements():
            programs.inputs[name], copy = host_to_device(
                graph, "input", name, tensor, programs.depth
            )
            prog.add(copy)


def add_anchor(
    programs: Programs,
    graph: Graph,
    name: str,
    tensor: Tensor,
    flow: DataFlow,
    waiting: Tensor | None = None,
) -> Program | None:
    """Add an anchor; give what each of its batches does for it, None for the last one's.

    A sum begins with zero in every step. What goes by a tensor `waiting` is copied there first
    where it comes once; else that is left to the caller. Raises popart_exception for what cannot
    be added.
    """
    kind = flow.art(name).id()
    source, per_batch = tensor, None
    if kind == "SUM":
        if tensor.dtype not in (FLOAT, HALF, INT, UNSIGNED_INT):
            raise popart_exception(f"anchor {name!r}: {tensor.dtype} cannot be summed")
        label, per_batch = f"{name}/Sum", Steps(name=f"{name}/Sum")
        source = graph.clone(tensor, label)
        popops.zero(graph, source, programs.begin, label)
        popops.addInPlace(graph, source, tensor, per_batch, label)
    leaves = source if waiting is None else waiting
    programs.anchors[name], copy = device_to_host(graph, "anchor", name, leaves)
    if waiting is not None:
        programs.arranged[name] = source
    if kind not in ONCE:
        return copy
    if waiting is not None:
        programs.last.append(Copy(in_memory_order(source), waiting, name=f"{name}/HandOver"))
    programs.last.append(copy)
    return per_batch


def fill(graph: Graph, inputs: Mapping[str, Tensor], mode: SyntheticDataMode) -> None:
    """Fill inputs with their final values: random ones, or zero."""
    random = np.random.default_rng(1)
    draws: dict[SyntheticDataMode, Callable[..., Array]] = {
        SyntheticDataMode.RandomNormal: lambda shape: np.asarray(random.normal(size=shape)),
        SyntheticDataMode.RandomUniform: lambda shape: np.asarray(random.uniform(size=shape)),
    }
    for tensor in inputs.values():
        values = draws.get(mode, np.zeros)(tensor.shape)
        graph.setInitialValue(tensor, values.astype(tensor.dtype.numpy))


def add_run(
    programs: Programs, graph: Graph, body: Steps, anchors: Mapping[str, Tensor], flow: DataFlow
) -> None:
    """Add the program of a step: all batches, with each anchor where it is wanted."""
    copies: dict[int, list[Program]] = {}
    for name, tensor in anchors.items():
        per_batch = (
            add_anchor(programs, graph, name, tensor, flow) if tensor.numElements() else None
        )
        if per_batch is not None:
            kind = flow.art(name)
            copies.setdefault(kind.rp() if kind.id() == "EVERYN" else 1, []).append(per_batch)
    body.children.extend(copies.pop(1, ()))
    batches = flow.batchesPerStep()
    step = _steps(graph, body, batches, copies)
    programs.programs[RUN] = Steps(programs.begin, step, programs.last, name=RUN)


def _steps(
    graph: Graph, body: Steps, batches: int, copies: Mapping[int, Sequence[Program]]
) -> Program:
    """Repeat the body, with what follows every so many times."""
    if not copies:
        return body if batches == 1 else Repeat(batches, body, name="batches")
    one = Call(graph.addFunction(body, "batch"))
    periods = sorted(copies)
    if all(b % a == 0 for a, b in zip(periods, periods[1:], strict=False)):
        return _nested(one, batches, periods, copies)
    steps = Steps(name="batches")
    for batch in range(1, batches + 1):
        steps.add(one)
        for period in periods:
            steps.children.extend(copies[period] if batch % period == 0 else ())
    return steps


def _nested(
    one: Program, count: int, periods: Sequence[int], copies: Mapping[int, Sequence[Program]]
) -> Program:
    """Nest loops, the longest period outermost."""
    if not periods:
        return Repeat(count, one)
    *shorter, period = periods
    full_runs, remainder = divmod(count, period)
    block = Steps(_nested(one, period, shorter, copies), copies[period])
    steps = Steps(Repeat(full_runs, block), name="batches")
    if remainder:
        steps.add(_nested(one, remainder, shorter, copies))
    return steps
