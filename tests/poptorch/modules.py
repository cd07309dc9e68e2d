"""Small modules of PyTorch to export, with inputs: convolutions, recurrences, transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_TEXT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32}  # fmt: skip


class Convolutions(nn.Module):
    """Convolutions with a BatchNorm and a GroupNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.GELU(),
        )  # fmt: skip
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.fc(self.body(x).mean((2, 3)))


class Residual(nn.Module):
    """A block of ResNet."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.down = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.down(x))


class ResNet18(nn.Module):
    """ResNet-18 of a narrow width."""

    def __init__(self, width: int = 2, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        sizes = [width, width, width * 2, width * 4, width * 8]
        blocks = [
            Residual(
                sizes[n] if not second else sizes[n + 1], sizes[n + 1], 2 if n and not second else 1
            )
            for n in range(4)
            for second in (False, True)
        ]
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(sizes[-1], classes)

    def forward(self, x: Any) -> Any:
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class UNet(nn.Module):
    """Down and up again, with the way over."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.down = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        over = self.first(x)
        return self.last(torch.cat([over, self.up(self.down(over))], 1))


class Recurrent(nn.Module):
    """An LSTM or a GRU, and a layer behind it."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.cells = kind(4, 6, batch_first=True)
        self.fc = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.fc(self.cells(x)[0][:, -1])


class Trained(nn.Module):
    """A module with a loss: returns (output, loss) where labels are given."""

    def __init__(self, inner: nn.Module, loss: nn.Module | None = None) -> None:
        super().__init__()
        self.inner, self.loss = inner, loss or nn.CrossEntropyLoss()

    def forward(self, x: Any, labels: Any = None) -> Any:
        out = self.inner(x)
        return out if labels is None else (out, self.loss(out, labels))


class FirstOutput(nn.Module):
    """The first output of a model of transformers."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)[0]


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def of_transformers(kind: str, **config: Any) -> nn.Module:
    """Return a model of transformers with random weights."""
    import transformers

    network = getattr(transformers, kind)
    return FirstOutput(network(network.config_class(**config)))


def vit() -> nn.Module:
    return of_transformers("ViTModel", **_TEXT, image_size=16, patch_size=4)


def bert() -> nn.Module:
    return of_transformers("BertModel", **_TEXT, vocab_size=50, max_position_embeddings=16)


def gpt2() -> nn.Module:
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 16,
             "use_cache": False}  # fmt: skip
    return of_transformers("GPT2LMHeadModel", **sizes)


def floats(*shape: int) -> Callable[[], Any]:
    return lambda: torch.randn(*shape)


def tokens(*shape: int) -> Callable[[], Any]:
    return lambda: torch.randint(0, 50, shape)


MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any]]] = {
    "mlp": (mlp, floats(3, 8)),
    "convolutions": (Convolutions, floats(2, 3, 8, 8)),
    "resnet18": (ResNet18, floats(1, 3, 32, 32)),
    "unet": (UNet, floats(1, 1, 8, 8)),
    "lstm": (lambda: Recurrent(nn.LSTM), floats(2, 5, 4)),
    "gru": (lambda: Recurrent(nn.GRU), floats(2, 5, 4)),
    "encoder": (encoder, floats(2, 5, 16)),
    "vit": (vit, floats(1, 3, 16, 16)),
    "bert": (bert, tokens(1, 8)),
    "gpt2": (gpt2, tokens(1, 8)),
}


def seeded(name: str) -> tuple[nn.Module, Any]:
    """Return a module in eval mode and an input, both of a fixed seed."""
    torch.manual_seed(1)
    make, data = MODULES[name]
    return make().eval(), data()
