"""Train a small transformer on the digits, two IPUs in a pipeline, fed by a loader that is slow.

The attention of both blocks is on IPU 0, which bounds the pipeline; `placed=EVEN` is the same
program with one on each IPU. The loader turns and shifts one image after another while the device
waits, as loaders do that nobody has looked at yet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import pvti
from simulator import popart
from simulator.examples.application import describe_application
from simulator.examples.digits_transformer import (
    BATCH,
    CLASSES,
    CROWDED,
    EVEN,
    HEADS,
    PATCHES,
    PIXELS,
    WIDTH,
    Network,
    Placement,
    network,
)  # fmt: skip
from simulator.examples.mlp_digits import Floats, load_digits
from simulator.graph.types import Array

Progress = Callable[[int, int, str], None]

TILES = 32  # of each IPU: the network fills a good part of them
FACTOR = 8  # micro-batches through the pipeline between two changes of the weights
IMAGES = BATCH * FACTOR  # of a run
EPOCHS = 7
LEARNING_RATE = 2e-3
SEED = 5
SIDE = 8  # pixels
TURN, SHIFT = 0.08, 0.25  # the most that the loader turns (radians) and shifts (pixels) an image
TEST_STEPS = 23  # batches that hold the 359 images that are held out

Batches = Iterator[tuple[Floats, Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """The mean loss of an image in each run, the network, its session, the report's directory."""

    losses: Floats
    network: Network
    session: popart.TrainingSession
    report: Path | None


def augmented(image: Floats, turn: float, shift: Floats) -> Floats:
    """Turn an image about its middle and shift it; between pixels it is linear."""
    middle = (SIDE - 1) / 2
    down, right = np.mgrid[:SIDE, :SIDE] - middle
    rows = np.cos(turn) * down - np.sin(turn) * right + middle + shift[0]
    columns = np.sin(turn) * down + np.cos(turn) * right + middle + shift[1]
    framed = np.pad(image, 2)
    top = np.clip(np.floor(rows), -2, SIDE).astype(int)
    left = np.clip(np.floor(columns), -2, SIDE).astype(int)
    low, beside = np.clip(rows - top, 0, 1), np.clip(columns - left, 0, 1)
    corners = [
        framed[top + 2 + i, left + 2 + j] * abs(1 - i - low) * abs(1 - j - beside)
        for i in (0, 1) for j in (0, 1)
    ]  # fmt: skip
    return np.asarray(sum(corners), np.float32)


def in_patches(images: Floats) -> Floats:
    """Cut images, [image][row][column], into [image][patch][pixel]."""
    half = SIDE // 2
    cut = images.reshape(-1, half, 2, half, 2).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(cut.reshape(-1, PATCHES, PIXELS))


def batches(epochs: int) -> Batches:
    """Load the images of each run: shuffled in each epoch, turned and shifted one by one."""
    labels = load_digits().train_labels
    random = np.random.default_rng(SEED)
    for _ in range(epochs):
        order = random.permutation(len(labels))
        for first in range(0, len(order) - IMAGES + 1, IMAGES):
            chosen = order[first : first + IMAGES]
            yield _loaded(chosen, random), labels[chosen].astype(np.int32)


def _loaded(chosen: Array, random: np.random.Generator) -> Floats:
    """Return the patches of images, turned and shifted at random."""
    with pvti.Tracepoint(_channel(), "loader: next batch"):
        images = load_digits().train_images.reshape(-1, SIDE, SIDE)[chosen]
        turns = random.uniform(-TURN, TURN, len(images))
        shifts = random.uniform(-SHIFT, SHIFT, (len(images), 2))
        with pvti.Tracepoint(_channel(), "loader: augment images one by one"):
            turned = [augmented(*each) for each in zip(images, turns, shifts, strict=True)]
        with pvti.Tracepoint(_channel(), "loader: cut into patches"):
            return in_patches(np.stack(turned))


def runs_of(epochs: int) -> int:
    """Count the runs of so many epochs."""
    return epochs * (len(load_digits().train_labels) // IMAGES)


@cache
def _channel() -> pvti.TraceChannel:
    return pvti.createTraceChannel("digits_pipeline")


def _session(net: Network, out: Path | None, values: bool) -> popart.TrainingSession:
    """Prepare the training session of a network on two IPUs."""
    options = popart.SessionOptions(
        enablePipelining=True, enableGradientAccumulation=True, accumulationFactor=FACTOR,
        enableOutlining=False,
    )  # fmt: skip
    options.engineOptions = {"simulator.computeValues": values}
    if out is not None:
        options.engineOptions |= {"autoReport.all": True, "autoReport.directory": str(out)}
    kinds = {name: popart.AnchorReturnType("ALL") for name in ("loss", net.probabilities)}
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 2, "tilesPerIPU": TILES})
    session = popart.TrainingSession(
        net.proto, popart.DataFlow(1, kinds),
        [popart.NllLoss(net.probabilities, net.labels, "loss")],
        popart.Adam({"defaultLearningRate": (LEARNING_RATE, False)}), device,
        userOptions=options, name="",
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def _run(
    session: popart.TrainingSession, net: Network, given: Batches, done: Callable[[float], None]
) -> None:
    """Run all batches; tell the mean loss of an image in each run."""
    anchors = session.initAnchorArrays()
    for images, labels in given:
        inputs = {
            net.images: images.reshape(FACTOR, BATCH, PATCHES, PIXELS),
            net.labels: labels.reshape(FACTOR, BATCH),
        }
        with pvti.Tracepoint(_channel(), "train on a batch"):
            session.run(popart.PyStepIO(inputs, anchors))
        done(float(anchors["loss"].sum()) / IMAGES)


def _inference(net: Network, trained: Path) -> popart.InferenceSession:
    """Prepare a trained network for the held-out images, on a CPU."""
    session = popart.InferenceSession(
        str(trained), popart.DataFlow(TEST_STEPS, [net.probabilities]),
        popart.DeviceManager().createCpuDevice(),
        userOptions=popart.SessionOptions(virtualGraphMode=popart.VirtualGraphMode.Off),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def accuracy(trained: Trained) -> float:
    """Return the part of the held-out images that a trained network names rightly, on a CPU."""
    net = trained.network
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "trained.onnx"
        trained.session.modelToHost(model)
        session = _inference(net, model)
    digits = load_digits()
    count = len(digits.test_labels)
    images = np.zeros((TEST_STEPS * BATCH, PATCHES, PIXELS), np.float32)
    images[:count] = in_patches(digits.test_images.reshape(-1, SIDE, SIDE))
    anchors = session.initAnchorArrays()
    inputs = {
        net.images: images.reshape(TEST_STEPS, BATCH, PATCHES, PIXELS),
        net.labels: np.zeros((TEST_STEPS, BATCH), np.int32),  # of the loss, which nobody reads
    }
    session.run(popart.PyStepIO(inputs, anchors))
    named = anchors[net.probabilities].reshape(-1, CLASSES).argmax(axis=1)[:count]
    return float((named == digits.test_labels).mean())


def train(
    out: Path | None = None,
    *,
    epochs: int = EPOCHS,
    placed: Placement = CROWDED,
    progress: Progress = lambda done, total, text: None,
) -> Trained:
    """Train, and write a report to `out` when given.

    `progress` is called with the steps done, all steps and a text.
    """
    total = epochs + 1
    progress(0, total, "build and compile")
    with pvti.Tracepoint(_channel(), "build and compile"):
        net = network(placed)
        session = _session(net, out, values=True)
    progress(1, total, f"train {epochs} epoch{'s' * (epochs > 1)} of {runs_of(1)} batches")
    each = runs_of(1)
    losses: list[float] = []

    def tell(loss: float) -> None:
        losses.append(loss)
        epoch, rest = divmod(len(losses), each)
        if not rest:
            mean = np.mean(losses[-each:])
            progress(epoch + 1, total, f"epoch {epoch} of {epochs}: loss {mean:.4f} an image")

    _run(session, net, batches(epochs), tell)
    if out is not None:
        _describe(out, placed, {"epochs": epochs})
    return Trained(np.array(losses, np.float32), net, session, out)


def measure(out: Path, *, epochs: int = EPOCHS, placed: Placement = EVEN) -> None:
    """Write the report of as many runs without values: memory and cycles are the same."""
    net = network(placed)
    session = _session(net, out, values=False)
    anchors = session.initAnchorArrays()
    for _ in range(runs_of(epochs)):
        session.run(popart.PyStepIO({}, anchors))
    _describe(out, placed, {"epochs": epochs})


def _describe(out: Path, placed: Placement, more: dict[str, object]) -> None:
    """Write facts about the program into its report."""
    facts: dict[str, object] = {
        "application": "digits_pipeline",
        "data": "1,797 handwritten digits of 8 x 8 pixels",
        "network": f"a transformer of two blocks, {WIDTH} wide, {HEADS} heads",
        "batch": f"{FACTOR} micro-batches of {BATCH} images",
        "learningRate": LEARNING_RATE,
    }
    on = {part: f"IPU {ipu}" for part, ipu in placed.items()}
    describe_application(out, {**facts, **more, "placement": on})
