"""A small transformer in a pipeline over two IPUs, trained by PopTorch's names.

Question: does the pipeline balance, and which layer costs most?
Answer: nearly: of the cycles 46 % are of the layer on the second IPU and 43 % of that on the first.
Attention takes 29 % and 28 %: `tilescope show operation_costs pipeline/training --by module`.

    python examples/poptorch/transformer_pipeline.py pipeline/
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from simulator import poptorch

WIDTH, HEADS, WORDS, LENGTH, STEPS = 32, 4, 20, 8, 10


class Reverses(nn.Module):
    """Says the words of a sentence backwards; its loss is returned with what it says."""

    def __init__(self) -> None:
        super().__init__()
        layer = {"dropout": 0.0, "batch_first": True}
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.first = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, **layer)
        self.second = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, **layer)
        self.head = nn.Linear(WIDTH, WORDS)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, sentence: Any, wanted: Any) -> Any:
        said = self.head(self.second(self.first(self.words(sentence) + self.places)))
        return said, self.loss(said.reshape(-1, WORDS), wanted.reshape(-1))


def main(directory: str) -> None:
    torch.manual_seed(0)
    module = Reverses()
    poptorch.BeginBlock(module.words, "below", ipu_id=0)
    poptorch.BeginBlock(module.second, "above", ipu_id=1)
    options = poptorch.Options().setTarget("tiny").enableProfiling(directory)
    options.Training.gradientAccumulation(8)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=5e-3)
    model = poptorch.trainingModel(module, options, optimizer)
    for step in range(STEPS):
        sentence = torch.randint(0, WORDS, (64, LENGTH), dtype=torch.int32)
        _, loss = model(sentence, sentence.flip(1).long())
        print(f"step {step}: loss {float(loss):.3f}")
    model.copyWeightsToHost()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "pipeline")
