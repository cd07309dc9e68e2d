"""A convolutional network learns handwritten digits, by PopTorch's names.

Question: which of its layers costs most in training?
Answer: the max pooling, with 43 % of the cycles, before the batch norm with 20 %; both convolutions
together take 17 %: `tilescope show operation_costs digits/training --by module`.

    python examples/poptorch/digits.py digits/
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from simulator import poptorch
from simulator.examples.mlp_digits import load_digits

BATCH, ITERATIONS, EPOCHS = 16, 10, 2


class Digits(nn.Module):
    """Two convolutions with a batch norm, and a layer; the loss is returned in training."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.classes = nn.Linear(16 * 4 * 4, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images: Any, labels: Any = None) -> Any:
        scores = self.classes(self.features(images).flatten(1))
        return scores if labels is None else (scores, self.loss(scores, labels))


def main(directory: str) -> float:
    """Train, print the losses, and return the share of test images that are right."""
    torch.manual_seed(0)
    digits = load_digits()
    parts = (digits.train_images, digits.train_labels, digits.test_images, digits.test_labels)
    images, labels, tests, wanted = (torch.from_numpy(part.copy()) for part in parts)
    images, tests = (pixels.reshape(-1, 1, 8, 8) for pixels in (images, tests))
    module = Digits()
    options = poptorch.Options().setTarget("tiny").enableProfiling(directory)
    options.deviceIterations(ITERATIONS)
    data = torch.utils.data.TensorDataset(images, labels)
    loader = poptorch.DataLoader(options, data, BATCH, shuffle=True)
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(module.train(), options, optimizer)
    for epoch in range(EPOCHS):
        losses = [float(training(*batch)[1]) for batch in loader]
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}")
    training.copyWeightsToHost()
    inference = poptorch.inferenceModel(module.eval(), options.clone().deviceIterations(1))
    right = float((inference(tests).argmax(1) == wanted).float().mean())
    print(f"{right:.1%} of {len(tests)} test images are right")
    return right


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "digits")
