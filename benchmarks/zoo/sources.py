"""The models of the zoo: what onnx ships, what installed packages hold, what torch exports."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from importlib import metadata
from pathlib import Path

import onnx

from benchmarks.light_models import NAMES, light_model
from benchmarks.zoo.model import MODEL_FILE, Model

# Shapes that a file leaves open, and values that its branches need, as options of `simulate`.
OPEN = (
    ("ddddocr/common.onnx", "--shape", "input1=1x1x64x160"),
    ("ddddocr/common_old.onnx", "--shape", "input1=1x1x64x160"),
    ("*silero_vad.onnx", "--shape", "input=1x512", "--shape", "state=2x1x128", "--input",
     "sr=16000"),
    ("*silero_vad_op18_ifless.onnx", "--shape", "input=1x512", "--shape", "state=2x1x128",
     "--input", "sr=16000"),
    ("*silero_vad_16k_op15.onnx", "--shape", "input=1x512", "--shape", "state=2x1x128",
     "--input", "sr=16000"),
    ("*silero_vad_half.onnx", "--shape", "input=1x512", "--shape", "state=2x1x128"),
    ("*silero_vad_16k_sequence.onnx", "--shape", "input=4x576"),
    ("*silero_vad_v6.onnx", "--shape", "input=4x576"),
    ("magika/*", "--shape", "bytes=1x2048"),
    ("nudenet/320n.onnx", "--shape", "images=1x3x320x320"),
    ("*_det_infer.onnx", "--shape", "x=1x3x320x320"),
    ("*_rec_infer.onnx", "--shape", "x=1x3x48x320"),
    ("*_cls_infer.onnx", "--shape", "x=1x3x48x192"),
)  # fmt: skip


def models() -> dict[str, Model]:
    """Return all models that can be made here, by name; those of torch where it is installed."""
    found = [*_shipped(), *_installed()]
    if importlib.util.find_spec("torch"):
        from benchmarks.zoo.exported import exports

        found += exports()
    return {model.name: model for model in found}


def _shipped() -> Iterator[Model]:
    source = f"onnx {metadata.version('onnx')}"
    for name in NAMES:
        yield Model(name, source, partial(_write_light, name))


def _write_light(name: str, folder: Path) -> Path:
    onnx.save(light_model(name), folder / MODEL_FILE)
    return folder / MODEL_FILE


def _installed() -> Iterator[Model]:
    """List the files of packages, each content once; onnx's own are test data."""
    seen = set()
    for package in sorted(metadata.distributions(), key=lambda one: one.name.lower()):
        for file in package.files or ():
            path = Path(str(file.locate()))
            if file.suffix != ".onnx" or package.name == "onnx" or not path.is_file():
                continue
            content = hashlib.sha256(path.read_bytes()).digest()
            if content in seen:
                continue
            seen.add(content)
            options = next((row[1:] for row in OPEN if fnmatch(str(file), row[0])), ())
            source = f"{package.name} {package.version}"
            yield Model(f"{package.name}/{path.stem}", source, partial(_copy, path), options)


def _copy(path: Path, folder: Path) -> Path:
    return Path(shutil.copy(path, folder / MODEL_FILE))
