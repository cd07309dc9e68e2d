"""What an exporter refuses, in one line: the module's path, the user's line and the cause."""

from __future__ import annotations

import io
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from simulator.graph.errors import PoplarError
from simulator.popart.representation.origins import Origin, is_library, shown_file
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting.exported import class_of, origin_of_node, paths_of, place_of
from simulator.poptorch.log import logger

if TYPE_CHECKING:
    from torch.export import ExportedProgram


EXPORTER = "torch"  # the logger of what the exporter has to say
Find = Callable[[BaseException, str], "Origin | None"]
LONGEST = 240  # characters of a cause
_OPERATOR = re.compile(r"(?:OpOverload\(op='|torch\.ops\.|operator ')(?P<name>[\w.:]+)")
_UNKNOWN = re.compile(r"No ONNX function found for|not supported|No decompositions registered")
_SIZE_OF_DATA = ("GuardOnDataDependent", "data-dependent", "UserError")


@contextmanager
def one_line(module: torch.nn.Module, find: Find | None = None) -> Iterator[None]:
    """Raise what an exporter raises as an Error of one line; keep its warnings to itself.

    `find` returns where an operator is that an error names, such as aten.histc, or None.
    """
    talk, level = logging.getLogger(EXPORTER), logging.getLogger(EXPORTER).level
    # torch.export prints the graph of what it refuses to stderr.
    with warnings.catch_warnings(record=True) as messages, redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", torch.jit.TracerWarning)
        talk.setLevel(logging.CRITICAL)
        try:
            yield
        except PoplarError as error:  # of an operation of PopTorch in the user's forward
            raise Error(f"{_where(module, None, error)}: {error}") from error
        except Exception as error:
            raise Error(f"{_where(module, find, error)}: {cause_of(error)}") from error
        finally:
            talk.setLevel(level)
    _say_what_is_fixed(messages)


def _say_what_is_fixed(messages: list[warnings.WarningMessage]) -> None:
    """Log each line of the user's where a trace keeps a value or branch of its example."""
    for file, line in dict.fromkeys((one.filename, one.lineno) for one in messages):
        if not is_library(file):
            logger.warning(
                f"{shown_file(file)}:{line}: a trace keeps what the example has here, whatever"
                " other inputs are; leave Jit.traceModel out to have it checked"
            )


def cause_of(error: BaseException) -> str:
    """Return the cause of a refusal in a sentence."""
    chain = _chain(error)
    text = " ".join(str(one) for one in chain)
    operator = _OPERATOR.search(text)
    if operator and _UNKNOWN.search(text):
        named = operator["name"].replace("::", ".")
        return f"{named} has no counterpart in ONNX; the exporter cannot write it"
    last = chain[-1]
    line = next((one.strip() for one in str(last).splitlines() if one.strip()), "")
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
    if any(word in f"{type(last).__name__} {line}" for word in _SIZE_OF_DATA):
        return f"a size or branch depends on the data, and shapes are fixed: {shown}"
    return f"{type(last).__name__}: {shown}"


def _where(module: torch.nn.Module, find: Find | None, error: BaseException) -> Origin:
    """Return the module and the user's line where an exporter failed."""
    named = _OPERATOR.search(" ".join(str(one) for one in _chain(error)))
    place = find(error, named["name"].replace("::", ".")) if find is not None and named else None
    if place is not None:
        return place
    paths, origin = paths_of(module), place_of(module, "", {})
    for one in _chain(error):
        origin = _in_traceback(one.__traceback__, paths, module) or origin
    return origin


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error with those that it comes from, the first of them last."""
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) and inner not in chain:
        chain.append(inner)
    return chain


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


def in_program(program: ExportedProgram, _: BaseException, operator: str) -> Origin | None:
    """Look up an operator in an exported program."""
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    same = [node for node in nodes if short(node.target).rpartition(".")[0] == operator]
    near = [
        node for node in nodes if short(node.target).startswith(operator)
    ]  # before it was cut up
    return next((origin_of_node(node) for node in same + near), None)


def short(target: object) -> str:
    """Name an operator: aten.nonzero.default."""
    return str(target)
