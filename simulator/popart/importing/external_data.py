"""Initialisers in a file of their own, beside the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import onnx
from onnx import numpy_helper

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


def _move(tensor: onnx.TensorProto, offset: int, path: str, write: Callable[[bytes], int]) -> None:
    values = numpy_helper.to_array(tensor)
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    write(data)
    bare = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    bare.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", path), ("offset", offset), ("length", len(data))):
        bare.external_data.add(key=key, value=str(value))
    tensor.CopyFrom(bare)
