"""Automatic loss scaling: gradients of halves are counted, and the loss is scaled by the counts.

Source: popart `willow/src/transforms/automaticlossscaling.cpp` and
`willow/src/popx/op/lossscaleupdatex.cpp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.graph.graph import Graph
from simulator.graph.program import Copy, If
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, HALF, INT, Type
from simulator.popart.backpropagation.gradients import PREFIX, dependent
from simulator.popart.errors import popart_exception
from simulator.popart.lowering import Lowering
from simulator.popart.operators.table import OPERATORS
from simulator.popart.optimizers import Optimizer
from simulator.popart.optimizers.step import Number
from simulator.popart.optimizers.values import LOSS_SCALING
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.popart.scheduling.placement import brought
from simulator.popart.scheduling.replicas import of_all, summed
from simulator.popart.sessions.options import SessionOptions
from simulator.popart.settings.choices import GradientTensorTrackingMethod as Method
from simulator.popart.settings.names import reservedAccumPrefix
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1, _2
from simulator.poplibs.popops.op_types import BinaryOpType

FINAL, FACTOR = "finalLossScale", "lossScaleUpdateFactor"
COUNTER = f"{FACTOR}/Histogram_counter"
FIRST = {FACTOR: 1.0, COUNTER: -1}  # what a model without them begins with
STATISTICS = f"{reservedAccumPrefix()}autoLossScaleStats"
INFOS = {FINAL: TensorInfo("FLOAT", []), STATISTICS: TensorInfo("FLOAT", [2])}
LARGEST = 65504.0  # the largest half
PRODUCTS = {(ONNX, name) for name in ("Conv", "ConvTranspose", "Gemm", "MatMul")}
PRODUCTS |= {(GRAPHCORE, "MultiConv")}
LOSSES = {(GRAPHCORE, name) for name in ("Ctc", "IdentityLoss", "L1", "Nll")}
_SUBJECT = "[AutomaticLossScale transform]"


def is_tracked(node: Node, ir: Ir, method: Method) -> bool:
    """Return whether the gradients that a node gives are counted.

    Those of products and convolutions; without that limit those of all nodes that compute, do not
    read a weight and are no loss.
    """
    if node.key in PRODUCTS:
        return True
    if method is Method.ConvAndMatmulGradients or node.key in LOSSES or node.branches:
        return False
    is_view = OPERATORS[node.key].back is not None
    return not is_view and not any(name in ir.weights for name in node.inputs)


def tracked_tensors(ir: Ir, settings: Any, needed: set[str]) -> dict[str, list[str]]:
    """Name, for each node that is tracked, the inputs of halves with a gradient; "" the user's.

    Raises popart_exception where there are none, or the settings exclude each other.
    """
    method = settings.gradientTensorTrackingMethod
    by_name = method is Method.GradientsOfUserSpecifiedTensors
    names = settings.toTrackTensors
    if names is not None and not by_name:
        raise popart_exception(
            f"{_SUBJECT} toTrackTensors has been set, but gradientTensorTrackingMethod has not "
            "been set to 'GradientTensorTrackingMethod::GradientsOfUserSpecifiedTensors'."
        )
    if by_name and names is None:
        raise popart_exception(
            f"{_SUBJECT} gradientTensorTrackingMethod set to "
            "'GradientTensorTrackingMethod::GradientsOfUserSpecifiedTensors' but 'toTrackTensors' "
            "has not been set"
        )
    if by_name:
        unknown = [name for name in names if name not in ir.infos]
        if unknown:
            raise popart_exception(f"{_SUBJECT} toTrackTensors: no tensor {unknown[0]!r}")
        rows = {"": [name for name in names if name in needed]}
    else:
        rows = {
            node.name: [name for name in node.inputs if name in needed]
            for node in ir.nodes
            if is_tracked(node, ir, method)
        }
    rows = {
        node: [name for name in names if ir.infos[name].device == HALF]
        for node, names in rows.items()
    }
    if not any(rows.values()):
        raise popart_exception(f"{_SUBJECT} No tracked gradient tensors of type fp16 were found.")
    return rows


def check_automatic(
    ir: Ir, options: SessionOptions, optimizer: Optimizer, moving: Sequence[str]
) -> dict[str, list[str]]:
    """Return what is tracked; raises popart_exception for what automatic loss scaling excludes."""
    settings = options.automaticLossScalingSettings
    if optimizer.of("")[LOSS_SCALING].constant:
        raise popart_exception(f"{_SUBJECT} The optimizer must have non-const loss scaling")
    for name in ("binEdgeLocation", "thresholdUpperCountProportion"):
        value = getattr(settings, name)
        if not 0 <= value <= 1:
            raise popart_exception(
                f"{_SUBJECT} Out of range value for '{name}'. The current value is {value}, but "
                "it should be in the range [0, 1]."
            )
    return tracked_tensors(ir, settings, dependent(ir, moving))


@dataclass(slots=True)
class AutomaticScaling:
    """Counts the gradients of a batch, and doubles or halves the loss scaling by them.

    `begin` and `end` are programs around what makes one change of the weights.
    """

    lowering: Lowering
    options: SessionOptions
    tracked: dict[str, list[str]]
    begin: Program
    end: Program
    factors: list[Tensor] = field(default_factory=list)  # of each IPU
    counts: dict[int, Tensor] = field(default_factory=dict)  # IPU -> [below, above] the edge
    scaled: dict[str, list[Number]] = field(default_factory=dict)
    carried: dict[str, Tensor] = field(
        default_factory=dict
    )  # from batch to batch, with the weights
    due: Tensor | None = None  # whether this change counts, where not all do

    @property
    def settings(self) -> Any:
        return self.options.automaticLossScalingSettings

    def __post_init__(self) -> None:
        """Add the factor, 1 at first, and bring it to each IPU before each change."""
        graph = self.lowering.graph
        factor = self._carry(FLOAT, FACTOR)
        if self.settings.updatePeriod > 1:
            self._add_counter(graph)
        self.factors = [
            self.lowering.brought(factor, home, self.begin, FACTOR)
            for home in range(len(self.lowering.graphs))
        ]

    def _add_counter(self, graph: Graph) -> None:
        """Count the changes, and let each n-th one count the gradients."""
        counter = self._carry(INT, COUNTER)
        period = expr.Const(int(self.settings.updatePeriod), INT)
        step = expr.Rem(_1 + expr.Const(1, INT), period)
        popops.mapInPlace(graph, step, [counter], self.begin, f"{FACTOR}/IncrementMod")
        is_due = popops.map(graph, _1 < expr.Const(1, INT), [counter], self.begin, f"{FACTOR}/Less")
        self.due = graph.addVariable(BOOL, [], f"{FACTOR}/due")
        graph.setTileMapping(self.due, 0)
        self.begin.add(Copy(is_due, self.due))

    def _carry(self, dtype: Type, name: str) -> Tensor:
        """Add a number that is kept like a weight."""
        tensor = self.lowering.graph.addVariable(dtype, [], name)
        self.lowering.graph.setTileMapping(tensor, 0)
        self.carried[name] = tensor
        return tensor

    def number(self, name: str, numbers: list[Number], power: int) -> list[Number]:
        """Return a number of each IPU times a power of the factor."""
        if name not in self.scaled:
            steps = {1: _1 * _2, -1: _1 / _2, 2: _1 * _2 * _2, -2: _1 / (_2 * _2)}
            self.scaled[name] = [
                popops.map(graph, steps[power], [number, factor], self.begin, f"{name}/{FACTOR}")
                if isinstance(number, Tensor)
                else number
                for graph, number, factor in zip(
                    self.lowering.graphs, numbers, self.factors, strict=True
                )
            ]
        return self.scaled[name]

    def track(self, node: Node, name: str, gradient: Tensor, prog: Program) -> None:
        """Count a gradient that a node gives, if it is one of those that are tracked."""
        if name in self.tracked.get(node.name, ()):
            home = self.lowering.home_of(node)
            self._count(gradient, home, prog, f"{node.name}/{PREFIX}{name}")

    def track_totals(self, totals: dict[str, Tensor], prog: Program) -> None:
        """Count the gradients of the tensors that the user has named."""
        for name in self.tracked.get("", ()):
            if name in totals:
                home = self.lowering.gradient_home(name)
                at = self.lowering.program(home, prog)
                self._count(totals[name], home, at, f"{PREFIX}{name}")

    def _count(self, gradient: Tensor, home: int, prog: Program, name: str) -> None:
        """Add how many elements are below the edge, and how many are not."""
        graph, label = self.lowering.graphs[home], f"{name}/Histogram"
        levels = graph.addConstant(HALF, [1], [LARGEST * self.settings.binEdgeLocation], label)
        graph.setTileMapping(levels, 0)
        if home not in self.counts:
            self.counts[home] = graph.addVariable(FLOAT, [2], f"{STATISTICS}/{home}")
            graph.setTileMapping(self.counts[home], 0)
            popops.zero(graph, self.counts[home], self.begin, STATISTICS)
        at = prog if self.due is None else Program(name=label)
        counts = popops.histogram(graph, gradient, levels, True, at, label)
        number = popops.cast(graph, counts, FLOAT, at, label)
        popops.addInPlace(graph, self.counts[home], number, at, f"{label}/Sum")
        if self.due is not None:
            is_due = self.lowering.brought(self.due, home, self.begin, f"{FACTOR}/due")
            prog.add(If(is_due, at, name=label))

    def anchors(self, scale: Number) -> dict[str, Tensor]:
        """Return the scale that the losses have, and the counts of the first IPU that counts."""
        tensors = {} if not isinstance(scale, Tensor) else {FINAL: scale}
        if self.counts:
            tensors[STATISTICS] = next(iter(self.counts.values()))
        return tensors

    def finish(self) -> None:
        """Halve the factor where the share above the edge is too large, else double it."""
        graph, prog = self.lowering.graph, self.end
        first, *others = (
            brought(graph, counts, 0, prog, STATISTICS) for counts in self.counts.values()
        )
        total = first if not others else popops.map(
            graph, sum((expr.PlaceHolder(place + 2) for place in range(len(others))), start=_1),
            [first, *others], prog, STATISTICS,
        )  # fmt: skip
        if self.options.total_replicas > 1:
            total = summed(graph, total, of_all(self.options.total_replicas), prog, STATISTICS)
        share = float(self.settings.thresholdUpperCountProportion)
        below, above = total[0], total[1]
        limit = popops.mul(graph, below, min(share / (1 - share), 3e38) if share < 1 else 3e38,
                           prog, f"{FACTOR}/scaleSumLowerBinCounts")  # fmt: skip
        down = popops.map(graph, BinaryOpType.GREATER_THAN, above, limit, prog, FACTOR)
        bodies = Program(name=f"{FACTOR}/scaleDown"), Program(name=f"{FACTOR}/scaleUp")
        for body, step in zip(bodies, (0.5, 2.0), strict=True):
            popops.mulInPlace(graph, self.factors[0], step, body, body.name)
        update = If(down, *bodies, name=f"{FACTOR}/LossScaleUpdate")
        prog.add(update if self.due is None else If(self.due, update, name=FACTOR))
