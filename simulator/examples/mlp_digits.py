"""Train the two-layer network of the user guide's profile sample on real handwritten digits.

Fully connected, sigmoid, fully connected, sigmoid, sum-squared loss; batches of 16, plain
stochastic gradient descent, float. Images, labels and losses go through streams, the weights
through host writes; one run is one epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

import pvti
from simulator import poplar, poplin, popnn, popops, poputil
from simulator.examples.application import describe_application
from simulator.graph.types import Array

Floats = npt.NDArray[np.float32]
Progress = Callable[[int, int, str], None]

PIXELS, HIDDEN, CLASSES = 64, 30, 10
BATCH = 16
LEARNING_RATE = 0.3
EPOCHS = 10
SEED = 1
TRAIN, EVALUATE = 0, 1  # the engine's programs
SIGMOID = popnn.NonLinearityType.SIGMOID


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """Images as [image][pixel] from 0 to 1, labels from 0 to 9; whole batches for training."""

    train_images: Floats
    train_labels: Array
    test_images: Floats
    test_labels: Array

    @property
    def batches(self) -> int:
        """Count the training batches of an epoch."""
        return len(self.train_labels) // BATCH


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights and biases of both layers, as the host writes them."""

    weights1: Floats
    biases1: Floats
    weights3: Floats
    biases3: Floats

    def by_handle(self) -> dict[str, Floats]:
        """Name the values as the program's host accesses do."""
        return {
            "Layer1/weights": self.weights1,
            "Layer1/biases": self.biases1,
            "Layer3/weights": self.weights3,
            "Layer3/biases": self.biases3,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The loss of every step (sum over its batch), the test accuracy, the report's directory."""

    losses: Floats
    accuracy: float
    report: Path | None


@dataclass(frozen=True, slots=True)
class _Layer:
    """A fully connected layer with its sigmoid, on the device."""

    weights: poplar.Tensor
    biases: poplar.Tensor
    fully_connected: str
    sigmoid: str


@cache
def load_digits() -> Digits:
    """Read the digits that come with the simulator; a fifth, fixed by a seed, is held out."""
    packaged = resources.files("simulator.examples") / "digits.npz"
    with packaged.open("rb") as file, np.load(file) as data:
        images = data["images"].reshape(-1, PIXELS).astype(np.float32) / np.float32(16)
        labels = data["labels"].astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    held_out = len(labels) // 5
    test, train = order[:held_out], order[held_out:]
    train = train[: len(train) // BATCH * BATCH]
    return Digits(images[train], labels[train], images[test], labels[test])


def initial_weights() -> Weights:
    """Draw the weights (Glorot's uniform range) by a fixed seed; biases start at zero."""
    generator = np.random.default_rng(SEED + 1)

    def draw(rows: int, columns: int) -> Floats:
        limit = np.sqrt(6 / (rows + columns))
        return generator.uniform(-limit, limit, (rows, columns)).astype(np.float32)

    return Weights(
        draw(PIXELS, HIDDEN),
        np.zeros(HIDDEN, np.float32),
        draw(HIDDEN, CLASSES),
        np.zeros(CLASSES, np.float32),
    )


def one_hot(labels: Array) -> Floats:
    """Assign each label a row with a one in its place."""
    return np.eye(CLASSES, dtype=np.float32)[labels]


def _add_layer(graph: poplar.Graph, number: int, inputs: int, outputs: int) -> _Layer:
    """Add a layer's weights, laid out for the forward product, and its biases."""
    name = f"Layer{number}"
    weights = poplin.createMatMulInputRHS(
        graph,
        poplar.FLOAT,
        poplar.FLOAT,
        (BATCH, inputs),
        (inputs, outputs),
        f"{name}/Fwd/weights",
    )
    biases = graph.addVariable(poplar.FLOAT, [outputs], f"{name}/Fwd/biases")
    poputil.mapTensorLinearly(graph, biases)
    graph.createHostWrite(f"{name}/weights", weights)
    graph.createHostWrite(f"{name}/biases", biases)
    return _Layer(weights, biases, name, f"Layer{number + 1}")


def _forward(
    graph: poplar.Graph, layer: _Layer, inputs: poplar.Tensor, prog: poplar.program.Sequence
) -> poplar.Tensor:
    """Return sigmoid(inputs * weights + biases)."""
    context = f"{layer.fully_connected}/Fwd"
    sums = poplin.matMul(graph, inputs, layer.weights, prog, context)
    popops.addInPlace(graph, sums, layer.biases, prog, f"{context}/biases")
    return popnn.nonLinearity(graph, SIGMOID, sums, prog, f"{layer.sigmoid}/Fwd")


def _update(
    graph: poplar.Graph,
    layer: _Layer,
    inputs: poplar.Tensor,
    deltas: poplar.Tensor,
    prog: poplar.program.Sequence,
) -> None:
    """Step down the gradient of a layer's weights and biases."""
    context = f"{layer.fully_connected}/Wu"
    gradient = poplin.matMul(graph, inputs.transpose(), deltas, prog, context)
    popops.scaledSubtractFrom(graph, layer.weights, gradient, LEARNING_RATE, prog, context)
    sums = popops.reduce(graph, deltas, [0], popops.Operation.ADD, prog, f"{context}/biases")
    popops.scaledSubtractFrom(graph, layer.biases, sums, LEARNING_RATE, prog, f"{context}/biases")


def _deltas(
    graph: poplar.Graph,
    layer: _Layer,
    out: poplar.Tensor,
    gradient: poplar.Tensor,
    prog: poplar.program.Sequence,
) -> poplar.Tensor:
    """Take the gradient of a layer's output back through its sigmoid."""
    return popnn.nonLinearityInputGradient(
        graph, SIGMOID, out, gradient, prog, f"{layer.sigmoid}/Bwd"
    )


def build(graph: poplar.Graph, digits: Digits) -> list[poplar.program.Sequence]:
    """Add the network; give the programs: train one epoch, evaluate the held-out images."""
    program = poplar.program
    images = graph.addVariable(poplar.FLOAT, [BATCH, PIXELS], "images")
    labels = graph.addVariable(poplar.FLOAT, [BATCH, CLASSES], "labels")
    loss = graph.addVariable(poplar.FLOAT, [1], "loss")
    poputil.mapTensorLinearly(graph, images)
    poputil.mapTensorLinearly(graph, labels)
    graph.setTileMapping(loss, 0)
    first, second = _add_layer(graph, 1, PIXELS, HIDDEN), _add_layer(graph, 3, HIDDEN, CLASSES)

    forward = program.Sequence(name="Fwd")
    hidden = _forward(graph, first, images, forward)
    outputs = _forward(graph, second, hidden, forward)

    backward = program.Sequence(name="Bwd")
    gradient = graph.clone(outputs, "Layer5/Bwd/deltas")
    kind = popnn.LossType.SUM_SQUARED_LOSS
    backward.add(popnn.calcLoss(graph, outputs, labels, loss, gradient, kind, "Layer5/Bwd"))
    deltas3 = _deltas(graph, second, outputs, gradient, backward)
    hidden_gradient = poplin.matMul(
        graph, deltas3, second.weights.transpose(), backward, "Layer3/Bwd"
    )
    deltas1 = _deltas(graph, first, hidden, hidden_gradient, backward)
    update = program.Sequence(name="Wu")
    _update(graph, second, hidden, deltas3, update)
    _update(graph, first, images, deltas1, update)

    images_in = graph.addHostToDeviceFIFO("images", poplar.FLOAT, BATCH * PIXELS)
    labels_in = graph.addHostToDeviceFIFO("labels", poplar.FLOAT, BATCH * CLASSES)
    loss_out = graph.addDeviceToHostFIFO("loss", poplar.FLOAT, 1)
    outputs_out = graph.addDeviceToHostFIFO("outputs", poplar.FLOAT, BATCH * CLASSES)
    step = program.Sequence(
        program.Copy(images_in, images),
        program.Copy(labels_in, labels),
        forward,
        backward,
        update,
        program.Copy(loss, loss_out),
    )
    evaluate = program.Sequence(
        program.Copy(images_in, images), forward, program.Copy(outputs, outputs_out)
    )
    test_batches = -(-len(digits.test_labels) // BATCH)
    return [
        program.Sequence(program.Repeat(digits.batches, step, "epoch")),
        program.Sequence(program.Repeat(test_batches, evaluate, "evaluation")),
    ]


def _train_epochs(
    engine: poplar.Engine, digits: Digits, epochs: int, report: Callable[[int, str], None]
) -> Floats:
    """Run the epochs; give the loss of every step."""
    losses = np.zeros((epochs, digits.batches), np.float32)
    engine.connectStream("images", digits.train_images)
    engine.connectStream("labels", one_hot(digits.train_labels))
    for epoch in range(epochs):
        engine.connectStream("loss", losses[epoch])
        with pvti.Tracepoint(_channel(), f"epoch {epoch + 1}"):
            engine.run(TRAIN, f"epoch {epoch + 1}")
        mean = float(losses[epoch].sum()) / len(digits.train_labels)
        report(epoch + 1, f"epoch {epoch + 1} of {epochs}: loss {mean:.4f} an image")
    return losses.reshape(-1)


def _evaluate(engine: poplar.Engine, digits: Digits) -> float:
    """Return the part of the held-out images that the network names rightly."""
    count = len(digits.test_labels)
    padded = -(-count // BATCH) * BATCH
    images = np.zeros((padded, PIXELS), np.float32)
    images[:count] = digits.test_images
    outputs = np.zeros((padded, CLASSES), np.float32)
    engine.connectStream("images", images)
    engine.connectStream("outputs", outputs)
    with pvti.Tracepoint(_channel(), "evaluate"):
        engine.run(EVALUATE, "evaluate")
    return float((outputs[:count].argmax(axis=1) == digits.test_labels).mean())


@cache
def _channel() -> pvti.TraceChannel:
    return pvti.createTraceChannel("mlp_digits")


def train(
    out: Path | None = None,
    *,
    target: str = "mk2",
    epochs: int = EPOCHS,
    progress: Progress = lambda done, total, text: None,
) -> Result:
    """Train, evaluate, and write a report to `out` when given.

    `progress` is called with the steps done, all steps and a text.
    """
    total = epochs + 3
    progress(0, total, "load data")
    with pvti.Tracepoint(_channel(), "load data"):
        digits = load_digits()
    progress(1, total, "build and compile")
    with pvti.Tracepoint(_channel(), "build graph"):
        device = poplar.IPUModel(target, compileIPUCode=True).createDevice()
        graph = poplar.Graph(device.getTarget())
        programs = build(graph, digits)
    options = {} if out is None else {"autoReport.all": True, "autoReport.directory": str(out)}
    engine = poplar.Engine(graph, programs, options)
    engine.load(device)
    for handle, values in initial_weights().by_handle().items():
        engine.writeTensor(handle, values)
    progress(2, total, f"train {epochs} epoch{'s' * (epochs > 1)} of {digits.batches} steps")
    losses = _train_epochs(engine, digits, epochs, lambda n, text: progress(n + 2, total, text))
    accuracy = _evaluate(engine, digits)
    if out is not None:
        describe_application(
            engine.reportDirectory,
            {
                "application": "mlp_digits",
                "data": "1,797 handwritten digits of 8 x 8 pixels",
                "layers": [PIXELS, HIDDEN, CLASSES],
                "batch": BATCH,
                "learningRate": LEARNING_RATE,
                "epochs": epochs,
                "testAccuracy": round(accuracy, 4),
            },
        )
    progress(total, total, f"test accuracy {accuracy:.1%}")
    return Result(losses, accuracy, None if out is None else engine.reportDirectory)
