"""Options of library functions: those that PopLibs documents are taken, others refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import popops
from simulator.graph.errors import InvalidOptionError
from simulator.graph.types import FLOAT, UNSIGNED_INT
from simulator.poplibs.poplin.planning.options import CONVOLUTION, MATMUL
from simulator.poplibs.popnn import pooling, rnn
from simulator.poplibs.popops import gather_statistics
from simulator.poplibs.popops.elementwise import pointwise, scaled_add
from simulator.poplibs.popops.reduction import reduce
from simulator.poplibs.popops.slicing.planned.slice_plan import GATHER_OPTIONS

# The keys of the option specifications in PopLibs' sources (lib/poplin/ConvOptions.cpp, ...).
DOCUMENTED = [
    (
        CONVOLUTION,
        "availableMemoryProportion pass partialsType partialsType.interTile partialsType.interIPU "
        "use128BitConvUnitLoad planConstraints planConstraintsOutputFilename "
        "enableMultiStageReduce enableFastReduce remapOutputTensor enableConvDithering "
        "disableTransformations "
        "insertTransformsCycleCountProgs experimental.convTransformsEstimates gatherConvOutput "
        "experimental.slicVmac16 disableSRForAMPVertices enableTileLevelExpandDims",
    ),
    (
        MATMUL,
        "partialsType fullyConnectedPass inputRHSIsPreArranged use128BitConvUnitLoad "
        "enableMultiStageReduce enableFastReduce remapOutputTensor availableMemoryProportion "
        "planConstraints gatherOutput disableSRForAMPVertices",
    ),
    (
        GATHER_OPTIONS,
        "planConstraints usedForSlice usedForUpdate operationForUpdate partialType "
        "availableMemoryProportion indicesDistribution indicesAreSorted validateIndices "
        "internal.alwaysIncludeBaseRearrangementCost remapOutOfBoundIndices paddingIndexUsed",
    ),
    (
        pointwise.OPTIONS,
        "enableVectorBroadcastOptimisations enableGenerateCodelet forceGenerateCodelet "
        "enableExpressionOptimizations",
    ),
    (reduce.OPTIONS, "accumType.interTile accumType.inVertex"),
    (scaled_add.OPTIONS, "optimizeForSpeed scaleFloatToHalfTolerance"),
    (
        gather_statistics.OPTIONS,
        "useFloatArithmetic useFloatArithmeticWithUnsignedIntOutput",
    ),
    (
        pooling.OPTIONS,
        "poolUseIntrospectiveMapping optimizeForSpeed useFloatPartialsWhereBeneficial",
    ),
    (
        rnn.OPTIONS,
        "inferenceOnly preCalcWeights partialsType weightAccumulatorsType recomputationMode "
        "availableMemoryProportion numShards rnnCodeReuse rnnStepsPerWU "
        "disableWUPartialInterleaving",
    ),
]


@pytest.mark.parametrize(("table", "names"), DOCUMENTED)
def test_each_option_that_poplibs_takes_is_taken(table: dict[str, Any], names: str) -> None:
    assert set(names.split()) <= set(table)


@pytest.mark.parametrize("function", ["dynamicSlice", "dynamicUpdate", "scatter"])
def test_slices_refuse_an_option_that_they_do_not_have(function: str) -> None:
    run = DeviceProgram()
    t, at = run.tensor(np.zeros((4, 3))), run.tensor([1], UNSIGNED_INT)
    row = run.tensor(np.zeros((1, 3)))
    arguments: dict[str, tuple[Any, ...]] = {
        "dynamicSlice": (t, at, [0], [1], run.program),
        "dynamicUpdate": (t, row, at, [0], [1], run.program),
        "scatter": (t, at, row, 1, [1], [0], [0], run.program),
    }
    call = getattr(popops, function)
    call(run.graph, *arguments[function], "taken", {"validateIndices": "false"})
    with pytest.raises(InvalidOptionError, match=r"no option 'validIndices'; did you mean valid"):
        call(run.graph, *arguments[function], "refused", {"validIndices": "true"})


def test_slices_past_the_end_are_the_first_or_zeros_by_an_option() -> None:
    run, rows = DeviceProgram(), np.arange(12, dtype=np.float32).reshape(4, 3)
    t, offsets = run.tensor(rows), run.tensor([[3], [4], [7]], UNSIGNED_INT)
    call = (run.graph, t, offsets, [0], [1], run.program, popops.SlicePlan())
    remapped = popops.multiSlice(*call, {"remapOutOfBoundIndices": "true"})
    padded = popops.multiSlice(*call, {"paddingIndexUsed": "true"})
    first, second = run.run(remapped, padded)
    assert np.array_equal(first[:, 0], rows[[3, 0, 0]])
    assert np.array_equal(second[:, 0], [rows[3], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("splits", [(), (1, 2, 2), (2, 1, 1)])
def test_rows_are_multiplied_as_numpy_does_at_offsets(splits: Any, tmp_path: Any) -> None:
    plan = popops.SlicePlan(*splits, isNull=not splits)
    run, rng = DeviceProgram(), np.random.default_rng(2)
    rows, new = rng.integers(1, 4, (5, 6)), rng.integers(1, 4, (7, 1, 6))
    offsets = rng.integers(0, 5, (7, 1))
    t = run.tensor(rows)
    popops.multiUpdateMul(
        run.graph, t, run.tensor(new), run.tensor(offsets, UNSIGNED_INT), [0], [1], run.program,
        plan, {"operationForUpdate": "mul"},
    )  # fmt: skip
    np.multiply.at(rows, offsets[:, 0], new[:, 0])
    assert np.array_equal(run.run(t, report=tmp_path / "report")[0], rows)


def test_matrices_of_a_group_keep_the_largest_and_multiply() -> None:
    run, rng = DeviceProgram(), np.random.default_rng(3)
    plan = popops.embedding.plan(
        run.graph, FLOAT, 2, 5, 4, [3], {"operationForUpdate": "max", "paddingIndexUsed": "false"}
    )
    rows, new = rng.integers(1, 5, (2, 5, 4)), rng.integers(1, 5, (2, 3, 1, 4))
    offsets = rng.integers(0, 5, (2, 3, 1))
    both = [run.tensor(rows), run.tensor(rows)]
    for function, t in zip(("Max", "Mul"), both, strict=True):
        getattr(popops, f"groupedMultiUpdate{function}")(
            run.graph, t, run.tensor(new), run.tensor(offsets, UNSIGNED_INT), [0], [1],
            run.program, plan,
        )  # fmt: skip
    largest, product = rows.copy(), rows.copy()
    for group in range(2):
        np.maximum.at(largest[group], offsets[group, :, 0], new[group, :, 0])
        np.multiply.at(product[group], offsets[group, :, 0], new[group, :, 0])
    assert [
        np.array_equal(*pair) for pair in zip(run.run(*both), (largest, product), strict=True)
    ] == [1, 1]
