"""A model in halves with a scaled loss, and an operation on a half and a float."""

import poptorch
import torch
from torch import nn


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.GroupNorm(3, 6)
        self.fc = nn.Linear(216, 10)
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.loss = nn.NLLLoss()

    def forward(self, x, labels=None):
        x = torch.flatten(self.norm(torch.relu(self.conv(x))), start_dim=1)
        x = self.log_softmax(self.fc(x))
        return (x, self.loss(x, labels)) if self.training else x


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


torch.manual_seed(0)
model = Custom().half().train()
images, labels = torch.randn(12, 1, 8, 8).half(), torch.randint(0, 10, (12,))
options = poptorch.Options()
options.Precision.setPartialsType(torch.half)
optimizer = poptorch.optim.AdamW(
    params=model.parameters(), lr=0.01, accum_type=torch.float16, loss_scaling=1024
)
training = poptorch.trainingModel(model, options=options, optimizer=optimizer)
losses = [float(training(images, labels)[1]) for _ in range(4)]
assert losses[-1] < losses[0]
training.detachFromDevice()
inference = poptorch.inferenceModel(model.eval(), options=options)
found = inference(images).data.float()
wanted = model.float()(images.float())
assert ((found - wanted).abs() < 2e-2 * wanted.abs().max()).all()
chosen = poptorch.Options()
chosen.Precision.halfFloatCasting(poptorch.HalfFloatCastingBehavior.HalfUpcastToFloat)
added = poptorch.inferenceModel(Add().eval(), chosen)(torch.ones(1), torch.ones(1).half())
assert added.dtype == torch.float32
