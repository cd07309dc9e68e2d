"""The options of a large encoder, by numbers of PopART's choices, with a schedule of rates."""

import popart
import poptorch
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(8, 20)

    def parallelized(self):
        self.embedding = poptorch.BeginBlock(self.embedding, "Embedding", ipu_id=0)
        for place, layer in enumerate(self.layers):
            layer.register_forward_hook(lambda _, __, out: poptorch.recomputationCheckpoint(out))
            self.layers[place] = poptorch.BeginBlock(layer, f"Layer{place}", ipu_id=place)
        return self

    def forward(self, ids, labels):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(x)
        loss = nn.functional.cross_entropy(logits.view(-1, 20), labels.view(-1))
        right = (logits.argmax(-1) == labels).float().mean()
        return poptorch.identity_loss(loss, reduction="none"), right


options = poptorch.Options()
options.replicationFactor(2)
options.autoRoundNumIPUs(True)
options.deviceIterations(1)
options.Training.gradientAccumulation(4)
options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Mean)
options.outputMode(poptorch.OutputMode.Sum)
options.randomSeed(1)
on_chip = (
    poptorch.TensorLocationSettings().useOnChipStorage(True).useReplicatedTensorSharding(False)
)
options.TensorLocations.setOptimizerLocation(on_chip)
options.setExecutionStrategy(poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement))
options.setAvailableMemoryProportion({f"IPU{ipu}": 0.3 for ipu in range(2)})
options.enableSyntheticData(int(popart.SyntheticDataMode.Off))
options._Popart.set("disableGradAccumulationTensorStreams", True)
options._Popart.set(
    "accumulateOuterFragmentSettings.schedule",
    int(popart.AccumulateOuterFragmentSchedule.OverlapMemoryOptimized),
)
options._Popart.set("accumulateOuterFragmentSettings.excludedVirtualGraphs", ["0"])
options._Popart.set("subgraphCopyingStrategy", int(popart.SubgraphCopyingStrategy.JustInTime))
options._Popart.set("autoRecomputation", int(popart.RecomputationType.Pipeline))
options._Popart.setPatterns({"TiedGather": True, "TiedGatherAccumulate": True})
options._Popart.set("engineOptions", {"opt.useAutoloader": "true", "profiler.format": "v3"})
torch.manual_seed(0)
model = Encoder().train().parallelized()
groups = [
    {"params": [p for n, p in model.named_parameters() if "bias" not in n], "weight_decay": 0.01},
    {"params": [p for n, p in model.named_parameters() if "bias" in n], "weight_decay": 0},
]
optimizer = poptorch.optim.AdamW(
    groups, lr=0.05, loss_scaling=128.0, bias_correction=True, accum_type=torch.float32
)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
training = poptorch.trainingModel(model, options, optimizer=optimizer)
ids = torch.randint(0, 20, (8, 4))
losses = []
for _ in range(3):
    loss, right = training(ids, ids)
    schedule.step()
    training.setOptimizer(optimizer)
    losses.append(float(loss.sum()))
assert losses[-1] < losses[0]
training.detachFromDevice()
