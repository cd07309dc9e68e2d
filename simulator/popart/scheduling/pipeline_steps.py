"""The cycles of a pipeline: filled, full and drained, with each anchor when its batch is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import lcm

from simulator.graph.graph import Graph
from simulator.graph.program import Call, Program, Repeat
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.lowering import Lowering
from simulator.popart.programs import Programs, add_anchor, host_to_device
from simulator.popart.scheduling.io_tiles import PLAIN, Ways, handed, is_apart, is_overlapped
from simulator.popart.scheduling.pipeline import Pipeline
from simulator.popart.settings.dataflow import ONCE, DataFlow

Fired = frozenset[int]  # which of the anchors that come every so many batches


def in_runs(signs: Sequence[Fired], make: Callable[[Fired], Program]) -> list[Program]:
    """Return a program for each sign; those that follow one another alike are repeated."""
    programs: list[Program] = []
    for sign, same in groupby(signs):
        count = len(list(same))
        programs.append(make(sign) if count == 1 else Repeat(count, make(sign)))
    return programs


def periodic(
    signs: Callable[[int], Fired], count: int, period: int, make: Callable[[Fired], Program]
) -> list[Program]:
    """Return the programs of `count` cycles whose signs come again after a period."""
    block = [signs(place) for place in range(min(period, count))]
    repeats, remainder = divmod(count, period)
    programs = in_runs(block, make) if repeats else []
    if repeats > 1:
        programs = [Repeat(repeats, programs[0] if len(programs) == 1 else Steps(programs))]
    return programs + in_runs(block[:remainder], make)


@dataclass(slots=True)
class Cycles:
    """What each stage does in a cycle: inputs, work, anchors; and the copies into each stage.

    `every` are anchors of a stage that come every so many batches: stage, period, copy.
    """

    graph: Graph
    inputs: list[list[Program]]
    work: list[Program]
    anchors: list[list[Program]]
    hops: list[list[Program]]
    every: list[tuple[int, int, Program]] = field(default_factory=list)
    name: str = "pipeline"

    def steps(self, active: range, name: str, fired: Fired = frozenset()) -> Steps:
        """Return the program of a cycle in which these stages have a batch."""
        cycle = Steps(name=name)
        # The last stage first: what crosses, or is stashed, is read before it is written again.
        for stage in reversed(active):
            cycle.children.extend(self.inputs[stage])
        for stage in reversed(active):
            cycle.add(self.work[stage])
        for stage in reversed(active):
            cycle.children.extend(self.anchors[stage])
        cycle.children.extend(self.every[place][2] for place in sorted(fired))
        for stage in reversed(active):
            cycle.children.extend(self.hops[stage + 1] if stage + 1 < len(self.hops) else ())
        return cycle

    def fired(self, cycle: int, active: range) -> Fired:
        """Return which anchors leave in a cycle: those whose stage ends a period."""
        return frozenset(
            place
            for place, (stage, period, _) in enumerate(self.every)
            if stage in active and (cycle - stage + 1) % period == 0
        )

    def of_batches(self, batches: int) -> list[Program]:
        """Return the program of so many batches: fill, repeat, drain.

        Fewer batches than stages pass through the pipeline, which is never full.
        """
        count = len(self.work)
        if batches < count:
            passing = [
                (t, range(max(t + 1 - batches, 0), min(t + 1, count)))
                for t in range(batches + count - 1)
            ]
            return [self.steps(on, f"pass {t}", self.fired(t, on)) for t, on in passing]
        full = range(count)
        bodies: dict[Fired, Program] = {}

        def cycle(fired: Fired) -> Program:
            if fired not in bodies:
                bodies[fired] = self.steps(full, self.name, fired)
                if self.every:
                    bodies[fired] = Call(
                        self.graph.addFunction(bodies[fired], self.name), self.name
                    )
            return bodies[fired]

        filling = [(t, range(t + 1), f"fill {t}") for t in range(count - 1)]
        draining = [(batches + t, range(t + 1, count), f"drain {t}") for t in range(count - 1)]
        fill, drain = (
            [self.steps(active, name, self.fired(t, active)) for t, active, name in part]
            for part in (filling, draining)
        )
        middle = periodic(
            lambda place: self.fired(count - 1 + place, full),
            batches - count + 1,
            lcm(*(period for _, period, _ in self.every)),
            cycle,
        )
        if not self.every:
            middle = [Repeat(batches - count + 1, cycle(frozenset()), name=self.name)]
        return [*fill, *middle, *drain]

    def accumulated(
        self, batches: int, factor: int, before: Program, after: Program
    ) -> list[Program]:
        """Return the program of batches of `factor` micro-batches, each with a begin and an end.

        Anchors that come every so many batches come with all micro-batches of such a one.
        """

        def batch(fired: Fired) -> Program:
            anchors = [
                [*always, *(self.every[p][2] for p in sorted(fired) if self.every[p][0] == stage)]
                for stage, always in enumerate(self.anchors)
            ]
            inner = replace(self, anchors=anchors, every=[])
            return Steps(before, inner.of_batches(factor), after, name="batch")

        periods = [period for _, period, _ in self.every]

        def fired(number: int) -> Fired:
            ends = ((number + 1) % period == 0 for period in periods)
            return frozenset(place for place, end in enumerate(ends) if end)

        return periodic(fired, batches, lcm(*periods), batch)

    def over_loops(
        self, batches: int, factor: int, before: Program, after: Program
    ) -> list[Program]:
        """Return the same program, but that the host goes on from batch to batch.

        There is one stage between loading and storing.
        """
        load, work, store = self.work
        total = batches * factor
        periods = [period for _, period, _ in self.every]

        def signs(number: int) -> Fired:
            """Return what a micro-batch does besides: -1 it begins a batch, -2 it ends one."""
            marks = {-1} if number % factor == 0 else set()
            marks |= {-2} if number % factor == factor - 1 else set()
            for place, (stage, period, _) in enumerate(self.every):
                batch = (number + 1 - stage) // factor  # of the micro-batch that is there
                marks |= {place} if batch >= 0 and (batch + 1) % period == 0 else set()
            return frozenset(marks)

        def cycle(active: range, marks: Fired) -> Program:
            begin, end = ([step] * (mark in marks) for step, mark in ((before, -1), (after, -2)))
            cycles = replace(self, work=[load, Steps(begin, work, end), store])
            return cycles.steps(active, self.name, frozenset(m for m in marks if m >= 0))

        if total == 1:
            return [cycle(range(n, n + 1), signs(n - 1)) for n in range(3)]
        middle = periodic(
            lambda place: signs(place + 1), total - 2, factor * lcm(*periods),
            lambda marks: cycle(range(3), marks),
        )  # fmt: skip
        first, last = cycle(range(2), signs(0)), cycle(range(1, 3), signs(total - 1))
        ends = cycle(range(1), frozenset()), cycle(range(2, 3), signs(total))
        return [ends[0], first, *middle, last, ends[1]]


def cycles_of(
    programs: Programs,
    ways: Ways,
    lowering: Lowering,
    compute: Steps,
    tensors: tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
    flow: DataFlow,
) -> Cycles:
    """Return the cycles of a pipeline from the tensors of inputs and anchors.

    What is no pipeline has one stage, `compute`. Where data are exchanged with the host while
    others compute, there is a stage before the first, and one behind the last.
    """
    pipeline = lowering if isinstance(lowering, Pipeline) else None
    stages = pipeline.stages if pipeline else [compute]
    hops = pipeline.hops if pipeline else [[]]
    inputs, anchors = tensors
    work: list[Program] = [
        Call(ways.compute.addFunction(stage, f"stage {place}"), f"stage {place}")
        for place, stage in enumerate(stages)
    ]
    if ways.overlap:
        work = [Steps(name="load"), *work, Steps(name="store")]
        hops = [[], *hops, []]
    name = "pipeline" if pipeline else "batches" if ways.overlap else "microbatches"
    none: list[list[Program]] = [[] for _ in work]
    rows = [[*hop] for hop in hops]
    cycles = Cycles(ways.compute, none, work, [[] for _ in work], rows, name=name)
    for name, tensor in inputs.items():
        if tensor.numElements():
            stage = (pipeline and pipeline.stage_of(name)) or 0
            _add_input(cycles, programs, ways, lowering, name, tensor, stage + ways.overlap)
    for name, tensor in anchors.items():
        if tensor.numElements():
            stage = pipeline.stage_with(name, tensor) if pipeline else 0
            _add_output(cycles, programs, ways, lowering, flow, name, tensor, stage + ways.overlap)
    return cycles


def _add_input(
    cycles: Cycles, programs: Programs, ways: Ways, lowering: Lowering, name: str, tensor: Tensor,
    stage: int,
) -> None:  # fmt: skip
    """Add the way of an input from the host to a stage."""
    settings = ways.inputs.get(name, PLAIN)
    if not is_apart(settings):
        programs.inputs[name], copy = host_to_device(
            cycles.graph, "input", name, tensor, programs.depth
        )
        cycles.inputs[stage].append(copy)
        return
    waiting = ways.waiting(tensor, settings, lowering.ipu_with(tensor), f"{name}/Waiting")
    programs.inputs[name], load = host_to_device(
        cycles.graph, "input", name, waiting, programs.depth
    )
    programs.arranged[name] = tensor
    hand = handed(waiting, tensor, f"{name}/HandOver")
    if is_overlapped(settings):
        # Behind the work of other stages: what the host brings meanwhile takes no time of its own.
        cycles.anchors[stage - 1].append(load)
        cycles.hops[stage].append(hand)
    else:
        cycles.inputs[stage] += [load, hand]


def _add_output(
    cycles: Cycles, programs: Programs, ways: Ways, lowering: Lowering, flow: DataFlow, name: str,
    tensor: Tensor, stage: int,
) -> None:  # fmt: skip
    """Add the way of an anchor from a stage to the host."""
    kind, settings = flow.art(name), ways.anchors.get(name, PLAIN)
    waiting = None
    if is_apart(settings):
        waiting = ways.waiting(tensor, settings, lowering.ipu_with(tensor), f"{name}/Waiting")
    per_batch = add_anchor(programs, cycles.graph, name, tensor, flow, waiting)
    if per_batch is None:
        return
    if waiting is not None and kind.id() not in ONCE:
        hand = handed(tensor, waiting, f"{name}/HandOver")
        if is_overlapped(settings):
            stage += 1
            cycles.hops[stage].append(hand)
        else:
            per_batch = Steps(hand, per_batch)
    if kind.id() == "EVERYN" and kind.rp() > 1:
        cycles.every.append((stage, kind.rp(), per_batch))
    else:
        cycles.anchors[stage].append(per_batch)
