"""Write the small exports that `make test` runs, with torch's own outputs: one for each pattern.

python -m benchmarks.zoo.fixtures FOLDER [NAME...]

Runs in the environment of `make zoo`. NAME.onnx is the export without names of files and lines,
NAME.npz its input and the output that torch computes.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.zoo.exported import SEED, first_output, of_transformers, write

_TEXT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 16, "vocab_size": 40, "max_position_embeddings": 16}  # fmt: skip
_VISION = {key: _TEXT[key] for key in list(_TEXT)[:4]} | {"image_size": 16, "patch_size": 8}
IMAGE, TOKENS = (1, 3, 32, 32), 8
# The class of transformers, its configuration, its input, and whether dynamo exports it.
FIXTURES: dict[str, tuple[str, dict[str, Any], int | tuple[int, ...], bool]] = {
    "bert_torchscript": ("BertModel", _TEXT, TOKENS, False),
    "bert_dynamo": ("BertModel", _TEXT, TOKENS, True),
    "distilbert_torchscript": ("DistilBertModel", {
        "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "vocab_size": 40,
        "max_position_embeddings": 16}, TOKENS, False),
    "gpt2_dynamo": ("GPT2LMHeadModel", {
        "n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 40, "n_positions": 16,
        "use_cache": False}, TOKENS, True),
    "llama_dynamo": ("LlamaModel", _TEXT | {"use_cache": False}, TOKENS, True),
    "t5_encoder_torchscript": ("T5EncoderModel", {
        "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2,
        "vocab_size": 40}, TOKENS, False),
    "vit_torchscript": ("ViTModel", _VISION, (1, 3, 16, 16), False),
    "swin_torchscript": ("SwinModel", {
        "image_size": 32, "embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": 4},
        IMAGE, False),
    "convnext_dynamo": ("ConvNextModel", {
        "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "image_size": 32}, IMAGE, True),
    "segformer_torchscript": ("SegformerModel", {
        "hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2,
        "num_attention_heads": [1, 2], "sr_ratios": [2, 1], "patch_sizes": [7, 3],
        "strides": [4, 2], "mlp_ratios": [2, 2]}, IMAGE, False),
}  # fmt: skip


def main(folder: Path, names: list[str]) -> None:
    """Write the fixtures of these names, or all."""
    import torch

    for name in names or FIXTURES:
        kind, config, shape, dynamo = FIXTURES[name]
        network = partial(of_transformers, kind, config)
        with tempfile.TemporaryDirectory() as temporary:
            model = onnx.load(write(network, shape, dynamo, Path(temporary)))
        onnx.save(_bare(model), folder / f"{name}.onnx")
        torch.manual_seed(SEED)
        made = first_output(network().eval())
        random = np.random.default_rng(SEED)
        data: Any = random.normal(size=shape).astype(np.float32)
        if isinstance(shape, int):
            data = random.integers(0, 40, (1, shape))
        with torch.no_grad():
            output = made(torch.from_numpy(data)).numpy()
        np.savez_compressed(folder / f"{name}.npz", input=data, output=output)


def _bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop what exporters write about the program: files, lines, long names of inner values.

    None of these exports has a graph inside a node.
    """
    graph = model.graph
    del graph.value_info[:]
    kept = {value.name for value in (*graph.input, *graph.output)}
    inner = [tensor.name for tensor in graph.initializer]
    inner += [name for node in graph.node for name in node.output]
    short = {name: f"v{place}" for place, name in enumerate(inner) if name and name not in kept}
    for tensor in graph.initializer:
        tensor.name = short[tensor.name]
    for place, node in enumerate(graph.node):
        node.name = f"{node.op_type}{place}"
        node.doc_string = ""
        del node.metadata_props[:]
        for names in (node.input, node.output):
            names[:] = [short.get(name, name) for name in names]
    for table in (model.graph, model):
        table.doc_string = ""
        del table.metadata_props[:]
    for value in (*model.graph.initializer, *model.graph.input, *model.graph.output):
        value.doc_string = ""
        del value.metadata_props[:]
    return model


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
