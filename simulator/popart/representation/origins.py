"""Which module of a PyTorch program a node comes from, and which line of whose code.

torch.export leaves both in the metadata of each node of an exported model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import onnx

from simulator.graph.graph import Graph

LAYER = "poptorch"
SCOPES, CLASSES, STACK = (
    f"pkg.torch.onnx.{key}" for key in ("name_scopes", "class_hierarchy", "stack_trace")
)
_FRAME = re.compile(r'File "(?P<file>.+?)", line (?P<line>\d+), in ')
_LIBRARIES = {"torch", "onnxscript"}  # whose frames are no user's
_FRONT_END = Path(__file__).parents[2] / "poptorch"  # nor are those of its operations
_INSTALLED = "site-packages"


class Origin(NamedTuple):
    """A module by its path, "" for the whole, its class, and a line of its `forward`."""

    module: str
    kind: str
    file: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """Name the module; the whole by its class."""
        return self.module or self.kind.rpartition(".")[2]

    @property
    def source(self) -> str:
        """Return file and line, "" where they are not known."""
        return f"{self.file}:{self.line}" if self.file else ""

    def __str__(self) -> str:
        return f"module {self.name!r}" + (f" ({self.source})" if self.file else "")


def origin_of(proto: onnx.NodeProto) -> Origin | None:
    """Read where a node comes from, None for one that does not say."""
    noted = {entry.key: entry.value for entry in proto.metadata_props}
    if SCOPES not in noted:
        return None
    return _read(noted[SCOPES], noted.get(CLASSES, ""), noted.get(STACK, ""))


@lru_cache(maxsize=4096)
def _read(scopes: str, classes: str, stack: str) -> Origin | None:
    """Read lists of names as Python writes them, whose last ones are the operator's."""
    modules, kinds = _names(scopes)[:-1], _names(classes)[:-1]
    if not modules:
        return None
    return Origin(modules[-1], kinds[-1] if kinds else "", *users_line(stack))


def _names(text: str) -> list[str]:
    try:
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return [str(name) for name in parsed] if isinstance(parsed, list) else []


def users_line(stack: str) -> tuple[str, int]:
    """Return the innermost line that is not PyTorch's: its file, as `shown_file`, and number."""
    frames = [(frame["file"], int(frame["line"])) for frame in _FRAME.finditer(stack)]
    user_frames = [frame for frame in frames if not is_library(frame[0])]
    return (shown_file(user_frames[-1][0]), user_frames[-1][1]) if user_frames else ("", 0)


def is_library(file: str) -> bool:
    """Return whether a file is one of PyTorch's own, or of PopTorch's."""
    path = Path(file)
    parts = path.parts
    installed = _INSTALLED in parts and parts[parts.index(_INSTALLED) + 1] in _LIBRARIES
    return installed or path.is_relative_to(_FRONT_END)


def shown_file(file: str) -> str:
    """Name a file relative to the working directory; one elsewhere or installed by its name."""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()) and _INSTALLED not in path.parts:
        return path.relative_to(Path.cwd()).as_posix()
    return path.name


@contextmanager
def within_module(
    graph: Graph, origin: Origin | None, contexts: dict[Origin, int]
) -> Iterator[None]:
    """Make what is added inside the module's: children of the one debug context of its line."""
    if origin is None:
        yield
        return
    if origin not in contexts:
        facts = {"module": origin.module, "class": origin.kind, "source": origin.source}
        contexts[origin] = graph.debug_context(origin.name, LAYER, facts)
        graph.debug_contexts[-1]["location"] = {
            "fileName": origin.file,
            "functionName": "forward" if origin.file else "",
            "lineNumber": origin.line,
        }
    with graph.in_context(contexts[origin]):
        yield
