"""Gradients through tuples of indices, grids, RNNs and composites are those of differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import test_gradients as shared
from models import model, node, tiny, trained
from test_gradients import RANDOM, differences, more, values

from simulator import popart

DATA, TUPLES = values(3, 4, 2), np.int64([[2, 1], [0, -1], [2, 1]])
ONCE = np.int64([[2, 1], [0, -1]])
RNN = [values(3, 2, 4), values(2, 3, 4), values(2, 3, 3), values(2, 6), values(2, 2, 3)]
NAMES = ["c", "d", "e", "f", "g"]
IMAGE = values(2, 2, 4, 5)
# Points away from the elements, where interpolation has corners.
GRID = (RANDOM.uniform(-1.1, 1.1, size=(2, 3, 3, 2))).astype(np.float32)


def recurrent(place: int, **how: Any) -> Any:
    names = ["w" if n == place else name for n, name in enumerate(NAMES)]
    rnn = onnx.helper.make_node("RNN", [*names[:4], "", names[4]], ["y"], hidden_size=3, **how)
    constants = {name: array for name, array in zip(NAMES, RNN, strict=True) if name in names}
    return pytest.param([rnn], RNN[place], constants, id=f"RNN {place} {how}")


def sampled(inputs: str, w: Any, other: Any, **how: Any) -> Any:
    return more("GridSample", inputs, w, {"c": other}, f"GridSample {inputs} {how}", **how)


CASES = [
    more("GatherND", "w c", DATA, {"c": TUPLES}),
    more("GatherND", "w c", DATA, {"c": np.int64([[1], [0], [3]])}, "batches", batch_dims=1),
    more("ScatterND", "w c d", DATA, {"c": ONCE, "d": values(2, 2)}),
    more("ScatterND", "d c w", values(2, 2), {"c": ONCE, "d": DATA}),
    more("ScatterND", "w c d", DATA, {"c": TUPLES, "d": values(3, 2)}, "to", reduction="add"),
    more("ScatterND", "d c w", values(3, 2), {"c": TUPLES, "d": DATA}, "from", reduction="add"),
    *(recurrent(place, direction="bidirectional") for place in range(5)),
    *(
        sampled("w c", IMAGE, GRID, **how)
        for how in ({}, {"mode": "cubic"}, {"padding_mode": "border", "align_corners": 1})
    ),
    more("DFT", "w", values(2, 5, 2), {}, "DFT", axis=1),
]


@pytest.mark.parametrize(("nodes", "w", "constants"), CASES)
def test_the_gradient_is_that_of_differences(nodes: Any, w: Any, constants: Any) -> None:
    opset = 19 if nodes[0].op_type == "DFT" else 23
    shared.test_a_gradient_is_that_of_differences(nodes, w, constants, opset=opset)


def linear(x: Any) -> Any:
    return np.maximum(1 - np.abs(x), 0)


def cubic(x: Any, a: float = -0.75) -> Any:
    x = np.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


@pytest.mark.parametrize(
    ("how", "weight", "edges"),
    [
        ({}, linear, None),
        ({"mode": "cubic"}, cubic, None),
        ({"padding_mode": "border", "align_corners": 1}, linear, [4, 3]),
    ],
)
def test_the_gradient_of_a_grid_is_that_of_its_interpolation(
    how: Any, weight: Any, edges: list[int] | None
) -> None:
    # The reference evaluator (onnx 1.23) rounds coordinates to floats: too coarse for differences.
    mix = RANDOM.normal(size=(2, 2, 3, 3))

    def total(grid: Any) -> float:
        size = np.array([5, 4])
        at = ((grid + 1) * size - 1) / 2
        if edges is not None:
            at = np.clip((grid + 1) / 2 * (size - 1), 0, edges)
        columns, rows = (weight(at[..., n, None] - np.arange(size[n])) for n in (0, 1))
        return float((np.einsum("npqi,npqj,ncij->ncpq", rows, columns, IMAGE) * mix).sum())

    nodes = [node("GridSample", "c w", "y", **how), node("Mul", "y mix", "z")]
    weights = {"w": GRID, "c": IMAGE, "mix": mix.astype(np.float32)}
    found = trained(nodes, weights, popart.IdentityLoss("z", "loss"), "Gradient___w", opset=20)
    expected = differences(total, GRID)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("name", "function"),
    [("Sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("Relu", lambda x: np.maximum(x, 0))],
)
def test_the_gradient_of_a_recurrence_is_that_of_its_activation(name: str, function: Any) -> None:
    # The reference evaluator (onnx 1.23) knows Tanh and Affine alone.
    x, kernel, back, biases = (RNN[0], RNN[1][:1], RNN[2][:1], RNN[3][:1])
    mix = RANDOM.normal(size=(1, 2, 3))

    def total(recurrent: Any) -> float:
        state = np.zeros((2, 3))
        for row in x:
            given = row @ kernel[0].T + biases[0].reshape(2, 3).sum(0)
            state = function(given + state @ recurrent[0].T)
        return float((state * mix).sum())

    rnn = node("RNN", "x k w b", "all y", hidden_size=3, activations=[name])
    weights = {"x": x, "k": kernel, "w": back, "b": biases, "mix": mix.astype(np.float32)}
    nodes, loss = [rnn, node("Mul", "y mix", "z")], popart.IdentityLoss("z", "loss")
    found = trained(nodes, weights, loss, "Gradient___w", opset=14)
    expected = differences(total, back)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (node("GridSample", "x w", "y", padding_mode="reflection"), "'reflection' has none to its"),
        (node("RNN", "s k r", "y", hidden_size=2, clip=1.0), "clipped sums have none"),
        (node("RNN", "s k r", "y", hidden_size=2, activations=["Elu"]), "activation 'Elu' has non"),
    ],
)
def test_what_has_no_gradient_is_refused_by_name(wrong: onnx.NodeProto, said: str) -> None:
    weights = {
        "x": values(1, 1, 3, 3), "w": values(1, 2, 2, 2), "s": values(3, 1, 2),
        "k": values(1, 2, 2), "r": values(1, 2, 2),
    }  # fmt: skip
    proto = model([wrong], {}, ["y"], weights, opset=22)
    given = {"optimizer": popart.ConstSGD(0.1), "deviceInfo": tiny()}
    losses = [popart.IdentityLoss("y", "loss")]
    with pytest.raises(popart.popart_exception, match=said):
        popart.TrainingSession(proto, popart.DataFlow(1, ["loss"]), losses=losses, **given)


LENGTHS = np.array([3, 1], np.int32)


def recurrence_of_lengths(x: Any, first: Any) -> tuple[Any, Any]:
    """Return all outputs and the last state of an RNN whose sequences have LENGTHS."""
    state, every = first[0], []
    for step, row in enumerate(x):
        new = np.tanh(row @ RNN[1][0].T + RNN[3][0].reshape(2, 3).sum(0) + state @ RNN[2][0].T)
        inside = (step < LENGTHS)[:, None]
        state = np.where(inside, new, state)
        every.append(np.where(inside, new, 0))
    return np.stack(every), state


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("trains", ["x", "first"])
def test_behind_its_end_a_sequence_keeps_its_state_and_hands_gradients_on(
    trains: str, constant: bool
) -> None:
    x, first = RNN[0], RNN[4][:1]
    mix = [RANDOM.normal(size=(3, 2, 3)), RANDOM.normal(size=(2, 3))]

    def total(changed: Any) -> float:
        given = {"x": x, "first": first, trains: changed}
        made = recurrence_of_lengths(given["x"], given["first"])
        return float(sum((part * by).sum() for part, by in zip(made, mix, strict=True)))

    names = {"x": x, "k": RNN[1][:1], "r": RNN[2][:1], "b": RNN[3][:1], "first": first}
    nodes = [node("RNN", "x k r b lengths first", "all last", hidden_size=3),
             node("Mul", "all m", "am"), node("Mul", "last n", "ln"),
             node("ReduceSum", "am", "s", keepdims=0), node("ReduceSum", "ln", "t", keepdims=0),
             node("Add", "s t", "z")]  # fmt: skip
    weights = {**names, "m": mix[0][:, None], "n": mix[1][None]}
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    weights |= {"lengths": LENGTHS} if constant else {}
    found = trained_with_lengths(nodes, weights, trains)
    # The sum has terms of either sign: its error is one of float's steps at the terms, not at it.
    np.testing.assert_allclose(found["z"], total(names[trains]), rtol=1e-5, atol=1e-6)
    expected = differences(total, names[trains])
    np.testing.assert_allclose(found[f"Gradient___{trains}"], expected, rtol=2e-3, atol=2e-3)


def trained_with_lengths(nodes: Any, weights: Any, trains: str) -> Any:
    inputs = {} if "lengths" in weights else {"lengths": [2]}
    proto = model(nodes, inputs, ["z"], weights)
    for value in proto.graph.input:
        value.type.tensor_type.elem_type = onnx.TensorProto.INT32
    anchors = popart.DataFlow(1, ["z", f"Gradient___{trains}"])
    session = popart.TrainingSession(proto, anchors, "z", popart.ConstSGD(0.1), tiny())
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO(dict.fromkeys(inputs, LENGTHS), found))
    return found


def test_whole_numbers_have_the_gradient_that_is_handed_on() -> None:
    # the medians are 2 and 8, whose places get the 1 of the sum
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("INT32", [2, 3]))
    median = builder.aiGraphcore.reducemedian([x], axes=[1])[0]
    total = builder.aiOnnx.reducesum([median], keepdims=False)
    loss = builder.aiGraphcore.identityloss([total])
    name = f"Gradient___{x}"
    session = popart.TrainingSession(
        builder.getModelProto(),
        popart.DataFlow(1, [name, total]),
        loss,
        popart.ConstSGD(0.1),
        tiny(),
    )
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.int32([[3, 1, 2], [9, 8, 7]])}, anchors))
    assert anchors[total] == 10
    assert anchors[name].tolist() == [[0, 0, 1], [0, 1, 0]]
    assert anchors[name].dtype == np.int32


@pytest.mark.parametrize("place", ["indices", "squared"])
def test_whole_numbers_that_are_computed_with_have_no_gradient(place: str) -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("INT32", [2]))
    data = builder.addInitializedInputTensor(np.float32([1, 2, 3]))
    out = builder.aiOnnx.gather([data, x]) if place == "indices" else builder.aiOnnx.mul([x, x])
    total = builder.aiOnnx.reducesum([out], keepdims=False)
    loss = builder.aiGraphcore.identityloss([total])
    with pytest.raises(popart.popart_exception, match=f"Gradient___{x}' not in Ir Tensors"):
        popart.TrainingSession(
            builder.getModelProto(),
            popart.DataFlow(1, [f"Gradient___{x}"]),
            loss,
            popart.ConstSGD(0.1),
            tiny(),
        )
