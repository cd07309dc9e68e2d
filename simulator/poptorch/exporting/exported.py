"""A module of PyTorch as a model: what both exporters return."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch
from torch.utils import _pytree as trees

from simulator.popart.representation.origins import Origin, users_line


@dataclass(frozen=True, slots=True)
class Constant:
    """An output that is no tensor of the graph, such as None."""

    value: Any


@dataclass(slots=True)
class Exported:
    """A model, and how its tensors belong to those of the module.

    `inputs` are the graph's by the place of the leaf that feeds each, `outputs` the leaves of what
    the module returns, of the structure `returned`. `weights` are state_dict names by initialiser.
    `marks` are what the program noted of nodes, by their name; `norms` counts the batch norms that
    ran while exporting; `read` are the parameters that forward reads, by their state_dict names,
    and `changed` the buffers that it changes. `origins` are the places of modules that were called.
    """

    model: onnx.ModelProto
    inputs: dict[str, int]
    outputs: list[str | Constant]
    returned: trees.TreeSpec
    weights: dict[str, str]
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)
    norms: int = 0
    read: frozenset[str] = frozenset()
    changed: Sequence[str] = ()
    origins: dict[str, Origin] = field(default_factory=dict)


def tensor_places(leaves: Sequence[object]) -> list[int]:
    """Return the places of the leaves that are tensors."""
    return [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]


def paths_of(module: torch.nn.Module) -> dict[int, str]:
    """Return the path of each module within, "" for the whole, by its id."""
    return {id(inner): path for path, inner in module.named_modules()}


def class_of(module: torch.nn.Module) -> str:
    """Name the class of a module with where it is defined."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__qualname__}"


def place_of(module: torch.nn.Module, path: str, origins: Mapping[str, Origin]) -> Origin:
    """Return a module within by its path, with its class and the line of its call or definition."""
    inner = module.get_submodule(path)
    place = origins.get(path) or Origin(path, "", *users_line(definition(inner)))
    return place._replace(kind=class_of(inner))


def definition(module: torch.nn.Module) -> str:
    """Return where a module's forward begins, as a text of a traceback has it."""
    try:
        file, (_, line) = inspect.getfile(type(module)), inspect.getsourcelines(module.forward)
    except (OSError, TypeError):
        return ""
    return f'File "{file}", line {line}, in forward'


def origin_of_node(node: torch.fx.Node) -> Origin:
    """Return where a node of torch.export comes from."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    module, kind = stack[-1][:2] if stack else ("", "")
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return Origin(str(module), name, *users_line(node.meta.get("stack_trace") or ""))
