"""What a session can be told: options of its own, and those that are handed on."""

from __future__ import annotations

import difflib
from typing import Any

from simulator.popart.errors import popart_exception

# Name -> default; its type is that of the values that it takes.
OPTIONS: dict[str, Any] = {
    "accumulationAndReplicationReductionType": "Sum",  # of gradients: Sum or Mean
    "accumulationFactor": 1,  # micro-batches whose gradients make one change of the weights
    "dotChecks": [],  # stages of which DOT files are written: FWD0, FWD1, BWD0, PREALIAS, FINAL
    "enableGradientAccumulation": False,  # without it the accumulationFactor has no effect
    "enableReplicatedGraphs": False,  # without it the replicatedGraphCount has no effect
    "replicatedGraphCount": 1,  # copies of the model, on as many parts of the device
    "enablePipelining": False,  # overlap batches: each IPU that has nodes is a stage
    "engineOptions": {},  # of the Engine
    "logDir": ".",  # where DOT files are written
    "reportOptions": {},  # of the summary report: showExecutionSteps, showVarStorage, ...
    "autoVirtualGraph": False,  # balance nodes over the IPUs, instead of the builder's notes
    "convolutionOptions": {},  # of poplin's convolutions and products
}
_WANTED = {"dict": "a dictionary", "list": "a list", "str": "a text", "bool": "True or False",
           "int": "a whole number of at least 1"}  # fmt: skip
REDUCTIONS = ("Sum", "Mean")


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
        below = kind is int and (isinstance(taken, bool) or (isinstance(taken, int) and taken < 1))
        if not isinstance(taken, kind) or below:
            wanted = _WANTED[kind.__name__]
            raise popart_exception(f"SessionOptions: {name} is {value!r}; {wanted} is needed")
        if name == "accumulationAndReplicationReductionType" and value not in REDUCTIONS:
            raise popart_exception(
                f"SessionOptions: {name} is {value!r}; known are {', '.join(REDUCTIONS)}"
            )
        object.__setattr__(self, name, _own(taken))

    @property
    def replicas(self) -> int:
        """Count the copies of the model."""
        return int(self.replicatedGraphCount) if self.enableReplicatedGraphs else 1

    @property
    def factor(self) -> int:
        """Count the micro-batches of a change of the weights."""
        return int(self.accumulationFactor) if self.enableGradientAccumulation else 1

    @property
    def share(self) -> float:
        """Give how much a sum of gradients counts: all, or what makes it their mean."""
        mean = self.accumulationAndReplicationReductionType == "Mean"
        return 1 / (self.factor * self.replicas) if mean else 1.0

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SessionOptions has no option {name!r}; known: {', '.join(OPTIONS)}")


def _own(value: Any) -> Any:
    """Give a copy of a dictionary or list."""
    return value.copy() if isinstance(value, dict | list) else value
