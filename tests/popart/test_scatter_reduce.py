"""ScatterReduce: values by a loop in NumPy, gradients by differences of it in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import tiny

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(2)
Reduction = popart.ScatterReduction
JOIN = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Mul": np.multiply}


def scattered(
    source: Array, indices: Array, axis: int, size: int, kind: str, initial: Array | None
) -> Array:
    """Scatter element by element; what nothing goes to is 0, or 1 of products."""
    shape = list(indices.shape)
    shape[axis] = size
    start = np.full(shape, float(kind == "Mul")) if initial is None else initial.astype(float)
    out, taken = start.copy(), np.zeros(start.shape, bool)
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = indices[place]
        to, value = tuple(target), float(source[place])
        alone = initial is None and not taken[to]
        joins = kind != "NoReduction" and not (alone and kind in ("Max", "Min"))
        out[to] = JOIN[kind](out[to], value) if joins else value
        taken[to] = True
    return out


def run(
    source: Array,
    indices: Array,
    initial: Array | None,
    weight: Array | None,
    groups: int = 1,
    **attributes: Any,
) -> dict[str, Array]:
    """Run the operator; with weights of its elements give the gradients, too."""
    builder = popart.Builder()
    names = [builder.addInitializedInputTensor(source, "source")]
    names.append(builder.addInputTensor(popart.TensorInfo("UINT32", indices.shape), "indices"))
    if initial is not None:
        names.append(builder.addInitializedInputTensor(initial, "initial"))
    domain = builder.aiGraphcore
    grouped = {"group_size": groups} if groups > 1 else {}
    method = domain.groupedscatterreduce if groups > 1 else domain.scatterreduce
    y = method(names, **attributes, **grouped)
    anchors = [y]
    given = {"indices": indices.astype(np.uint32)}
    if weight is None:
        session: Any = popart.InferenceSession(
            builder.getModelProto(), popart.DataFlow(1, anchors), tiny()
        )
    else:
        factor = builder.aiOnnx.constant(weight.astype(np.float32))
        loss = builder.aiGraphcore.identityloss([builder.aiOnnx.mul([y, factor])],
                                                popart.ReductionType.Sum)  # fmt: skip
        anchors += [f"Gradient___{name}" for name in (names[0], *names[2:])]
        session = popart.TrainingSession(
            builder.getModelProto(), popart.DataFlow(1, anchors), loss, popart.ConstSGD(0.1), tiny()
        )
    session.prepareDevice()
    session.weightsFromHost()
    arrays: dict[str, Array] = session.initAnchorArrays()
    session.run(popart.PyStepIO(given, arrays))
    return {"y": arrays.pop(y), **arrays}


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mul", "NoReduction"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("starts", [False, True])
def test_elements_that_meet_are_joined(kind: str, axis: int, starts: bool) -> None:
    source = RANDOM.normal(size=(3, 4, 2)).astype(np.float32)
    repeats = kind != "NoReduction"
    indices = RANDOM.integers(0, 6, source.shape)
    if not repeats:  # each goes to a place of its own
        indices = np.argsort(RANDOM.random(source.shape), axis=axis)
    shape = [3, 4, 2]
    shape[axis] = 6
    initial = RANDOM.normal(size=shape).astype(np.float32) if starts else None
    found = run(source, indices, initial, None, axis=axis, axis_size=6, reduction=Reduction[kind])
    expected = scattered(source, indices, axis % 3, 6, kind, initial)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["Sum", "Max", "Mul"])
@pytest.mark.parametrize(("groups", "axis"), [(1, 0), (1, 1), (2, 1), (2, 2)])
def test_a_list_of_indices_moves_whole_slices(kind: str, groups: int, axis: int) -> None:
    source = RANDOM.normal(size=(2, 5, 3)).astype(np.float32)
    count = source.shape[axis]
    listed = RANDOM.integers(0, 4, (groups, count) if groups > 1 else (count,))
    found = run(source, listed, None, None, groups, axis=axis, axis_size=4,
                reduction=Reduction[kind])  # fmt: skip
    shape = [1, 1, 1]
    shape[axis], shape[0] = count, groups if groups > 1 else shape[0]
    if axis == 0:
        shape[0] = count
    full = np.broadcast_to(listed.reshape(shape), source.shape)
    expected = scattered(source, full, axis, 4, kind, None)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-5, atol=1e-6)


def test_without_broadcasts_only_what_indices_cover_is_scattered() -> None:
    source = RANDOM.normal(size=(4, 5)).astype(np.float32)
    indices = RANDOM.integers(0, 3, (2, 3))
    found = run(source, indices, None, None, axis=0, axis_size=3, enable_index_broadcast=0)
    expected = scattered(source, indices, 0, 3, "Sum", None)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-6)


def test_whole_numbers_keep_their_signs() -> None:
    source = np.array([5, -7, -3, 2], np.int32)
    found = run(source, np.array([0, 2, 2, 0]), None, None, axis=0, axis_size=4,
                reduction=Reduction.Max)  # fmt: skip
    assert found["y"].tolist() == [5, 0, -3, 0]


def differences(function: Any, at: Array) -> Array:
    """Return the gradient of a number by central differences in double precision."""
    out, step = np.zeros(at.shape), 1e-6
    for place in np.ndindex(*at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.astype(float)
            moved[place] += sign * step
            ends.append(function(moved))
        out[place] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.mark.parametrize("kind", ["Sum", "Max", "Min", "Mul", "NoReduction"])
@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("by_slice", [False, True])
def test_gradients_are_those_of_differences(kind: str, starts: bool, by_slice: bool) -> None:
    source = (RANDOM.random((4, 3)) + 0.5).astype(np.float32)
    initial = (RANDOM.random((5, 3)) + 0.5).astype(np.float32) if starts else None
    listed = RANDOM.permutation(5)[:4] if kind == "NoReduction" else np.array([1, 3, 1, 0])
    full = np.broadcast_to(listed[:, None], source.shape)
    indices = listed if by_slice else full
    weight = RANDOM.normal(size=(5, 3))
    found = run(source, indices, initial, weight, axis=0, axis_size=5, reduction=Reduction[kind])

    def total(values: Array, start: Array | None) -> float:
        return float((scattered(values, full, 0, 5, kind, start) * weight).sum())

    expected = {"source": differences(lambda values: total(values, initial), source)}
    if initial is not None:
        expected["initial"] = differences(lambda start: total(source, start), initial)
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[f"Gradient___{name}"], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "attributes", "expected"),
    [
        ((4, 3), {"axis": 2, "axis_size": 4}, "axis = 2 is outside the acceptable range"),
        ((4, 3), {"axis": 0, "axis_size": 0}, "axis_size = 0 is not valid"),
        ((2, 2), {"axis": 0, "axis_size": 4}, "Failed to expand 'indices' shape"),
        ((4, 1, 1), {"axis": 0, "axis_size": 4}, "Failed to expand 'indices' shape"),
        ((1, 3), {"axis": 0, "axis_size": 4}, "Partial broadcasting of indices"),
    ],
)
def test_what_cannot_be_scattered_is_said(
    shape: tuple[int, ...], attributes: dict[str, int], expected: str
) -> None:
    source = np.ones((4, 3), np.float32)
    with pytest.raises(popart.popart_exception, match=expected):
        run(source, np.zeros(shape, int), None, None, **attributes)
