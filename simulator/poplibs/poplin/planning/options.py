"""Options of convolutions and matrix products, as PopLibs has them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.option_table import Option, OptionValue, checked, defaults
from simulator.graph.types import FLOAT, HALF
from simulator.logging import enabled, log
from simulator.poplibs.poplin.planning.joint_plan import PASSES
from simulator.poplibs.poplin.planning.planner import Settings

_TAKEN = "taken, and without effect here"
SERIAL = {"outChanSplit": "outputs", "inChanSplit": "inputs"}  # dimensions of serial splits
_COMMON = {
    "availableMemoryProportion": Option("0.6", "share of a tile that temporary data may take"),
    "partialsType": Option("float", "type of the parts of sums", allowed=("float", "half")),
    "planConstraints": Option(
        "",
        'with "isJointPlan", whether the passes of a layer are planned together; with '
        '{"0": {"partition": {"outChanSplit": {"serial": n}}}}, or "inChanSplit", into how many '
        "slices it is cut that follow one another",
        form="json",
    ),
    "planConstraintsOutputFilename": Option("", _TAKEN),
    "use128BitConvUnitLoad": Option(False, _TAKEN),
    "enableMultiStageReduce": Option(True, _TAKEN),
    "enableFastReduce": Option(False, _TAKEN),
    "remapOutputTensor": Option(True, _TAKEN),
    "partialsType.interTile": Option("float", _TAKEN, allowed=("float", "half")),
    "interTilePartialsType": Option("float", _TAKEN, allowed=("float", "half")),
    "interIpuPartialsType": Option("float", _TAKEN, allowed=("float", "half")),
    "partialsType.interIPU": Option("float", _TAKEN, allowed=("float", "half")),
    "disableSRForAMPVertices": Option(False, _TAKEN),
}
CONVOLUTION = _COMMON | {
    "pass": Option(
        "NONE",
        "what the convolution is for",
        allowed=(
            "NONE",
            "NONE_MATMUL",
            "INFERENCE_FWD",
            "TRAINING_FWD",
            "TRAINING_BWD",
            "TRAINING_WU",
            "FC_INFERENCE_FWD",
            "FC_TRAINING_FWD",
            "FC_TRAINING_BWD",
            "FC_TRAINING_WU",
        ),
    ),
    "numIPUs": Option(1, _TAKEN),
    "tilesPerIPU": Option(0, "tiles that may be used; 0 for all"),
    "enableConvDithering": Option(False, _TAKEN),
    "insertTransformsCycleCountProgs": Option(False, _TAKEN),
    "disableTransformations": Option(False, _TAKEN),
    "enableTileLevelExpandDims": Option(False, _TAKEN),
    "gatherConvOutput": Option(False, _TAKEN),
    "experimental.convTransformsEstimates": Option(True, _TAKEN),
    "experimental.slicVmac16": Option(False, _TAKEN),
}
MATMUL = _COMMON | {
    "fullyConnectedPass": Option(
        "NONE",
        "what the product is for",
        allowed=("NONE", "INFERENCE_FWD", "TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"),
    ),
    "inputRHSIsPreArranged": Option(False, _TAKEN),
    "gatherOutput": Option(False, _TAKEN),
}


def settings_of(
    target: Target, table: Mapping[str, Option], options: Mapping[str, object] | None, name: str
) -> Settings:
    """Read the options of an operation."""
    values = defaults(table, checked(table, options or {}, name))
    if enabled("PL", "DEBUG", "POPLIN"):
        log("PL", "POPLIN", "DEBUG", f"{name}: options:\n{_listed(values)}")
    try:
        proportion = float(values["availableMemoryProportion"])
    except ValueError:
        proportion = -1.0
    if not 0 <= proportion <= 1:
        raise poplibs_error(
            f"{name}: availableMemoryProportion is {values['availableMemoryProportion']!r}; "
            "a number from 0 to 1 is needed"
        )
    partials = HALF if values["partialsType"] == "half" else FLOAT
    tiles = int(values.get("tilesPerIPU", 0)) or target.tiles_per_ipu
    connected = str(values.get("fullyConnectedPass", "")).removeprefix("NONE")
    joint = connected if connected in PASSES else ""
    limit = min(tiles, target.tiles_per_ipu)
    purpose = str(values.get("pass", f"FC_{connected}" if connected else "NONE_MATMUL"))
    is_joint, slices = _constraints(values, name)
    return Settings(limit, partials, proportion, joint, is_joint, purpose, slices)


def _listed(values: Mapping[str, OptionValue]) -> str:
    """Return options line by line, as PopLibs writes them: truth as a number."""
    shown = {key: int(one) if isinstance(one, bool) else one for key, one in values.items()}
    return "\n".join(f"  {key:<34} {value}" for key, value in shown.items())


def _constraints(
    values: Mapping[str, OptionValue], name: str
) -> tuple[bool | None, tuple[tuple[str, int], ...]]:
    """Read whether passes are planned together, None leaves it to the planner; and serial splits.

    Of other constraints there is no effect.
    """
    given = json.loads(str(values["planConstraints"]) or "{}")
    is_joint = given.get("isJointPlan")
    if is_joint not in (True, False, None):
        raise poplibs_error(f"{name}: planConstraints: isJointPlan is {is_joint!r}; true or false")
    level = given.get("0")
    partition = level.get("partition") if isinstance(level, dict) else None
    slices = []
    for key, dimension in SERIAL.items():
        split = partition.get(key) if isinstance(partition, dict) else None
        count = split.get("serial") if isinstance(split, dict) else None
        if count is not None and (not isinstance(count, int) or count < 1):
            raise poplibs_error(
                f"{name}: planConstraints: 0.partition.{key}.serial is {count!r}; at least 1"
            )
        if count is not None:
            slices.append((dimension, count))
    return None if is_joint is None else bool(is_joint), tuple(slices)
