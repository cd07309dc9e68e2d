"""By which tiles inputs and anchors come and go, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import onnx

from simulator.graph.host.streams import ReplicatedStreamMode
from simulator.popart.errors import popart_exception
from simulator.popart.settings.names import Choice


class TileSet(Choice):
    """The tiles to which the host's data come: those that compute, or I/O tiles."""

    Compute = "Compute"
    IO = "IO"


class ExchangeStrategy(Choice):
    """When data are exchanged with the host: when they are needed, or while others compute.

    OverlapInnerLoop does so between the turns of the innermost loop (of micro-batches where
    gradients are accumulated, else of batches), OverlapLoops between those of both.
    """

    JustInTime = "JustInTime"
    OverlapInnerLoop = "OverlapInnerLoop"
    OverlapLoops = "OverlapLoops"
    OverlapStep = "OverlapStep"  # refused, as PopART does


class InputSettings:
    """How an input comes: InputSettings(TileSet.IO, ExchangeStrategy.OverlapInnerLoop).

    >>> settings = InputSettings(TileSet.IO, ExchangeStrategy.OverlapInnerLoop)
    >>> settings.tileSet().name, settings.exchangeStrategy().name
    ('IO', 'OverlapInnerLoop')
    """

    def __init__(self, *values: object, **named: object) -> None:
        self._tiles, self._strategy = TileSet.Compute, ExchangeStrategy.JustInTime
        self._mode: ReplicatedStreamMode | None = None
        kinds: dict[type, Callable[[Any], None]] = {
            TileSet: self.setTileSet,
            ExchangeStrategy: self.setExchangeStrategy,
            ReplicatedStreamMode: self.setReplicatedStreamMode,
        }
        for value in (*values, *named.values()):
            if type(value) not in kinds:
                raise popart_exception(
                    f"InputSettings: {value!r}; a TileSet and an ExchangeStrategy are needed"
                )
            kinds[type(value)](value)

    def tileSet(self) -> TileSet:
        """Return the tiles to which the input comes.

        >>> InputSettings(TileSet.IO).tileSet().name
        'IO'
        """
        return self._tiles

    def exchangeStrategy(self) -> ExchangeStrategy:
        """Return when the input comes.

        >>> InputSettings().exchangeStrategy().name
        'JustInTime'
        """
        return self._strategy

    def replicatedStreamMode(self) -> ReplicatedStreamMode:
        """Return whether each replica gets data of its own.

        >>> InputSettings().replicatedStreamMode().name
        'REPLICATE'
        """
        return self._mode or ReplicatedStreamMode.REPLICATE

    def setTileSet(self, tileSet: TileSet) -> None:
        """Choose the tiles to which the input comes.

        >>> settings = InputSettings()
        >>> settings.setTileSet(TileSet.IO)
        >>> settings.tileSet().name
        'IO'
        """
        self._tiles = tileSet

    def setExchangeStrategy(self, exchangeStrategy: ExchangeStrategy) -> None:
        """Choose when the input comes; raises popart_exception for OverlapStep.

        >>> settings = InputSettings()
        >>> settings.setExchangeStrategy(ExchangeStrategy.OverlapLoops)
        >>> settings.exchangeStrategy().name
        'OverlapLoops'
        """
        self._strategy = checked_strategy(exchangeStrategy, "InputSettings")

    def setReplicatedStreamMode(self, mode: ReplicatedStreamMode) -> None:
        """Take that each replica gets data of its own; raises popart_exception for others.

        >>> settings = InputSettings()
        >>> settings.setReplicatedStreamMode(ReplicatedStreamMode.REPLICATE)
        >>> settings.replicatedStreamMode().name
        'REPLICATE'
        """
        if mode is not ReplicatedStreamMode.REPLICATE:
            raise popart_exception(
                f"InputSettings: {mode.name}; each replica gets data of its own here"
            )
        self._mode = mode


def checked_strategy(strategy: object, subject: str) -> ExchangeStrategy:
    """Return a strategy; raises popart_exception for what is none, and for OverlapStep."""
    if not isinstance(strategy, ExchangeStrategy):
        raise popart_exception(f"{subject}: {strategy!r}; an ExchangeStrategy is needed")
    if strategy is ExchangeStrategy.OverlapStep:
        raise popart_exception(
            f"{subject}: OverlapStep is not supported, by PopART neither; take OverlapLoops"
        )
    return strategy


def note_settings(value: onnx.ValueInfoProto, settings: InputSettings) -> None:
    """Note in an input of a model how it comes."""
    tiles, strategy = settings.tileSet().value, settings.exchangeStrategy().value
    value.doc_string = json.dumps({"tileSet": tiles, "exchangeStrategy": strategy})


def settings_of(model: onnx.ModelProto) -> dict[str, InputSettings]:
    """Return how the inputs of a model come, where it is noted."""
    settings = {}
    for value in model.graph.input:
        if '"exchangeStrategy"' not in value.doc_string:
            continue
        try:
            noted = json.loads(value.doc_string)
            tiles, strategy = TileSet(noted["tileSet"]), noted["exchangeStrategy"]
            settings[value.name] = InputSettings(tiles, ExchangeStrategy(strategy))
        except (ValueError, KeyError, TypeError):  # a text of somebody else
            continue
    return settings
