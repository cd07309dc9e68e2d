"""The network of the user guide's profile sample: one batch of training, on data of its shape.

784 -> fully connected 30 -> sigmoid -> fully connected 10 -> sigmoid -> sum-squared loss, float,
batches of 16. The names are those of the sample: Layer1 to Layer5, with Fwd, Bwd and Wu (weight
update). The images are noise: nothing in the profile depends on their values.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from simulator import poplar, poplin, popnn, popops, poprand, poputil
from simulator.examples.application import describe_application
from simulator.graph.types import Array

Floats = npt.NDArray[np.float32]

PIXELS, HIDDEN, CLASSES = 784, 30, 10
BATCH = 16
LEARNING_RATE = 0.3
SEED = 1
INITIALISE, TRAIN = 0, 1  # the engine's programs
WORKER_STACK = 512  # bytes, as the printed report has them
SIGMOID = popnn.NonLinearityType.SIGMOID


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Images as [image][pixel] from 0 to 1, and their labels."""

    images: Floats
    labels: Array


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The loss of each image, how many were named rightly, the new weights by their handles."""

    losses: Floats
    correct: int
    weights: dict[str, Floats]
    report: Path | None


@dataclass(frozen=True, slots=True)
class Layer:
    """A fully connected layer on the device: weights [outputs, inputs] and biases."""

    name: str
    weights: poplar.Tensor
    biases: poplar.Tensor


def draw_batch() -> Batch:
    """Draw images and labels by a fixed seed."""
    generator = np.random.default_rng(SEED)
    images = generator.random((BATCH, PIXELS), np.float32)
    return Batch(images, generator.integers(0, CLASSES, BATCH).astype(np.uint32))


def initial_weights() -> dict[str, Floats]:
    """Draw the weights (Glorot's uniform range) by a fixed seed; biases start at zero."""
    generator = np.random.default_rng(SEED + 1)
    values = {}
    for name, outputs, inputs in (("Layer1", HIDDEN, PIXELS), ("Layer3", CLASSES, HIDDEN)):
        limit = np.sqrt(6 / (inputs + outputs))
        values[f"{name}/weights"] = generator.uniform(-limit, limit, (outputs, inputs))
        values[f"{name}/biases"] = np.zeros(outputs)
    return {handle: value.astype(np.float32) for handle, value in values.items()}


def _for(part: str) -> dict[str, object]:
    """Return the planner which part of the training of a fully connected layer a product is.

    Until May 2019 PopLibs planned the passes of every such layer together. Later a plan for each is
    taken where it is cheaper, so that the sample's plans have to be asked for.
    """
    return {"fullyConnectedPass": part, "planConstraints": {"isJointPlan": True}}


def _add_layer(graph: poplar.Graph, name: str, outputs: int, inputs: int) -> Layer:
    """Add a layer's weights, laid out for the forward product, and its biases."""
    kind, shapes = poplar.FLOAT, ((BATCH, inputs), (inputs, outputs))
    what = f"{name}/Fwd/weights"
    made = poplin.createMatMulInputRHS(graph, kind, kind, *shapes, what, _for("TRAINING_FWD"))
    weights = made.transpose()
    biases = graph.addVariable(kind, [outputs], f"{name}/Fwd/biases")
    poputil.mapTensorLinearly(graph, biases)
    for word, tensor in (("weights", weights), ("biases", biases)):
        graph.createHostWrite(f"{name}/{word}", tensor)
        graph.createHostRead(f"{name}/{word}/new", tensor)
    return Layer(name, weights, biases)


def _forward(
    graph: poplar.Graph, layer: Layer, inputs: poplar.Tensor, prog: poplar.program.Sequence
) -> poplar.Tensor:
    """Return inputs * weights + biases."""
    context = f"{layer.name}/Fwd"
    weights, options = layer.weights.transpose(), _for("TRAINING_FWD")
    out = poplin.matMul(graph, inputs, weights, prog, None, context, options)
    biases = layer.biases.expand([0]).broadcast(BATCH, 0)
    popops.scaledAddTo(graph, out, biases, 1.0, prog, context)
    return out


def _update(
    graph: poplar.Graph,
    layer: Layer,
    inputs: poplar.Tensor,
    deltas: poplar.Tensor,
    prog: poplar.program.Sequence,
) -> None:
    """Step down the gradient of a layer's weights and biases."""
    context = f"{layer.name}/Wu"
    product = (inputs.transpose(), deltas)
    options = _for("TRAINING_WU")
    weights = layer.weights.transpose()
    poplin.matMulAcc(graph, weights, -LEARNING_RATE, *product, prog, context, options)
    step = popops.ReduceParams(popops.Operation.ADD, True, -LEARNING_RATE)
    popops.reduceWithOutput(graph, deltas, layer.biases, [0], step, prog, context)


def _add_inputs(graph: poplar.Graph, train: poplar.program.Sequence) -> dict[str, poplar.Tensor]:
    """Add what the host sends: a number, then a batch with its number.

    One stream carries the whole batch. What the sample's two other words hold is not told: here,
    how far the training is. As they are of one variable, the copy of the epoch stays apart, as
    there.
    """
    kind, shapes = poplar.FLOAT, ((BATCH, PIXELS), (PIXELS, HIDDEN))
    options = _for("TRAINING_FWD")
    images = poplin.createMatMulInputLHS(graph, kind, kind, *shapes, "images", options)
    tensors = {"images": images}
    for name, size in (("labels", BATCH), ("progress", 2), ("numCorrect", 1)):
        tensors[name] = graph.addVariable(poplar.UNSIGNED_INT, [size], name)
        graph.setTileMapping(tensors[name], 0)
    graph.createHostWrite("numCorrect", tensors["numCorrect"])
    graph.createHostRead("numCorrect/new", tensors["numCorrect"])
    epoch = graph.addHostToDeviceFIFO("epoch", poplar.UNSIGNED_INT, 1)
    train.add(poplar.program.Copy(epoch, tensors["progress"][:1]))
    parts = [part.reinterpret(kind) for part in (tensors["labels"], tensors["progress"][1:])]
    whole = poplar.concat([images.flatten(), *parts])
    batch = graph.addHostToDeviceFIFO("batch", kind, whole.numElements())
    train.add(poplar.program.Copy(batch, whole))
    return tensors


def build(graph: poplar.Graph) -> list[poplar.program.Sequence]:
    """Add the network; give the programs: seed the generators, train one batch."""
    sequence = poplar.program.Sequence
    initialise, train = sequence(name="init"), sequence(name="train")
    seed = graph.addVariable(poplar.UNSIGNED_INT, [2])  # unnamed, as in the sample
    graph.setTileMapping(seed, 0)
    graph.createHostWrite("seed", seed)
    poprand.setSeed(graph, seed, 0, initialise, "init")

    inputs = _add_inputs(graph, train)
    first = _add_layer(graph, "Layer1", HIDDEN, PIXELS)
    third = _add_layer(graph, "Layer3", CLASSES, HIDDEN)
    sums1 = _forward(graph, first, inputs["images"], train)
    hidden = popnn.nonLinearity(graph, SIGMOID, sums1, train, "Layer2/Fwd")
    sums3 = _forward(graph, third, hidden, train)
    outputs = popnn.nonLinearity(graph, SIGMOID, sums3, train, "Layer4/Fwd")

    loss = graph.addVariable(poplar.FLOAT, [BATCH], "loss")
    poputil.mapTensorLinearly(graph, loss)
    graph.createHostRead("loss", loss)
    deltas = graph.clone(outputs, "Layer5/Bwd/deltas")
    kind, labels, correct = popnn.SUM_SQUARED_LOSS, inputs["labels"], inputs["numCorrect"]
    train.add(popnn.calcLoss(graph, outputs, labels, loss, deltas, correct, kind, "Layer5/Bwd"))

    gradient = popnn.nonLinearityInputGradient
    deltas3 = gradient(graph, SIGMOID, outputs, deltas, train, "Layer4/Bwd")
    back = (deltas3, third.weights)
    options = _for("TRAINING_BWD")
    hidden_deltas = poplin.matMul(graph, *back, train, None, "Layer3/Bwd", options)
    _update(graph, third, hidden, deltas3, train)
    deltas1 = gradient(graph, SIGMOID, hidden, hidden_deltas, train, "Layer2/Bwd")
    _update(graph, first, inputs["images"], deltas1, train)
    return [initialise, train]


def run(*, target: str = "mk1", out: Path | None = None) -> Result:
    """Train one batch, and write a report to `out` when given."""
    device = poplar.IPUModel(target, compileIPUCode=True).createDevice()
    graph = poplar.Graph(device.getTarget())
    programs = build(graph)
    options: dict[str, object] = {"debug.workerStackSizeInBytes": WORKER_STACK}
    if out is not None:
        options |= {"autoReport.all": True, "autoReport.directory": str(out)}
    engine = poplar.Engine(graph, programs, options)
    engine.load(device)
    weights, batch = initial_weights(), draw_batch()
    for handle, values in weights.items():
        engine.writeTensor(handle, values)
    number = np.zeros(1, np.uint32)
    parts = [values.reshape(-1).view(np.float32) for values in (batch.images, batch.labels, number)]
    engine.writeTensor("numCorrect", number)
    engine.connectStream("epoch", number)
    engine.connectStream("batch", np.concatenate(parts))
    engine.run(TRAIN, "train")
    if out is not None:
        facts = {"layers": [PIXELS, HIDDEN, CLASSES], "batch": BATCH, "data": "noise"}
        describe_application(engine.reportDirectory, {"application": "fc_mnist", **facts})
    return Result(
        engine.readTensor("loss"),
        int(engine.readTensor("numCorrect/new")[0]),
        {handle: engine.readTensor(f"{handle}/new") for handle in weights},
        None if out is None else engine.reportDirectory,
    )
