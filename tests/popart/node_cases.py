"""All node tests that onnx comes with, on the machine of 4 tiles, and the page of their outcomes.

python -m tests.popart.node_cases > docs/onnx-coverage.md
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx

from simulator.popart import backend, popart_exception
from simulator.popart.importing.bodies.sequences import OPERATORS_OF_SEQUENCES
from simulator.popart.importing.composites.table import COMPOSITES
from simulator.popart.operators.table import OPERATORS

# Those without a row that run by the nodes of the function that ONNX defines them by.
DEFINED = (
    "AffineGrid", "Attention", "BlackmanWindow", "CastLike", "CausalConvWithState", "Celu",
    "CenterCropPad", "DynamicQuantizeLinear", "GreaterOrEqual", "HammingWindow", "HannWindow",
    "HardSwish", "LessOrEqual", "LinearAttention", "MeanVarianceNormalization", "Mish",
    "NegativeLogLikelihoodLoss", "PRelu", "RMSNormalization", "RotaryEmbedding", "SequenceMap",
    "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish",
)  # fmt: skip
PREVIEWED = ("FlexAttention",)  # the same of ai.onnx.preview
# Types that the import refuses by intent: an IPU has none of them, and models that use them ask
# for their speed.
REFUSED = re.compile("type (BFLOAT16|INT4|FLOAT8.*)")
# Their outputs are drawn: the tests expect the numbers of NumPy's generator.
DRAWN = re.compile("test_(training_dropout|bernoulli)")
OUTCOMES = {
    "passed": "the values of the test, within its tolerance",
    "folded": "passed, but nothing is left for the device: what decides shapes is made constant, "
    "and that is all the test has",
    "rounded": "all elements within two units in the last place of the largest one, where the test "
    "allows less: sums in another order",
    "drawn": "random numbers, which ONNX leaves to the implementation: the test expects those of "
    "NumPy's generator",
    "refused": "refused before anything is compiled, for the reason below",
    "wrong": "other values",
}


class Outcome(NamedTuple):
    """A node test: its name, the domain and operator that it is of, how it ended, and why."""

    name: str
    operator: tuple[str, str]
    ended: str
    reason: str


@cache
def cases() -> list[Any]:
    """Return all node tests."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind="node"))


@cache
def operators() -> dict[str, tuple[str, str]]:
    """Return the operator that each test is of: that of its node, also where this is expanded."""
    domains = {"": "ai.onnx"}
    single = {case.name: case.model.graph.node for case in cases()}
    found = {}
    for name in single:
        plain = re.sub(r"(_expanded(_ver\d+|_function)?)$", "", name)
        nodes = single.get(plain, single[name])
        kinds = {(domains.get(n.domain, n.domain), n.op_type) for n in nodes}
        kinds -= {("ai.onnx", "Constant")}
        last = domains.get(nodes[-1].domain, nodes[-1].domain), nodes[-1].op_type
        found[name] = next(iter(kinds)) if len(kinds) == 1 else last
    return found


def outcome(case: Any) -> Outcome:
    """Run one test."""
    ended, reason = "passed", ""
    try:
        for inputs, expected in case.data_sets:
            rep = backend.prepare(case.model)
            with np.errstate(all="ignore"):
                made = rep.run(inputs)
            pairs = list(zip(_flat(expected), _flat(made), strict=True))
            ended = "folded" if ended == "passed" and rep.nodes == 0 else ended
            ended = _compared(pairs, case) or ended
    except popart_exception as error:
        ended, reason = "refused", _short(str(error))
    if DRAWN.match(case.name) and ended == "wrong":
        ended = "drawn"
    return Outcome(case.name, operators()[case.name], ended, reason)


def _compared(pairs: Sequence[tuple[Any, Any]], case: Any) -> str:
    """Compare as onnx's runner does; another type or shape is no outcome of the page."""
    ended = ""
    for wanted, made in pairs:
        if wanted.shape != made.shape or wanted.dtype != made.dtype:
            return "of another shape or type"
        a, b = (np.asarray(v, dtype=np.float64) for v in (wanted, made))
        if np.allclose(b, a, rtol=case.rtol, atol=case.atol, equal_nan=True):
            continue
        if wanted.dtype.kind != "f" or np.abs(a - b).max() > 2 * np.spacing(np.abs(wanted).max()):
            return "wrong"
        ended = "rounded"
    return ended


def _flat(values: Sequence[Any]) -> list[Any]:
    """Return all arrays of outputs, also of those that are sequences."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += _flat(value)
        elif isinstance(value, onnx.TensorProto):
            found.append(onnx.numpy_helper.to_array(value))
        elif value is not None:
            found.append(np.asarray(value))
    return found


def _short(message: str) -> str:
    """Return the reason of a refusal without the names of the model's tensors."""
    kind = re.search(r"element type (\w+) of ONNX", message)
    if kind:
        return f"type {kind[1]}"
    text = re.sub(r"^model: (node '[^']*' \([^)]*\)|\w+ '[^']*'): ", "", message.splitlines()[0])
    return re.sub(r"\('[^']*'\) ", "", text)


@cache
def outcomes() -> list[Outcome]:
    """Run all tests."""
    return [outcome(case) for case in cases()]


def rows(found: Sequence[Outcome]) -> Iterator[str]:
    """Return a row for each operator: versions, tests that pass, tests there are."""
    names = {*OPERATORS, *(o.operator for o in found)}
    for domain, name in sorted(names | {*COMPOSITES, *(("ai.onnx", name) for name in DEFINED)}):
        tests = [o for o in found if o.operator == (domain, name)]
        ended = Counter(o.ended for o in tests)
        others = ", ".join(f"{ended[kind]} {kind}" for kind in OUTCOMES if ended[kind])
        count = f"{len(tests)}: {others}" if tests else "none"
        yield f"| {domain} | {name} | {_versions(domain, name)} | {count} |"


def _versions(domain: str, name: str) -> str:
    row, own = OPERATORS.get((domain, name)), COMPOSITES.get((domain, name))
    if row is not None:
        return ", ".join(map(str, row.versions))
    if own is not None:
        return ", ".join(map(str, own.versions)) + ", by nodes of others"
    if name in OPERATORS_OF_SEQUENCES:
        return "folded at import"
    return "by its function" if name in (*DEFINED, *PREVIEWED) else "none"


def not_passed(found: Sequence[Outcome]) -> Iterator[str]:
    """Return each test that does not pass, grouped by how it ended and why."""
    groups: dict[tuple[str, str], list[str]] = {}
    for o in found:
        if o.ended != "passed":
            groups.setdefault((o.ended, o.reason), []).append(o.name.removeprefix("test_"))
    ranks = list(OUTCOMES)
    for (ended, reason), names in sorted(
        groups.items(), key=lambda row: (ranks.index(row[0][0]), -len(row[1]), row[0][1])
    ):
        head = f"{ended}: {reason}" if reason else ended
        yield f"* **{head}** ({len(names)}): {', '.join(sorted(names))}"


def markdown(found: Sequence[Outcome]) -> str:
    """Return the page."""
    ended = Counter(o.ended for o in found)
    lines = [
        "# ONNX operators",
        "",
        "What `simulator.popart` runs, by version, and how the node tests of the `onnx` package",
        f"({onnx.__version__}) end on the machine of 4 tiles: all {len(found):,} of them, each",
        "under the operator that it is of, also those with the nodes of its function, `_expanded`.",
        "Written by `python -m tests.popart.node_cases > docs/onnx-coverage.md`.",
        "",
        "| tests | |",
        "| --- | --- |",
        *(f"| {ended[kind]:,} {kind} | {text} |" for kind, text in OUTCOMES.items()),
        "",
        f"{len(found) - ended['refused'] - ended['wrong']:,} of the {len(found):,} give what ONNX "
        f"asks for. Of the {ended['refused']} that are refused",
        f"{sum(bool(REFUSED.fullmatch(o.reason)) for o in found)} are of bfloat16, int4 and floats "
        "of eight bits, which are refused by intent.",
        "",
        "Operators of sequences, and of optional values, are folded when a model is imported. An",
        "operator without a row of its own runs by the nodes of the function that ONNX defines it",
        "by, or by nodes that are made for its shapes; their names begin with that of the node:",
        "`Attention/y/KTranspose`.",
        "",
        "| domain | operator | versions | node tests |",
        "| --- | --- | --- | --- |",
        *rows(found),
        "",
        "## Tests that do not pass on the device",
        "",
        *not_passed(found),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(outcomes()))
