"""Einsum as the nodes that compute it: diagonals, sums of lone letters, a product, an order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 13  # of the nodes
DOTS = "0123456789"  # letters of axes that dots stand for


def einsum_function(proto: onnx.NodeProto, shapes: Sequence[Sequence[int]]) -> onnx.FunctionProto:
    """Return the function of an Einsum of one or two tensors; without nodes if there is none.

    There is none for more tensors, and for dots (...) that stand for unlike sizes.
    """
    inputs = [f"x{place}" for place in range(len(shapes))]
    opsets = [helper.make_opsetid("", OPSET)]
    equation = next((a.s.decode() for a in proto.attribute if a.name == "equation"), "")
    operands, arrow, out = "".join(equation.split()).partition("->")
    if not arrow:  # dots, then letters that stand once, in the order of the alphabet
        out = "".join(sorted(c for c in {*operands} - {*",."} if operands.count(c) == 1))
        out = "..." + out if "..." in operands else out
    terms, out = _without_dots(operands.split(","), out, shapes)
    is_known = len(terms) == len(shapes) <= 2 and all(
        len(term) == len(shape) for term, shape in zip(terms, shapes, strict=True)
    )
    nodes: list[onnx.NodeProto] = []
    if is_known and len({*out}) == len(out) and {*out} <= {*operands, *DOTS}:
        pairs = [(c, n) for term, shape in zip(terms, shapes, strict=True)
                 for c, n in zip(term, shape, strict=True)]  # fmt: skip
        sizes = dict(pairs)
        if all(sizes[c] == n for c, n in pairs):
            nodes = _nodes(terms, out, sizes, inputs)
    return helper.make_function("", "Einsum", inputs, ["y"], nodes, opsets)


def _without_dots(
    terms: list[str], out: str, shapes: Sequence[Sequence[int]]
) -> tuple[list[str], str]:
    """Put digits for dots: the last of them stand for the last axes of any dots."""
    counts = [
        max(len(shape) - len(term) + 3, 0) if "..." in term else 0
        for term, shape in zip(terms, shapes, strict=False)
    ]
    most = max(counts, default=0)
    if most > len(DOTS) or len(terms) != len(shapes):
        return terms, out
    letters = DOTS[:most]
    plain = [
        term.replace("...", letters[most - count :])
        for term, count in zip(terms, counts, strict=True)
    ]
    return plain, out.replace("...", letters)


def _diagonal(
    add: Callable[..., str], tensor: str, term: str, sizes: Mapping[str, int]
) -> tuple[str, str]:
    """Take of the axes that a letter stands for twice the elements with equal places."""
    while len({*term}) < len(term):
        twice = next(letter for letter in term if term.count(letter) > 1)
        axes = [axis for axis, letter in enumerate(term) if letter == twice][:2]
        other_axes = [axis for axis in range(len(term)) if axis not in axes]
        name, size = f"{tensor}_diagonal", sizes[twice]
        term = "".join(term[axis] for axis in other_axes)
        rows = add("Transpose", f"{name}_last", [tensor], perm=[*other_axes, *axes])
        numbers = {
            "shape": [*(sizes[c] for c in term), size * size],
            "from": [0], "to": [size * size], "axis": [len(term)], "step": [size + 1],
        }  # fmt: skip
        bounds = [
            add(
                "Constant",
                f"{name}_{part}",
                [],
                value=numpy_helper.from_array(np.array(values, np.int64)),
            )
            for part, values in numbers.items()
        ]
        rows = add("Reshape", f"{name}_rows", [rows, bounds[0]])
        tensor, term = add("Slice", name, [rows, *bounds[1:]]), term + twice
    return tensor, term


def _nodes(
    terms: Sequence[str], out: str, sizes: Mapping[str, int], inputs: Sequence[str]
) -> list[onnx.NodeProto]:
    nodes: list[onnx.NodeProto] = []

    def add(operator: str, name: str, operands: Sequence[str], **attributes: object) -> str:
        nodes.append(helper.make_node(operator, list(operands), [name], **attributes))
        return name

    def numbers(values: Sequence[int], name: str) -> str:
        value = numpy_helper.from_array(np.asarray(values, dtype=np.int64))
        return add("Constant", name, [], value=value)

    def alone(place: int) -> tuple[str, str]:
        """Add up a tensor over letters that nothing else has; give it with its letters."""
        tensor, term = _diagonal(add, inputs[place], terms[place], sizes)
        shared_letters = {*out}.union(*(t for n, t in enumerate(terms) if n != place))
        axes = [axis for axis, letter in enumerate(term) if letter not in shared_letters]
        if not axes:
            return tensor, term
        operands = [tensor, numbers(axes, f"axes{place}")]
        kept_letters = "".join(letter for letter in term if letter in shared_letters)
        return add("ReduceSum", f"sum{place}", operands, keepdims=0), kept_letters

    def ordered(tensor: str, letters: str, target_letters: str, name: str) -> str:
        if letters == target_letters:
            return add("Identity", name, [tensor])
        return add("Transpose", name, [tensor], perm=[letters.index(c) for c in target_letters])

    first, letters = alone(0)
    if len(terms) > 1:
        second, other_letters = alone(1)
        both = [c for c in letters if c in other_letters]
        batch, inner = (
            "".join(c for c in both if (c in out) is is_output) for is_output in (True, False)
        )
        rows, columns = (
            "".join(c for c in part if c not in both) for part in (letters, other_letters)
        )
        parts = []
        for name, tensor, had, groups in (
            ("a", first, letters, (batch, rows, inner)),
            ("b", second, other_letters, (batch, inner, columns)),
        ):
            turned = ordered(tensor, had, "".join(groups), f"{name}_ordered")
            shape = [prod(sizes[c] for c in group) for group in groups]
            parts.append(add("Reshape", name, [turned, numbers(shape, f"{name}_shape")]))
        product = add("MatMul", "product", parts)
        letters = batch + rows + columns
        apart = numbers([sizes[c] for c in letters], "shape")
        first = add("Reshape", "apart", [product, apart])
    ordered(first, letters, out, "y")
    return nodes
