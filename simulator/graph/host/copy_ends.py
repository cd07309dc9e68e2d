"""The ends of a copy: tensors, streams and remote buffers, and whether they go together."""

from __future__ import annotations

from simulator.graph.errors import PoplarError
from simulator.graph.host.streams import RemoteBuffer, Stream
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT

End = Tensor | Stream | RemoteBuffer  # what a copy moves values out of, or into


def check_ends(subject: str, src: End, dst: End) -> None:
    """Raise PoplarError unless one end is a tensor and a stream goes the right way."""
    for end in (src, dst):
        if not isinstance(end, Tensor | Stream | RemoteBuffer):
            raise PoplarError(
                f"{subject}: a tensor, a stream or a remote buffer is needed, not {end!r}"
            )
    if not isinstance(src, Tensor) and not isinstance(dst, Tensor):
        raise PoplarError(f"{subject}: from {_named(src)} to {_named(dst)}; one must be a tensor")
    if isinstance(src, Stream) and src.direction != "in":
        raise PoplarError(f"{subject}: from stream {src.handle!r}, which goes to the host")
    if isinstance(dst, Stream) and dst.direction != "out":
        raise PoplarError(f"{subject}: to stream {dst.handle!r}, which comes from the host")


def moved_rows(subject: str, src: object, dst: object, offset: object) -> int:
    """Count the rows of a remote buffer that a copy moves."""
    remote = isinstance(src, RemoteBuffer) or isinstance(dst, RemoteBuffer)
    if offset is None:
        return 1
    if not remote:
        raise PoplarError(f"{subject}: offset {offset!r}; only a remote buffer has rows")
    if not isinstance(offset, Tensor) or offset.dtype not in (INT, UNSIGNED_INT):
        raise PoplarError(f"{subject}: offset is {offset!r}; a tensor of unsigned int is needed")
    return offset.numElements()


def check_same(subject: str, src: End, dst: End, rows: int = 1) -> None:
    """Raise PoplarError unless both ends of a copy are of one type and size."""
    sizes = _size(src, rows), _size(dst, rows)
    if src.dtype != dst.dtype or sizes[0] != sizes[1]:
        raise PoplarError(
            f"{subject}: {_side(src, sizes[0])} to {_side(dst, sizes[1])}; "
            "type and number of elements must be the same"
        )


def _size(end: End, rows: int) -> int:
    if isinstance(end, RemoteBuffer):
        return end.num_elements * end.replicas * rows
    return end.total if isinstance(end, Stream) else end.numElements()


def _side(end: End, size: int) -> str:
    return f"{_named(end)} ({size} x {end.dtype})"


def _named(end: End) -> str:
    if isinstance(end, Tensor):
        return end.describe()
    return f"{'stream' if isinstance(end, Stream) else 'remote buffer'} {end.handle!r}"
