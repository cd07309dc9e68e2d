"""Debug contexts of a program's own, written to a JSON file as Poplar's streamer writes them.

initializePoplarDebugInfo("debug.json", "json"); a DebugInfo is written when nothing holds it any
longer, or by closePoplarDebugInfo(), the innermost first.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pva.errors import PvaError
from pva.plain_file import contents
from simulator.popart.errors import popart_exception

FORMATS = ("json",)
MAX_BYTES = 1 << 28  # of a file that may be replaced


@dataclass(slots=True)
class _File:
    """What is to be written, and where."""

    path: Path
    contexts: list[dict[str, Any]] = field(default_factory=list)
    strings: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> str:
        """Return the place of a text in the table of texts."""
        return str(self.strings.setdefault(text, len(self.strings)))


@dataclass(slots=True)
class _State:
    """The file that is open, and the number of the next context."""

    file: _File | None = None
    numbers: count[int] = field(default_factory=lambda: count(1))


_STATE = _State()


def initializePoplarDebugInfo(filename: str | Path, format: str = "json") -> None:
    """Begin a file of debug contexts; raises popart_exception for another format.

    A file that is there is replaced if it has debug contexts, and refused otherwise.

    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from simulator import popart
    >>> path = Path(tempfile.mkdtemp()) / "debug.json"
    >>> popart.initializePoplarDebugInfo(path)
    >>> popart.closePoplarDebugInfo()
    >>> path.exists()
    True
    """
    if format not in FORMATS:
        raise popart_exception(f"initializePoplarDebugInfo: format {format!r}; json is needed")
    if Path(filename).exists() and not _is_ours(Path(filename)):
        raise popart_exception(
            f"initializePoplarDebugInfo: {filename} is there and has no debug contexts; a name "
            "that is free is needed"
        )
    _STATE.file, _STATE.numbers = _File(Path(filename)), count(1)


def _is_ours(path: Path) -> bool:
    """Return whether a file has debug contexts as this module writes them."""
    try:
        document = json.loads(contents(path, "debug contexts", MAX_BYTES))
    except (PvaError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and set(document) == {"contexts", "stringTable"}


def closePoplarDebugInfo() -> None:
    """Write the file that was begun, if there is one; raises popart_exception.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from simulator import popart
    >>> path = Path(tempfile.mkdtemp()) / "debug.json"
    >>> popart.initializePoplarDebugInfo(path)
    >>> popart.closePoplarDebugInfo()
    >>> path.exists()
    True
    """
    file, _STATE.file = _STATE.file, None
    if file is None:
        return
    document = {"contexts": file.contexts, "stringTable": list(file.strings)}
    try:
        file.path.write_text(json.dumps(document), encoding="utf-8")
    except OSError as error:
        raise popart_exception(f"{file.path}: {error.strerror}") from None


class DebugContext:
    """Where something is made: a name, below that of a DebugInfo, and the line of the program.

    >>> str(DebugContext(DebugInfo("block", "user"), "layer"))
    'block/layer'
    """

    def __init__(self, parent: DebugInfo | DebugContext | str = "", name: str = "") -> None:
        self.parent: DebugInfo | None = None
        self.name: str = name
        if isinstance(parent, str):
            self.name = name or parent
        elif isinstance(parent, DebugInfo):
            self.parent = parent
        else:
            self.parent, self.name = parent.parent, name or parent.name
        frame = inspect.stack(context=0)[1]
        self.place = frame.filename, frame.function, frame.lineno

    def __str__(self) -> str:
        """Return the name, as methods of the builder take it."""
        above = str(self.parent.context) if self.parent else ""
        return "/".join(filter(None, (above, self.name)))


class DebugInfo:
    """A context of a layer, with values.

    >>> info = DebugInfo("block", "user")
    >>> str(info.context), info.layer
    ('block', 'user')
    """

    def __init__(self, context: DebugContext | str, layer: str) -> None:
        self.context = context if isinstance(context, DebugContext) else DebugContext(context)
        self.layer, self.number = layer, next(_STATE.numbers)
        self.values: dict[str, int | float | bool | str] = {}
        self._file = _STATE.file

    def setValue(self, name: str, value: object) -> bool:
        """Set a value of this context by its name; tells that it is taken.

        >>> info = DebugInfo("block", "user")
        >>> info.setValue("width", 4)
        True
        >>> info.values
        {'width': 4}
        """
        self.values[str(name)] = value if isinstance(value, int | float | bool) else str(value)
        return True

    def __del__(self) -> None:
        """Add this context to the file, which those inside it have been added to."""
        file = self._file
        if file is None or file is not _STATE.file:
            return
        parent = self.context.parent
        source, function, line = self.context.place
        file.contexts.append(
            {
                "id": self.number,
                "parentId": parent.number if parent else 0,
                "name": file.number(self.context.name),
                "layer": self.layer,
                "location": {
                    "fileName": file.number(source),
                    "functionName": file.number(function),
                    "lineNumber": line,
                },
                **self.values,
            }
        )
