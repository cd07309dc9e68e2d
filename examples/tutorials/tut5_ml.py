"""Tutorial 5 of the Poplar user guide: a basic machine learning example.

Train y = softmax(Wx + b) on the handwritten digits that come with the simulator, one image at a
time, by gradient descent.

python examples/tutorials/tut5_ml.py [EPOCHS [PERCENT OF THE IMAGES]]
"""

import argparse
from importlib import resources

import checkout  # noqa: F401  (finds the simulator without an install)
import numpy as np

from simulator import poplar, poplin, popnn, popops, poputil
from simulator.poplar import FLOAT, UNSIGNED_INT, program

BATCH_SIZE = 300  # images of one run of the program
CLASSES = 10
ETA = 0.05  # the learning rate


def readDigits() -> tuple[np.ndarray, np.ndarray]:
    """Read the images, a row each with pixels from 0 to 1, and their labels."""
    packaged = resources.files("simulator.examples") / "digits.npz"
    with packaged.open("rb") as file, np.load(file) as arrays:
        images = arrays["images"].reshape(len(arrays["labels"]), -1)
        return images.astype(np.float32) / 16, arrays["labels"].astype(np.uint32)


def main() -> None:
    """Build the model and the training program, train, say how often it is right."""
    parser = argparse.ArgumentParser(description="Train a regression on handwritten digits.")
    parser.add_argument("epochs", nargs="?", type=int, default=10)
    parser.add_argument("percent", nargs="?", type=float, default=100, help="of the images")
    arguments = parser.parse_args()

    data, labels = readDigits()
    imageSize = data.shape[1]
    numberOfImages = max(int(len(data) * arguments.percent / 100), BATCH_SIZE)

    # Four tiles are enough for a model of this size.
    print("Using the IPU Model")
    ipuModel = poplar.IPUModel()
    ipuModel.numIPUs = 1
    ipuModel.tilesPerIPU = 4
    dev = ipuModel.createDevice()

    graph = poplar.Graph(dev.getTarget())
    popops.addCodelets(graph)
    poplin.addCodelets(graph)
    popnn.addCodelets(graph)

    # The image, the weights and the biases, spread over the tiles.
    x = graph.addVariable(FLOAT, [imageSize, 1], "x")
    poputil.mapTensorLinearly(graph, x)
    W = graph.addVariable(FLOAT, [CLASSES, imageSize], "W")
    poputil.mapTensorLinearly(graph, W)
    b = graph.addVariable(FLOAT, [CLASSES, 1], "b")
    poputil.mapTensorLinearly(graph, b)

    # The host writes where the training starts from.
    graph.createHostWrite("weights", W)
    graph.createHostWrite("biases", b)

    numCorrect = graph.addVariable(UNSIGNED_INT, [1], "numCorrect")
    poputil.mapTensorLinearly(graph, numCorrect)
    expected = graph.addVariable(UNSIGNED_INT, [1], "expected")
    poputil.mapTensorLinearly(graph, expected)

    # Forward: y = Wx + b, and its softmax.
    mProg = program.Sequence()
    t = poplin.matMul(graph, W, x, mProg, "Wx")
    y = popops.add(graph, t, b, mProg, "Wx+b")
    softmaxY = popnn.nonLinearity(
        graph, popnn.NonLinearityType.SOFTMAX, y.transpose(), mProg, "softmax(Wx+b)"
    )

    # The loss, its gradient with respect to y, and whether the image was recognised.
    loss = graph.addVariable(FLOAT, [1], "loss")
    poputil.mapTensorLinearly(graph, loss)
    delta = graph.addVariable(FLOAT, [1, CLASSES], "delta")
    poputil.mapTensorLinearly(graph, delta)
    mProg.add(
        popnn.calcLoss(
            graph,
            softmaxY,
            expected,
            loss,
            delta,
            numCorrect,
            popnn.CROSS_ENTROPY_LOSS,
            "dE/d(Wx+b)",
        )
    )

    # Backward: b -= eta * dE/dy, and W -= eta * dE/dy * x^T.
    popops.scaledAddTo(graph, b, delta.transpose(), -ETA, mProg, "b += -eta * dE/db")
    wGrad = poplin.matMul(graph, delta.transpose(), x.transpose(), mProg, "dE/dW")
    popops.scaledAddTo(graph, W, wGrad, -ETA, mProg, "W += -eta * dE/dW")

    # Images and labels stream in, the number of right answers goes out after each batch.
    dataIn = graph.addHostToDeviceFIFO("data", FLOAT, imageSize)
    labelIn = graph.addHostToDeviceFIFO("labels", UNSIGNED_INT, 1)
    numCorrectOut = graph.addDeviceToHostFIFO("hostNumCorrect", UNSIGNED_INT, 1)

    trainProg = program.Sequence()
    zero = graph.addConstant(UNSIGNED_INT, [1], 0)
    graph.setTileMapping(zero, 0)
    trainProg.add(program.Copy(zero, numCorrect))
    image = program.Sequence(program.Copy(dataIn, x), program.Copy(labelIn, expected), mProg)
    trainProg.add(program.Repeat(BATCH_SIZE, image))
    trainProg.add(program.Copy(numCorrect, numCorrectOut))

    engine = poplar.Engine(graph, trainProg)
    engine.load(dev)

    # The streams go round and round the images: a batch begins where the last one ended.
    hNumCorrect = np.zeros(1, np.uint32)
    engine.connectStream(dataIn, data[:numberOfImages])
    engine.connectStream(labelIn, labels[:numberOfImages])
    engine.connectStream(numCorrectOut, hNumCorrect)

    random = np.random.default_rng(1)
    engine.writeTensor("weights", random.standard_normal(W.shape).astype(np.float32))
    engine.writeTensor("biases", random.standard_normal(b.shape).astype(np.float32))

    # Train, and say now and then how it goes.
    totalCorrect = totalTested = 0
    batches = numberOfImages // BATCH_SIZE
    for epoch in range(1, arguments.epochs + 1):
        for batch in range(1, batches + 1):
            engine.run(0)
            totalCorrect += int(hNumCorrect[0])
            totalTested += BATCH_SIZE
            if totalTested > numberOfImages // 20:
                percentCorrect = totalCorrect * 100 // totalTested
                epochPercent = batch * 100 // batches
                print(f"Epoch {epoch} ({epochPercent}%), accuracy {percentCorrect}%")
                totalCorrect = totalTested = 0


if __name__ == "__main__":
    main()
