"""Models of torchvision and transformers, by their configurations, with seeded random weights.

Those named "small" have a configuration of two layers or so: their patterns are those of the large
ones, and their values are soon compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.zoo.model import MODEL_FILE, Model

OPSET = 17  # of exports by TorchScript
SEED = 7
IMAGE, SMALL_IMAGE, TOKENS = (1, 3, 224, 224), (1, 3, 64, 64), 128

# torchvision: the name of the function, and the sides of the image.
TORCHVISION = {
    "alexnet": 224, "vgg11": 224, "resnet18": 224, "resnet50": 224, "resnext50_32x4d": 224,
    "wide_resnet50_2": 224, "squeezenet1_1": 224, "densenet121": 224, "googlenet": 224,
    "inception_v3": 299, "mobilenet_v2": 224, "mobilenet_v3_small": 224,
    "mobilenet_v3_large": 224, "shufflenet_v2_x1_0": 224, "mnasnet1_0": 224,
    "efficientnet_b0": 224, "regnet_y_400mf": 224, "convnext_tiny": 224, "swin_t": 224,
    "vit_b_16": 224, "lraspp_mobilenet_v3_large": 224, "deeplabv3_mobilenet_v3_large": 224,
    "fcn_resnet50": 224,
}  # fmt: skip
_TEXT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 200}  # fmt: skip
_VISION = {key: _TEXT[key] for key in list(_TEXT)[:4]} | {"image_size": 64}
_SPEECH = {"conv_dim": (32, 32), "conv_stride": (5, 2), "conv_kernel": (10, 3),
           "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
           "num_conv_pos_embedding_groups": 4}  # fmt: skip
_WHISPER = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
            "vocab_size": 200, "num_mel_bins": 16, "max_source_positions": 50, "pad_token_id": 0,
            "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}  # fmt: skip
# transformers: the class, what its configuration has other than by default, the input's shape; one
# number for tokens.
SMALL: dict[str, tuple[str, dict[str, Any], int | tuple[int, ...]]] = {
    "bert": ("BertModel", _TEXT, 32),
    "distilbert": ("DistilBertModel", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128,
                                       "vocab_size": 200}, 32),
    "minilm": ("BertModel", _TEXT | {"hidden_size": 48, "num_attention_heads": 12}, 32),
    "albert": ("AlbertModel", _TEXT | {"embedding_size": 32}, 32),
    "roberta": ("RobertaModel", _TEXT, 32),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 200,
                                 "use_cache": False}, 32),
    "llama": ("LlamaModel", _TEXT | {"use_cache": False}, 32),
    "t5 encoder": ("T5EncoderModel", {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2,
                                      "num_heads": 4, "vocab_size": 200}, 32),
    "vit": ("ViTModel", _VISION, SMALL_IMAGE),
    "deit": ("DeiTModel", _VISION, SMALL_IMAGE),
    "swin": ("SwinModel", {"image_size": 64, "embed_dim": 32, "depths": [2, 2],
                           "num_heads": [2, 4], "window_size": 4}, SMALL_IMAGE),
    "convnext": ("ConvNextModel", {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2,
                                   "image_size": 64}, SMALL_IMAGE),
    "resnet": ("ResNetModel", {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
               SMALL_IMAGE),
    "mobilenet_v2": ("MobileNetV2Model", {"image_size": 64, "depth_multiplier": 0.35},
                     SMALL_IMAGE),
    "efficientnet": ("EfficientNetModel", {"image_size": 64, "width_coefficient": 0.25,
                                           "depth_coefficient": 0.2, "hidden_dim": 320},
                     SMALL_IMAGE),
    "segformer": ("SegformerModel", {"hidden_sizes": [16, 32], "depths": [1, 1],
                                     "num_encoder_blocks": 2, "num_attention_heads": [1, 2],
                                     "sr_ratios": [4, 2], "patch_sizes": [7, 3],
                                     "strides": [4, 2], "mlp_ratios": [2, 2]}, SMALL_IMAGE),
    "wav2vec2": ("Wav2Vec2Model", {key: _TEXT[key] for key in list(_TEXT)[:4]} | _SPEECH,
                 (1, 4000)),
    "whisper encoder": ("WhisperModel", _WHISPER, (1, 16, 100)),
}  # fmt: skip
LARGE: dict[str, tuple[str, dict[str, Any], int | tuple[int, ...]]] = {
    "distilbert-base": ("DistilBertModel", {}, TOKENS),
    "bert-base": ("BertModel", {}, TOKENS),
    "gpt2": ("GPT2LMHeadModel", {"use_cache": False}, TOKENS),
}


def exports() -> Iterator[Model]:
    """List what can be exported with the packages that are installed."""
    if find_spec("torchvision"):
        source = f"torchvision {metadata.version('torchvision')}"
        for name, side in TORCHVISION.items():
            network = partial(of_torchvision, name)
            yield _exported(name, source, network, (1, 3, side, side), dynamo=False)
    if find_spec("transformers"):
        source = f"transformers {metadata.version('transformers')}"
        for name, (kind, config, shape) in SMALL.items():
            network = partial(of_transformers, kind, config)
            for dynamo in (False, True):
                yield _exported(f"small {name}", source, network, shape, dynamo=dynamo)
        for name, (kind, config, shape) in LARGE.items():
            network = partial(of_transformers, kind, config)
            yield _exported(name, source, network, shape, dynamo=True)


def _exported(
    name: str,
    source: str,
    network: Callable[[], Any],
    shape: int | tuple[int, ...],
    *,
    dynamo: bool,
) -> Model:
    way = "dynamo" if dynamo else "TorchScript"
    return Model(f"{name}, {way}", source, partial(write, network, shape, dynamo))


def _name_operators() -> None:
    """Name the compiled operators that torchvision asks for as it is imported.

    Builds of torch for CPUs alone cannot load them; the networks here need none.
    """
    import torch

    schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", schema)


def of_torchvision(name: str) -> Any:
    """Return a network of torchvision with random weights."""
    _name_operators()
    import torchvision

    options: dict[str, Any] = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": False}
    elif "_mobilenet_" in name or name.startswith("fcn"):
        options |= {"weights_backbone": None}
    functions = torchvision.models, torchvision.models.segmentation
    (make,) = (getattr(module, name) for module in functions if hasattr(module, name))
    return make(**options)


def of_transformers(kind: str, config: dict[str, Any]) -> Any:
    """Return a network of transformers with random weights."""
    if find_spec("torchvision"):  # which transformers imports
        _name_operators()
    import transformers

    network = getattr(transformers, kind)
    made = network(network.config_class(**config))
    return made.encoder if kind == "WhisperModel" else made


def write(
    network: Callable[[], Any], shape: int | tuple[int, ...], dynamo: bool, folder: Path
) -> Path:
    """Export the first output of a network for one item."""
    import torch

    torch.manual_seed(SEED)
    whole = first_output(network().eval())
    for module in whole.modules():  # activations keep their size: some networks begin with 0.02
        if isinstance(module, torch.nn.Conv1d | torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
    tokens = isinstance(shape, int)
    data = torch.zeros(1, shape, dtype=torch.long) if tokens else torch.zeros(shape)
    options: dict[str, Any] = {"dynamo": dynamo, "verbose": False, "external_data": False}
    options |= {} if dynamo else {"opset_version": OPSET}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(whole, (data,), str(folder / MODEL_FILE), **options)
    return folder / MODEL_FILE


def first_output(network: Any) -> Any:
    """Return a network of the first output alone, as transformers' are tables of several."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def forward(self, data: Any) -> Any:
            result = self.inner(data)
            if isinstance(result, dict):
                return next(iter(result.values()))
            return result[0] if isinstance(result, tuple) else result

    return First().eval()
