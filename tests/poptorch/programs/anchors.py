"""Gradients are looked at by the names that PopTorch gives them in training."""

import poptorch
import torch
from torch import nn


class Basic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 6)
        self.fc2 = nn.Linear(6, 4)
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.loss = nn.NLLLoss()

    def forward(self, x, labels=None):
        x = self.log_softmax(self.fc2(torch.relu(self.fc1(torch.flatten(x, start_dim=1)))))
        return (x, self.loss(x, labels)) if self.training else x


torch.manual_seed(0)
names = ["Gradient___model.fc1.weight", "Gradient___model.fc2.bias"]
options = poptorch.Options()
for name in names:
    options.anchorTensor(name, name)
model = Basic().train()
training = poptorch.trainingModel(
    model, options=options, optimizer=poptorch.optim.SGD(model.parameters(), lr=0.0)
)
images, labels = torch.randn(5, 1, 3, 4), torch.tensor([0, 1, 2, 3, 0])
training.compile(torch.zeros_like(images), torch.zeros_like(labels))
print("tensor names:", training.getTensorNames())
training(images, labels)
model(images, labels)[1].backward()
for name, wanted in zip(names, (model.fc1.weight.grad, model.fc2.bias.grad), strict=True):
    assert torch.allclose(training.getAnchoredTensor(name), wanted, atol=1e-6)
