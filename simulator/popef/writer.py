"""Write PopEF files: blobs one after another, put in place when the writer is closed."""

from __future__ import annotations

import hashlib
import zlib
from enum import Enum
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from pva.errors import OverwriteError, PvaError
from pva.formats.files import replacing
from pva.plain_file import opened
from simulator.popef.container import FORMAT, LEVEL, framed
from simulator.popef.declaration import COMPRESSED, MAGIC, BlobType
from simulator.popef.structures import (
    ExecutableInfo,
    FeedDataInfo,
    Metadata,
    OpaqueInfo,
    Structure,
    TensorDataInfo,
)


class Mode(Enum):
    """What becomes of the blobs that a file has: they go, or others are added behind them."""

    WRITE = "write"
    APPEND = "append"


class BlobWriter:
    """The content of one blob; `write` takes it in parts, `close` ends it.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from simulator import popef
    >>> with TemporaryDirectory() as directory:
    ...     path = f"{directory}/net.popef"
    ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
    ...     with popef.FileWriter(path) as writer:
    ...         blob = writer.createTensorData(info)
    ...         blob.write(np.float32([3]))
    ...         blob.write(np.float32([4]))
    ...     reader = popef.Reader()
    ...     reader.parseFile(path)
    ...     reader.tensors()[0].data().tolist()
    [3.0, 4.0]
    """

    def __init__(self, writer: FileWriter, kind: BlobType, info: Structure, compress: bool) -> None:
        self._writer, self._kind, self._info, self._compress = writer, kind, info, compress
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, data: Any, size: int | None = None) -> None:
        """Add bytes, the first `size` of them; raises PvaError when the blob is closed.

        >>> import numpy as np
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
        ...     with popef.FileWriter(path) as writer:
        ...         blob = writer.createTensorData(info)
        ...         blob.write(np.float32([3, 4, 5]), 8)  # bytes: the first two
        ...     reader = popef.Reader()
        ...     reader.parseFile(path)
        ...     reader.tensors()[0].data().tolist()
        [3.0, 4.0]
        """
        if self.closed:
            raise PvaError(self._writer.path, "this blob is closed", "write to the newest one")
        content = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        if size is not None and not 0 <= size <= len(content):
            raise PvaError(self._writer.path, f"{size} of {len(content)} bytes", "give as many")
        self._parts.append(bytes(content if size is None else content[:size]))

    def close(self) -> None:
        """End the blob; raises PvaError when a tensor has not the bytes of its shape.

        >>> import numpy as np
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     info = popef.TensorDataInfo(name="x", tensorInfo=popef.TensorInfo(shape=[2]))
        ...     with popef.FileWriter(path) as writer:
        ...         blob = writer.createTensorData(info)
        ...         blob.write(np.float32([3, 4]))
        ...         blob.close()
        ...         print(blob.closed)
        True
        """
        if self.closed:
            return
        self.closed, content = True, b"".join(self._parts)
        self._parts.clear()
        self._check(len(content))
        structure = self._info.values()
        if self._kind is BlobType.POPLAR_EXECUTABLE:
            digest = hashlib.sha256(content).hexdigest()
            structure |= {"uncompressedSize": str(len(content)), "hash": digest}
        payload = zlib.compress(content, LEVEL) if self._compress else content
        flags = COMPRESSED if self._compress else 0
        self._writer._parts += framed(self._kind, structure, payload, flags)

    def _check(self, size: int) -> None:
        if self._kind not in (BlobType.DATA_TENSOR, BlobType.DATA_FEED):
            return
        count = self._info.numTensors() if self._kind is BlobType.DATA_FEED else 1
        needed = self._info.tensorInfo().sizeInBytes() * count
        if size != needed:
            fault = f"tensor {self._info.name()!r} has {size:,} bytes"
            raise PvaError(self._writer.path, fault, f"{needed:,} are needed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        """Close the blob at the end of a block that raised nothing."""
        if kind is None:
            self.close()
        self.closed = True


class FileWriter:
    """Writes a file, which is there once the writer is closed: what stood there stays until then.

    A file that is no PopEF file of tilescope is not replaced, unless it is empty. At the end of a
    `with` block that raised something nothing is written.

    >>> import numpy as np
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

    def __init__(self, path: str | PathLike[str], mode: Mode = Mode.WRITE) -> None:
        self.path = Path(fspath(path))
        self._parts: list[bytes] = [] if _is_free(self.path) else _own(self.path, mode)
        self._open: BlobWriter | None = None
        self._closed = False

    def write(self, metadata: Metadata) -> None:
        """Write metadata.

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
        self._blob(BlobType.METADATA, metadata).close()

    writeMetadata = write

    def createExecutable(
        self, name: str | ExecutableInfo, compress: bool = False, version: str = ""
    ) -> BlobWriter:
        """Begin an executable, of this name or with what else is known of it.

        What wrote it is the version here, if `version` does not say otherwise.

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
        from simulator.executable_file import versions

        info = ExecutableInfo(name=name) if isinstance(name, str) else name
        if not info.name():
            raise PvaError(self.path, "an executable of no name", "give it one")
        info = ExecutableInfo.of_values(info.values())
        info.setVersion(version or info.version() or versions())
        return self._blob(BlobType.POPLAR_EXECUTABLE, info, compress)

    def createTensorData(self, info: TensorDataInfo, compress: bool = False) -> BlobWriter:
        """Begin the elements of a tensor.

        >>> import numpy as np
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
        return self._blob(BlobType.DATA_TENSOR, info, compress)

    def createFeedData(self, info: FeedDataInfo, compress: bool = False) -> BlobWriter:
        """Begin the elements of several tensors of one name.

        >>> import numpy as np
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
        return self._blob(BlobType.DATA_FEED, info, compress)

    def createOpaqueBlob(self, name: str, executable: str) -> BlobWriter:
        """Begin the bytes of a framework.

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
        return self._blob(BlobType.OPAQUE, OpaqueInfo(name=name, executable=executable))

    def _blob(self, kind: BlobType, info: Structure, compress: bool = False) -> BlobWriter:
        """Begin a blob; the one before it ends."""
        if self._closed:
            raise PvaError(self.path, "this writer is closed", "make another one")
        if self._open is not None:
            self._open.close()
        self._open = BlobWriter(self, kind, info, compress)
        return self._open

    def close(self) -> None:
        """End the last blob and put the file in place; raises PvaError.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from simulator import popef
        >>> with TemporaryDirectory() as directory:
        ...     path = f"{directory}/net.popef"
        ...     writer = popef.FileWriter(path)
        ...     print(Path(path).exists())
        ...     writer.close()
        ...     Path(path).exists()
        False
        True
        """
        if self._closed:
            return
        if self._open is not None:
            self._open.close()
        self._closed = True
        with replacing(self.path, FORMAT) as stream:
            stream.writelines(self._parts)
        self._parts.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self.close()
        self._closed = True


Writer = FileWriter


def _is_free(path: Path) -> bool:
    return not path.exists() or (path.is_file() and not path.stat().st_size)


def _own(path: Path, mode: Mode) -> list[bytes]:
    """Return the content of a file that is kept; raises OverwriteError for one that is not ours."""
    with opened(path, FORMAT) as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise OverwriteError(path, "a file that is no PopEF file of tilescope", "it is kept")
        stream.seek(0)
        return [stream.read()] if mode is Mode.APPEND else []
