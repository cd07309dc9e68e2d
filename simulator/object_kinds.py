"""What a file of objects may name: the simulator's classes, functions of its codelets, ufuncs.

A class is known when it stands in one of these modules and is an enumeration, a dataclass or a
named tuple: it has fields and no more. `Graph` is told here. A user's codelet is known by its name
when what defines it is imported. Nothing else can be named, and nothing is imported for a file.
"""

from __future__ import annotations

import functools
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from simulator import codelets
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.vertices.vertex import Vertex

_NO_VERTICES = ("catalogue", "document")
CODELETS = tuple(
    module.name
    for module in pkgutil.walk_packages(codelets.__path__, f"{codelets.__name__}.")
    if not module.ispkg and not module.name.endswith(_NO_VERTICES)
)
FUNCTIONS = (
    *CODELETS,
    "simulator.compiler.lowering.block_recording",
    "simulator.compiler.copies",
    "simulator.graph.vertices.user_compute",
)
CLASSES = (
    *FUNCTIONS,
    "simulator.compiler.allocate",
    "simulator.compiler.executable",
    "simulator.compiler.instrumentation",
    "simulator.executable",
    "simulator.graph.tensors.element_view",
    "simulator.graph.graph",
    "simulator.graph.host.host_functions",
    "simulator.graph.machine.constants",
    "simulator.graph.mapping",
    "simulator.graph.geometry.patterns",
    "simulator.graph.program",
    "simulator.graph.host.streams",
    "simulator.graph.geometry.strides",
    "simulator.graph.machine.target",
    "simulator.graph.tensors.tensor",
    "simulator.graph.types",
    "simulator.graph.vertices.user_vertices",
    "simulator.graph.variable_graph",
    "simulator.graph.tensors.variables",
    "simulator.graph.vertices.vertex",
    "simulator.graph.tensors.views",
)
# The attributes of a graph; all other classes declare their fields.
GRAPH = (
    "replication", "device_target", "target", "top", "window", "variables", "initial_values",
    "replication_indexes", "compute_sets", "functions", "streams", "remote_buffers",
    "host_reads", "host_writes", "host_functions", "debug_contexts", "_bounds", "_mapping",
    "_settled", "_grouped",    "_batches", "_bulk", "_codelets", "_scopes", "virtual_tiles",
)  # fmt: skip
# What an annotation of a field says of its value; one that is not here is not looked at.
PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int, np.integer),
    "float": (float, int, np.number),
    "str": (str,),
    "bool": (bool, np.bool_),
    "bytes": (bytes,),
    "None": (type(None),),
    "IntArray": (np.ndarray,),
    "BoolArray": (np.ndarray,),
    "Array": (np.ndarray,),
    "list": (list,),
    "dict": (dict,),
    "tuple": (tuple,),
    "Sequence": (list, tuple),
    "Callable": (FunctionType, np.ufunc),
}


@functools.cache
def field_names(kind: type) -> tuple[str, ...]:
    """List the fields of a class of the table."""
    if kind is Graph:
        return GRAPH
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return tuple(getattr(kind, "_fields", ()))


def class_name(kind: type) -> tuple[str, str]:
    """Return the module and name of a class; raises PoplarError when it is not in the table."""
    name = kind.__module__, kind.__qualname__
    if "<locals>" in kind.__qualname__:
        raise PoplarError(f"executable: it cannot be kept: {name[1]} is defined inside a function")
    if not _is_known(kind) and not issubclass(kind, Vertex):
        raise PoplarError(f"executable: it cannot be kept: {name[1]} of {name[0]} is no data")
    return name


def class_of(module: str, name: str) -> type:
    """Return the class of a name; raises PoplarError when it is not in the table."""
    kind = _member(sys.modules.get(module), name)
    if module in CLASSES:
        kind = _member(import_module(module), name)
    if isinstance(kind, type) and kind.__module__ == module and _is_known(kind):
        return kind
    if isinstance(kind, type) and issubclass(kind, Vertex):
        return kind
    raise PoplarError(
        f"executable: {name} of {module} is not known; import what defines this codelet before"
    )


@functools.cache
def checks(kind: type) -> tuple[tuple[type, ...], ...]:
    """Return what each field of a class must be, an empty tuple where anything may stand."""
    if not is_dataclass(kind):
        return tuple(() for _ in field_names(kind))
    return tuple(_accepted(str(field.type), kind) for field in fields(kind))


def function_name(function: FunctionType) -> tuple[str, str, int]:
    """Return module, name and number among those of one name; raises PoplarError for others."""
    name, module = function.__qualname__, function.__module__
    codes = _codes(module).get(name, []) if module in FUNCTIONS else []
    if function.__code__ not in codes:
        raise PoplarError(f"executable: it cannot be kept: {name} of {module} is no codelet's")
    return module, name, codes.index(function.__code__)


def function_of(module: str, name: str, number: int) -> FunctionType:
    """Return a function of the codelets, whose cells are empty; raises PoplarError for others."""
    codes = _codes(module).get(name, []) if module in FUNCTIONS else []
    if not 0 <= number < len(codes):
        raise PoplarError(f"executable: {name} of {module} is no function of a codelet")
    code = codes[number]
    member = _member(sys.modules[module], name)
    if isinstance(member, FunctionType) and member.__code__ == code:
        return member
    cells = tuple(CellType() for _ in code.co_freevars)
    function = FunctionType(code, vars(sys.modules[module]), code.co_name, None, cells)
    function.__qualname__ = name
    return function


def is_own(function: FunctionType) -> bool:
    """Return whether a function is the one that its module has under its name."""
    return _member(sys.modules[function.__module__], function.__qualname__) is function


def ufunc_of(name: str) -> np.ufunc:
    """Return NumPy's function of arrays; raises PoplarError for anything else of that name."""
    function = getattr(np, name, None)
    if not isinstance(function, np.ufunc):
        raise PoplarError(f"executable: numpy.{name} is no function of arrays")
    return function


def _is_known(kind: type) -> bool:
    has_fields = is_dataclass(kind) or hasattr(kind, "_fields") or issubclass(kind, Enum)
    return kind.__module__ in CLASSES and (has_fields or kind is Graph)


def _accepted(annotation: str, kind: type) -> tuple[type, ...]:
    while "[" in annotation:
        annotation = re.sub(r"\[[^\[\]]*\]", "", annotation)
    scope = vars(sys.modules[kind.__module__])
    accepted: tuple[type, ...] = ()
    for part in annotation.split(" | "):
        entry = scope.get(part)
        fallback = (entry,) if isinstance(entry, type) and _is_known(entry) else ()
        types = PLAIN.get(part, fallback)
        if not types:
            return ()
        accepted += types
    return accepted


def _member(module: object, name: str) -> object:
    member = module
    for part in name.split("."):
        member = vars(member).get(part) if hasattr(member, "__dict__") else None
    return member


@functools.cache
def _codes(module: str) -> dict[str, list[CodeType]]:
    """List the code of all functions of a module, by name and in the order of the source."""
    loaded: Any = import_module(module)
    loader = loaded.__loader__
    if not hasattr(loader, "get_code"):  # as one that rewrites what a test asserts
        loader = SourceFileLoader(module, loaded.__file__)
    codes: dict[str, list[CodeType]] = {}
    for code in _below(loader.get_code(module)):
        codes.setdefault(code.co_qualname, []).append(code)
    return codes


def _below(code: CodeType) -> Iterator[CodeType]:
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _below(item)
