"""The node tests that onnx comes with, on the machine of 4 tiles, and a page of their counts.

python -m tests.popart.node_cases > docs/onnx-coverage.md
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx

from simulator.popart import backend, popart_exception
from simulator.popart.operators.table import OPERATORS

# Float, half, bool and integers of 8 to 32 bits, and those of 64 that are signed.
TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 10, 12}
# Those without a row that run by the nodes of the function that ONNX defines them by.
DEFINED = (
    "Attention", "CastLike", "CausalConvWithState", "Celu", "DynamicQuantizeLinear",
    "GreaterOrEqual", "HardSwish", "LessOrEqual", "LinearAttention",
    "MeanVarianceNormalization", "Mish",
    "NegativeLogLikelihoodLoss", "PRelu", "RMSNormalization", "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish",
)  # fmt: skip
NAMES = {*(name for _, name in OPERATORS), *DEFINED}

NUMBERS = "the test expects the numbers of NumPy's generator; the device has its own"
HALVES = "elements differ by the last bit of a half, for which the test has no tolerance"
REGION = "a region of interest may lie beyond the tensor; it cannot be resized"
COMPUTED = "its body takes a slice whose ends are computed"
RUNS = "how often it runs is computed, so that the shape of what it makes is not known"
BATCHED = "its version scans each sample of a batch; later ones scan without"
REASONS = {
    "test_attention_4d_causal_fp16": HALVES,
    "test_attention_4d_gqa_with_past_and_present_fp16": HALVES,
    "test_loop11": COMPUTED,
    "test_range_float16_type_positive_delta_expanded": RUNS,
    "test_range_float_type_positive_delta_expanded": RUNS,
    "test_range_int32_type_negative_delta_expanded": RUNS,
    "test_resize_tf_crop_and_resize": REGION,
    "test_resize_tf_crop_and_resize_axes_2_3": REGION,
    "test_resize_tf_crop_and_resize_axes_3_2": REGION,
    "test_resize_tf_crop_and_resize_extrapolation_value": REGION,
    "test_scan_sum": BATCHED,
    "test_training_dropout": NUMBERS,
    "test_training_dropout_default": NUMBERS,
    "test_training_dropout_default_mask": NUMBERS,
    "test_training_dropout_mask": NUMBERS,
}


class Outcome(NamedTuple):
    """A node test: its name, the operators of its nodes, and what was wrong ("" when it passed)."""

    name: str
    operators: frozenset[str]
    fault: str


def operators_of(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Name the operators of a graph and of the graphs within."""
    for node in graph.node:
        yield node.domain, node.op_type
        for attribute in node.attribute:
            yield from operators_of(attribute.g) if attribute.HasField("g") else ()


def _wanted(model: onnx.ModelProto) -> bool:
    """Tell whether all operators have a row, and all tensors are of the types.

    Nodes inside those of the graph do not count: the branches of an If may have Constant nodes,
    which are no operators to the user guide.
    """
    values = [*model.graph.input, *model.graph.output]
    tensors = all(value.type.WhichOneof("value") == "tensor_type" for value in values)
    return (
        tensors
        and all(value.type.tensor_type.elem_type in TYPES for value in values)
        and all(n.domain in ("", "ai.onnx") and n.op_type in NAMES for n in model.graph.node)
    )


@cache
def cases() -> list[Any]:
    """Give the cases whose operators all have a row in the table."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in load_model_tests(kind="node") if _wanted(case.model)]


def _fault(case: Any) -> str:
    from onnx.backend.test.runner import Runner

    try:
        for inputs, expected in case.data_sets:
            with np.errstate(all="ignore"):
                found = backend.prepare(case.model).run(inputs)
            wanted = [_array(value) for value in expected]
            Runner.assert_similar_outputs(wanted, list(found), rtol=case.rtol, atol=case.atol)
    except (popart_exception, AssertionError) as error:
        return str(error).strip()
    return ""


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value


@cache
def outcomes() -> list[Outcome]:
    """Run all cases."""
    return [
        Outcome(case.name, frozenset(n for _, n in operators_of(case.model.graph)), _fault(case))
        for case in cases()
    ]


def rows(found: list[Outcome]) -> Iterator[str]:
    """Give a row for each operator: versions, tests passed, tests there are."""
    for (domain, name), operator in sorted(OPERATORS.items()):
        tests = [o for o in found if name in o.operators and domain == "ai.onnx"]
        passed = sum(not o.fault for o in tests)
        versions = ", ".join(map(str, operator.versions))
        counted = f"{passed} of {len(tests)}" if tests else "none"
        yield f"| {domain} | {name} | {versions} | {counted} |"


def defined_rows(found: list[Outcome]) -> Iterator[str]:
    """Give a row for each operator that runs by its function: tests passed, tests there are."""
    for name in DEFINED:
        tests = [o for o in found if name in o.operators]
        yield f"| {name} | {sum(not o.fault for o in tests)} of {len(tests)} |"


def markdown(found: list[Outcome]) -> str:
    """Give the page."""
    failed = [outcome for outcome in found if outcome.fault]
    lines = [
        "# ONNX operators",
        "",
        "What `simulator.popart` runs, by version, and how many of the node tests of the `onnx`",
        f"package ({onnx.__version__}) that use the operator pass on the machine of 4 tiles: those",
        "whose operators all stand here and whose tensors are float, half, bool, or integers of 8",
        "to 32 bits or signed ones of 64. Nodes in the branches of an If do not count: they may be",
        f"Constant, too. {len(found) - len(failed)} of {len(found)} pass.",
        "Written by `python -m tests.popart.node_cases > docs/onnx-coverage.md`.",
        "",
        "| domain | operator | versions | node tests |",
        "| --- | --- | --- | --- |",
        *rows(found),
        "",
        "These have no row of their own. They run by the nodes of the function that ONNX defines",
        "them by, whose names begin with that of the node: `Attention/y/KTranspose`. So do other",
        "operators with a function of nodes that all have a row.",
        "",
        "| operator | node tests |",
        "| --- | --- |",
        *defined_rows(found),
        "",
        "Those that do not pass:",
        "",
        *(f"* `{o.name}`: {REASONS.get(o.name, o.fault.splitlines()[0])}" for o in failed),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(outcomes()))
