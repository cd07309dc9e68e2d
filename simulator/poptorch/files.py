"""Files of compiled modules: what save and compileAndExport write, and loadExecutable reads.

A zip of the exported model, of a description of its tensors, and, unless that is left out, of the
module with options and optimiser, pickled by PyTorch. There is no code of the device within: a
module that is loaded is compiled again, without an export.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import onnx
import torch
from torch.utils import _pytree as trees

from simulator.popart.importing.model_files.model_file import read_model
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting.exported import Constant, Exported

if TYPE_CHECKING:
    from simulator.poptorch.options import Options


FORMAT, VERSION = "tilescope executable of PopTorch", 1
ABOUT, MODEL, MODULE = "about.json", "model.onnx", "module.pt"
PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A module as it was exported, the arguments of a micro-batch, and whether it is trained."""

    exported: Exported
    like: list[Any]
    training: bool


def write_file(filename: str, compiled: Compiled, module: dict[str, object] | None) -> None:
    """Write a file of a compiled module; raises Error for what cannot be kept or written."""
    about = {"format": FORMAT, "version": VERSION, **_described(compiled)}
    try:
        with zipfile.ZipFile(filename, "w") as archive:
            archive.writestr(ABOUT, json.dumps(about, indent=1))
            archive.writestr(MODEL, compiled.exported.model.SerializeToString())
            if module is not None:
                archive.writestr(MODULE, _pickled(module))
    except OSError as error:
        raise Error(f"{filename}: {error.strerror}") from None


def read_file(filename: str) -> Compiled:
    """Read a compiled module, and nothing that is code; raises Error for any other file."""
    try:
        with zipfile.ZipFile(filename) as archive:
            about, data = json.loads(archive.read(ABOUT)), archive.read(MODEL)
        if about["format"] != FORMAT or about["version"] != VERSION:
            raise Error(f"{filename}: version {about['version']}; {VERSION} can be read")
        return _read_back(about, read_model(data)[0])
    except OSError as error:
        raise Error(f"{filename}: {error.strerror}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise Error(f"{filename}: no file of a compiled module ({error})") from None


class Content(TypedDict):
    """What a file keeps of a module, as PoplarExecutor takes it."""

    model: torch.nn.Module
    options: Options
    training: bool
    optimizer: torch.optim.Optimizer | None
    rng_state: list[int] | None


def read_module(filename: str) -> Content:
    """Return the module of a file, its options and optimiser. This runs code of the file."""
    read_file(filename)
    with zipfile.ZipFile(filename) as archive:
        if MODULE not in archive.namelist():
            raise Error(
                f"{filename}: written with export_model=False; wrap the module yourself and call"
                " its loadExecutable"
            )
        content: Content = torch.load(
            io.BytesIO(archive.read(MODULE)), weights_only=False, map_location="cpu"
        )
    return content


def _pickled(module: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    try:
        torch.save(module, stream)
    except Exception as error:  # whatever a class of the user's raises
        raise Error(
            f"module {type(module['model']).__name__}: it cannot be pickled ({error}); use"
            " export_model=False"
        ) from None
    return stream.getvalue()


def _described(compiled: Compiled) -> dict[str, object]:
    exported = compiled.exported
    outputs = [
        {"constant": _plain(output.value)} if isinstance(output, Constant) else output
        for output in exported.outputs
    ]
    try:
        returned = trees.treespec_dumps(exported.returned)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise Error(f"what the module returns cannot be kept in a file: {error}") from None
    return {
        "training": compiled.training,
        "inputs": exported.inputs,
        "outputs": outputs,
        "returned": returned,
        "weights": exported.weights,
        "marks": exported.marks,
        "norms": exported.norms,
        "read": sorted(exported.read),
        "changed": list(exported.changed),
        "arguments": [_argument(leaf) for leaf in compiled.like],
    }


def _argument(leaf: object) -> object:
    if isinstance(leaf, torch.Tensor):
        return {"type": str(leaf.dtype).removeprefix("torch."), "shape": list(leaf.shape)}
    return {"constant": _plain(leaf)}


def _plain(value: object) -> object:
    if not isinstance(value, PLAIN):
        raise Error(f"{value!r}: an argument or output of {type(value)} cannot be kept in a file")
    return value


def _read_back(about: dict[str, Any], model: onnx.ModelProto) -> Compiled:
    outputs: Sequence[Any] = about["outputs"]
    exported = Exported(
        model=model,
        inputs=about["inputs"],
        outputs=[
            output if isinstance(output, str) else Constant(output["constant"])
            for output in outputs
        ],
        returned=trees.treespec_loads(about["returned"]),
        weights=about["weights"],
        marks=about["marks"],
        norms=about["norms"],
        read=frozenset(about["read"]),
        changed=about["changed"],
    )
    like = [
        one["constant"]
        if "constant" in one
        else torch.empty(one["shape"], dtype=getattr(torch, one["type"]))
        for one in about["arguments"]
    ]
    return Compiled(exported, like, about["training"])


def check_fits(filename: str, compiled: Compiled, tensors: dict[str, torch.Tensor]) -> None:
    """Raise Error where a module has not the weights of a file."""
    shapes = {
        tensor.name: list(tensor.dims) for tensor in compiled.exported.model.graph.initializer
    }
    for name, key in sorted(compiled.exported.weights.items()):
        shape = list(tensors[key].shape) if key in tensors else None
        if shape != shapes.get(name, shape):
            have = f"it is {shape}" if shape is not None else "there is none"
            raise Error(
                f"{Path(filename).name}: made of another module: its weight {key!r} is"
                f" {shapes[name]}, in this module {have}"
            )
