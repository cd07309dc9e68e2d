"""Sequences and optional values: tuples of tensors that are known when a model is imported.

Nothing of them reaches the device: a node that makes, reads or changes one becomes nodes of its
tensors, or none. Bodies that carry them are laid out run by run (`unrolled.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from simulator.graph.types import Array
from simulator.popart.importing.composites.body import Unsupported
from simulator.popart.representation.ir import ONNX, Ir

Nodes = list[onnx.NodeProto]


def added(ir: Ir, proto: onnx.NodeProto) -> Nodes | None:
    """Note the sequences that a node makes and return the nodes that are left; None if it has none.

    Raises Unsupported where what has to be known is computed.
    """
    if proto.domain not in ("", ONNX):
        return None
    rule = _RULES.get(proto.op_type)
    if rule is not None:
        return rule(ir, proto)
    if proto.op_type == "Identity" and _is_kept(ir, proto.input[0]):
        _alias(ir, proto.input[0], proto.output[0])
        return []
    sequence_inputs = [name for name in proto.input if _is_kept(ir, name)]
    if sequence_inputs and proto.op_type not in ("If", "Loop", "SequenceMap"):
        raise Unsupported(
            f"reads {sequence_inputs[0]!r}, a sequence or an optional value; tensors are known"
        )
    return None


def _is_kept(ir: Ir, name: str) -> bool:
    return name in ir.sequences or name in ir.absent


def alias(ir: Ir, source: str, name: str) -> Nodes:
    """Call what a name stands for by another, too: return the node that does so of a tensor."""
    if _is_kept(ir, source):
        _alias(ir, source, name)
        return []
    return [helper.make_node("Identity", [source], [name])]


def _alias(ir: Ir, source: str, name: str) -> None:
    if source in ir.absent:
        ir.absent.add(name)
    else:
        ir.sequences[name] = ir.sequences[source]


def _constant(values: object, name: str) -> Nodes:
    value = numpy_helper.from_array(np.asarray(values))
    return [helper.make_node("Constant", [], [name], value=value)]


def _sequence(ir: Ir, name: str) -> tuple[str, ...]:
    if name not in ir.sequences:
        raise Unsupported(f"reads {name!r} as a sequence, which is none")
    return ir.sequences[name]


def _input_values(ir: Ir, proto: onnx.NodeProto, place: int) -> Array | None:
    """Return the values of an input, None where it is not given; raises Unsupported."""
    name = proto.input[place] if place < len(proto.input) else ""
    if not name:
        return None
    value = ir.constants.get(name)
    if value is None:
        raise Unsupported(
            f"input {place} ({name!r}) is computed or fed when the program runs; "
            "a constant would be needed"
        )
    return value


def _place(ir: Ir, proto: onnx.NodeProto, place: int, count: int, default: int) -> int:
    """Return a place in a sequence, counted from the front; raises Unsupported."""
    value = _input_values(ir, proto, place)
    at = default if value is None else int(value.reshape(-1)[0])
    most = count if proto.op_type == "SequenceInsert" else count - 1
    if not -count <= at <= most:
        raise Unsupported(f"position {at} of a sequence of {count}")
    return at + count if at < 0 else at


def _attribute(proto: onnx.NodeProto, name: str, default: object) -> Any:
    attribute = next((a for a in proto.attribute if a.name == name), None)
    return default if attribute is None else helper.get_attribute_value(attribute)


def _empty(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    ir.sequences[proto.output[0]] = ()
    return []


def _constructed(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    ir.sequences[proto.output[0]] = tuple(proto.input)
    return []


def _inserted(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    items = _sequence(ir, proto.input[0])
    at = _place(ir, proto, 2, len(items), len(items))
    ir.sequences[proto.output[0]] = (*items[:at], proto.input[1], *items[at:])
    return []


def _erased(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    items = _sequence(ir, proto.input[0])
    at = _place(ir, proto, 1, len(items), -1)
    ir.sequences[proto.output[0]] = (*items[:at], *items[at + 1 :])
    return []


def _one(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    items = _sequence(ir, proto.input[0])
    at = _place(ir, proto, 1, len(items), 0)
    return [helper.make_node("Identity", [items[at]], list(proto.output))]


def _length(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    return _constant(np.int64(len(_sequence(ir, proto.input[0]))), proto.output[0])


def _split(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    source, name = proto.input[0], proto.output[0]
    dims, sizes = ir.infos[source].dims, _input_values(ir, proto, 1)
    axis = int(_attribute(proto, "axis", 0)) % max(len(dims), 1)
    keeps_axis = bool(_attribute(proto, "keepdims", 1)) or sizes is not None
    if sizes is None:
        parts = [1] * dims[axis]
    elif sizes.ndim:
        parts = [int(n) for n in sizes]
    else:
        size = int(sizes)
        parts = [min(size, dims[axis] - n) for n in range(0, dims[axis], size)]
    names = [f"{name}/{n}" for n in range(len(parts))]
    pieces = names if keeps_axis else [f"{n}:whole" for n in names]
    nodes = _constant(np.asarray(parts, np.int64), f"{name}:sizes")
    nodes.append(helper.make_node("Split", [source, f"{name}:sizes"], pieces, axis=axis))
    if not keeps_axis:
        nodes += _constant(np.asarray([axis], np.int64), f"{name}:axis")
        nodes += [
            helper.make_node("Squeeze", [a, f"{name}:axis"], [b])
            for a, b in zip(pieces, names, strict=True)
        ]
    ir.sequences[name] = tuple(names)
    return nodes


def _joined(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    items, name = list(_sequence(ir, proto.input[0])), proto.output[0]
    axis = int(_attribute(proto, "axis", 0))
    if not items:
        raise Unsupported(f"joins {proto.input[0]!r}, a sequence of nothing")
    return joined(items, name, axis, apart=bool(_attribute(proto, "new_axis", 0)))


def joined(items: Sequence[str], name: str, axis: int, *, apart: bool) -> Nodes:
    """Return the nodes that join tensors along an axis, which is a new one where `apart` is set."""
    nodes: Nodes = []
    if apart:
        nodes += _constant(np.asarray([axis], np.int64), f"{name}:axis")
        expanded = [f"{name}:{n}" for n in range(len(items))]
        nodes += [
            helper.make_node("Unsqueeze", [a, f"{name}:axis"], [b])
            for a, b in zip(items, expanded, strict=True)
        ]
        items = expanded
    return [*nodes, helper.make_node("Concat", list(items), [name], axis=axis)]


def _optional(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    if proto.input and proto.input[0]:
        return alias(ir, proto.input[0], proto.output[0])
    ir.absent.add(proto.output[0])
    return []


def _has_element(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    is_present = bool(proto.input and proto.input[0]) and proto.input[0] not in ir.absent
    return _constant(np.asarray(is_present), proto.output[0])


def _element(ir: Ir, proto: onnx.NodeProto) -> Nodes:
    if proto.input[0] in ir.absent:
        raise Unsupported(f"reads {proto.input[0]!r}, an optional value that is not there")
    return alias(ir, proto.input[0], proto.output[0])


_RULES: dict[str, Callable[[Ir, onnx.NodeProto], Nodes]] = {
    "ConcatFromSequence": _joined,
    "Optional": _optional,
    "OptionalGetElement": _element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _one,
    "SequenceConstruct": _constructed,
    "SequenceEmpty": _empty,
    "SequenceErase": _erased,
    "SequenceInsert": _inserted,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
OPERATORS_OF_SEQUENCES = tuple(sorted([*_RULES, "SequenceMap"]))
