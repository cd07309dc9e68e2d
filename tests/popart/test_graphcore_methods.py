"""Operators of ai.graphcore by the builder's methods: values and gradients of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, product
from typing import Any

import numpy as np
import pytest
from models import tiny

from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(27)
Build = Callable[[popart.Builder, Sequence[str]], Any]
Values = Callable[..., Any]


def floats(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def run(build: Build, arrays: Sequence[Array], *, trained: Sequence[int] = ()) -> list[Array]:
    """Run what `build` adds; return its outputs, then the gradients of some inputs."""
    builder = popart.Builder()
    names = [
        (builder.addInitializedInputTensor if n in trained else builder.addInputTensor)(
            values if n in trained else popart.TensorInfo(values)
        )
        for n, values in enumerate(arrays)
    ]
    made = build(builder, names)
    outputs = [made] if isinstance(made, str) else list(made)
    anchors = [*outputs, *(f"Gradient___{names[n]}" for n in trained)]
    flow, options = popart.DataFlow(1, anchors), popart.SessionOptions()
    if trained:
        loss = builder.aiGraphcore.identityloss([outputs[0]], popart.ReductionType.Sum)
        session: Any = popart.TrainingSession(
            builder.getModelProto(), flow, loss, popart.ConstSGD(0.0), tiny(), userOptions=options
        )
    else:
        session = popart.InferenceSession(builder.getModelProto(), flow, tiny())
    session.prepareDevice()
    session.weightsFromHost()
    out = session.initAnchorArrays()
    inputs = {name: arrays[n] for n, name in enumerate(names) if n not in trained}
    session.run(popart.PyStepIO(inputs, out))
    return [out[name] for name in anchors]


def by_differences(value: Values, arrays: Sequence[Array], place: int) -> Array:
    """Return the gradient of the sum of a function's values, by differences in double."""
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    found, step = np.zeros(arrays[place].shape), 1e-6
    for where in product(*map(range, arrays[place].shape)):
        sums = []
        for sign in (1, -1):
            moved = [a.copy() for a in wide]
            moved[place][where] += sign * step
            sums.append(float(np.sum(value(*moved))))
        found[where] = (sums[0] - sums[1]) / (2 * step)
    return found


def cut(x: Array, place: Array) -> Array:
    return x[:, place[0] : place[0] + 2, place[1] : place[1] + 1]


def written(x: Array, place: Array, part: Array | float, *, add: bool = False) -> Array:
    out = x.copy()
    cut(out, place)[...] = cut(out, place) * add + part
    return out


def moved(source: Array, target: Array, *rows: Array) -> Array:
    out = target.copy()
    for count, begin, end in zip(*rows, strict=True):
        out[end : end + count] = source[begin : begin + count]
    return out


def erf(x: Array) -> Array:
    return np.vectorize(__import__("math").erf)(x)


REGION = {"axes": [1, 2], "sizes": [2, 1]}
X, PLACE, PART = floats(2, 4, 3), np.array([1, 2], np.uint32), floats(2, 2, 1)
ROWS = [np.array(n, np.uint32) for n in ([1, 2], [0, 3], [2, 0])]
CASES: dict[str, tuple[Build, list[Array], Values, tuple[int, ...]]] = {
    "depthtospace": (
        lambda b, t: b.aiGraphcore.depthtospace(t, 2, "CRD"),
        [floats(1, 8, 2, 3)],
        lambda x: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6),
        (0,),
    ),
    "dynamicslice": (
        lambda b, t: b.aiGraphcore.dynamicslice(t, **REGION, noOverlap=True), [X, PLACE], cut, (0,)
    ),
    "dynamicupdate": (
        lambda b, t: b.aiGraphcore.dynamicupdate(t, **REGION), [X, PLACE, PART], written, (0, 2)
    ),
    "dynamicadd": (
        lambda b, t: b.aiGraphcore.dynamicadd(t, **REGION),
        [X, PLACE, PART],
        lambda x, p, part: written(x, p, part, add=True),
        (0, 2),
    ),
    "dynamiczero": (
        lambda b, t: b.aiGraphcore.dynamiczero(t, **REGION),
        [X, PLACE],
        lambda x, p: written(x, p, 0.0),
        (0,),
    ),
    "geluerf": (
        lambda b, t: b.aiGraphcore.geluerf(t),
        [X],
        lambda x: x / 2 * (1 + erf(x / np.sqrt(2))),
        (0,),
    ),
    "groupedgather": (
        lambda b, t: b.aiGraphcore.groupedgather(t, 2, 2),
        [floats(2, 3, 4), np.array([[0, 3], [2, 2]], np.int32)],
        lambda x, i: np.stack([x[g][:, i[g]] for g in (0, 1)]),
        (0,),
    ),
    "reducemedian": (
        lambda b, t: b.aiGraphcore.reducemedian(t, axes=[0, 2], keepdims=0)[0],
        [floats(3, 2, 3)],
        lambda x: np.median(x, axis=(0, 2)),
        (0,),
    ),
    "reverse": (
        lambda b, t: b.aiGraphcore.reverse(t, [0, 2]), [X], lambda x: x[::-1, :, ::-1] * 1.0, (0,)
    ),
    "scaledadd": (
        lambda b, t: b.aiGraphcore.scaledadd(t),
        [floats(3), floats(3), floats(1), floats(1)],
        lambda x, y, a, c: x * a + y * c,
        (0, 1, 2, 3),
    ),
    "sequenceslice": (
        lambda b, t: b.aiGraphcore.sequenceslice(t),
        [floats(6, 2), floats(4, 2), *ROWS],
        moved,
        (0, 1),
    ),
    "slice": (
        lambda b, t: b.aiGraphcore.slice(t, [3, -1], [1, 0], [1, 2]),
        [X],
        lambda x: x[:, 1:3, :-1],
        (0,),
    ),
    "sort": (
        lambda b, t: b.aiGraphcore.sort(t, 1, 1)[0], [X], lambda x: -np.sort(-x, axis=1), (0,)
    ),
    "swish": (lambda b, t: b.aiGraphcore.swish(t), [X], lambda x: x / (1 + np.exp(-x)), (0,)),
}  # fmt: skip


@pytest.mark.parametrize("operator", CASES)
def test_values_are_those_of_numpy_and_gradients_those_of_differences(operator: str) -> None:
    build, arrays, value, trained = CASES[operator]
    y, *gradients = run(build, arrays, trained=trained)
    np.testing.assert_allclose(y, value(*arrays), rtol=1e-5, atol=1e-6)
    for place, gradient in zip(trained, gradients, strict=True):
        expected = by_differences(value, arrays, place)
        np.testing.assert_allclose(gradient, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("right", [False, True])
def test_buckets_are_those_of_searchsorted(right: bool) -> None:
    x, bounds = floats(3, 5).round(1), np.array([-1.0, -0.2, 0.0, 0.3], np.float32)
    x[0] = [-1.0, 0.3, 0.0, np.inf, -np.inf]
    (y,) = run(lambda b, t: b.aiGraphcore.bucketize(t, right=int(right)), [x, bounds])
    expected = np.searchsorted(bounds, x, side="right" if right else "left")
    assert y.dtype == np.int32
    assert y.tolist() == expected.tolist()


def test_places_of_a_median_count_among_what_is_reduced() -> None:
    x = np.arange(15, dtype=np.int32).reshape(3, 5)[::-1].copy()
    _, places = run(lambda b, t: b.aiGraphcore.reducemedian(t), [x])
    assert places.shape == (1, 1)
    assert x.reshape(-1)[places[0, 0]] == 7


def test_stable_places_of_a_sort_keep_the_order_of_equals() -> None:
    x = np.array([2, 1, 2, 1], np.float32)
    y, places = run(lambda b, t: b.aiGraphcore.sort(t, stable=1), [x])
    assert (y.tolist(), places.tolist()) == ([1, 1, 2, 2], [1, 3, 0, 2])


def test_increments_keep_the_sign_of_the_sum() -> None:
    x = np.array([5, -5, 10, 1], np.int32)
    (y,) = run(lambda b, t: b.aiGraphcore.incrementmod(t, 3, 4), [x])
    assert y.tolist() == np.fmod(x + 3, 4).tolist()


def test_images_are_normalised_and_have_a_fourth_channel() -> None:
    x, offsets, scales = floats(2, 2, 3), floats(3), floats(3)
    (y,) = run(lambda b, t: b.aiGraphcore.normalize_image(t, 0.5), [x, offsets, scales])
    np.testing.assert_allclose(y[..., :3], (x * 0.5 - offsets) * scales, rtol=1e-5, atol=1e-6)
    assert not y[..., 3].any()


def test_several_convolutions_have_settings_of_their_own() -> None:
    x, w, z, v, bias = floats(1, 2, 5), floats(3, 2, 2), floats(1, 1, 4), floats(2, 1, 3), floats(2)

    def build(b: popart.Builder, t: Sequence[str]) -> Any:
        return b.aiGraphcore.multiconv(
            [[t[0], t[1]], list(t[2:])], strides=[[2], [1]], pads=[[0, 0], [1, 1]]
        )

    first, second = run(build, [x, w, z, v, bias])
    expected = [np.tensordot(w, x[0, :, n : n + 2], ([1, 2], [0, 1])) for n in (0, 2)]
    np.testing.assert_allclose(first[0], np.stack(expected, axis=1), rtol=1e-4, atol=1e-5)
    around = np.pad(z[0, 0], 1)
    rows = [[np.dot(k[0], around[n : n + 3]) for n in range(4)] for k in v]
    np.testing.assert_allclose(second[0], rows + bias[:, None], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "dilations", "text"),
    [
        ([["x", "w"]], [[1, 1], [2, 2]], r"sets \(2\) does not match the number of input sets"),
        ([["x"], ["x", "w"]], None, "at least two inputs - data and weights"),
        ([["x", "w", "x", "w"]], None, "at most three inputs - data, weights, and bias"),
    ],
)
def test_settings_that_fit_no_convolutions_are_refused(
    inputs: list[list[str]], dilations: Any, text: str
) -> None:
    settings = {} if dilations is None else {"dilations": dilations}
    with pytest.raises(popart.popart_exception, match=text):
        popart.Builder().aiGraphcore.multiconv(inputs, **settings)


def test_convolutions_of_one_node_have_dimensions_of_their_own() -> None:
    x, w, z, v = floats(1, 1, 4), floats(1, 1, 2), floats(1, 1, 3, 3), floats(1, 1, 1, 1)
    build: Build = lambda b, t: b.aiGraphcore.multiconv(  # noqa: E731
        [[t[0], t[1]], [t[2], t[3]]], dilations=[[2], [1, 1]]
    )
    first, second = run(build, [x, w, z, v])
    expected = x[0, 0, :2] * w[0, 0, 0] + x[0, 0, 2:] * w[0, 0, 1]
    np.testing.assert_allclose(first[0, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(second, z * v, rtol=1e-5)


def test_a_shaped_dropout_drops_whole_rows_forward_and_back() -> None:
    x = np.ones((6, 8), np.float32)
    build: Build = lambda b, t: b.aiGraphcore.shapeddropout(t, [6, 1], 0.5)  # noqa: E731
    y, gradient = run(build, [x], trained=[0])
    assert set(np.unique(y)) <= {0.0, 2.0}
    assert (y == y[:, :1]).all()
    assert (gradient == y).all()
    assert (run(build, [x])[0] == x).all()  # without training


def test_a_weight_takes_what_is_copied_into_it() -> None:
    builder = popart.Builder()
    count = builder.addInitializedInputTensor(np.zeros(1, np.float32))
    one = builder.aiOnnx.constant(np.ones(1, np.float32))
    y = builder.aiGraphcore.copyvarupdate([count, builder.aiOnnx.add([count, one])])
    builder.addOutputTensor(y)
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(3, [y]), tiny())
    session.prepareDevice()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, out))
    assert out[y].reshape(-1).tolist() == [1, 2, 3]


def test_a_tensor_is_made_of_zeros() -> None:
    builder = popart.Builder()
    y = builder.aiGraphcore.init([2, 3], popart.DataType.FLOAT16, popart.InitType.Zero, "made")
    assert builder.getTensorShape(y) == [2, 3]
    assert builder.getTensorDtypeString(y) == "float16"


def ways(rows: Array, labels: Sequence[int]) -> float:
    """Return the probability of labels by going through all sequences of classes; 0 is blank."""
    total = 0.0
    for path in product(range(rows.shape[1]), repeat=len(rows)):
        joined = [c for n, c in enumerate(path) if n == 0 or c != path[n - 1]]
        if [c for c in joined if c] == list(labels):
            total += float(np.exp(sum(rows[step, c] for step, c in enumerate(path))))
    return total


TIMES, LENGTHS = np.array([4, 3], np.uint32), np.array([2, 1], np.uint32)
LABELS = np.array([[1, 1], [2, 1]], np.uint32)


def ctc(rows: Array, *_: Array) -> Array:
    return np.array([
        -np.log(ways(rows[: TIMES[n], n], LABELS[n, : LENGTHS[n]].tolist())) for n in (0, 1)
    ])  # fmt: skip


def test_ctc_losses_are_those_of_all_paths_and_gradients_those_of_differences() -> None:
    logits = floats(4, 2, 3)
    rows = (logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))).astype(np.float32)
    arrays = [rows, LABELS, TIMES, LENGTHS]
    none = popart.ReductionType.NoReduction
    y, gradient = run(lambda b, t: b.aiGraphcore.ctcloss(t, none), arrays, trained=[0])
    np.testing.assert_allclose(y, ctc(rows), rtol=1e-5)
    np.testing.assert_allclose(gradient, by_differences(ctc, arrays, 0), rtol=1e-3, atol=1e-5)


def test_ctc_losses_of_too_few_steps_are_infinite_unless_zero_is_asked_for() -> None:
    rows = np.log(np.full((2, 1, 3), 1 / 3, np.float32))
    whole = [np.array([n], np.uint32) for n in (2, 2)]
    arrays = [rows, np.array([[1, 1]], np.uint32), *whole]
    for zero, expected in ((False, np.inf), (True, 0.0)):
        (y,) = run(lambda b, t, z=zero: b.aiGraphcore.ctcloss(t, zeroInfinity=z), arrays)
        assert y == expected


def test_a_graph_is_called_with_tensors_of_its_own_and_of_the_graph_around() -> None:
    builder = popart.Builder()
    x, y, w = (builder.addInputTensor(popart.TensorInfo("FLOAT", [3])) for _ in "xyw")
    callee = builder.createSubgraphBuilder()
    inner = callee.addUntypedInputTensor()
    callee.addInputTensorFromParentGraph(w)
    callee.addOutputTensor(callee.aiOnnx.mul([inner, w]))
    (first,) = builder.aiGraphcore.call([x], 1, callee)
    (second,) = builder.aiGraphcore.call([builder.aiOnnx.add([first, y])], 1, callee)
    arrays = {x: floats(3), y: floats(3), w: floats(3)}
    session = popart.InferenceSession(builder.getModelProto(), popart.DataFlow(1, [second]), tiny())
    session.prepareDevice()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO(arrays, out))
    expected = (arrays[x] * arrays[w] + arrays[y]) * arrays[w]
    np.testing.assert_allclose(out[second], expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [[], [2, 2]])
def test_of_a_half_and_a_float_one_has_to_be_a_single_number(shape: list[int]) -> None:
    builder = popart.Builder()
    half, wide = popart.TensorInfo("FLOAT16", [2, 2]), popart.TensorInfo("FLOAT", shape)
    x, y = (builder.addInputTensor(info) for info in (wide, half))
    made = builder.aiOnnx.mul([x, y])
    if not shape:
        assert builder.getTensorDtypeString(made) == "float16"
    else:
        with pytest.raises(popart.popart_exception, match="do not fit"):
            builder.getTensorShape(made)


def test_older_operator_sets_compare_floats_and_expand_to_sizes_of_32_bits() -> None:
    x = floats(3)
    (same,) = run(lambda b, t: b.aiOnnx.equal([t[0], t[0]]), [x])
    assert same.all()
    sizes = np.array([2, 3], np.int32)
    (wide,) = run(lambda b, t: b.aiOnnx.expand([t[0], b.aiOnnx.constant(sizes)]), [x])
    assert wide.tolist() == [x.tolist()] * 2


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("domain", ["aiOnnx", "aiGraphcore"])
def test_a_batch_norm_gives_its_statistics_in_older_operator_sets(
    trained: bool, domain: str
) -> None:
    x, scale, bias, mean, variance = floats(4, 3, 2), *(floats(3) for _ in "sbm"), floats(3) ** 2

    def build(b: popart.Builder, t: Sequence[str]) -> Any:
        return getattr(b, domain).batchnormalization(list(t), 5, epsilon=1e-3, momentum=0.75)

    arrays = [x, scale, bias, mean, variance]
    y, *found = run(build, arrays, trained=[1] if trained else [])
    own, spread = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    counted = spread * (8 / 7 if domain == "aiGraphcore" else 1)  # of 8 elements, without bias
    running = [0.75 * mean + 0.25 * own, 0.75 * variance + 0.25 * counted, own, counted]
    # In an inference, too: a norm that gives statistics is in training (PopART, BatchNormOp).
    for made, wanted in zip(found, running, strict=False):
        np.testing.assert_allclose(made, wanted, rtol=1e-3, atol=1e-5)
    white = (x - own[:, None]) / np.sqrt(spread + 1e-3)[:, None]
    np.testing.assert_allclose(y, white * scale[:, None] + bias[:, None], rtol=1e-3, atol=1e-4)


def texts(probs: Array, blank: int) -> dict[tuple[int, ...], float]:
    """Return the probability of each text, over all paths [steps, classes]."""
    found: dict[tuple[int, ...], float] = {}
    for path in product(range(probs.shape[1]), repeat=len(probs)):
        text = tuple(symbol for symbol, _ in groupby(path) if symbol != blank)
        weight = float(np.prod([row[symbol] for row, symbol in zip(probs, path, strict=True)]))
        found[text] = found.get(text, 0.0) + weight
    return found


@pytest.mark.parametrize("blank", [0, 2])
def test_a_beam_search_decodes_the_likeliest_texts(blank: int) -> None:
    # With as many beams as there are texts nothing is lost, so that all paths tell.
    probs = RANDOM.dirichlet(np.ones(3), size=(4, 2))  # [steps, batch, classes]
    arrays = [np.log(probs).astype(np.float32), np.uint32([4, 3])]
    scores, lengths, labels = run(
        lambda b, t: b.aiGraphcore.ctcbeamsearchdecoder(t, blank, 40, 2), arrays
    )
    for sample, steps in enumerate((4, 3)):
        expected = sorted(texts(probs[:steps, sample], blank).items(), key=lambda one: -one[1])[:2]
        for place, (text, probability) in enumerate(expected):
            length = int(lengths[sample, place])
            assert tuple(labels[sample, place, :length].tolist()) == text
            np.testing.assert_allclose(scores[sample, place], np.log(probability), rtol=1e-5)
