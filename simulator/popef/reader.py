"""Read PopEF files: their blobs as objects, whose contents are read when they are asked for."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import numpy as np

from pva.collector import collector_paused
from pva.errors import DamagedFileError, PvaError
from simulator.executable import Executable
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.popef.container import Blob, Source, blobs_of
from simulator.popef.declaration import BlobType
from simulator.popef.structures import (
    LARGEST,
    ExecutableInfo,
    FeedDataInfo,
    Metadata,
    OpaqueInfo,
    Structure,
    TensorDataInfo,
)

if TYPE_CHECKING:
    from simulator.popef.structures import TensorInfo


S = TypeVar("S", bound=Structure)


@dataclass(frozen=True, slots=True)
class ExecutableReader:
    """An executable of a file.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.createExecutable("net").write(b"program")
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.executables()[0].name
    'net'
    """

    blob: Blob
    info: ExecutableInfo

    @property
    def name(self) -> str:
        """Return its name, by which metadata refers to it.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createExecutable("net").write(b"program")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.executables()[0].name
        'net'
        """
        return str(self.info.name())

    def executable(self) -> bytes:
        """Read the compiled program; raises PvaError when it is not the one that was written.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createExecutable("net").write(b"program")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.executables()[0].executable()
        b'program'
        """
        return bytes(self._content())

    def _content(self) -> memoryview:
        content = self._unchecked()
        self._check(hashlib.sha256(content).hexdigest())
        return content

    def _unchecked(self) -> memoryview:
        return self.blob.payload(self.info.uncompressedSize(), check=False)

    def _check(self, digest: str) -> None:
        if digest != self.info.hash():
            raise self.blob.damaged("the program does not have its hash")

    def getStandaloneExecutableStream(self) -> BinaryIO:
        """Read the compiled program as a stream.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createExecutable("net").write(b"program")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.executables()[0].getStandaloneExecutableStream().read(4)
        b'prog'
        """
        return io.BytesIO(self.executable())

    def load(self, check_package_hash: bool = True) -> Executable:
        """Return the program to be run, whose versions must be those here; raises PvaError.

        Without the check of the blob's versions the program's own are still looked at.

        >>> from simulator.executable import compileGraph
        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> executable = compileGraph(trial.graph, [trial.prog])
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         executable.serialize(writer.createExecutable("net"))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.executables()[0].load().programs)
        1
        """
        from simulator.executable_file import read_content, versions

        version, current = self.info.version(), versions()
        if check_package_hash and version != current:
            text = f"executable {self.name!r} is of version {version or 'unknown'}"
            raise PvaError(self.blob.source.path, text, f"this is {current}; compile it anew")
        content = self._unchecked()
        with ThreadPoolExecutor(1) as beside:  # the hash is another processor's work
            digest = beside.submit(lambda: hashlib.sha256(content).hexdigest())
            try:
                with collector_paused():
                    executable = Executable.checked(read_content(content))
            except PoplarError as error:
                self._check(digest.result())
                raise self.blob.damaged(str(error)) from None
        self._check(digest.result())
        return executable


@dataclass(frozen=True, slots=True)
class TensorReader:
    """The elements of a tensor.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
    ...     with popef.FileWriter(path) as writer:
    ...         writer.createTensorData(info).write(np.float32([3, 4]))
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.tensors()[0].info.name()
    'x'
    """

    blob: Blob
    info: TensorDataInfo

    def data(self) -> Array:
        """Read them as an array of the tensor's shape.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createTensorData(info).write(np.float32([3, 4]))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.tensors()[0].data().tolist()
        [3.0, 4.0]
        """
        info = self.info.tensorInfo()
        content = self.blob.payload(info.sizeInBytes())
        return np.frombuffer(content, info.dtype()).reshape(info.shape())


@dataclass(frozen=True, slots=True)
class FeedReader:
    """The elements of several tensors of one name.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     pair = popef.TensorInfo(shape=[2])
    ...     info = popef.FeedDataInfo(name="x", tensorInfo=pair, numTensors=2)
    ...     with popef.FileWriter(path) as writer:
    ...         writer.createFeedData(info).write(np.float32([1, 2, 3, 4]))
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.feeds()[0].info.numTensors()
    2
    """

    blob: Blob
    info: FeedDataInfo

    def data(self) -> Array:
        """Read them as an array: [tensors, *shape].

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     pair = popef.TensorInfo(shape=[2])
        ...     info = popef.FeedDataInfo(name="x", tensorInfo=pair, numTensors=2)
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createFeedData(info).write(np.float32([1, 2, 3, 4]))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.feeds()[0].data().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        info, count = self.info.tensorInfo(), self.info.numTensors()
        content = self.blob.payload(info.sizeInBytes() * count)
        return np.frombuffer(content, info.dtype()).reshape(count, *info.shape())


@dataclass(slots=True)
class OpaqueReader:
    """Bytes of a framework.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.createOpaqueBlob("torch", "net").write(b"state")
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.opaqueBlobs()[0].name
    'torch'
    """

    blob: Blob
    info: OpaqueInfo

    @property
    def name(self) -> str:
        """Return the framework that wrote them.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createOpaqueBlob("torch", "net").write(b"state")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.opaqueBlobs()[0].name
        'torch'
        """
        return str(self.info.name())

    @property
    def executable(self) -> str:
        """Return the name of the executable that they belong to.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createOpaqueBlob("torch", "net").write(b"state")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.opaqueBlobs()[0].executable
        'net'
        """
        return str(self.info.executable())

    def getAvailableReadSize(self) -> int:
        """Count the bytes.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createOpaqueBlob("torch", "net").write(b"state")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.opaqueBlobs()[0].getAvailableReadSize()
        5
        """
        return self.blob.stored

    def data(self) -> bytes:
        """Read the bytes.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createOpaqueBlob("torch", "net").write(b"state")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.opaqueBlobs()[0].data()
        b'state'
        """
        return bytes(self.blob.payload(self.blob.stored))


@dataclass(frozen=True, slots=True)
class MetadataReader:
    """Metadata, and where it stands.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.write(popef.Metadata(executable="net"))
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.metadataReaders()[0].info.executable()
    'net'
    """

    blob: Blob
    info: Metadata


class Reader:
    """The blobs of one file or of several, which may belong together.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     with popef.FileWriter(path) as writer:
    ...         writer.write(popef.Metadata(executable="net"))
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.metadata()[0].executable()
    'net'
    """

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self._executables: list[ExecutableReader] = []
        self._metadata: list[MetadataReader] = []
        self._tensors: list[TensorReader] = []
        self._feeds: list[FeedReader] = []
        self._opaque: list[OpaqueReader] = []

    def parseFile(self, path: str | PathLike[str]) -> None:
        """Read which blobs a file has; raises PvaError.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.write(popef.Metadata(executable="net"))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.blobs)
        1
        """
        self._parse(Source.of_file(Path(fspath(path))))

    def parseStream(self, stream: BinaryIO) -> None:
        """Read which blobs a stream has, which is read to its end; raises PvaError.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.write(popef.Metadata(executable="net"))
        ...     reader = popef.Reader()
        ...     with open(path, "rb") as stream:
        ...         reader.parseStream(stream)
        ...     len(reader.blobs)
        1
        """
        content = stream.read()
        self._parse(Source(getattr(stream, "name", "stream"), len(content), memoryview(content)))

    def executables(self) -> list[ExecutableReader]:
        """List the executables.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createExecutable("net").write(b"program")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.executables())
        1
        """
        return list(self._executables)

    def metadata(self) -> list[Metadata]:
        """List the metadata.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.write(popef.Metadata(executable="net"))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.metadata())
        1
        """
        return [entry.info for entry in self._metadata]

    def metadataReaders(self) -> list[MetadataReader]:
        """List the metadata with its places in the files.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.write(popef.Metadata(executable="net"))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.metadataReaders())
        1
        """
        return list(self._metadata)

    def tensors(self) -> list[TensorReader]:
        """List the tensors.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createTensorData(info).write(np.float32([3, 4]))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.tensors())
        1
        """
        return list(self._tensors)

    def feeds(self) -> list[FeedReader]:
        """List the feeds.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     pair = popef.TensorInfo(shape=[2])
        ...     info = popef.FeedDataInfo(name="x", tensorInfo=pair, numTensors=2)
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createFeedData(info).write(np.float32([1, 2, 3, 4]))
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.feeds())
        1
        """
        return list(self._feeds)

    def opaqueBlobs(self) -> list[OpaqueReader]:
        """List the bytes of frameworks.

        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     with popef.FileWriter(path) as writer:
        ...         writer.createOpaqueBlob("torch", "net").write(b"state")
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     len(reader.opaqueBlobs())
        1
        """
        return list(self._opaque)

    def _parse(self, source: Source) -> None:
        """Add the blobs of a source, all of them or none."""
        read = Reader()
        for blob in blobs_of(source):
            read._add(blob)
        names = [executable.name for executable in (*self._executables, *read._executables)]
        twice = [name for place, name in enumerate(names) if not name or name in names[:place]]
        if twice:
            fault = f"a second executable {twice[0]!r}" if twice[0] else "an executable of no name"
            raise PvaError(source.path, fault, "each needs a name of its own")
        for name, items in vars(read).items():
            getattr(self, name).extend(items)

    def _add(self, blob: Blob) -> None:
        self.blobs.append(blob)
        kind = blob.type
        if kind is BlobType.POPLAR_EXECUTABLE:
            info = _info(blob, ExecutableInfo)
            blob.check_size(info.uncompressedSize())
            self._executables.append(ExecutableReader(blob, info))
        elif kind is BlobType.METADATA:
            blob.check_size(0)
            self._metadata.append(MetadataReader(blob, _info(blob, Metadata)))
        elif kind is BlobType.DATA_TENSOR:
            tensor = _info(blob, TensorDataInfo)
            blob.check_size(_bytes(blob, tensor.tensorInfo(), 1))
            self._tensors.append(TensorReader(blob, tensor))
        elif kind is BlobType.DATA_FEED:
            feed = _info(blob, FeedDataInfo)
            blob.check_size(_bytes(blob, feed.tensorInfo(), feed.numTensors()))
            self._feeds.append(FeedReader(blob, feed))
        else:
            if blob.compressed:
                raise blob.damaged("it is compressed", "executables and tensors alone are")
            self._opaque.append(OpaqueReader(blob, _info(blob, OpaqueInfo)))


def _info(blob: Blob, kind: type[S]) -> S:
    """Return the structure of a blob; raises DamagedFileError."""
    try:
        return kind.of_values(blob.structure)
    except DamagedFileError:
        raise
    except PvaError as error:
        raise blob.damaged(str(error)) from None


def _bytes(blob: Blob, info: TensorInfo, count: int) -> int:
    """Count the bytes of tensors; raises DamagedFileError for more than any file has."""
    size = int(info.sizeInBytes()) * count
    if size >= LARGEST or max(info.shape(), default=0) >= LARGEST:
        raise blob.damaged(f"a tensor of shape {info.shape()}")
    return size
