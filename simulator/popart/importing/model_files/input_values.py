"""Values that a user gives to a model: of one input as text or .npy, of several as .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from pva.plain_file import opened
from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.importing.model_files.model_file import value_info
from simulator.popart.representation.tensor_info import TensorInfo

TRUTHS = {"true": "1", "false": "0"}


def read_value(text: str, subject: str) -> Array:
    """Read FILE.npy, or numbers with commas between; raises PvaError and popart_exception."""
    if text.endswith(".npy"):
        return np.asarray(_loaded(Path(text)))
    parts = [TRUTHS.get(part.strip().lower(), part) for part in text.split(",")]
    for kind in (np.int64, np.float64):
        try:
            values = np.array(parts).astype(kind)
        except (ValueError, OverflowError):
            continue
        return values if len(parts) > 1 else values.reshape(())
    raise popart_exception(f"{subject}: {text!r} is no number; write 3, 1,2,3, true or FILE.npy")


def read_values(path: Path) -> dict[str, Array]:
    """Read the arrays of a .npz file by name; raises PvaError and popart_exception."""
    arrays = _loaded(path)
    if not isinstance(arrays, dict):
        raise popart_exception(f"{path}: one array; a .npz file with an array an input is read")
    return arrays


def _loaded(path: Path) -> object:
    """Load a file of NumPy, and nothing that would run; raises PvaError and popart_exception."""
    try:
        with opened(path, "a file of NumPy") as stream:
            content = np.load(stream, allow_pickle=False)
            return (
                {name: content[name] for name in content} if hasattr(content, "files") else content
            )
    except (ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise popart_exception(f"{path}: not a file of NumPy: {reason}") from None


def fitted(values: Array, info: TensorInfo, subject: str) -> Array:
    """Return values in the type and shape of a tensor; raises popart_exception for what is lost.

    A flat list fits any shape of as many elements.
    """
    if values.size != info.nelms() or (values.ndim > 1 and values.shape != info.dims):
        raise popart_exception(f"{subject}: has shape {list(values.shape)}; {info} would be needed")
    if values.dtype.kind not in "biuf":
        raise popart_exception(f"{subject}: is of type {values.dtype}; {info} would be needed")
    shaped = values.reshape(info.dims)
    with np.errstate(all="ignore"):
        converted = shaped.astype(info.host)
    is_exact = bool((converted == shaped).all())
    if info.host.kind in "iu" and shaped.size:
        least, most = info.limits
        is_exact = is_exact and bool(shaped.min() >= least and shaped.max() <= most)
    if info.host.kind != "f" and not is_exact:
        raise popart_exception(f"{subject}: has values that {info.type} cannot hold")
    return converted


def shapes_of(
    model: onnx.ModelProto, inputs_given: Mapping[str, Array], subject: str
) -> dict[str, list[int]]:
    """Return the shape that each input gets by its values; raises popart_exception for no input.

    A flat list has the shape that the model declares, where it declares one.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value for value in model.graph.input if value.name not in stored}
    shapes = {}
    for name, values in inputs_given.items():
        if name not in inputs:
            input_names = ", ".join(map(repr, inputs)) or "none"
            raise popart_exception(f"{subject}: no input {name!r}; there are {input_names}")
        _, sizes = value_info(inputs[name], f"{subject}: input {name!r}")
        declared = [size for size in sizes if size is not None]
        has_all_sizes = len(declared) == len(sizes) and inputs[name].type.tensor_type.HasField(
            "shape"
        )
        shapes[name] = declared if has_all_sizes and values.ndim < 2 else list(values.shape)
    return shapes


def with_inputs(
    model: onnx.ModelProto, constants: Mapping[str, Array], infos: Mapping[str, TensorInfo]
) -> onnx.ModelProto:
    """Return the model with constants in place of inputs: they are known when it is compiled."""
    return with_known(
        model,
        {
            name: fitted(values, infos[name], f"input {name!r}")
            for name, values in constants.items()
        },
    )


def with_known(model: onnx.ModelProto, constants: Mapping[str, Array]) -> onnx.ModelProto:
    """Return the model with Constant nodes in place of inputs, whose type and shape these have."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    free_inputs = [value for value in changed.graph.input if value.name not in constants]
    del changed.graph.input[:]
    changed.graph.input.extend(free_inputs)
    constant_nodes = [
        onnx.helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(values))
        for name, values in constants.items()
    ]
    nodes = [*constant_nodes, *changed.graph.node]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed
