"""Messages between instances by sockets, in a directory that is the user's alone.

Each instance listens on a socket of its own. Who sends connects to it, so that a connection carries
the messages of one instance to one other. A thread takes in what comes: sending never waits for a
program that computes. Where MPI has started the instances, `simulator.popdist.bridge` listens on
the sockets of the others and carries by MPI what comes there.
"""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from simulator.graph.errors import PoplarError
from simulator.instances.placement import Placement, placement

ENDED, VALUES, NOTE = 0, 1, 2  # kinds of messages; the first is an end without a failure
_HEAD = struct.Struct("<iiq")  # sender, kind, bytes
_PAUSE = 0.02  # seconds until an instance that does not listen yet is tried again
_ENDED = None  # what stands in a queue behind the last message


class InstanceEndedError(Exception):
    """The instance that a message is awaited from has ended."""


class Links:
    """The ways of an instance to all others. Messages of one instance come in their order."""

    def __init__(self, place: Placement) -> None:
        self.placement = place
        self._directory = Path(place.socket_directory)
        self._out: dict[int, socket.socket] = {}
        self._in: dict[int, queue.SimpleQueue[bytes | None]] = {
            instance: queue.SimpleQueue() for instance in range(place.instances)
        }
        self._notes: dict[int, str] = {}
        listener = listening(self._directory / str(place.instance))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def send(self, instance: int, message: bytes, deadline: float) -> bool:
        """Send a message; return whether the instance could be reached until the deadline."""
        return self._write(instance, VALUES, message, deadline)

    def receive(self, instance: int, deadline: float) -> bytes | None:
        """Return the next message of an instance, None when late; raises InstanceEndedError."""
        try:
            message = self._in[instance].get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            return None
        if message is _ENDED:
            self._in[instance].put(_ENDED)
            raise InstanceEndedError
        return message

    def note(self, text: str) -> None:
        """Send all other instances a text, if they listen."""
        for instance in range(self.placement.instances):
            if instance != self.placement.instance:
                with suppress(InstanceEndedError):
                    self._write(instance, NOTE, text.encode(), time.monotonic())

    def notes(self) -> dict[int, str]:
        """Return the last text of each instance that sent one."""
        return self._notes

    def _write(self, instance: int, kind: int, message: bytes, deadline: float) -> bool:
        if instance not in self._out:
            connection = connected(self._directory / str(instance), deadline)
            if connection is None:
                return False
            self._out[instance] = connection
        try:
            self._out[instance].settimeout(max(deadline - time.monotonic(), _PAUSE))
            self._out[instance].sendall(framed(self.placement.instance, kind, message))
        except TimeoutError:
            return False
        except OSError:
            raise InstanceEndedError from None
        return True

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._take_in, args=(connection,), daemon=True).start()

    def _take_in(self, connection: socket.socket) -> None:
        """Put what an instance sends into its queue, until it ends."""
        sender = None
        for sender, kind, message in messages(connection):
            if kind == NOTE:
                self._notes[sender] = message.decode()
            else:
                self._in[sender].put(message if kind == VALUES else _ENDED)
        if sender is not None:
            self._in[sender].put(_ENDED)


@cache
def links() -> Links:
    """Return the links of this process, which are made once; raises PoplarError for none."""
    place = placement()
    if place is None:
        raise PoplarError("replicas of other instances are needed: start the program by poprun")
    return Links(place)


def has_links() -> bool:
    """Return whether this process has made its links."""
    return links.cache_info().currsize > 0


def listening(path: Path) -> socket.socket:
    """Return a socket that listens at a path; raises PoplarError when a process listens there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        if path.exists() and not _is_used(path):
            path.unlink()  # of a program of this instance that has ended
        listener.bind(str(early))
        listener.listen(socket.SOMAXCONN)
        # The path is there once the socket listens: before that it would refuse, as one that ended.
        os.link(early, path)
    except OSError as error:
        listener.close()
        raise PoplarError(
            f"instance {path.name}: {error.strerror or error}: {path}; one process at a time of an "
            "instance exchanges with others"
        ) from None
    finally:
        early.unlink(missing_ok=True)
    return listener


def connected(path: Path, deadline: float) -> socket.socket | None:
    """Return a connection to who listens at a path, None when nobody does by the deadline."""
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            if not isinstance(error, FileNotFoundError):
                raise InstanceEndedError from None
        else:
            return connection
        if time.monotonic() >= deadline:
            return None
        time.sleep(_PAUSE)


def framed(sender: int, kind: int, message: bytes) -> bytes:
    """Return a message with its head."""
    return _HEAD.pack(sender, kind, len(message)) + message


def messages(connection: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """Read sender, kind and bytes of each message until the other side ends."""
    with connection, connection.makefile("rb") as stream, suppress(ConnectionError):
        while len(head := stream.read(_HEAD.size)) == _HEAD.size:
            sender, kind, size = _HEAD.unpack(head)
            message = stream.read(size)
            if len(message) == size:
                yield sender, kind, message


def _is_used(path: Path) -> bool:
    try:
        connection = connected(path, 0)
    except InstanceEndedError:
        return False
    if connection is not None:
        connection.close()
    return True
