"""Pipelining: while one IPU works on a batch, the IPU before it works on the next one.

In every cycle of the pipeline all inputs come first and all anchors leave last, so that nothing but
the end of the slowest stage holds the others up; then what crosses moves on by one stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from simulator.graph.graph import Graph
from simulator.graph.program import Call, Copy, Program, Repeat
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensor import Tensor
from simulator.popart.dataflow import DataFlow
from simulator.popart.errors import popart_exception
from simulator.popart.ir import Ir
from simulator.popart.lowering import Lowering, Progress
from simulator.popart.programs import RUN, Programs, device_to_host, host_to_device
from simulator.poplibs import poputil


def check_pipeline(ir: Ir, placed: Mapping[str, int], flow: DataFlow, what: str) -> int:
    """Give the number of stages; raises popart_exception for what makes no pipeline."""
    stages = max(placed.values(), default=0) + 1
    if stages < 2:
        raise popart_exception(f"{what}: pipelining needs nodes on at least 2 IPUs")
    if flow.batchesPerStep() < stages:
        raise popart_exception(
            f"{what}: a pipeline of {stages} stages needs as many batches a step; "
            f"there are {flow.batchesPerStep()}"
        )
    every = [name for name in flow.anchors() if flow.art(name).id() == "EVERYN"]
    if every:
        raise popart_exception(f"{what}: anchor {every[0]!r}: a pipeline gives ALL or FINAL")
    made: dict[str, int] = {}
    for node in ir.nodes:
        late = [name for name in node.inputs if made.get(name, 0) > placed[node.name]]
        if late:
            raise popart_exception(
                f"{what}: {node} on IPU {placed[node.name]} reads {late[0]!r} of IPU "
                f"{made[late[0]]}; a pipeline goes on from IPU to IPU"
            )
        made |= dict.fromkeys(node.outputs, placed[node.name])
    return stages


@dataclass(slots=True)
class Pipeline(Lowering):
    """A graph on its way to the device, stage by stage; `hops[s]` are the copies into stage s."""

    stages: list[Steps] = field(default_factory=list)
    hops: list[list[Program]] = field(default_factory=list)

    def lower(self, prog: Steps, progress: Progress = lambda done, total, what: None) -> None:
        """Add each node to the program of its stage; those of a branch to the one given."""
        total = len(self.ir.nodes)
        for place, node in enumerate(self.ir.nodes):
            progress(place, total, node.name)
            self.lower_node(node, self.stages[self.ipu_of(node)] if self.placed else prog)
        progress(total, total, "")

    def stage_of(self, name: str) -> int | None:
        """Give the stage that makes a tensor, or first reads an input; None of what stays."""
        if name in self.made:
            return self.maker_ipu(name)
        if name not in self.ir.inputs:
            return None
        return min((self.ipu_of(node) for node, _ in self.consumers.get(name, ())), default=0)

    def on_ipu(self, name: str, ipu: int, prog: Steps) -> Tensor:
        """Give a tensor to a stage: what an earlier one has comes by a buffer for each hop."""
        source = self.stage_of(name) if self.placed else None
        if source is None or source >= ipu:
            return Lowering.on_ipu(self, name, ipu, prog)
        if (name, ipu) not in self.copies:
            below = self.on_ipu(name, ipu - 1, prog)
            label = f"{name}/Stage{ipu}"
            buffer = poputil.cloneToIpu(self.graph, below, ipu, label)
            self.hops[ipu].append(Copy(below, buffer, name=label))
            self.copies[name, ipu] = buffer
        return self.copies[name, ipu]


@dataclass(slots=True)
class _Cycle:
    """What each stage does in a cycle: inputs, work, anchors."""

    inputs: list[list[Program]]
    work: list[Program]
    anchors: list[list[Program]]
    hops: Sequence[Sequence[Program]]

    def steps(self, active: range, name: str) -> Steps:
        """Give the program of a cycle in which these stages have a batch."""
        made = Steps(name=name)
        # The last stage first: what crosses is read before it is written again.
        for stage in reversed(active):
            made.children.extend(self.inputs[stage])
        for stage in reversed(active):
            made.add(self.work[stage])
        for stage in reversed(active):
            made.children.extend(self.anchors[stage])
        for stage in reversed(active):
            made.children.extend(self.hops[stage + 1] if stage + 1 < len(self.hops) else ())
        return made


def add_pipeline(
    made: Programs,
    graph: Graph,
    lowering: Pipeline,
    tensors: tuple[Mapping[str, Tensor], Mapping[str, Tensor]],
    flow: DataFlow,
) -> None:
    """Add the program of a step from the tensors of inputs and anchors: fill, repeat, drain."""
    count = len(lowering.stages)
    inputs, anchors = tensors
    cycle = _Cycle(
        [[] for _ in range(count)],
        [
            Call(graph.addFunction(stage, f"stage {place}"), f"stage {place}")
            for place, stage in enumerate(lowering.stages)
        ],
        [[] for _ in range(count)],
        lowering.hops,
    )
    for name, tensor in inputs.items():
        made.inputs[name], copy = host_to_device(graph, "input", name, tensor)
        cycle.inputs[lowering.stage_of(name) or 0].append(copy)
    last: list[Program] = []
    for name, tensor in anchors.items():
        made.anchors[name], back = device_to_host(graph, "anchor", name, tensor)
        whole = flow.art(name).id() == "ALL"
        (cycle.anchors[lowering.stage_of(name) or 0] if whole else last).append(back)
    batches = flow.batchesPerStep()
    fill = [cycle.steps(range(t + 1), f"fill {t}") for t in range(count - 1)]
    full = cycle.steps(range(count), "pipeline")
    drain = [cycle.steps(range(t + 1, count), f"drain {t}") for t in range(count - 1)]
    middle = Repeat(batches - count + 1, full, name="pipeline")
    made.programs[RUN] = Steps(fill, middle, drain, last, name=RUN)
