"""Fully connected layers (poplin::fc): the products of their passes, to be planned ahead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.graph.option_table import OptionFlags
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.preplanning import MatMulParams

__all__ = ["FullyConnectedParams", "getMatMulPrePlanParameters"]


@dataclass(slots=True)
class FullyConnectedParams:
    """The sizes of a layer: [groups][batch][inputs] times [groups][inputs][outputs]."""

    numGroups: int = 1
    batchSize: int = 1
    inputSize: int = 1
    outputSize: int = 1


@library_call("POPLIN")
def getMatMulPrePlanParameters(
    parameters: FullyConnectedParams,
    matmulOptions: Mapping[str, object] | None,
    type: Type,
    inferenceOnly: bool,
) -> list[tuple[MatMulParams, OptionFlags]]:
    """List the products of the forward pass and, in training, of the backward pass and update.

    >>> from simulator import poplar, poplin
    >>> layer = poplin.fc.FullyConnectedParams(1, 2, 3, 4)
    >>> len(poplin.fc.getMatMulPrePlanParameters(layer, {}, poplar.FLOAT, False))  # of three passes
    3
    """
    groups, batch = parameters.numGroups, parameters.batchSize
    inputs, outputs = parameters.inputSize, parameters.outputSize
    passes = {"INFERENCE_FWD": (batch, inputs, outputs)}
    if not inferenceOnly:
        passes = {
            "TRAINING_FWD": (batch, inputs, outputs),
            "TRAINING_BWD": (batch, outputs, inputs),
            "TRAINING_WU": (inputs, batch, outputs),
        }
    return [
        (
            MatMulParams(type, type, (groups, rows, inner), (groups, inner, columns)),
            OptionFlags({**(matmulOptions or {}), "fullyConnectedPass": which}),
        )
        for which, (rows, inner, columns) in passes.items()
    ]
