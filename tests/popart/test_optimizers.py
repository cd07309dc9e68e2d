"""Optimisers change weights as their published formulas do in NumPy, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, tiny

from pva.analysis.memory.placement import largest_variables
from pva.analysis.operations.costs import operation_costs
from pva.report import openReport
from simulator import popart
from simulator.graph.types import Array

RANDOM = np.random.default_rng(11)
W, B = RANDOM.normal(size=(3, 4)).astype(np.float32), RANDOM.normal(size=4).astype(np.float32)
XS = RANDOM.normal(size=(6, 2, 3)).astype(np.float32)
NODES = [node("MatMul", "x w", "h"), node("Add", "h b", "y"), node("Mul", "y y", "z")]
PROTO = model(NODES, {"x": [2, 3]}, ["z"], {"w": W, "b": B})
Rule = Callable[[Array, Array, dict[str, Any], int], Array]


def session_of(optimizer: popart.Optimizer, proto: Any = PROTO, **options: Any) -> Any:
    """Prepare a session that trains z = (x w + b)^2 to be small."""
    replicas = options.get("replicatedGraphCount", 1)
    session = popart.TrainingSession(
        proto, popart.DataFlow(1, []), popart.IdentityLoss("z", "loss"), optimizer, tiny(replicas),
        userOptions=popart.SessionOptions(**options),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def trained(session: Any, xs: Array = XS) -> dict[str, Array]:
    """Run a batch of each; give the weights."""
    for x in xs:
        session.run(popart.PyStepIO({"x": x}, {}))
    session.weightsToHost()
    found = {"w": np.zeros_like(W), "b": np.zeros_like(B)}
    session.readWeights(found)
    return found


def by_hand(rule: Rule, xs: Array = XS, clip: float = 0.0) -> dict[str, Array]:
    """Train in NumPy by a rule that gives a weight from itself, its gradient, what it keeps."""
    weights = {"w": W.astype(float), "b": B.astype(float)}
    kept: dict[str, dict[str, Any]] = {"w": {}, "b": {}}
    for number, x in enumerate(xs, 1):
        reached = 2 * (x @ weights["w"] + weights["b"])
        grads = {"w": np.swapaxes(x, -1, -2) @ reached, "b": reached.sum(axis=-2)}
        if x.ndim == 3:  # several micro-batches
            grads = {name: grad.sum(axis=0) for name, grad in grads.items()}
        norm = np.sqrt(sum((grad**2).sum() for grad in grads.values()))
        share = min(1.0, clip / norm) if clip else 1.0
        for name, grad in grads.items():
            weights[name] = rule(weights[name], grad * share, kept[name], number)
    return weights


def assert_alike(found: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=2e-4, atol=2e-5)


def sgd(
    rate: float, momentum: float = 0, dampening: float = 0, decay: float = 0, nesterov: bool = False
) -> Rule:
    """Return the rule of torch.optim.SGD, whose velocity begins with zeros here."""

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        g = g + decay * w
        v = kept["v"] = momentum * kept.get("v", 0) + (1 - dampening) * g
        return w - rate * (g + momentum * v if nesterov else v)

    return rule


SEPARATE = popart.SGDAccumulatorAndMomentum.Separate
MOMENTUM = {"defaultLearningRate": (0.01, False), "defaultMomentum": (0.7, True),
            "defaultDampening": (0.2, True), "defaultWeightDecay": (0.1, True),
            "defaultVelocityScaling": (4.0, True), "lossScaling": (8.0, True)}  # fmt: skip
MODES = list(popart.SGDAccumulatorAndMomentum)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_descent_has_momentum_dampening_and_decay_whatever_is_scaled(
    mode: popart.SGDAccumulatorAndMomentum, constant: bool
) -> None:
    values = {key: (value[0], constant) for key, value in MOMENTUM.items()}
    optimizer = popart.SGD(values, accumulatorAndMomentum=mode)
    assert_alike(trained(session_of(optimizer)), by_hand(sgd(0.01, 0.7, 0.2, 0.1)))


def test_numbers_of_numpy_are_numbers() -> None:
    found = trained(session_of(popart.SGD({"defaultLearningRate": (np.float32(0.01), False)})))
    assert_alike(found, by_hand(sgd(0.01)))


def test_nesterov_looks_ahead() -> None:
    values = {"defaultLearningRate": (0.01, True), "defaultMomentum": (0.9, True),
              "nesterov": (1.0, True), "defaultWeightDecay": (0.1, True)}  # fmt: skip
    expected = by_hand(sgd(0.01, 0.9, 0, 0.1, nesterov=True))
    assert_alike(trained(session_of(popart.SGD(values))), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("factor", "replicas", "reduction"), [(3, 1, "Sum"), (1, 2, "Mean"), (3, 2, "Mean")]
)
def test_momentum_is_of_the_gradient_of_all_micro_batches_and_replicas(
    mode: popart.SGDAccumulatorAndMomentum, factor: int, replicas: int, reduction: str
) -> None:
    options = {
        "enableGradientAccumulation": factor > 1, "accumulationFactor": factor,
        "enableReplicatedGraphs": replicas > 1, "replicatedGraphCount": replicas,
        "accumulationAndReplicationReductionType": reduction,
    }  # fmt: skip
    optimizer = popart.SGD(MOMENTUM, accumulatorAndMomentum=mode)
    xs = RANDOM.normal(size=(3, factor * replicas, 2, 3)).astype(np.float32)
    found = trained(session_of(optimizer, **options), xs)
    share = 1 / (factor * replicas) if reduction == "Mean" else 1.0
    rule = sgd(0.01, 0.7, 0.2, 0.1)
    assert_alike(found, by_hand(lambda w, g, kept, t: rule(w, share * g, kept, t), xs))


def test_weights_can_have_values_of_their_own() -> None:
    optimizer = popart.SGD({"defaultLearningRate": (0.01, False)})
    optimizer.insertSpecific("b", {"learningRate": (0.03, False), "momentum": (0.5, True)})
    found = trained(session_of(optimizer))

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        return (sgd(0.03, 0.5) if w.ndim == 1 else sgd(0.01))(w, g, kept, t)

    assert_alike(found, by_hand(rule))


def test_values_that_are_not_constant_change_between_steps() -> None:
    def values(rate: float, own: float) -> popart.SGD:
        made = popart.SGD(
            {"defaultLearningRate": (rate, False), "lossScaling": (rate * 100, False)}
        )
        made.insertSpecific("b", {"learningRate": (own, False)})
        return made

    session = session_of(values(0.01, 0.02))
    trained(session, XS[:2])
    session.updateOptimizerFromHost(values(0.03, 0.005))
    found = trained(session, XS[2:])

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        first, then = (0.02, 0.005) if w.ndim == 1 else (0.01, 0.03)
        return w - (first if t <= 2 else then) * g

    assert_alike(found, by_hand(rule))


def adam(mode: str, decay: float, *, added: bool) -> Rule:
    """Return the rules of Kingma and Ba, Loshchilov and Hutter, and You and others."""
    rate, b1, b2, eps = 0.05, 0.7, 0.8, 1e-3

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        g = g + decay * w if added else g
        m = kept["m"] = b1 * kept.get("m", 0) + (1 - b1) * g
        if mode == "AdaMax":
            u = kept["u"] = np.maximum(b2 * kept.get("u", 0), np.abs(g))
            x = m / (1 - b1**t) / (u + eps)
        else:
            v = kept["v"] = b2 * kept.get("v", 0) + (1 - b2) * g * g
            if not mode.endswith("NoBias"):
                m, v = m / (1 - b1**t), v / (1 - b2**t)
            x = m / (np.sqrt(v) + eps)
        x = x if added else x + decay * w
        trust = min(np.sqrt((w**2).sum()), 1.5) / np.sqrt((x**2).sum())
        return w - rate * (trust if mode.startswith("Lamb") else 1) * x

    return rule


ADAM = {"defaultLearningRate": (0.05, False), "defaultBeta1": (0.7, True),
        "defaultBeta2": (0.8, False), "defaultEps": (1e-3, True), "lossScaling": (4.0, False),
        "defaultWeightDecay": (0.1, True), "defaultMaxWeightNorm": (1.5, True)}  # fmt: skip


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("mode", list(popart.AdamMode))
def test_adam_and_its_kin_are_those_of_their_papers(
    mode: popart.AdamMode, added: bool, scaled: bool
) -> None:
    decay = "L2Regularization" if added else "Decay"
    optimizer = popart.Adam(
        ADAM, mode, popart.WeightDecayMode(decay), scaled_optimizer_state=scaled
    )
    assert_alike(trained(session_of(optimizer)), by_hand(adam(mode.value, 0.1, added=added)))


def adaptive(mode: str, momentum: float, *, added: bool) -> Rule:
    """Return the rules of torch.optim's Adagrad, RMSprop and Adadelta."""
    rate, alpha, eps, decay = 0.05, 0.8, 1e-3, 0.1

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        g = g + decay * w if added else g
        before = kept.get("s", 0)
        s = before + g * g if mode == "AdaGrad" else alpha * before + (1 - alpha) * g * g
        kept["s"] = s
        if mode == "CenteredRMSProp":
            mean = kept["g"] = alpha * kept.get("g", 0) + (1 - alpha) * g
            s = s - mean**2
        if mode == "AdaDelta":
            x = g * np.sqrt(kept.get("d", 0) + eps) / np.sqrt(s + eps)
            kept["d"] = alpha * kept.get("d", 0) + (1 - alpha) * x * x
        else:
            x = g / (np.sqrt(s) + eps)
        x = kept["x"] = momentum * kept.get("x", 0) + x
        return w - rate * (x if added else x + decay * w)

    return rule


@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("mode", list(popart.AdaptiveMode))
def test_adaptive_optimisers_are_those_of_torch(
    mode: popart.AdaptiveMode, added: bool, momentum: float
) -> None:
    values = {"defaultLearningRate": (0.05, False), "defaultAlpha": (0.8, True),
              "defaultMomentum": (momentum, True), "defaultEps": (1e-3, True),
              "defaultWeightDecay": (0.1, True), "lossScaling": (2.0, True)}  # fmt: skip
    decay = popart.WeightDecayMode("L2Regularization" if added else "Decay")
    found = trained(session_of(popart.Adaptive(values, mode, decay)))
    assert_alike(found, by_hand(adaptive(mode.value, momentum, added=added)))


def test_rms_prop_of_tensorflow_has_the_rate_in_its_momentum() -> None:
    values = {"defaultLearningRate": (0.05, False), "defaultAlpha": (0.8, True),
              "defaultMomentum": (0.6, True), "defaultEps": (1e-3, True)}  # fmt: skip
    found = trained(session_of(popart.Adaptive(values, rmsprop_tf_variant=True)))

    def rule(w: Array, g: Array, kept: dict[str, Any], t: int) -> Array:
        s = kept["s"] = 0.8 * kept.get("s", 1) + 0.2 * g * g
        x = kept["x"] = 0.6 * kept.get("x", 0) + 0.05 * g / np.sqrt(s + 1e-3)
        return w - x

    assert_alike(found, by_hand(rule))


@pytest.mark.parametrize("factor", [1, 2])
def test_the_norm_of_gradients_is_clipped_whatever_the_loss_scaling(factor: int) -> None:
    clips = [popart.ClipNormSettings.clipAllWeights(3.0)]
    values = {"defaultLearningRate": (0.1, False), "lossScaling": (16.0, False)}
    options = {"enableGradientAccumulation": factor > 1, "accumulationFactor": factor}
    session = session_of(popart.SGD(values, clip_norm_settings=clips), **options)
    xs = RANDOM.normal(size=(4, factor, 2, 3)).astype(np.float32)
    assert_alike(trained(session, xs), by_hand(sgd(0.1), xs, clip=3.0))


@pytest.mark.parametrize(
    ("optimizer", "kept"),
    [
        (popart.SGD(0.1), {}),
        (popart.SGD(MOMENTUM), {"Accl___w": 48, "Accl___b": 16}),
        (popart.Adam(ADAM), {"Accl1___w": 48, "Accl2___w": 48, "Step___w": 4,
                             "Accl1___b": 16, "Accl2___b": 16, "Step___b": 4}),
        (popart.Adam(ADAM, accl1_type="FLOAT16"), {"Accl1___w": 24, "Accl1___b": 8,
                                                   "Accl2___w": 48, "Accl2___b": 16,
                                                   "Step___w": 4, "Step___b": 4}),
    ],
)  # fmt: skip
def test_the_report_has_what_an_optimiser_keeps_of_each_weight(
    optimizer: popart.Optimizer, kept: dict[str, int], tmp_path: Path
) -> None:
    engine = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    trained(session_of(optimizer, engineOptions=engine), XS[:1])
    report = openReport(tmp_path / "training")
    sizes = largest_variables(report).set_index("name")["bytes"]
    assert sizes[sizes.index.str.match("Accl|Step")].to_dict() == kept
    costs = operation_costs(report).set_index("operation")
    assert costs.loc["w", "kind"] == type(optimizer).__name__ and costs.loc["w", "cycles"] > 0


def test_training_goes_on_with_what_the_model_has_of_the_optimiser(tmp_path: Path) -> None:
    first = session_of(popart.Adam(ADAM))
    trained(first, XS[:3])
    first.modelToHost(tmp_path / "half.onnx")
    stored = onnx.load(tmp_path / "half.onnx").graph.initializer
    assert {t.name for t in stored} >= {"w", "b", "Accl1___w", "Accl2___b", "Step___w"}
    second = session_of(popart.Adam(ADAM), tmp_path / "half.onnx")
    expected = by_hand(adam("Adam", 0.1, added=False))
    assert_alike(trained(second, XS[3:]), expected)
    third = session_of(popart.Adam(ADAM))
    third.resetHostWeights(tmp_path / "half.onnx")
    third.weightsFromHost()
    assert_alike(trained(third, XS[3:]), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["SGD", "Adam", "Lamb"])
def test_weights_of_halves_are_trained(kind: str, mode: popart.SGDAccumulatorAndMomentum) -> None:
    nodes, data = [node("Mul", "x w", "y"), node("Mul", "y y", "z")], RANDOM.normal(size=(2, 8))
    proto = model(nodes, {"x": [8]}, ["z"], {"w": np.float16(data[0])})
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    optimizer = popart.SGD(MOMENTUM, accumulatorAndMomentum=mode)
    rule = sgd(0.01, 0.7, 0.2, 0.1)
    if kind != "SGD":
        optimizer = popart.Adam(ADAM, popart.AdamMode(kind))
        rule = adam(kind, 0.1, added=False)
    session = session_of(optimizer, proto)
    expected, kept, x = data[0], {}, np.float16(data[1])
    for t in range(1, 5):
        session.run(popart.PyStepIO({"x": x}, {}))
        expected = rule(expected, 2 * x * x * expected, kept, t)
    session.weightsToHost()
    found = {"w": np.zeros(8, np.float16)}
    session.readWeights(found)
    np.testing.assert_allclose(found["w"], expected, rtol=5e-3, atol=3e-3)


def test_a_pipeline_keeps_momentum_on_the_ipu_of_each_weight() -> None:
    options = popart.SessionOptions(
        enablePipelining=True, enableGradientAccumulation=True, accumulationFactor=4
    )
    proto = onnx.ModelProto()
    proto.CopyFrom(PROTO)
    for place, proto_node in enumerate(proto.graph.node):
        proto_node.attribute.append(onnx.helper.make_attribute("__ipu_number", int(place > 0)))
    clips = [popart.ClipNormSettings.clipWeights(["w", "b"], 5.0)]
    session = popart.TrainingSession(
        proto, popart.DataFlow(2, []), popart.IdentityLoss("z", "loss"),
        popart.SGD(MOMENTUM, clips), tiny(2), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    xs = RANDOM.normal(size=(2, 4, 2, 3)).astype(np.float32)
    assert_alike(trained(session, [xs]), by_hand(sgd(0.01, 0.7, 0.2, 0.1), xs, clip=5.0))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: popart.SGD({"learningRate": 0.1}), "SGD: no parameter 'learningRate'; known are "),
        (
            lambda: popart.SGD({"defaultLearningRate": -1.0}),
            "defaultLearningRate is -1.0; at least",
        ),
        (lambda: popart.Adam({"defaultEps": (0, True)}), "defaultEps is 0.0; more than 0 is"),
        (lambda: popart.Adam(0.1), "Adam: 0.1; a dictionary of parameters is needed"),
        (lambda: popart.Adam({}, "Adam"), "an AdamMode and a WeightDecayMode are needed"),
        (lambda: popart.Adam({}, accl1_type="INT32"), "keeps FLOAT or FLOAT16, not 'INT32'"),
        (lambda: popart.SGD({}).insertSpecific("w", {"rate": 1}), "no parameter 'rate'; known"),
        (lambda: popart.ClipNormSettings(["w"], 0), "maxNorm is 0; more than 0 is needed"),
        (
            lambda: popart.SGD({"nesterov": (1, True), "defaultDampening": (0.1, True)}),
            "dampening has to be 0 with nesterov",
        ),
        (
            lambda: session_of(popart.SGD({}, [popart.ClipNormSettings(["v"], 1)])),
            "SGD: 'v' is no weight",
        ),
    ],
)
def test_what_an_optimiser_cannot_be_is_said(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        call()


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (popart.Adam({}), "Adam cannot take the place of SGD"),
        (popart.SGD({**MOMENTUM, "defaultMomentum": (0.1, True)}), "defaultMomentum is part of"),
        (popart.SGD({"defaultLearningRate": (1, True)}), "defaultLearningRate is part of the prog"),
        (popart.SGD(MOMENTUM, accl1Type="FLOAT16"), "modes, types and clip norms of SGD are part"),
    ],
)
def test_what_is_part_of_the_program_cannot_be_updated(other: popart.Optimizer, text: str) -> None:
    with pytest.raises(popart.popart_exception, match=f"updateOptimizer: {text}"):
        session_of(popart.SGD(MOMENTUM)).updateOptimizer(other)


def test_the_first_step_of_adam_is_as_long_as_the_rate() -> None:
    # 1 - beta^1 takes out 1 - beta, both in floats: what is left is g / |g|.
    session = session_of(
        popart.Adam({"defaultLearningRate": (0.1, True), "defaultEps": (1e-12, True)})
    )
    moved = trained(session, XS[:1])["w"].astype(np.float64) - W
    np.testing.assert_allclose(np.abs(moved), 0.1, rtol=2e-6)


@pytest.mark.parametrize(
    ("optimizer", "types", "kept"),
    [
        (popart.SGD(0.1), ["SGD0VarUpdate"], set()),
        (popart.SGD(MOMENTUM), ["Accumulate", "SGD1AcclUpdate", "SGD1VarUpdate"],
         {"Accl___w", "AcclIntoUpdate___w"}),
        (popart.SGD(MOMENTUM, accumulatorAndMomentum=SEPARATE), ["Accumulate", "SGD2VarUpdate"],
         {"Accl1___w"}),
        (popart.SGD({}, [popart.ClipNormSettings.clipAllWeights(1.0)]),
         ["ReduceSumSquare", "SGD0VarUpdate"], set()),
        (popart.Adam({}), ["Accumulate"] * 3 + ["AdamVarUpdate"],
         {"Accl1___w", "Accl2___w", "Step___w"}),
    ],
)  # fmt: skip
def test_the_changes_of_a_weight_are_among_the_nodes(
    optimizer: popart.Optimizer, types: list[str], kept: set[str]
) -> None:
    nodes = next(iter(json.loads(session_of(optimizer)._serializeIr()).values()))
    of_weight = [node for node in nodes if node["name"].startswith("w/")]
    assert [node["type"] for node in of_weight] == types
    assert kept <= {end["name"] for node in of_weight for end in node["inputs"]}
