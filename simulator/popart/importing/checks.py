"""What a model declares, compared with what is given, stored or comes out."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.model_file import value_info
from simulator.popart.representation.ir import Ir
from simulator.popart.representation.tensor_info import TensorInfo


def declared_sizes(graph: onnx.GraphProto) -> dict[str, list[int | None]]:
    """Return the sizes that a graph declares its tensors to have, None where they are open."""
    values = [v for v in (*graph.value_info, *graph.output) if v.type.HasField("tensor_type")]
    return {
        value.name: [
            dim.dim_value if dim.HasField("dim_value") else None
            for dim in value.type.tensor_type.shape.dim
        ]
        for value in values
        if value.type.tensor_type.HasField("shape")
    }


def check_known(value: onnx.ValueInfoProto, sizes: Sequence[int | None], subject: str) -> None:
    """Raise popart_exception, in PopART's words, for an input whose shape the model leaves open."""
    dimensions = value.type.tensor_type.shape.dim
    shown = [
        str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"
        for dim in dimensions
    ]
    if not value.type.tensor_type.HasField("shape"):
        raise popart_exception(f"{subject}: has no shape; give it with InputShapeInfo (--shape)")
    unknown = [word for word, size in zip(shown, sizes, strict=True) if size is None or size < 0]
    if unknown:
        raise popart_exception(
            f"Input tensor '{value.name}' must be specified in InputShapeInfo, as it has shape "
            f"[{', '.join(shown)}], which uses an unknown value '{unknown[0]}'."
        )


def check_given(value: onnx.ValueInfoProto, info: TensorInfo, subject: str) -> None:
    """Raise popart_exception if InputShapeInfo gives another type or rank than the model has."""
    if not value.type.WhichOneof("value"):
        return
    kind, sizes = value_info(value, subject)
    ranked = value.type.tensor_type.HasField("shape")
    if kind != info.type or (ranked and len(sizes) != len(info.dims)):
        shown = f"{kind} of {len(sizes)} dimensions" if ranked else kind
        raise popart_exception(f"{subject}: is {shown}; InputShapeInfo (--shape) gives {info}")


def check_stored(value: onnx.ValueInfoProto, info: TensorInfo, subject: str) -> None:
    """Raise popart_exception for an input that its initialiser does not fit."""
    kind, sizes = value_info(value, subject)
    same = len(sizes) == len(info.dims) or not value.type.tensor_type.HasField("shape")
    fits = all(a in (None, b) for a, b in zip(sizes, info.dims, strict=False))
    if kind != info.type or not same or not fits:
        raise popart_exception(f"{subject}: is {kind} {sizes}, its initialiser {info}")


def check_outputs(subject: str, ir: Ir, graph: onnx.GraphProto) -> None:
    """Raise popart_exception for an output that comes out of another shape than declared."""
    for value in graph.output:
        called = f"{subject}: output {value.name!r}"
        if value.type.WhichOneof("value") in (None, "optional_type", "sequence_type"):
            continue
        _, sizes = value_info(value, called)
        info = ir.infos[value.name]
        has_shape = value.type.tensor_type.HasField("shape")
        fits = len(sizes) == len(info.dims)
        fits = fits and all(a in (None, b) for a, b in zip(sizes, info.dims, strict=True))
        if has_shape and not fits:
            raise popart_exception(f"{called}: declared as {sizes}, comes out as {info}")
