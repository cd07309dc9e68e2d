"""Remote buffers: rows of values outside the IPU, for each replica.

Source: programming guide, 2.6.3 "Remote memory buffers".
"""

from __future__ import annotations

from operator import index

import numpy as np

from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.host.streams import RemoteBuffer
from simulator.graph.types import Array, IntArray
from simulator.runtime.host_data import host_array

PAGE_BYTES = 1 << 20  # rows are allocated so many bytes at a time, as a buffer may be huge


class RemoteBuffers:
    """The rows of all remote buffers; those that were never written hold zeros."""

    def __init__(self, buffers: list[RemoteBuffer], replicas: int = 1) -> None:
        self._buffers = {buffer.handle: buffer for buffer in buffers}
        self._replicas = replicas
        self._pages: dict[tuple[int, int, int], Array] = {}

    # From the device
    def load(self, buffer: RemoteBuffer, rows: IntArray, replica: int = 0) -> Array:
        """Return the values of rows, one after another; of a replicated view for each replica."""
        parts = self._per_copy(buffer, rows, replica)
        return np.concatenate([self._load(buffer, copy, part).reshape(-1) for copy, part in parts])

    def store(self, buffer: RemoteBuffer, rows: IntArray, values: Array, replica: int = 0) -> None:
        """Keep the values of rows; the last one stands where a row is given twice."""
        parts = self._per_copy(buffer, rows, replica)
        by_copy = values.reshape(buffer.replicas, -1, buffer.num_elements)
        for (copy, part), chunk in zip(parts, by_copy, strict=True):
            self._store(buffer, copy, part, chunk)

    # From the host
    def read(self, handle: str | RemoteBuffer, out: object, row: int, replica: int = 0) -> None:
        """Copy a row into memory of the host."""
        buffer, subject = self._buffer_named(handle)
        array = host_array(out, buffer.dtype, subject, writable=True)
        copy, rows = self._place(buffer, subject, row, replica, array.size)
        array[:] = self._load(buffer, copy, rows)[0]

    def write(self, data: object, handle: str | RemoteBuffer, row: int, replica: int = 0) -> None:
        """Copy memory of the host into a row."""
        buffer, subject = self._buffer_named(handle)
        array = host_array(data, buffer.dtype, subject)
        copy, rows = self._place(buffer, subject, row, replica, array.size)
        self._store(buffer, copy, rows, array[None])

    def _buffer_named(self, handle: str | RemoteBuffer) -> tuple[RemoteBuffer, str]:
        handle = handle.handle if isinstance(handle, RemoteBuffer) else handle
        buffer = self._buffers.get(handle)
        if buffer is None:
            handles = ", ".join(self._buffers) or "none"
            raise HostAccessError(
                f"remote buffer {handle!r}: unknown; remote buffers are {handles}"
            )
        return buffer, f"remote buffer {handle!r}"

    def _place(
        self, buffer: RemoteBuffer, subject: str, row: int, replica: int, size: int
    ) -> tuple[int, IntArray]:
        """Check what the host names: a replica, a row, and as many values as a row has."""
        copies = self._replicas * buffer.replicas
        if size != buffer.num_elements:
            raise HostAccessError(
                f"{subject}: array of {size} elements; a row has {buffer.num_elements}"
            )
        try:
            rows, copy = np.array([index(row)], dtype=np.int64), index(replica)
        except TypeError:
            problem = f"row {row!r} of replica {replica!r}"
            raise HostAccessError(f"{subject}: {problem}; numbers are needed") from None
        if not 0 <= copy < copies:
            raise HostAccessError(
                f"{subject}: replica {copy}; there are replicas 0 to {copies - 1}"
            )
        check_rows(buffer, rows)
        return copy, rows

    def _per_copy(
        self, buffer: RemoteBuffer, rows: IntArray, replica: int
    ) -> list[tuple[int, IntArray]]:
        """Return the rows of each replica of a view, one replica's after another's."""
        check_rows(buffer, rows)
        every = np.tile(rows, buffer.replicas) if len(rows) == 1 else rows
        parts = every.reshape(buffer.replicas, -1).astype(np.int64)
        return [(replica * buffer.replicas + i, part) for i, part in enumerate(parts)]

    def _load(self, buffer: RemoteBuffer, copy: int, rows: IntArray) -> Array:
        values = np.zeros((len(rows), buffer.num_elements), dtype=buffer.dtype.numpy)
        for number, which, places in _by_page(buffer, rows):
            page = self._pages.get((buffer.id, copy, number))
            if page is not None:
                values[which] = page[places]
        return values

    def _store(self, buffer: RemoteBuffer, copy: int, rows: IntArray, values: Array) -> None:
        for number, which, places in _by_page(buffer, rows):
            key = (buffer.id, copy, number)
            if key not in self._pages:
                self._pages[key] = _new_page(buffer)
            self._pages[key][places] = values[which]


def check_rows(buffer: RemoteBuffer, rows: IntArray) -> None:
    """Raise PoplarError for the first row that a buffer does not have."""
    wrong = np.flatnonzero((rows < 0) | (rows >= buffer.repeats))
    if len(wrong):
        raise PoplarError(
            f"remote buffer {buffer.handle!r}: offset {int(rows[wrong[0]])}; it has "
            f"{buffer.repeats} rows (repeats), 0 to {buffer.repeats - 1}"
        )


def _rows_a_page(buffer: RemoteBuffer) -> int:
    return min(max(PAGE_BYTES // buffer.row_bytes, 1), buffer.repeats)


def _new_page(buffer: RemoteBuffer) -> Array:
    shape = (_rows_a_page(buffer), buffer.num_elements)
    try:
        return np.zeros(shape, dtype=buffer.dtype.numpy)
    except MemoryError:
        raise PoplarError(
            f"remote buffer {buffer.handle!r}: the host has no memory for another "
            f"{shape[0] * buffer.row_bytes:,} bytes"
        ) from None


def _by_page(buffer: RemoteBuffer, rows: IntArray) -> list[tuple[int, IntArray, IntArray]]:
    """Sort rows by the page that holds them: its number, which rows, their places in it."""
    pages, places = np.divmod(rows, _rows_a_page(buffer))
    order = np.argsort(pages, kind="stable")
    numbers, starts = np.unique(pages[order], return_index=True)
    groups = np.split(order, starts)[1:]
    return [
        (number, which, places[which])
        for number, which in zip(numbers.tolist(), groups, strict=True)
    ]
