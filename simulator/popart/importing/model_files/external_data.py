"""Initialisers in a file of their own, beside the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import onnx
from onnx import numpy_helper

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception

# Files that this process has written: a model may name them wherever they lie.
WRITTEN: set[Path] = set()


def save_externally(
    tensors: Sequence[onnx.TensorProto], ids: Iterable[str], path: str, subject: str
) -> None:
    """Move the values of some initialisers to a file, one behind another.

    Raises popart_exception for what is no initialiser, or lies in a file already.
    """
    stored = {tensor.name: tensor for tensor in tensors}
    names = list(ids)
    for name in names:
        if name not in stored:
            raise popart_exception(f"{subject}: {name!r} is not an initializer")
        if stored[name].data_location == onnx.TensorProto.EXTERNAL:
            raise popart_exception(f"{subject}: {name!r} already has an external data_location")
    try:
        with open(path, "wb") as file:
            for name in names:
                _move(stored[name], file.tell(), path, file.write)
    except OSError as error:
        has_folder = Path(path).absolute().parent.is_dir()
        reason = error.strerror if has_folder else "its parent directory does not exist"
        raise popart_exception(f"{subject}: {path}: {reason}") from None
    WRITTEN.add(Path(path).absolute())


def written_place(tensor: onnx.TensorProto) -> Path | None:
    """Return the file of a stored tensor's values, if this process has written it."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    places = [entry.value for entry in tensor.external_data if entry.key == "location"]
    path = Path(places[0]).absolute() if places else None
    return path if path in WRITTEN else None


def update(tensor: onnx.TensorProto, path: Path, values: Array) -> None:
    """Write other values to where a stored tensor's lie; raises popart_exception."""
    offset = next((int(e.value) for e in tensor.external_data if e.key == "offset"), 0)
    try:
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(values.astype(values.dtype.newbyteorder("<")).tobytes())
    except OSError as error:
        raise popart_exception(f"{path}: {error.strerror}") from None


def append(tensor: onnx.TensorProto, path: Path) -> None:
    """Move the values of a stored tensor to the end of a file; raises popart_exception."""
    try:
        with open(path, "ab") as file:
            _move(tensor, file.tell(), str(path), file.write)
    except OSError as error:
        raise popart_exception(f"{path}: {error.strerror}") from None


def relocate(tensors: Iterable[onnx.TensorProto], source: str, target: str) -> None:
    """Copy a file of values, and let the tensors that name it name the copy.

    Raises popart_exception, in PopART's words, where the copy is there already, or no such file or
    tensor is.
    """
    subject = f"Updating externally saved tensor location from file '{source}' to file '{target}'"
    if Path(target).exists():
        raise popart_exception(f"{subject}, but file '{target}' already exists")
    if not Path(source).exists():
        raise popart_exception(f"{subject}, but file '{source}' does not exist")
    entries = [
        entry
        for tensor in tensors
        for entry in tensor.external_data
        if entry.key == "location" and entry.value == source
    ]
    if not entries:
        raise popart_exception(
            f"No ONNX model initializers have external location set to '{source}'"
        )
    try:
        Path(target).write_bytes(Path(source).read_bytes())
    except OSError as error:
        raise popart_exception(f"{target}: {error.strerror}") from None
    for entry in entries:
        entry.value = target
    WRITTEN.add(Path(target).absolute())


def _move(tensor: onnx.TensorProto, offset: int, path: str, write: Callable[[bytes], int]) -> None:
    values = numpy_helper.to_array(tensor)
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    write(data)
    bare = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    bare.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", path), ("offset", offset), ("length", len(data))):
        bare.external_data.add(key=key, value=str(value))
    tensor.CopyFrom(bare)
