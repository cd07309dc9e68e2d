"""The steps of the classification loss, over the tiles of a plan (PopLibs lib/popnn/CTCLoss.cpp).

Each part of steps and labels has a tile. In the first half of a loss the parts of the first steps
go forward, those of the last steps back; then both go on through the other half, and combine what
they meet with what is kept there. A loop runs a step of every part; only those whose turn it is do
anything. Before it, the states beside and before each part are exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers import ctc_loss as vertices
from simulator.codelets.layers.ctc_loss import Way
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Repeat, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import UNSIGNED_INT, IntArray, Type
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.poplibs import popops
from simulator.poplibs.popnn.temporal_classification.ctc_loss_plan import Plan, bounds

NOTHING = -np.inf  # the logarithm of no chance
FIRST, LAST = 1, 2  # states beside a part: before it on the way forward, behind it on the way back


@dataclass(slots=True)
class Tables:
    """The tensors of a loss by part: each lies [time part][label part] with its sample's tile."""

    graph: Graph
    prog: Sequence
    plan: Plan
    operands: tuple[Tensor, ...]
    blank: int
    name: str
    batch: int = 0
    steps: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    labels: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    states: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """Return log probabilities [batch], and sums for gradients [batch, steps, classes]."""
        graph, plan, partials = self.graph, self.plan, self.plan.partialsType
        probs, labels = self.operands[:2]
        steps, self.batch, classes = probs.shape
        longest, parts = labels.dim(1), plan.label_parts
        self.steps, cuts = bounds(steps, plan.time), bounds(longest, plan.label)
        self.labels = np.append(cuts, longest) if plan.lastBlankOnSeparateTile else cuts
        self.states = 2 * self.labels
        self.states[-1] += 1
        states = 2 * longest + 1
        column = self._by_state("column", partials, plan.time, states)
        prev = self._by_state("prev", partials, plan.time, states)
        table = self._table("states", partials, steps, self.states, states)
        data = self._by_part("logProbs", probs.dtype, steps * classes, self.steps * classes)
        side, side_prev = (
            self._by_part(label, partials, plan.time * LAST, np.arange(plan.time + 1) * LAST)
            for label in ("side", "sidePrev")
        )
        loss = self._by_part("loss", partials, plan.time, np.arange(plan.time + 1))
        count = self._by_part("count", UNSIGNED_INT, plan.time, np.arange(plan.time + 1))
        fields = {"column": column, "prev": prev, "states": table, "logProbs": data, "side": side,
                  "sidePrev": side_prev, "loss": loss, "count": count}  # fmt: skip
        fields |= self._lengths()
        fields["labels"] = self._labels(labels)
        rows = probs.dimShuffle([1, 0, 2]).reshape([self.batch, 1, steps * classes])
        self.prog.add(Copy(rows.broadcast(parts, 1), data, name=f"{self.name}/logProbs"))
        cleared = [column, prev, side, side_prev, loss]
        if gradient:
            fields["grad"] = self._by_part("grad", partials, steps * classes, self.steps * classes)
            cleared.append(fields["grad"])
        for tensor in cleared:
            popops.fill(graph, tensor, self.prog, NOTHING, f"{self.name}/clear")
        self._set(prev[:, 0, :1], 0.0, "begin")
        half = ceil_div(plan.time, 2)
        middle = int(self.steps[half])
        first = Way(True), Way(False)
        self._count_from(count, half, 0, steps - 1)
        self._loop(fields, half, first, middle)
        self._count_from(count, half, middle - 1, middle)
        for tensor in (side, side_prev):  # what lies beside a part is on its other side now
            popops.fill(graph, tensor, self.prog, NOTHING, f"{self.name}/clear")
        second = (Way(False, True), Way(True, True)) if gradient else (Way(False), Way(True))
        self._loop(fields, half, second, max(middle, steps - middle))
        total = popops.reduce(
            graph, loss.reshape([self.batch, parts * plan.time]), partials, [1],
            popops.Operation.LOG_ADD, self.prog, f"{self.name}/loss",
        )  # fmt: skip
        if not gradient:
            return total, None
        joint = popops.reduce(
            graph, fields["grad"], partials, [1], popops.Operation.LOG_ADD, self.prog,
            f"{self.name}/gradient",
        )  # fmt: skip
        return total, joint.reshape([self.batch, steps, classes])

    # Tensors
    def _tiles(self) -> IntArray:
        """Return the tile of each sample, time part and label part."""
        plan = self.plan
        sample = np.arange(self.batch) // ceil_div(self.batch, plan.batch)
        part = np.arange(plan.time * plan.label_parts).reshape(plan.time, plan.label_parts)
        return sample[:, None, None] * (plan.time * plan.label_parts) + part

    def _by_part(self, label: str, dtype: Type, size: int, cuts: IntArray) -> Tensor:
        """Add [batch, label parts, size], of which each time part has [cuts[i], cuts[i + 1])."""
        parts = self.plan.label_parts
        tensor = self.graph.addVariable(dtype, [self.batch, parts, size], f"{self.name}/{label}")
        begin = np.arange(self.batch * parts).reshape(self.batch, 1, parts) * size
        low, high = begin + cuts[:-1, None], begin + cuts[1:, None]
        self.graph.map_ranges(tensor, low.ravel(), high.ravel(), self._tiles().ravel())
        return tensor

    def _by_state(self, label: str, dtype: Type, rows: int, states: int) -> Tensor:
        """Add [batch, time parts, states], cut by the parts of the labels."""
        tensor = self.graph.addVariable(dtype, [self.batch, rows, states], f"{self.name}/{label}")
        begin = np.arange(self.batch * rows).reshape(self.batch, rows, 1) * states
        low, high = begin + self.states[:-1], begin + self.states[1:]
        self.graph.map_ranges(tensor, low.ravel(), high.ravel(), self._tiles().ravel())
        return tensor

    def _table(self, label: str, dtype: Type, steps: int, cuts: IntArray, states: int) -> Tensor:
        """Add [batch, steps * states]: for each part of both its steps, one after another."""
        tensor = self.graph.addVariable(dtype, [self.batch, steps * states], f"{self.name}/{label}")
        low = self._table_begins(states)
        size = (np.diff(self.steps)[:, None] * np.diff(cuts)).ravel()
        begin = (np.arange(self.batch)[:, None] * (steps * states) + low).ravel()
        end = begin + np.tile(size, self.batch)
        self.graph.map_ranges(tensor, begin, end, self._tiles().ravel())
        return tensor

    def _table_begins(self, states: int) -> IntArray:
        """Return where the table of each time and label part of a sample begins."""
        inside = np.diff(self.steps)[:, None] * self.states[:-1]
        begins: IntArray = (self.steps[:-1, None] * states + inside).ravel()
        return begins

    def _lengths(self) -> dict[str, Tensor]:
        """Copy how many steps and labels a sample has to each of its parts."""
        times, lengths = self.operands[2:]
        copies = {}
        for label, tensor in (("validTime", times), ("validLabel", lengths)):
            cuts = np.arange(self.plan.time + 1)
            copies[label] = self._by_part(label, UNSIGNED_INT, self.plan.time, cuts)
            source = tensor.reinterpret(UNSIGNED_INT).reshape([self.batch, 1, 1])
            source = source.broadcast(self.plan.label_parts, 1).broadcast(self.plan.time, 2)
            self.prog.add(Copy(source, copies[label], name=f"{self.name}/{label}"))
        return copies

    def _labels(self, labels: Tensor) -> Tensor:
        """Copy labels to each part, with the one before and the one behind it, [.., rows]."""
        plan, source = self.plan, labels.reinterpret(UNSIGNED_INT)
        most = int(np.diff(self.labels).max()) + 2
        cuts = np.arange(plan.time + 1) * most
        tensor = self._by_part("labels", UNSIGNED_INT, plan.time * most, cuts)
        longest = labels.dim(1)
        moves: list[tuple[Tensor, Tensor]] = []
        for part, (begin, end) in enumerate(zip(self.labels[:-1], self.labels[1:], strict=True)):
            places = np.clip(np.arange(begin - 1, end + 1), 0, longest - 1).tolist()
            row = concat([source[:, place : place + 1] for place in places], 1)
            room = tensor[:, part].reshape([self.batch, plan.time, most])
            moves.append((row.expand([1]).broadcast(plan.time, 1), room[:, :, : len(places)]))
        self.prog.add(_all_of(moves, f"{self.name}/labels"))
        return tensor

    def _set(self, tensor: Tensor, value: float, label: str) -> None:
        constant = self.graph.addConstant(tensor.dtype, [1], [value], f"{self.name}/{label}")
        self.graph.setTileMapping(constant, 0)
        source = constant.broadcast(tensor.numElements(), 0)
        self.prog.add(Copy(source, tensor.flatten(), name=f"{self.name}/{label}"))

    def _count_from(self, count: Tensor, half: int, early: int, late: int) -> None:
        """Set the step that the first and the last time parts begin with."""
        if half:
            self._set(count[:, :, :half], early, "count")
        if half < self.plan.time:
            self._set(count[:, :, half:], late, "count")

    # Steps
    def _loop(
        self, fields: dict[str, Tensor], half: int, ways: tuple[Way, Way], times: int
    ) -> None:
        """Repeat a step: the first time parts go one way, the others the other."""
        body = Sequence(name=self.name)
        moves: list[tuple[Tensor, Tensor]] = []
        groups = ((np.arange(half), ways[0]), (np.arange(half, self.plan.time), ways[1]))
        for members, way in groups:
            if len(members):
                moves += self._exchanged(fields, members, way)
        if moves:
            body.add(_all_of(moves, f"{self.name}/exchange"))
        compute_set = self.graph.addComputeSet(f"{self.name}/{ways[0].name}")
        for members, way in groups:
            if len(members):
                self._add_vertices(compute_set.id, fields, members, way)
        body.add(Execute(compute_set))
        self.prog.add(Repeat(times, body, name=self.name))

    def _exchanged(
        self, fields: dict[str, Tensor], members: IntArray, way: Way
    ) -> list[tuple[Tensor, Tensor]]:
        """List what parts get of those before them: states of the neighbouring steps and labels."""
        ahead = -1 if way.forward else 1
        sources = members + ahead
        inside = (sources >= 0) & (sources < self.plan.time)
        moves = []
        if inside.any():
            low, high = int(members[inside][0]), int(members[inside][-1]) + 1
            column, prev = fields["column"], fields["prev"]
            moves.append((column[:, low + ahead : high + ahead], prev[:, low:high]))
        parts = self.plan.label_parts
        for part in range(1, parts) if way.forward else range(parts - 1):
            edge = int(self.states[part] if way.forward else self.states[part + 1])
            begin, end = (edge - FIRST, edge) if way.forward else (edge, edge + LAST)
            end = min(end, fields["column"].dim(2))
            for label, shift in (("side", 0), ("sidePrev", ahead)):
                of = members + shift
                mine = members[(of >= 0) & (of < self.plan.time)]
                if len(mine):
                    low, high = int(mine[0]), int(mine[-1]) + 1
                    rows = fields["column"][:, low + shift : high + shift, begin:end]
                    room = fields[label][:, part].reshape([self.batch, self.plan.time, LAST])
                    moves.append((rows, room[:, low:high, : end - begin]))
        return moves

    def _add_vertices(
        self, compute_set: int, fields: dict[str, Tensor], members: IntArray, way: Way
    ) -> None:
        """Add a vertex for each sample, time part and label part."""
        plan, parts, steps = self.plan, self.plan.label_parts, self.operands[0].dim(0)
        classes, states = self.operands[0].dim(2), fields["column"].dim(2)
        sample, time, part = (
            index.ravel() for index in np.meshgrid(
                np.arange(self.batch), members, np.arange(parts), indexing="ij"
            )
        )  # fmt: skip
        row = (sample * parts + part) * plan.time + time
        column = (sample * plan.time + time) * states
        labels = np.diff(self.labels)[part]
        width = fields["labels"].dim(2) // plan.time
        table = sample * (steps * states) + self._table_begins(states)[time * parts + part]
        size = np.diff(self.steps)[time] * np.diff(self.states)[part]
        data = (sample * parts + part) * (steps * classes)
        spans = {
            "logProbs": (data + self.steps[time] * classes, data + self.steps[time + 1] * classes),
            "labels": (row * width, row * width + labels + 2),
            "column": (column + self.states[part], column + self.states[part + 1]),
            "side": (row * LAST, row * LAST + (FIRST if way.forward else LAST)),
            "states": (table, table + size),
            **dict.fromkeys(("loss", "count", "validTime", "validLabel"), (row, row + 1)),
        }
        spans["prev"], spans["sidePrev"], spans["grad"] = (
            spans["column"], spans["side"], spans["logProbs"],
        )  # fmt: skip
        written = {"column", "count", "loss", "grad" if way.gradient else "states"}
        names = ["logProbs", "labels", "column", "prev", "side", "sidePrev", "count", "validTime"]
        names += ["validLabel", "states", *["loss"] * way.forward, *["grad"] * way.gradient]
        cut = {
            key: cut_field(
                key, "inout" if key in written else "input", fields[key].flatten(), *spans[key]
            )
            for key in names
        }
        cost = vertices.step_with_gradient if way.gradient else vertices.step
        parameters = {"labels": labels, "offset": self.labels[part], "begin": self.steps[time]}
        tiles = self._tiles()[sample, time, part]
        kind = vertices.codelet(way, classes, self.blank)
        self.graph.add_vertices(
            VertexGroup(compute_set, kind, tiles, cut, parameters, cost(labels))
        )


def _all_of(moves: list[tuple[Tensor, Tensor]], name: str) -> Copy:
    """Copy several tensors at once."""
    source, into = (concat([pair[side].flatten() for pair in moves]) for side in (0, 1))
    return Copy(source, into, name=name)
