"""What a session can be told: options of its own, and those that are handed on."""

from __future__ import annotations

import difflib
from typing import Any

from simulator.popart.errors import popart_exception

# Name -> default; its type is that of the values that it takes.
OPTIONS: dict[str, Any] = {
    "dotChecks": [],  # stages of which DOT files are written: FWD0, FWD1, BWD0, PREALIAS, FINAL
    "enablePipelining": False,  # overlap batches: each IPU that has nodes is a stage
    "engineOptions": {},  # of the Engine
    "logDir": ".",  # where DOT files are written
    "reportOptions": {},  # of the summary report: showExecutionSteps, showVarStorage, ...
    "autoVirtualGraph": False,  # balance nodes over the IPUs, instead of the builder's notes
    "convolutionOptions": {},  # of poplin's convolutions and products
}
_WANTED = {"dict": "a dictionary", "list": "a list", "str": "a text", "bool": "True or False"}


class SessionOptions:
    """Options by name: opts.engineOptions = {"debug.instrument": "true"}."""

    def __init__(self, **chosen: Any) -> None:
        for name, default in OPTIONS.items():
            object.__setattr__(self, name, _own(default))
        for name, value in chosen.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in OPTIONS:
            near = difflib.get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(OPTIONS)}"
            raise popart_exception(f"SessionOptions: no option {name!r}; {hint}")
        kind = type(OPTIONS[name])
        taken = list(value) if kind is list and isinstance(value, set | tuple) else value
        if not isinstance(taken, kind):
            wanted = _WANTED[kind.__name__]
            raise popart_exception(f"SessionOptions: {name} is {value!r}; {wanted} is needed")
        object.__setattr__(self, name, _own(taken))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SessionOptions has no option {name!r}; known: {', '.join(OPTIONS)}")


def _own(value: Any) -> Any:
    """Give a copy of a dictionary or list."""
    return value.copy() if isinstance(value, dict | list) else value
