"""What goes in and comes out when a session runs: anchors, batches a step, the host's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.settings.input_settings import (
    ExchangeStrategy,
    InputSettings,
    TileSet,
    checked_strategy,
)

KINDS = ("ALL", "EVERYN", "FINAL", "SUM")
ONCE = ("FINAL", "SUM")  # those that come at the end of a step


@dataclass(frozen=True, slots=True)
class AnchorReturnType:
    """Which batches of a step give a tensor back: ALL, every n-th (EVERYN, n), or the FINAL one.

    SUM gives the sum of all. Newer versions of PopART write them All, EveryN and Final. Behind
    these may stand a TileSet and an ExchangeStrategy: AnchorReturnType("All", TileSet.IO,
    ExchangeStrategy.OverlapInnerLoop).

    >>> AnchorReturnType("EveryN", 2).count(6)  # of 6 batches
    3
    """

    kind: str
    period: int | TileSet | None = None
    tileSet: TileSet | ExchangeStrategy = TileSet.Compute
    exchangeStrategy: ExchangeStrategy = ExchangeStrategy.JustInTime

    def __post_init__(self) -> None:
        if isinstance(self.period, TileSet):
            strategy = self.exchangeStrategy
            if isinstance(self.tileSet, ExchangeStrategy):
                strategy = self.tileSet
            object.__setattr__(self, "exchangeStrategy", strategy)
            object.__setattr__(self, "tileSet", self.period)
            object.__setattr__(self, "period", None)
        checked_strategy(self.exchangeStrategy, "AnchorReturnType")
        if not isinstance(self.tileSet, TileSet):
            raise popart_exception(f"AnchorReturnType: {self.tileSet!r}; a TileSet is needed")
        kind = getattr(self.kind, "value", self.kind)
        object.__setattr__(self, "kind", str(kind).upper())
        if self.kind not in KINDS:
            raise popart_exception(f"Invalid anchor return type ID supplied: {self.kind}")
        self._check_period()

    def _check_period(self) -> None:
        """Take the n of EVERYN, 1 for others; raises popart_exception where it is not due."""
        if self.kind != "EVERYN" and self.period not in (None, 1):
            raise popart_exception(
                "A return period should not be supplied for this anchor return type"
            )
        if self.kind == "EVERYN" and self.period is None:
            raise popart_exception("Must specify return period with option 'EVERYN'")
        period = 1 if self.period is None else self.period
        if not isinstance(period, int) or period < 1:
            raise popart_exception("Anchor return period must be greater than zero")
        object.__setattr__(self, "period", period)

    def id(self) -> str:
        """Return which batches, in capitals.

        >>> AnchorReturnType("Final").id()
        'FINAL'
        """
        return self.kind

    def rp(self) -> int:
        """Return the n of EVERYN.

        >>> AnchorReturnType("EveryN", 2).rp()
        2
        """
        assert isinstance(self.period, int)
        return self.period

    @property
    def settings(self) -> InputSettings:
        """Return by which tiles it goes, and when.

        >>> AnchorReturnType("All", TileSet.IO).settings.tileSet().name
        'IO'
        """
        return InputSettings(self.tileSet, self.exchangeStrategy)

    def count(self, batches: int) -> int:
        """Return how many values a step of so many batches gives.

        >>> AnchorReturnType("All").count(6), AnchorReturnType("Final").count(6)
        (6, 1)
        """
        return {"ALL": batches, "EVERYN": batches // self.rp(), "FINAL": 1, "SUM": 1}[self.kind]


Anchors = Mapping[str, AnchorReturnType] | Iterable[str]


class DataFlow:
    """How many batches a step has, and which tensors it gives back.

    >>> flow = DataFlow(6, {"y": AnchorReturnType("EveryN", 2)})
    >>> flow.batchesPerStep(), flow.anchors()
    (6, ['y'])
    """

    def __init__(
        self,
        batchesPerStep: int,
        anchorTensors: Anchors = (),
        anchorReturnType: AnchorReturnType | None = None,
    ) -> None:
        try:
            batches = index(batchesPerStep)
        except TypeError:
            batches = 0
        if batches < 1:
            raise popart_exception(
                f"DataFlow: {batchesPerStep!r} batches a step; at least 1 is needed"
            )
        if isinstance(anchorTensors, str):
            raise popart_exception(f"DataFlow: anchors are {anchorTensors!r}; a list is needed")
        kinds: Mapping[str, AnchorReturnType]
        if isinstance(anchorTensors, Mapping):
            kinds = anchorTensors
        else:
            kind = anchorReturnType or AnchorReturnType("ALL")
            kinds = dict.fromkeys(anchorTensors, kind)
        wrong = [name for name, kind in kinds.items() if not isinstance(kind, AnchorReturnType)]
        if wrong:
            raise popart_exception(
                f"DataFlow: anchor {wrong[0]!r} is {kinds[wrong[0]]!r}; "
                "an AnchorReturnType is needed"
            )
        for name, kind in kinds.items():
            if not kind.count(batches):
                raise popart_exception(
                    f"DataFlow: anchor {name!r} is given every {kind.period} batches; "
                    f"a step has {batches}"
                )
        self._batches, self._anchors = batches, dict(kinds)

    def batchesPerStep(self) -> int:
        """Count the batches of a step.

        >>> DataFlow(6).batchesPerStep()
        6
        """
        return self._batches

    def anchors(self) -> list[str]:
        """List the tensors that a step gives back.

        >>> DataFlow(1, ["x", "y"]).anchors()
        ['x', 'y']
        """
        return list(self._anchors)

    def art(self, name: str) -> AnchorReturnType:
        """Return how an anchor is given back; raises popart_exception.

        >>> flow = DataFlow(6, {"y": AnchorReturnType("EveryN", 2)})
        >>> flow.art("y").rp()
        2
        """
        if name not in self._anchors:
            raise popart_exception(
                f"DataFlow: {name!r} is no anchor; see {', '.join(self._anchors)}"
            )
        return self._anchors[name]


def _arrays(mapping: Mapping[str, object], subject: str) -> dict[str, Array]:
    if not isinstance(mapping, Mapping):
        raise popart_exception(f"PyStepIO: {subject} are {mapping!r}; a dictionary is needed")
    return {name: np.asarray(values) for name, values in mapping.items()}


@dataclass(slots=True, init=False)
class PyStepIO:
    """The arrays of a step: inputs by tensor name, and arrays for the anchors.

    >>> step = PyStepIO({"x": [1.0, 2.0]}, {"y": np.zeros(2)})
    >>> step.inputs["x"].shape
    (2,)
    """

    inputs: dict[str, Array]
    outputs: dict[str, Array]
    checks: bool

    def __init__(self, inputs: Mapping[str, object], outputs: Mapping[str, object]) -> None:
        self.checks = True
        self.inputs, self.outputs = _arrays(inputs, "inputs"), _arrays(outputs, "outputs")
        copied = [name for name in outputs if not isinstance(outputs[name], np.ndarray)]
        if copied:
            raise popart_exception(
                f"PyStepIO: output {copied[0]!r} is a {type(outputs[copied[0]]).__name__}, which "
                "cannot be filled; initAnchorArrays gives arrays"
            )

    def enableRuntimeAsserts(self, enable: bool) -> None:
        """Set whether inputs must have all elements of a step, or begin anew at their end.

        >>> step = PyStepIO({"x": [1.0]}, {})
        >>> step.enableRuntimeAsserts(False)
        >>> step.checks
        False
        """
        self.checks = bool(enable)


@dataclass(frozen=True, slots=True)
class PyStepIOCallback:
    """Functions that give and take the arrays of a step, one micro-batch at a time.

    `input(name, is_prefetch)` gives an array, `output(name)` one to be filled; the others are told
    when it has been read or filled. All inputs are read before the step, outputs filled after it.

    >>> def give(name, is_prefetch):
    ...     return np.float32([1, 2])
    >>> out = np.zeros(2)
    >>> step = PyStepIOCallback(give, lambda name: None, lambda name: out, lambda name: None)
    >>> step.input_callback("x", False).tolist()
    [1.0, 2.0]
    """

    input_callback: Callable[[str, bool], Any]
    input_complete_callback: Callable[[str], None]
    output_callback: Callable[[str], Any]
    output_complete_callback: Callable[[str], None]

    def taken(self, name: str, count: int) -> Array:
        """Return an input of so many micro-batches.

        >>> def give(name, is_prefetch):
        ...     return np.float32([1, 2])
        >>> out = np.zeros(2)
        >>> step = PyStepIOCallback(give, lambda name: None, lambda name: out, lambda name: None)
        >>> step.taken("x", 2).tolist()
        [[1.0, 2.0], [1.0, 2.0]]
        """
        arrays = []
        for _ in range(count):
            array = self.input_callback(name, False)
            if array is None:
                raise popart_exception(f"PyStepIOCallback: the callback gave no array of {name!r}")
            arrays.append(np.asarray(array))
            self.input_complete_callback(name)
        return np.stack(arrays)

    def give(self, name: str, values: Array, shape: tuple[int, ...]) -> None:
        """Fill the arrays of an anchor, one of a shape at a time.

        >>> def give(name, is_prefetch):
        ...     return np.float32([1, 2])
        >>> out = np.zeros(2)
        >>> step = PyStepIOCallback(give, lambda name: None, lambda name: out, lambda name: None)
        >>> step.give("y", np.array([3.0, 4.0]), (2,))
        >>> out.tolist()
        [3.0, 4.0]
        """
        for part in values.reshape((-1, *shape)):
            out = self.output_callback(name)
            if not isinstance(out, np.ndarray) or out.size != part.size:
                raise popart_exception(
                    f"PyStepIOCallback: the callback gave no array of {list(shape)} for {name!r}"
                )
            out[...] = part.reshape(out.shape)
            self.output_complete_callback(name)
