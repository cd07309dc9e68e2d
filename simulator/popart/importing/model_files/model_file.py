"""ONNX files: read, checked, and the values of their tensors."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from pva.errors import NotFoundError, PvaError
from pva.plain_file import contents, opened
from simulator.graph.option_table import quoted
from simulator.graph.types import Array
from simulator.popart.errors import popart_exception, unreadable_model
from simulator.popart.importing.model_files import external_data
from simulator.popart.importing.model_files.external_data import WRITTEN
from simulator.popart.importing.model_files.stored_weights import without_values
from simulator.popart.representation.tensor_info import TensorInfo, type_name

MAX_BYTES = 2 << 30  # what protobuf reads
LONGEST_PATH = 4096  # characters

Model: TypeAlias = str | Path | bytes | onnx.ModelProto


def load_model(source: Model) -> tuple[onnx.ModelProto, str, Path | None]:
    """Return what `read_model` does; what cannot be read is said in PopART's words."""
    try:
        return read_model(source)
    except unreadable_model as error:
        raise popart_exception(
            f"Failed to load a ModelProto from the string ({error}). Check that it is either a "
            "valid path to an existing onnx model file, or is a valid onnx ModelProto string."
        ) from None


def read_model(source: Model) -> tuple[onnx.ModelProto, str, Path | None]:
    """Return a model, what errors call it, and the folder of its external data.

    `source` is a path, a serialised ModelProto or a ModelProto. Raises popart_exception.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(source, "model"), "model", None
    if isinstance(source, bytes):
        return _checked(_decoded(source, "model"), "model"), "model", None
    if not isinstance(source, str | Path):
        raise unreadable_model(
            f"model: {type(source).__name__} is none; a path, the bytes of getModelProto() or a "
            "ModelProto is needed"
        )
    path = Path(source)
    try:
        data = contents(path, "an ONNX model", MAX_BYTES)
    except NotFoundError:
        raise unreadable_model(f"{path}: No such file; give an ONNX model") from None
    except PvaError as error:
        raise unreadable_model(f"{error.subject}: {error.found}; give an ONNX model") from None
    return _checked(_decoded(data, str(path)), str(path)), str(path), path.parent


def read_graph(path: Path) -> tuple[onnx.ModelProto, str, Path | None]:
    """Return what `read_model` does, with the values of large tensors left in the file.

    They are external data of the model. One that is a link, or is not plainly built, is read whole.
    """
    subject = str(path)
    with suppress(PvaError, OSError), opened(path, "an ONNX model") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= MAX_BYTES and not path.is_symlink():
            data = without_values(stream, size, path.name)
            if data is not None:
                return _checked(_decoded(data, subject), subject), subject, path.parent
    return read_model(path)


def _decoded(data: bytes, subject: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        if not _has_room(2 * len(data)):  # protobuf does not tell this apart
            raise popart_exception(
                f"{subject}: too large for the memory; give an ONNX model"
            ) from None
        raise unreadable_model(
            f"{subject}: not an ONNX model (its protobuf cannot be read)"
        ) from None
    return model


def _has_room(size: int) -> bool:
    """Return whether the process may have so many bytes more."""
    try:
        np.empty(size, dtype=np.uint8)
    except MemoryError:
        return False
    return True


def _checked(model: onnx.ModelProto, subject: str) -> onnx.ModelProto:
    if not model.HasField("graph") or not model.opset_import:
        raise popart_exception(f"{subject}: not an ONNX model: it has no graph or no operator set")
    if not _all_text(model):
        raise popart_exception(f"{subject}: not an ONNX model: a name in it is not UTF-8")
    if not model.graph.node:
        raise popart_exception(f"{subject}: the model's graph has no nodes")
    return model


def _all_text(message: Message) -> bool:
    """Return whether every text of a message, and of those within, could be decoded."""
    for field, value in message.ListFields():
        many = value if isinstance(value, Sequence | MutableSequence) else [value]
        if field.type == FieldDescriptor.TYPE_STRING:
            if not all(isinstance(text, str) for text in many):
                return False
        elif field.type == FieldDescriptor.TYPE_MESSAGE and not all(map(_all_text, many)):
            return False
    return True


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each domain that a model imports."""
    return {_domain(entry.domain): entry.version for entry in model.opset_import}


def _domain(name: str) -> str:
    return name or "ai.onnx"


def value_info(value: onnx.ValueInfoProto, subject: str) -> tuple[str, list[int | None]]:
    """Return the type of a graph's input or output, and its sizes, None where open."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise popart_exception(
            f"{subject}: is a {kind or 'value without a type'}; tensors are known"
        )
    tensor = value.type.tensor_type
    sizes: list[int | None] = [
        dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim
    ]
    return type_name(tensor.elem_type, subject), sizes


def tensor_info(tensor: onnx.TensorProto, subject: str) -> TensorInfo:
    """Return type and shape of a stored tensor."""
    return TensorInfo(type_name(tensor.data_type, subject), tensor.dims)


def tensor_values(tensor: onnx.TensorProto, folder: Path | None, subject: str) -> Array:
    """Return the values of a stored tensor, read-only; raises popart_exception.

    External data are read from below `folder` alone.
    """
    info = tensor_info(tensor, subject)
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, info, folder, subject)
    try:
        if _has_pairs(tensor, info):
            words = np.array(tensor.int32_data, dtype="<i4")
            return words.view("<f2")[: info.nelms()].astype(np.float16).reshape(info.dims)
        return np.asarray(onnx.numpy_helper.to_array(tensor)).reshape(info.dims)
    except (ValueError, TypeError, OverflowError):
        raise popart_exception(f"{subject}: its data are not those of {info}") from None


def _has_pairs(tensor: onnx.TensorProto, info: TensorInfo) -> bool:
    """Return whether a word holds two halves, as PopART writes them; ONNX has one in each."""
    words = len(tensor.int32_data)
    halves = tensor.data_type == onnx.TensorProto.FLOAT16
    return halves and words != info.nelms() and words == -(-info.nelms() // 2)


def _external(
    tensor: onnx.TensorProto, info: TensorInfo, folder: Path | None, subject: str
) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(entries.get("location", ""), folder, subject)
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", info.stored_bytes()))
    except ValueError:
        expected = "offset and length are numbers"
        raise popart_exception(
            f"{subject}: external data at {quoted(entries)}; {expected}"
        ) from None
    if length != info.stored_bytes() or offset < 0:
        raise popart_exception(
            f"{subject}: {length} bytes of external data at {offset}; {info} has "
            f"{info.stored_bytes()}"
        )
    try:
        with opened(path, "external data") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < offset + length:
                raise popart_exception(
                    f"{subject}: external data end at byte {offset + length} of {path}, which has "
                    f"{size}"
                )
            kind = np.dtype(np.uint8) if info.bits else info.host
            data = np.fromfile(stream, kind, length // kind.itemsize, offset=offset)
        return unpacked(data, tensor) if info.bits else data.reshape(info.dims)
    except PvaError as error:
        raise popart_exception(f"{subject}: external data {path}: {error.found}") from None
    except ValueError:  # of a file that was cut short meanwhile
        raise popart_exception(f"{subject}: external data {path}: cut short") from None


def unpacked(data: Array, tensor: onnx.TensorProto) -> Array:
    """Return the numbers of which a file has several in a byte, as `tensor` describes them."""
    packed = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=data.tobytes())
    return np.asarray(onnx.numpy_helper.to_array(packed))


def _inside(location: str, folder: Path | None, subject: str) -> Path:
    """Return the path of external data; refuse what is not below the model's folder.

    What this process has written itself may lie anywhere.
    """
    if any(path == Path(location).absolute() for path in WRITTEN):
        return Path(location)
    if folder is None:
        raise popart_exception(f"{subject}: has external data; load the model by its path")
    try:
        root = folder.resolve()
        path = (root / location).resolve()
        if len(str(path)) > LONGEST_PATH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, or a link to itself
        reason = getattr(error, "strerror", None) or str(error).partition(" from ")[0]
        shown = f"{subject}: external data {quoted(location)}: {reason}"
        raise popart_exception(f"{shown}; a path below the model's folder is needed") from None
    if not location or Path(location).is_absolute() or not path.is_relative_to(root):
        raise popart_exception(
            f"{subject}: external data {quoted(location)} lie outside the model's folder"
        )
    return path


def attributes_of(node: onnx.NodeProto, subject: str) -> dict[str, object]:
    """Return a node's attributes: numbers, texts, lists, arrays; graphs as they are."""
    return {attribute.name: _attribute(attribute, subject) for attribute in node.attribute}


def _attribute(attribute: onnx.AttributeProto, subject: str) -> Any:
    name = f"{subject}: attribute {attribute.name!r}"
    kind = attribute.type
    if kind in _PLAIN:
        return _PLAIN[kind](attribute)
    if kind == onnx.AttributeProto.TENSOR:
        return tensor_values(attribute.t, None, name)
    if kind == onnx.AttributeProto.GRAPH:
        return attribute.g
    if kind == onnx.AttributeProto.SPARSE_TENSOR:
        raise popart_exception(f"The Constant op attribute '{attribute.name}' is not supported.")
    raise popart_exception(f"{name}: is of a kind that is not known ({kind})")


_PLAIN: dict[int, Callable[[Any], Any]] = {
    onnx.AttributeProto.FLOAT: lambda a: a.f,
    onnx.AttributeProto.INT: lambda a: a.i,
    onnx.AttributeProto.STRING: lambda a: a.s.decode("utf-8", "replace"),
    onnx.AttributeProto.FLOATS: lambda a: list(a.floats),
    onnx.AttributeProto.INTS: lambda a: list(a.ints),
    onnx.AttributeProto.STRINGS: lambda a: [s.decode("utf-8", "replace") for s in a.strings],
}


def weights_of(model: onnx.ModelProto, subject: str, folder: Path | None) -> dict[str, Array]:
    """Return the values of all initialisers."""
    return {
        tensor.name: tensor_values(tensor, folder, f"{subject}: initialiser {tensor.name!r}")
        for tensor in model.graph.initializer
    }


def typed_tensor(values: Array, name: str, *, pairs: bool = False) -> onnx.TensorProto:
    """Return a stored tensor with its numbers where PopART's builder puts them: `float_data`, ...

    Halves are as ONNX has them, one in a word, or `pairs` as PopART writes them.
    """
    tensor = onnx.numpy_helper.from_array(values, name)
    if tensor.data_type in _TYPED_FIELDS:
        numbers = np.ascontiguousarray(values, values.dtype.newbyteorder("=")).reshape(-1)
        if tensor.data_type == onnx.TensorProto.FLOAT16:
            numbers = _words(numbers) if pairs else numbers.view(np.uint16).astype(np.int32)
        tensor.ClearField("raw_data")
        getattr(tensor, _TYPED_FIELDS[tensor.data_type]).extend(numbers.data)
    return tensor


def _words(halves: Array) -> Array:
    """Return words of two halves each, the first in the low bits; an odd one has a zero behind."""
    return np.append(halves, np.zeros(len(halves) % 2, halves.dtype)).astype("<f2").view("<i4")


_TYPED_FIELDS = {
    onnx.TensorProto.FLOAT: "float_data",
    onnx.TensorProto.FLOAT16: "int32_data",
    onnx.TensorProto.DOUBLE: "double_data",
    onnx.TensorProto.INT32: "int32_data",
    onnx.TensorProto.INT64: "int64_data",
}


def _extend_externally(
    model: onnx.ModelProto, weights: Mapping[str, Array | None], more: Iterable[str]
) -> None:
    """Put what is kept of weights, `more`, behind those weights in their file, kind by kind."""
    files = {
        tensor.name: place
        for tensor in model.graph.initializer
        if (place := external_data.written_place(tensor)) is not None
    }
    kinds = [(name, *name.partition("___")[::2]) for name in more]
    order = list(dict.fromkeys(kind for _, kind, _ in kinds))
    for name, _, weight in sorted(kinds, key=lambda one: order.index(one[1])):
        values = weights[name]
        if name not in files and weight in files and values is not None:
            tensor = onnx.numpy_helper.from_array(values, name)
            external_data.append(tensor, files[weight])
            model.graph.initializer.append(tensor)


def write_model(
    model: onnx.ModelProto,
    weights: Mapping[str, Array | None],
    path: str | Path,
    more: Iterable[str] = (),
) -> None:
    """Write a model with other values of its weights, and `more`; raises popart_exception.

    As in PopART, a weight keeps its form: `raw_data`, or the field of its type, as `float_data`;
    halves are two to a word of `int32_data` there.
    What `saveInitializersExternally` has put into a file is changed there, and what is kept of such
    a weight goes behind it, which the model notes.
    """
    _extend_externally(model, weights, more)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        values, place = weights.get(tensor.name), external_data.written_place(tensor)
        if values is not None and place is not None:
            external_data.update(tensor, place, values)
        elif values is not None:
            raw = tensor.HasField("raw_data")
            form = onnx.numpy_helper.from_array if raw else partial(typed_tensor, pairs=True)
            note = tensor.doc_string
            tensor.CopyFrom(form(values, tensor.name))
            tensor.doc_string = note
    stored = {tensor.name for tensor in changed.graph.initializer}
    for name in more:
        values = weights[name]
        if name not in stored and values is not None:
            changed.graph.initializer.append(typed_tensor(values, name, pairs=True))
    try:
        Path(path).write_bytes(changed.SerializeToString())
    except OSError as error:
        raise popart_exception(f"{path}: {error.strerror}") from None
