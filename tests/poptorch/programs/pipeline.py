"""Blocks over two IPUs, a loss around the model, and the model run without it afterwards."""

import argparse

import poptorch
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3)
        self.pool = nn.MaxPool2d(kernel_size=2)
        self.fc = nn.Linear(36, 10)

    def forward(self, x):
        with poptorch.Block("B1"):
            x = torch.relu(self.pool(self.conv(x)))
        with poptorch.Block("B2"):
            return self.fc(x.view(-1, 36))


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.loss = nn.CrossEntropyLoss()

    def forward(self, args, labels=None):
        output = self.model(args)
        if labels is None:
            return output
        with poptorch.Block("B2"):
            loss = self.loss(output, labels)
        return output, loss


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=2)
arguments = parser.parse_args()
torch.manual_seed(0)
steps, accumulation = 2, 4
options = poptorch.Options()
options._Popart.set("defaultPrefetchBufferingDepth", 3)
options = options.deviceIterations(steps)
options.setExecutionStrategy(
    poptorch.PipelinedExecution(poptorch.Stage("B1").ipu(0), poptorch.Stage("B2").ipu(1))
)
options.Training.gradientAccumulation(accumulation)
data = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(0, 10, (32,)))
loader = poptorch.DataLoader(
    options, data, batch_size=arguments.batch_size, shuffle=True, mode=poptorch.DataLoaderMode.Async
)
model = Network()
training = poptorch.trainingModel(
    WithLoss(model), options, optimizer=poptorch.optim.AdamW(model.parameters(), lr=0.01)
)
before = model.fc.weight.detach().clone()
for images, labels in loader:
    predictions, losses = training(images, labels)
    assert torch.isfinite(torch.mean(losses)) and len(predictions) <= len(labels)
options = options.clone()
options.Training.gradientAccumulation(1)
options.deviceIterations(steps * accumulation)
inference = poptorch.inferenceModel(model, options)
found = inference(images)  # without a call of detachFromDevice or copyWeightsToHost before
assert not torch.equal(before, model.fc.weight)
assert torch.allclose(found, model(images), atol=1e-5)
