"""A module as an ONNX model whose weights have their state_dict names, and that is checked.

torch.export fuses batch norms into convolutions unless told not to, even of a module in training:
values would be wrong in silence. So norms are counted, in the module and in the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import torch

from simulator.graph.types import Array
from simulator.popart.model_builder.notes import annotate
from simulator.popart.representation.ir import TORCH_ATTRIBUTE
from simulator.popart.representation.origins import Origin, origin_of
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting.export_program import export_program
from simulator.poptorch.exporting.export_trace import export_trace
from simulator.poptorch.exporting.exported import Exported, place_of

NORM = "BatchNormalization"
COUNTED = "num_batches_tracked"  # of a batch norm: a number that the host keeps
MISSING = (
    torch.bfloat16,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
)
WIDE = {torch.int64: torch.int32}  # and what the device holds such whole numbers in
RUNNING = ("running_mean", "running_var", COUNTED)


def export(
    module: torch.nn.Module,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    *,
    trace: bool = False,
) -> Exported:
    """Export a module as it is, in training or not; raises Error for what cannot be run right."""
    exported = (export_trace if trace else export_program)(module, args, kwargs)
    _check_types(module, exported)
    _check_norms(module, exported)
    _check_buffers(module, exported)
    _share_weights(module, exported)
    for node in exported.model.graph.node:
        if node.op_type == NORM:
            annotate(node, TORCH_ATTRIBUTE, 1)
    return exported


def norms_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the batch norms of a model."""
    return [node for node in model.graph.node if node.op_type == NORM]


def _check_norms(module: torch.nn.Module, exported: Exported) -> None:
    """Raise Error where a batch norm has been fused into another node."""
    norms = norms_of(exported.model)
    if len(norms) >= exported.norms:  # a trace does not count those that are called as functions
        return
    paths = Counter(str(origin_of(node)) for node in norms)
    missing = [
        str(place_of(module, path, exported.origins))
        for path, inner in module.named_modules()
        if isinstance(inner, torch.nn.modules.batchnorm._BatchNorm)
        and not any(f"{path!r}" in text for text in paths)
    ]
    which = f"; {', '.join(missing)} is missing" if missing else ""
    raise Error(
        f"{place_of(module, '', exported.origins)}: {exported.norms} batch norms run and"
        f" {len(norms)} are exported{which}: the"
        " exporter has fused them into other nodes, and they would not be"
        " trained"
    )


def _check_types(module: torch.nn.Module, exported_model: Exported) -> None:
    """Raise Error for a weight of a type that the device has not."""
    exported = set(exported_model.weights.values())
    for name, values in values_of(module).items():  # in the module's order, not the exporter's
        if name not in exported:
            continue
        kind = values.dtype
        if kind in MISSING:
            place = place_of(module, name.rpartition(".")[0], exported_model.origins)
            raise Error(f"{place}: {name!r} is {_missing(kind)}")


def _missing(kind: torch.dtype) -> str:
    """Return what is said of a type that the device has not."""
    return f"{str(kind).removeprefix('torch.')}; the device has none: use half() or float()"


def check_inputs(module: torch.nn.Module, made: Exported, leaves: Sequence[object]) -> None:
    """Raise Error for an input of a type, or with a number, that the device has not."""
    for name, place in made.inputs.items():
        given = leaves[place] if place < len(leaves) else None
        if not isinstance(given, torch.Tensor):
            continue
        if given.dtype in MISSING:
            raise Error(
                f"{_reader(module, made, name)}: argument {place} is {_missing(given.dtype)}"
            )
        if given.dtype in WIDE and given.numel():
            least, most = (int(number) for number in given.detach().aminmax())
            limits = torch.iinfo(WIDE[given.dtype])
            if least < limits.min or most > limits.max:
                raise Error(
                    f"{_reader(module, made, name)}: argument {place} has the value"
                    f" {least if least < limits.min else most}; the device holds 32 bits"
                )


def _reader(module: torch.nn.Module, made: Exported, name: str) -> Origin:
    """Return where an input is read first."""
    readers = (node for node in made.model.graph.node if name in node.input)
    return next(filter(None, map(origin_of, readers)), place_of(module, "", made.origins))


def _check_buffers(module: torch.nn.Module, exported: Exported) -> None:
    """Raise Error for a buffer that changes otherwise than a batch norm's."""
    for name in exported.changed:
        path, _, leaf = name.rpartition(".")
        inner = module.get_submodule(path)
        place = place_of(module, path, exported.origins)
        norm = isinstance(inner, torch.nn.modules.batchnorm._BatchNorm)
        if not norm or leaf not in RUNNING:
            raise Error(
                f"{place}: forward changes the buffer {name!r}; only "
                "the running statistics of batch norms are kept up to date"
            )
        if inner.momentum is None:
            raise Error(f"{place}: momentum is None, the mean of all batches; a number is needed")


def _share_weights(module: torch.nn.Module, exported: Exported) -> None:
    """Let parameters that are one in the module be one weight of the model."""
    first: dict[int, str] = {}
    names = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names[name] = first.setdefault(id(tensor), name)
    graph = exported.model.graph
    first_names: dict[str, str] = {}
    instead = {}
    for tensor in graph.initializer:
        shared = names.get(tensor.name, tensor.name)
        if first_names.setdefault(shared, tensor.name) != tensor.name:
            instead[tensor.name] = first_names[shared]
    if not instead:
        return
    tensors = [tensor for tensor in graph.initializer if tensor.name not in instead]
    del graph.initializer[:]
    graph.initializer.extend(tensors)
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = instead.get(name, name)
    for name in instead:
        exported.weights.pop(name, None)


def values_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters and buffers of a module by name, each name of a shared one."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(
        module.named_buffers(remove_duplicate=False)
    )


def to_numpy(tensor: torch.Tensor) -> Array:
    """Return the values of a tensor as an array; raises Error for a type that NumPy has not."""
    if tensor.dtype in MISSING and not tensor.dtype.is_complex:
        raise Error(_missing(tensor.dtype))
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
