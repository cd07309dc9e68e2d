"""Pipelining: while one IPU works on a batch, the IPU before it works on the next one.

Each IPU is a stage of the forward pass. In training the way back has stages of its own, from the
last IPU, which goes back in the same cycle, to the first: batch b is in stage k in cycle b + k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from simulator.graph.program import Copy, Program
from simulator.graph.program import Sequence as Steps
from simulator.graph.regions import variables_of
from simulator.graph.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.ir import STAGE_ATTRIBUTE, Ir, Node
from simulator.popart.lowering import Lowering
from simulator.popart.scheduling.stash import Delayed, Stash, each_tensor
from simulator.poplibs import poputil


def check_pipeline(ir: Ir, placed: Mapping[str, int], subject: str, *, training: bool) -> int:
    """Return the number of stages; raises popart_exception for what makes no pipeline."""
    ipus = max(placed.values(), default=0) + 1
    if ipus < 2:
        raise popart_exception(
            f"Pipelining requires more than 1 IPU: {subject} needs nodes on at least 2 IPUs"
        )
    stages = 2 * ipus - 1 if training else ipus
    made_on: dict[str, int] = {}
    for node in ir.nodes:
        late = [name for name in node.reads if made_on.get(name, 0) > placed[node.name]]
        if late:
            raise popart_exception(
                f"{subject}: {node} on IPU {placed[node.name]} reads {late[0]!r} of IPU "
                f"{made_on[late[0]]}; a pipeline goes on from IPU to IPU"
            )
        stage = node.attributes.get(STAGE_ATTRIBUTE, placed[node.name])
        if stage != placed[node.name]:
            raise popart_exception(
                f"{subject}: {node} on IPU {placed[node.name]} is in pipeline stage {stage}; each "
                "IPU is a stage, in their order"
            )
        made_on |= dict.fromkeys(node.outputs, placed[node.name])
    return stages


@dataclass(slots=True)
class Pipeline(Lowering):
    """A graph on its way to the device, stage by stage; `hops[s]` are the copies into stage s.

    `forward` counts the variables that the forward pass has made; None as long as it goes on.
    """

    stages: list[Steps] = field(default_factory=list)
    hops: list[list[Program]] = field(default_factory=list)
    stashes: dict[int, Stash] = field(default_factory=dict)
    restores: list[Steps] = field(default_factory=list)
    forward: int | None = None
    kept: set[int] = field(default_factory=set)  # variables that are not of a batch

    def program(self, ipu: int, prog: Steps) -> Steps:
        """Return the stage of an IPU, forward or back; inside a branch the program given."""
        return self.stages[self.stage_on(ipu)] if self.placed else prog

    def stage_on(self, ipu: int) -> int:
        """Return the stage that an IPU is in now: forward or back."""
        return ipu if self.forward is None else len(self.stages) - 1 - ipu

    def place_of(self, node: Node) -> dict[str, str]:
        """Return in which stage a node is, forward or back, for its debug context."""
        ipu = self.ipu_of(node)
        return {"pipelineStage": f"Stage {self.stage_on(ipu)}"} if self.placed else {}

    def stage_of(self, name: str) -> int | None:
        """Return the stage that makes a tensor, or first reads an input; None of what stays."""
        if name in self.makers:
            return self.makers[name]
        if name not in self.ir.inputs:
            return None
        return min((self.ipu_of(node) for node in self.ir.nodes if name in node.reads), default=0)

    def stage_with(self, name: str, tensor: Tensor) -> int:
        """Return the stage at whose end a tensor has the value of its batch."""
        if self.forward is not None and min(variables_of(tensor), default=0) >= self.forward:
            return len(self.stages) - 1 - self.ipu_with(tensor)
        stage = self.stage_of(name)
        if stage is None:  # a weight, which training changes on the way back
            return self.stage_on(self.ipu_with(tensor))
        return stage

    def on_ipu(self, name: str, ipu: int, prog: Steps) -> Tensor:
        """Return a tensor to a stage: what an earlier one has comes by a buffer for each hop."""
        source = self.stage_of(name) if self.placed else None
        if source is None or source >= ipu:
            return Lowering.on_ipu(self, name, ipu, prog)
        if (name, ipu) not in self.copies:
            below = self.on_ipu(name, ipu - 1, prog)
            self.copies[name, ipu] = self._hop(below, ipu, ipu, f"{name}/Stage{ipu}")
        return self.copies[name, ipu]

    def _hop(self, below: Tensor, ipu: int, stage: int, label: str) -> Tensor:
        """Add a buffer on an IPU, and the copy that fills it before a stage."""
        buffer = poputil.cloneToIpu(self.graph, below, ipu, label)
        self.hops[stage].append(Copy(below, buffer, name=label))
        return buffer

    # The way back
    def turn(self) -> None:
        """Begin the backward pass: what the forward pass has made comes from the stashes now."""
        for inner in self.inner.values():
            cast(Pipeline, inner).turn()
        self.forward = len(self.graph.variables)
        stored = [t for name, t in self.stored.items() if name not in self.ir.inputs]
        self.kept = {number for tensor in stored for number in variables_of(tensor)}

    def held(self, ipu: int, tensors: Sequence[object]) -> list[Any]:
        """Return what the forward pass has left on an IPU, from its stash."""
        restore = partial(self.restored, ipu)
        rows = [t if isinstance(t, Tensor) else each_tensor(t, restore) for t in tensors]
        return Delayed(rows, restore)

    def restored(self, ipu: int, tensor: Tensor) -> Tensor:
        """Return a tensor of the forward pass as the batch left it that is on its way back."""
        depth = len(self.stages) - 1 - 2 * ipu
        assert self.forward is not None
        changed = [
            number
            for number in variables_of(tensor)
            if number < self.forward
            and number not in self.kept
            and not self.graph.variables[number].constant
        ]
        if not depth or not changed:
            return tensor
        if ipu not in self.stashes:
            back = len(self.stages) - 1 - ipu
            queues = (self.stages[ipu], self.restores[back])
            self.stashes[ipu] = Stash(self.graphs[ipu], f"ipu{ipu}/stash", depth, *queues)
        return self.stashes[ipu].taken(tensor, changed)

    def carried(self, tensor: Tensor, ipu: int, prog: Steps, name: str) -> Tensor:
        """Return a gradient on an IPU: it comes back by a buffer for each hop."""
        source_ipu = self.ipu_with(tensor)
        moved = self.restored(source_ipu, tensor)
        if source_ipu < ipu:
            raise popart_exception(
                f"{name}: of IPU {source_ipu} goes to IPU {ipu}; a pipeline's way back goes down"
            )
        for below in range(source_ipu - 1, ipu - 1, -1):
            stage = len(self.stages) - 1 - below
            moved = self._hop(moved, below, stage, f"{name}/Stage{stage}")
        return moved

    def finish(self, begin: Steps) -> None:
        """End the stages; `begin` is where a run begins."""
        for stash in self.stashes.values():
            stash.finish(begin)


def pipeline_of(plain: Lowering, stages: int) -> Pipeline:
    """Make the lowering by stages of a graph."""
    restores = [Steps(name="restore") for _ in range(stages)]
    return Pipeline(
        plain.ir, plain.graph, plain.options, plain.values, plain.training, plain.placed,
        stages=[Steps(restore, name=f"stage {n}") for n, restore in enumerate(restores)],
        hops=[[] for _ in range(stages)], restores=restores, products=plain.products,
        pools=plain.pools, graphs=plain.graphs, outlining=plain.outlining,
    )  # fmt: skip
