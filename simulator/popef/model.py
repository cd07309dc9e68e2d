"""What belongs together in PopEF files: metadata, its executable, and the data of its anchors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TypeVar

from pva.errors import PvaError
from simulator.popef.reader import (
    ExecutableReader,
    FeedReader,
    OpaqueReader,
    Reader,
    TensorReader,
)
from simulator.popef.structures import Metadata

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Model:
    """An executable, how to run it, and the tensors and feeds of its anchors.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.write(popef.Metadata(executable="net"))
    ...         writer.createExecutable("net").write(b"program")
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     popef.ModelBuilder(reader).createModel().metadata.executable()
    'net'
    """

    metadata: Metadata
    executable: ExecutableReader
    tensors: tuple[TensorReader, ...]
    feeds: tuple[FeedReader, ...]
    opaqueBlobs: tuple[OpaqueReader, ...]


class ModelBuilder:
    """Collects the parts of a model from a Reader.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.write(popef.Metadata(executable="net"))
    ...         writer.createExecutable("net").write(b"program")
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     popef.ModelBuilder(reader).createModel().executable.name
    'net'
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def createModel(self, executable: str = "") -> Model:
        """Return the model of an executable, by its name if there are several; raises PvaError.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.write(popef.Metadata(executable="net"))
        ...         writer.createExecutable("net").write(b"program")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     popef.ModelBuilder(reader).createModel("net").tensors
        ()
        """
        reader = self._reader
        metadata = [m for m in reader.metadata() if executable in ("", m.executable())]
        description = _only(metadata, "metadata", executable)
        name = description.executable()
        programs = [e for e in reader.executables() if e.name == name]
        program = _only(programs, "executable", name)
        anchors = {anchor.name() for anchor in description.anchors()}
        tensors = [tensor for tensor in reader.tensors() if tensor.info.name() in anchors]
        _check_once(str(tensor.info.name()) for tensor in tensors)
        feeds = tuple(feed for feed in reader.feeds() if feed.info.name() in anchors)
        opaque = tuple(blob for blob in reader.opaqueBlobs() if blob.executable == name)
        return Model(description, program, tuple(tensors), feeds, opaque)


def load_model(paths: str | PathLike[str] | Iterable[str | PathLike[str]]) -> Model:
    """Return the model of a file, or of several such as an executable and its weights.

    Raises PvaError, here for a file that is not there.

    >>> load_model("absent.popef")
    Traceback (most recent call last):
    pva.errors.NotFoundError: absent.popef: ...
    """
    reader = Reader()
    for path in [paths] if isinstance(paths, str | PathLike) else paths:
        reader.parseFile(path)
    return ModelBuilder(reader).createModel()


def _only(items: Sequence[T], kind: str, name: str) -> T:
    of = f" of {name!r}" if name else ""
    if not items:
        raise PvaError("PopEF model", f"no {kind}{of}", "read the file that has it, too")
    if len(items) > 1:
        raise PvaError("PopEF model", f"{len(items)} times {kind}{of}", "name one of them")
    return items[0]


def _check_once(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PvaError("PopEF model", f"tensor {name!r} stands there twice", "read one of them")
        seen.add(name)
