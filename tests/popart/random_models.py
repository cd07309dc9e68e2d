"""Models of random nodes, with the values of the reference evaluator in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from simulator.graph.types import Array

SHAPES = [(2, 3, 4, 4), (3, 4), (2, 3, 5), (1, 4, 6, 6), (6,)]
OPSET = 13
MOST = 1500  # elements of a tensor
LARGEST = 40.0  # a value: float32 then differs from double precision by less than is looked for
APART = 1e-3  # values from a corner, and from each other where the largest of them counts


class UnfitError(Exception):
    """A node that its tensors do not allow; another one is tried."""


Grow = Callable[["Growing"], None]


@dataclass
class Growing:
    """Nodes, and the values of all tensors so far; `floats` are the numbers that nodes may read."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    floats: list[str] = field(default_factory=list)

    def below(self, end: int) -> int:
        return int(self.random.integers(end))

    def pick(self, *ranks: int) -> tuple[str, Array]:
        """Return a number that nodes may read, later ones more often, and its value."""
        fitting = [n for n in self.floats if not ranks or self.values[n].ndim in ranks]
        if not fitting:
            raise UnfitError
        name = fitting[-1 - min(int(self.random.exponential(3)), len(fitting) - 1)]
        return name, self.values[name]

    def constant(self, values: Any) -> str:
        name = f"c{len(self.values)}"
        self.weights[name] = self.values[name] = values
        return name

    def weight(self, *shape: int) -> str:
        """Add a weight whose numbers keep away from 0."""
        size = self.random.uniform(0.3, 1.2, shape) * self.random.choice([-1, 1], shape)
        name = f"w{len(self.values)}"
        self.weights[name] = size.astype(np.float32)
        self.values[name] = self.weights[name].astype(np.float64)
        self.floats.append(name)
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> None:
        """Add a node whose outputs are finite and of fitting size."""
        names = [f"t{len(self.values) + place}" for place in range(outputs)]
        node = helper.make_node(operator, inputs, names, **attributes)
        with np.errstate(all="ignore"):
            found = evaluated([node], {n: self.values[n] for n in inputs}, names)
        for value in found:
            if not 0 < value.size <= MOST or not np.abs(value).max() < LARGEST:
                raise UnfitError
        self.nodes.append(node)
        self.values |= dict(zip(names, found, strict=True))
        self.floats += [n for n in names if self.values[n].dtype == np.float64]


def evaluated(
    nodes: list[onnx.NodeProto], given: dict[str, Array], wanted: list[str]
) -> list[Array]:
    """Return tensors by the reference evaluator, in double precision."""
    inputs, outputs = (
        [helper.make_value_info(name, onnx.TypeProto()) for name in names]
        for names in (given, wanted)
    )
    graph = helper.make_graph(nodes, "random", inputs, outputs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    wide = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in given.items()}
    return list(map(np.asarray, ReferenceEvaluator(proto).run(None, wide)))


def need(condition: Any) -> None:
    if not condition:
        raise UnfitError


def apart(value: Array) -> bool:
    return bool(np.diff(np.sort(value.ravel())).min(initial=1) > APART)


def anywhere(value: Array) -> bool:
    return True


def away(*corners: float) -> Callable[[Array], bool]:
    return lambda value: all(np.abs(value - corner).min() > APART for corner in corners)


def above(least: float) -> Callable[[Array], bool]:
    return lambda value: bool(value.min() > least)


UNARY = {
    "Abs": away(0), "Atan": anywhere, "Cos": anywhere, "Elu": away(0), "Erf": anywhere,
    "Exp": anywhere, "HardSigmoid": away(-2.5, 2.5), "Identity": anywhere, "LeakyRelu": away(0),
    "Log": above(0.1), "Neg": anywhere, "Relu": away(0), "Selu": away(0), "Sigmoid": anywhere,
    "Sin": anywhere, "Softplus": anywhere, "Softsign": away(0), "Sqrt": above(0.1),
    "Tanh": anywhere, "ThresholdedRelu": away(1),
}  # fmt: skip
REDUCTIONS = {
    "ReduceL1": away(0), "ReduceL2": away(0), "ReduceLogSumExp": anywhere, "ReduceMax": apart,
    "ReduceMean": anywhere, "ReduceMin": apart, "ReduceSumSquare": anywhere,
}  # fmt: skip


def unary(g: Growing) -> None:
    x, value = g.pick()
    operator = g.random.choice(list(UNARY))
    need(UNARY[operator](value))
    g.add(operator, x)


def binary(g: Growing) -> None:
    x, value = g.pick()
    shape = [1 if g.random.random() < 0.4 else size for size in value.shape]
    same = [n for n in g.floats if g.values[n].shape == value.shape]
    other = (
        g.random.choice(same) if g.below(3) == 0 else g.weight(*shape[g.below(len(shape) + 1) :])
    )
    operator = g.random.choice(["Add", "Sub", "Mul", "Div", "Max", "Min"])
    need(operator not in ("Max", "Min") or away(0)(value - g.values[other]))
    a, b = (x, other) if g.below(2) else (other, x)
    need(operator != "Div" or above(0.2)(np.abs(g.values[b])))
    g.add(operator, a, b)


def view(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    operator = g.random.choice(["Transpose", "Flatten", "Reshape", "Unsqueeze"])
    if operator == "Transpose":
        g.add(operator, x, perm=list(map(int, g.random.permutation(value.ndim))))
    elif operator == "Flatten":
        g.add(operator, x, axis=g.below(value.ndim + 1))
    elif operator == "Unsqueeze":
        need(value.ndim < 4)
        g.add(operator, x, g.constant(np.int64([g.below(value.ndim + 1)])))
    else:
        first = int(g.random.choice([n for n in range(1, value.size + 1) if value.size % n == 0]))
        g.add(operator, x, g.constant(np.int64([first, -1])))


def reduction(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    operator = g.random.choice(list(REDUCTIONS))
    need(REDUCTIONS[operator](value))
    axes = sorted(map(int, g.random.permutation(value.ndim)[: 1 + g.below(value.ndim)]))
    g.add(operator, x, axes=axes, keepdims=g.below(2))


def product(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    columns = (1 + g.below(4),)[: g.below(2)]
    if value.ndim > 1 and g.below(3) == 0:
        g.add("MatMul", g.weight(1 + g.below(4), value.shape[-2]), x)
    else:
        g.add("MatMul", x, g.weight(value.shape[-1], *columns))


def general_product(g: Growing) -> None:
    x, value = g.pick(2)
    turned, columns = g.below(2), 1 + g.below(4)
    shape = (columns, value.shape[1]) if turned else (value.shape[1], columns)
    g.add("Gemm", x, g.weight(*shape), g.weight(columns), transB=turned, alpha=0.5, beta=1.5)


def convolution(g: Growing) -> None:
    x, value = g.pick(4)
    channels = value.shape[1]
    group = int(g.random.choice([n for n in range(1, channels + 1) if channels % n == 0]))
    kernel = [1 + g.below(size) for size in np.minimum(value.shape[2:], 3)]
    weights = g.weight(group * (1 + g.below(2)), channels // group, *kernel)
    more = {"strides": [1 + g.below(2), 1 + g.below(2)], "pads": [g.below(2) for _ in range(4)]}
    g.add("Conv", x, weights, group=group, **more)


def pooling(g: Growing) -> None:
    x, value = g.pick(4)
    operator = g.random.choice(["MaxPool", "AveragePool"])
    need(operator == "AveragePool" or apart(value))
    kernel = [1 + g.below(size) for size in np.minimum(value.shape[2:], 3)]
    pads = [g.below(size) for size in kernel * 2]
    g.add(operator, x, kernel_shape=kernel, strides=[1 + g.below(2), 1 + g.below(2)], pads=pads)


def normalising(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    if value.ndim > 2 and g.below(2):
        parts = (g.weight(value.shape[1]), g.weight(value.shape[1]))
        g.add("InstanceNormalization", x, *parts, epsilon=0.01)
    else:
        g.add(g.random.choice(["Softmax", "LogSoftmax"]), x, axis=g.below(value.ndim))


def joining(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    axis, shape = g.below(value.ndim), list(value.shape)
    shape[axis] = 1 + g.below(3)
    g.add("Concat", *g.random.permutation([x, g.weight(*shape), x]), axis=axis)


def cutting(g: Growing) -> None:
    x, value = g.pick(1, 2, 3, 4)
    axis = g.below(value.ndim)
    size = value.shape[axis]
    need(size > 1)
    begin = 1 + g.below(size - 1)
    if g.below(2):
        sizes = g.constant(np.int64([begin, size - begin]))
        g.add("Split", x, sizes, outputs=2, axis=axis)
    else:
        limits = ([begin], [-size - 1], [axis], [-1 - g.below(2)])
        g.add("Slice", x, *(g.constant(np.int64(limit)) for limit in limits))


def placing(g: Growing) -> None:
    x, value = g.pick(1, 2, 3)
    if g.below(2):
        mode = str(g.random.choice(["constant", "edge"]))
        g.add("Pad", x, g.constant(g.random.integers(0, 2, 2 * value.ndim)), mode=mode)
    else:
        axis = g.below(value.ndim)
        places = g.random.integers(-value.shape[axis], value.shape[axis], 3)
        g.add("Gather", x, g.constant(places), axis=axis)


def choosing(g: Growing) -> None:
    x, value = g.pick()
    g.add("Where", g.constant(g.random.random(value.shape) < 0.5), x, g.weight(*value.shape))


KINDS: list[Grow] = [unary, unary, binary, binary, view, view, view, reduction, product,
                     general_product, convolution, pooling, normalising, joining, cutting,
                     placing, choosing]  # fmt: skip


def grown(number: int) -> Growing:
    """Grow a model of 4 to 12 nodes, the same for the same number.

    "z" joins all tensors that no node reads, each number of them times a random one.
    """
    g = Growing(np.random.default_rng(number))
    g.weight(*SHAPES[g.below(len(SHAPES))])
    while len(g.nodes) < 4 + number % 9:
        kept = len(g.floats)
        try:
            KINDS[g.below(len(KINDS))](g)
        except UnfitError:
            del g.floats[kept:]
    read = {name for node in g.nodes for name in node.input}
    g.weights = {name: value for name, value in g.weights.items() if name in read}
    flat = g.constant(np.int64([-1]))
    for name in [name for node in g.nodes for name in node.output if name not in read]:
        mix = g.constant(g.random.normal(size=g.values[name].shape).astype(np.float32))
        g.nodes += [
            helper.make_node("Mul", [name, mix], [f"{name}mixed"]),
            helper.make_node("Reshape", [f"{name}mixed", flat], [f"{name}flat"]),
        ]
    parts = [name for node in g.nodes for name in node.output if name.endswith("flat")]
    g.nodes.append(helper.make_node("Concat", parts, ["z"], axis=0))
    return g


def slope(g: Growing, weight: str, direction: Array) -> float | None:
    """Return how the sum of "z" changes along a direction of a weight; None next to a corner."""

    def total(step: float) -> float:
        moved = g.weights[weight].astype(np.float64) + step * direction
        return float(evaluated(g.nodes, {**g.weights, weight: moved}, ["z"])[0].sum())

    near, far = ((total(step) - total(-step)) / (2 * step) for step in (1e-6, 1e-5))
    return near if abs(near - far) < APART * (1 + abs(near)) else None
