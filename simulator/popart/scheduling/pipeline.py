"""Pipelining: while one IPU works on a batch, the IPU before it works on the next one.

Each IPU is a stage of the forward pass, or has several that the builder has noted: to a pipeline
stages are the homes of nodes. In training the way back has stages of its own, from the last one,
which goes back in the same cycle, to the first: batch b is in stage k in cycle b + k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

from simulator.graph.program import Copy, Program
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.regions import variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.lowering import Lowering
from simulator.popart.representation.ir import IPU_ATTRIBUTE, STAGE_ATTRIBUTE, Ir, Node
from simulator.popart.scheduling.stash import Delayed, Stash, each_tensor
from simulator.popart.settings.names import reservedGradientPrefix
from simulator.poplibs import poputil


class Staging(NamedTuple):
    """The stages of a forward pass: which one each node is in, and the IPU of each."""

    stages: Mapping[str, int]
    ipus: Sequence[int]


def staged(ir: Ir, placed: Mapping[str, int], subject: str) -> Staging:
    """Return the stages of nodes; raises popart_exception for what makes no pipeline.

    They are those that the builder has noted; without any, each IPU is one. What follows on the
    same IPU is part of the same stage.
    """
    noted = {
        node.name: int(node.attributes[STAGE_ATTRIBUTE])
        for node in ir.nodes
        if STAGE_ATTRIBUTE in node.attributes
    }
    if not noted:
        staging = Staging(placed, range(max(placed.values(), default=0) + 1))
    else:
        staging = _joined(_noted_stages(ir, placed, noted), placed)
    if len(set(staging.ipus)) < 2:
        raise popart_exception(
            f"Pipelining requires more than 1 IPU: {subject} needs nodes on at least 2 IPUs"
        )
    _check_order(ir, staging, subject)
    return staging


def _noted_stages(ir: Ir, placed: Mapping[str, int], noted: Mapping[str, int]) -> dict[str, int]:
    """Return the stage of each node: what nobody placed is in the last stage that it reads from."""
    stages: dict[str, int] = {}
    made_in: dict[str, int] = {}
    for node in ir.nodes:
        before = [made_in[name] for name in node.reads if name in made_in]
        stages[node.name] = noted.get(node.name, max(before, default=min(noted.values())))
        made_in |= dict.fromkeys(node.outputs, stages[node.name])
    missing = [n for n in ir.nodes if n.name not in noted and IPU_ATTRIBUTE in n.attributes]
    if missing:
        raise popart_exception(
            "Only some ops have had their pipeline stage set. Ops with the pipeline stage set: "
            f"{', '.join(list(noted)[:3])}. Ops without: {', '.join(str(n) for n in missing[:3])}"
        )
    first: dict[int, str] = {}
    for name, stage in stages.items():
        beside = first.setdefault(stage, name)
        if placed[beside] != placed[name]:
            raise popart_exception(
                f"Ops {beside} and {name} have the same pipeline stage {stage}, but are on IPUs "
                f"{placed[beside]} and {placed[name]}; a stage is on one"
            )
    return stages


def _joined(stages: Mapping[str, int], placed: Mapping[str, int]) -> Staging:
    """Number stages from 0; those that follow each other on one IPU are one."""
    ipu_of_stage = {stage: placed[name] for name, stage in stages.items()}
    numbers: dict[int, int] = {}
    ipus: list[int] = []
    for stage in sorted(ipu_of_stage):
        if not ipus or ipus[-1] != ipu_of_stage[stage]:
            ipus.append(ipu_of_stage[stage])
        numbers[stage] = len(ipus) - 1
    return Staging({name: numbers[stage] for name, stage in stages.items()}, ipus)


def _check_order(ir: Ir, staging: Staging, subject: str) -> None:
    """Raise popart_exception for a node that reads what a later stage makes."""
    made_in: dict[str, int] = {}
    for node in ir.nodes:
        stage = staging.stages[node.name]
        late = [name for name in node.reads if made_in.get(name, 0) > stage]
        if late:
            raise popart_exception(
                f"Tensor {late[0]} is consumed in an earlier pipeline stage than it is produced: "
                f"{subject}: {node} is in stage {stage}, on IPU {staging.ipus[stage]}, and "
                f"{late[0]!r} of stage {made_in[late[0]]}; pipelineStage gives an IPU another stage"
            )
        made_in |= dict.fromkeys(node.outputs, stage)


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

    def program(self, home: int, prog: Steps) -> Steps:
        """Return the program of a stage, forward or back; inside a branch the program given."""
        return self.stages[self.stage_at(home)] if self.placed else prog

    def stage_at(self, home: int) -> int:
        """Return the stage that is at a home now: forward or back."""
        return home if self.forward is None else self.back(home)

    def back(self, home: int) -> int:
        """Return the stage that goes back through a stage."""
        return len(self.stages) - 1 - home

    def place_of(self, node: Node) -> dict[str, str]:
        """Return in which stage a node is, forward or back, for its debug context."""
        stage = self.stage_at(self.home_of(node))
        return {"pipelineStage": f"Stage {stage}"} if self.placed else {}

    def weight_home(self, name: str) -> int:
        """Return the home of a weight: of the stages on its IPU the first that reads it."""
        ipu = self.ipu_with(self.stored[name])
        homes = [home for home, at in enumerate(self.ipus) if at == ipu]
        readers = {self.home_of(node) for node, _ in self.consumers.get(name, ())}
        return min(readers.intersection(homes), default=homes[0])

    def stage_of(self, name: str) -> int | None:
        """Return the stage that makes a tensor, or first reads an input; None of what stays."""
        if name in self.makers:
            return self.makers[name]
        if name not in self.ir.inputs:
            return None
        return min((self.home_of(node) for node in self.ir.nodes if name in node.reads), default=0)

    def stage_with(self, name: str, tensor: Tensor) -> int:
        """Return the stage at whose end a tensor has the value of its batch."""
        if name.startswith(reservedGradientPrefix()):
            return self.back(self.gradient_home(name.removeprefix(reservedGradientPrefix())))
        stage = self.stage_of(name)
        if stage is None:  # of a weight, which training changes on the way back
            weight = name.rpartition("___")[2]
            is_kept = weight in self.stored
            return self.stage_at(self.weight_home(weight) if is_kept else self.first_on(tensor))
        return stage

    def first_on(self, tensor: Tensor) -> int:
        """Return the first stage on the IPU that holds a tensor."""
        return list(self.ipus).index(self.ipu_with(tensor))

    def at_home(self, name: str, home: int, prog: Steps) -> Tensor:
        """Return a tensor to a stage: what an earlier one has comes by a buffer for each hop."""
        source = self.stage_of(name) if self.placed else None
        if source is None or source >= home:
            return Lowering.at_home(self, name, home, prog)
        if (name, home) not in self.copies:
            below = self.at_home(name, home - 1, prog)
            self.copies[name, home] = self._hop(below, home, home, f"{name}/Stage{home}")
        return self.copies[name, home]

    def _hop(self, below: Tensor, home: int, stage: int, label: str) -> Tensor:
        """Add a buffer at a home, and the copy that fills it before a stage."""
        buffer = poputil.cloneToIpu(self.graph, below, self.ipus[home], label)
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

    def held(self, home: int, tensors: Sequence[object]) -> list[Any]:
        """Return what the forward pass has left in a stage, from its stash."""
        restore = partial(self.restored, home)
        rows = [t if isinstance(t, Tensor) else each_tensor(t, restore) for t in tensors]
        return Delayed(rows, restore)

    def restored(self, home: int, tensor: Tensor) -> Tensor:
        """Return a tensor of the forward pass as the batch left it that is on its way back."""
        depth = self.back(home) - home
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
        if home not in self.stashes:
            queues = (self.stages[home], self.restores[self.back(home)])
            ipu = self.ipus[home]
            is_shared = list(self.ipus).count(ipu) > 1
            label = f"ipu{ipu}/stage{home}/stash" if is_shared else f"ipu{ipu}/stash"
            self.stashes[home] = Stash(self.graphs[home], label, depth, *queues)
        return self.stashes[home].taken(tensor, changed)

    def carried(self, tensor: Tensor, source: int, home: int, prog: Steps, name: str) -> Tensor:
        """Return a gradient at a home: it comes back by a buffer for each hop."""
        if not self.placed:  # of a branch: what it needs is there
            return self.restored(home, tensor)
        moved = self.restored(source, tensor)
        for below in range(source - 1, home - 1, -1):
            stage = self.back(below)
            moved = self._hop(moved, below, stage, f"{name}/Stage{stage}")
        return moved

    def finish(self, begin: Steps) -> None:
        """End the stages; `begin` is where a run begins."""
        for stash in self.stashes.values():
            stash.finish(begin)


def pipeline_of(plain: Lowering) -> Pipeline:
    """Make the lowering by stages of a graph, whose homes are those of the forward pass."""
    stages = 2 * len(plain.ipus) - 1 if plain.training else len(plain.ipus)
    restores = [Steps(name="restore") for _ in range(stages)]
    return Pipeline(
        plain.ir, plain.graph, plain.options, plain.values, plain.training, plain.placed,
        stages=[Steps(restore, name=f"stage {n}") for n, restore in enumerate(restores)],
        hops=[[] for _ in range(stages)], restores=restores, products=plain.products,
        pools=plain.pools, graphs=plain.graphs, outlining=plain.outlining, ipus=plain.ipus,
    )  # fmt: skip
