"""Export by TorchScript's tracer: `Jit.traceModel(True)`, for what torch.export does not take.

Nodes have their module in their names; the line is that where the module is called.
"""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from traceback import walk_tb
from types import FrameType
from unittest.mock import patch

import onnx
import torch
from torch.utils import _pytree as trees

from simulator.popart.representation.origins import (
    CLASSES,
    SCOPES,
    STACK,
    Origin,
    is_library,
    origin_of,
    users_line,
)
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting import marks, refusals, symbolics
from simulator.poptorch.exporting.exported import (
    Constant,
    Exported,
    class_of,
    definition,
    place_of,
    tensor_places,
)

OPSET = symbolics.OPSET
SIZED_BY_DATA = ("Compress", "NonMaxSuppression", "NonZero", "Unique")
_LINE = re.compile(r"^(.+)\((\d+)\): ", re.MULTILINE)


@dataclass(slots=True)
class _Calls:
    """The modules that are called, how often, and the frames that call them, by module path."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, str] = field(default_factory=dict)


def export_trace(
    module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
) -> Exported:
    """Export a module on example inputs; raises Error in one line for what cannot be."""
    file, returned = io.BytesIO(), []
    changing = torch.onnx.TrainingMode.PRESERVE
    symbolics.register()
    with ExitStack() as stack:
        stack.enter_context(_silent_log())
        find = partial(_in_graphs, dict(module.named_modules()))
        stack.enter_context(refusals.one_line(module, find))
        calls = stack.enter_context(_noting_calls(module))
        hook = module.register_forward_hook(lambda _, __, out: returned.append(out))
        stack.callback(hook.remove)
        stack.enter_context(marks.traced())
        stack.enter_context(_unchanged(module))
        torch.onnx.export(
            module, tuple(args), file, kwargs=dict(kwargs), dynamo=False, training=changing,
            do_constant_folding=False, opset_version=OPSET,
        )  # fmt: skip
    model = onnx.load_from_string(file.getvalue())
    _note_origins(model, module, calls.lines)
    _check_sizes(model)
    leaves = trees.tree_leaves((tuple(args), dict(kwargs)))
    feeds = [value.name for value in model.graph.input]
    places = tensor_places(leaves)
    if len(feeds) != len(places):
        raise Error(
            f"{place_of(module, '', {})}: {len(places)} tensors are given, and the traced graph"
            f" reads {len(feeds)}; leave out what forward does not use"
        )
    results, structure = trees.tree_flatten(returned[-1])
    names = iter([value.name for value in model.graph.output])
    outputs = [next(names) if isinstance(r, torch.Tensor) else Constant(r) for r in results]
    state = {name for name, _ in [*module.named_parameters(remove_duplicate=False),
                                  *module.named_buffers(remove_duplicate=False)]}  # fmt: skip
    stored = [tensor.name for tensor in model.graph.initializer]
    return Exported(
        model, dict(zip(feeds, places, strict=True)), outputs, structure,
        {name: name for name in stored if name in state}, norms=_norms(module, calls.counts),
        read=frozenset(n for n, _ in module.named_parameters()
                       if n.rpartition(".")[0] in calls.counts),
        origins={path: Origin(path, "", *users_line(line)) for path, line in calls.lines.items()},
    )  # fmt: skip


@contextmanager
def _silent_log() -> Iterator[None]:
    """Keep graphs off the screen: the exporter switches its own log on, and offers no way back."""
    with patch.object(torch._C, "_jit_onnx_log", lambda *_: None, create=True):
        yield


def _in_graphs(modules: Mapping[str, object], error: BaseException, operator: str) -> Origin | None:
    """Look up an operator in the graphs of the exporter that failed.

    A node knows its scope, a::b/c::b.0, and its lines.
    """
    for node in (node for graph in _graphs_of(error) for node in graph.nodes()):
        if node.kind().replace("::", ".") == operator:
            names = [part.rpartition("::")[2] for part in node.scopeName().split("/")[1:]]
            path = module_path("/".join([*names, operator]), modules)
            frames = reversed(_LINE.findall(node.sourceRange()))
            lines = "\n".join(f'File "{file}", line {number}, in call' for file, number in frames)
            return Origin(path, class_of(modules[path]), *users_line(lines))
    return None


def _graphs_of(error: BaseException) -> Iterator[torch.Graph]:
    """Return the graphs that the calls held which an error ended, the outermost first."""
    for frame, _ in walk_tb(error.__traceback__):
        yield from (held for held in frame.f_locals.values() if isinstance(held, torch.Graph))


def _check_sizes(model: onnx.ModelProto) -> None:
    """Raise Error for a size that depends on the inputs: a trace keeps that of its example."""
    read = {value.name for value in model.graph.input}
    read -= {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if not read.intersection(node.input) or node.op_type == "Shape":
            continue
        if node.op_type in SIZED_BY_DATA:
            raise Error(
                f"{origin_of(node)}: {node.op_type} makes a tensor whose size depends on the data;"
                " shapes are fixed on the device"
            )
        read.update(node.output)


@contextmanager
def _unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Leave buffers and random numbers as they are, though a trace runs the module."""
    before = [(buffer, buffer.clone()) for buffer in module.buffers()]
    with torch.random.fork_rng(devices=[]):
        yield
    with torch.no_grad():
        for buffer, values in before:
            buffer.copy_(values)


def _norms(module: torch.nn.Module, counts: Mapping[str, int]) -> int:
    """Count how often batch norms are called."""
    kind = torch.nn.modules.batchnorm._BatchNorm
    return sum(n for path, n in counts.items() if isinstance(module.get_submodule(path), kind))


@contextmanager
def _noting_calls(module: torch.nn.Module) -> Iterator[_Calls]:
    """Note the calls of modules within; a frame is a line of a traceback's text."""
    calls = _Calls()

    def note(path: str) -> Callable[[torch.nn.Module, object], None]:
        def hook(inner: torch.nn.Module, _: object) -> None:
            calls.counts[path] += 1
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and is_library(frame.f_code.co_filename):
                frame = frame.f_back
            if frame is not None and path:
                file = frame.f_code.co_filename
                calls.lines[path] = f'File "{file}", line {frame.f_lineno}, in call'
            else:
                calls.lines[path] = definition(inner)

        return hook

    with ExitStack() as stack:
        for path, inner in module.named_modules():
            stack.callback(inner.register_forward_pre_hook(note(path)).remove)
        yield calls


def _note_origins(
    model: onnx.ModelProto, module: torch.nn.Module, lines: Mapping[str, str]
) -> None:
    """Put into the metadata of each node what torch.export would put there."""
    modules = dict(module.named_modules())
    for node in model.graph.node:
        path = module_path(node.name, modules)
        for key, value in (
            (SCOPES, repr(["", path, node.op_type])),
            (CLASSES, repr(["", class_of(modules[path]), node.op_type])),
            (STACK, lines.get(path, "")),
        ):
            node.metadata_props.add(key=key, value=value)


def module_path(name: str, modules: Mapping[str, object]) -> str:
    """Return the path of the module that a node's name begins with: /body/body.0/Conv is body.0."""
    path = ""
    for part in name.strip("/").split("/")[:-1]:
        above = path.rpartition(".")[0]
        choices = (f"{path}.{part}" if path else part, f"{above}.{part}" if above else part)
        path = next((choice for choice in choices if choice in modules), path)
    return path
