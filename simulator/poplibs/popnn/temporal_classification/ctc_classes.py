"""The classes of a classification loss that a sample's labels have, instead of all.

PopLibs lib/popnn/CTCLoss.cpp, by the option `enableReducedClassesInLabel` of its plan: the log
probabilities of the blank and of each label are gathered before the loss, and the gradient is
scattered after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.layers import ctc_labels
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import UNSIGNED_INT
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.poplibs import popops
from simulator.poplibs.popops import embedding
from simulator.poplibs.popops.elementwise.cast import cast

BLANK = 0  # the place of the blank among the gathered classes


@dataclass(frozen=True, slots=True)
class LabelClasses:
    """The gathered log probabilities [steps, batch, labels + 1], and labels that count in them.

    `scattered` [batch, labels + 1, 1] are the classes that the gradient goes to.
    """

    probs: Tensor
    labels: Tensor
    scattered: Tensor
    blank: int

    @classmethod
    def of(
        cls, graph: Graph, probs: Tensor, labels: Tensor, blank: int, prog: Sequence, name: str
    ) -> LabelClasses:
        """Gather the classes of labels [batch, longest], the blank first."""
        steps, batch, classes = probs.shape
        longest = labels.dim(1)
        sizes, lookups = (batch, classes, steps), longest + 1
        options = {"usedForSlice": "true", "usedForUpdate": "false"}
        plan = embedding.plan(graph, probs.dtype, *sizes, [lookups], options)
        table = popops.createGroupedSliceableTensor(
            graph, probs.dtype, batch, [classes, steps], [0], [1], plan, None, f"{name}/classes"
        )
        prog.add(Copy(probs.dimShuffle([1, 2, 0]), table, name=f"{name}/classes"))
        wanted = _with_blank(graph, labels, blank, prog, f"{name}/labels")
        rows = popops.groupedMultiSlice(
            graph, table, wanted, [0], [1], prog, plan, None, f"{name}/gather"
        )
        numbers, later = _numbered(graph, labels, blank, prog, name)
        scattered = _with_blank(graph, later, blank, prog, f"{name}/labelsForPost")
        return cls(rows.squeeze([2]).dimShuffle([2, 0, 1]), numbers, scattered, blank)

    def spread(
        self, graph: Graph, gradient: Tensor, others: Tensor, prog: Sequence, name: str
    ) -> Tensor:
        """Return a gradient [batch, steps, labels + 1] of all classes: `others` where none is.

        Columns of a label that came before go to the blank, which is written last.
        """
        batch, steps, classes = others.shape
        lookups, dtype = gradient.dim(2), gradient.dtype
        options = {"usedForSlice": "false", "usedForUpdate": "true", "operationForUpdate": "none"}
        plan = embedding.plan(graph, dtype, batch, classes, steps, [lookups], options)
        table = popops.createGroupedSliceableTensor(
            graph, dtype, batch, [classes, steps], [0], [1], plan, None, f"{name}/spread"
        )
        prog.add(Copy(others.dimShuffle([0, 2, 1]), table, name=f"{name}/others"))
        rows = popops.createGroupedSliceTensor(
            graph, dtype, batch, [classes, steps], [0], [1], lookups, plan, None, f"{name}/rows"
        )
        prog.add(Copy(gradient.dimShuffle([0, 2, 1]).expand([2]), rows, name=f"{name}/rows"))
        popops.groupedMultiUpdate(
            graph, table, rows, self.scattered, [0], [1], prog, plan, None, f"{name}/scatter"
        )
        blank = table.slice(self.blank, self.blank + 1, 1)
        column = gradient.slice(BLANK, BLANK + 1, 2).dimShuffle([0, 2, 1])
        prog.add(Copy(column, blank, name=f"{name}/blank"))
        return table.dimShuffle([0, 2, 1])


def _with_blank(graph: Graph, labels: Tensor, blank: int, prog: Sequence, name: str) -> Tensor:
    """Return the offsets [batch, labels + 1, 1] of the blank and of labels."""
    first = graph.addConstant(labels.dtype, [labels.dim(0), 1], blank, f"{name}/blank")
    graph.setTileMapping(first, 0)
    offsets = concat([first, labels], 1).expand([2])
    if offsets.dtype != UNSIGNED_INT:
        return cast(graph, offsets, UNSIGNED_INT, prog, name)
    copy = graph.clone(offsets, name)
    prog.add(Copy(offsets, copy, name=name))
    return copy


def _numbered(
    graph: Graph, labels: Tensor, blank: int, prog: Sequence, name: str
) -> tuple[Tensor, Tensor]:
    """Add a vertex for each label, over the tiles in turn; return what it is among the gathered."""
    batch, longest = labels.shape
    outputs = [graph.clone(labels, f"{name}/{label}") for label in ("remapLabel", "labelForPost")]
    sample, place = np.divmod(np.arange(batch * longest), longest)
    low = np.arange(batch * longest)
    fields = {
        "labelsSlice": cut_field(
            "labelsSlice", "input", labels.flatten(), sample * longest, (sample + 1) * longest
        )
    }
    for field, tensor in zip(("remapLabel", "remapLabelForPost"), outputs, strict=True):
        fields[field] = cut_field(field, "output", tensor.flatten(), low, low + 1)
    parameters = {"labelId": place, "blankId": np.full(len(place), blank)}
    compute_set = graph.addComputeSet(f"{name}/remapLabelsCs")
    tiles, cycles = low % graph.target.num_tiles, ctc_labels.remap_cycles(place)
    codelet = ctc_labels.codelet(labels.dtype)
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles, fields, parameters, cycles))
    prog.add(Execute(compute_set))
    return outputs[0], outputs[1]
