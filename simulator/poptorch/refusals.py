"""What an exporter refuses, in one line: the module's path, the user's line and the cause."""

from __future__ import annotations

import io
import logging
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from types import TracebackType
from typing import Any

import torch

from simulator.graph.errors import PoplarError
from simulator.popart.origins import Origin, is_library, shown_file
from simulator.poptorch.errors import Error
from simulator.poptorch.exported import class_of, origin_of_node, paths_of

EXPORTER = "torch"  # the logger of what the exporter has to say
LONGEST = 240  # characters of a cause
_OPERATOR = re.compile(r"(?:OpOverload\(op='|torch\.ops\.)(?P<name>[\w.]+)")
_UNKNOWN = re.compile(r"No ONNX function found for|not supported|No decompositions registered")
_SIZE_OF_DATA = ("GuardOnDataDependent", "data-dependent", "UserError")


@contextmanager
def one_line(module: torch.nn.Module, program: Any = None) -> Iterator[None]:
    """Raise what an exporter raises as an Error of one line; keep its warnings to itself."""
    talk, level = logging.getLogger(EXPORTER), logging.getLogger(EXPORTER).level
    # torch.export prints the graph of what it refuses to stderr.
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        talk.setLevel(logging.CRITICAL)
        try:
            yield
        except PoplarError:
            raise
        except Exception as error:
            raise Error(f"{_where(module, program, error)}: {cause_of(error)}") from error
        finally:
            talk.setLevel(level)


def cause_of(error: BaseException) -> str:
    """Return the cause of a refusal in a sentence."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        chain.append(inner)
    text = " ".join(str(one) for one in chain)
    operator = _OPERATOR.search(text)
    if operator and _UNKNOWN.search(text):
        return f"{operator['name']} has no counterpart in ONNX; the exporter cannot write it"
    last = chain[-1]
    line = next((one.strip() for one in str(last).splitlines() if one.strip()), "")
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    if any(word in f"{type(last).__name__} {line}" for word in _SIZE_OF_DATA):
        return f"a size or branch depends on the data, and shapes are fixed: {shown}"
    return f"{type(last).__name__}: {shown}"


def _where(module: torch.nn.Module, program: Any, error: BaseException) -> Origin:
    """Find the module and the user's line where an exporter failed."""
    node = _node_of(program, error) if program is not None else None
    if node is not None:
        return origin_of_node(node)
    paths, inner = paths_of(module), error
    found = Origin("", class_of(module))
    while inner is not None:
        found = _in_traceback(inner.__traceback__, paths, module) or found
        inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
    return found


def _in_traceback(
    frames: TracebackType | None, paths: dict[int, str], module: torch.nn.Module
) -> Origin | None:
    path, file, line, inside = "", "", 0, False
    for frame, number in traceback.walk_tb(frames):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and id(owner) in paths:
            path, inside = paths[id(owner)], True
        if inside and not is_library(frame.f_code.co_filename):
            file, line = shown_file(frame.f_code.co_filename), number
    return Origin(path, class_of(module.get_submodule(path)), file, line) if inside else None


def _node_of(program: Any, error: BaseException) -> Any:
    """Find the node of an exported program that an error names by its operator."""
    chain, text = error, ""
    while chain is not None:
        text += f" {chain}"
        chain = chain.__cause__ or chain.__context__  # type: ignore[assignment]
    operator = _OPERATOR.search(text)
    if operator is None:
        return None
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    wanted = operator["name"]
    same = [node for node in nodes if short(node.target).rpartition(".")[0] == wanted]
    near = [node for node in nodes if short(node.target).startswith(wanted)]  # before it was cut up
    return next(iter(same + near), None)


def short(target: Any) -> str:
    """Name an operator: aten.nonzero.default."""
    return str(target)
