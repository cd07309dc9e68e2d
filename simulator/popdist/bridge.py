"""The bridge between the sockets of one instance's program and MPI, in the process that started it.

To its program it is all the other instances: it listens on their sockets (simulator.instances),
sends what comes there to their bridges by MPI, and gives its program what they send. The program
itself is no process of MPI, so that it may fail, or never come, at any time.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from simulator.graph.errors import PoplarError
from simulator.instances.sockets import (
    ENDED,
    InstanceEndedError,
    connected,
    framed,
    listening,
    messages,
)

_SHORTEST_PAUSE, _LONGEST_PAUSE = 5e-5, 2e-3  # seconds between two looks
_LATE = 1e9  # seconds, longer than any run


class Bridge:
    """Carries the messages of one program of `instances`; the tags of MPI are their kinds."""

    def __init__(self, directory: Path, instance: int, instances: int) -> None:
        self._directory, self._instance = directory, instance
        self._out: queue.SimpleQueue[tuple[int, int, bytes]] = queue.SimpleQueue()
        self._in: dict[int, queue.SimpleQueue[tuple[int, bytes]]] = {
            peer: queue.SimpleQueue() for peer in range(instances) if peer != instance
        }
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._joined = threading.Event()  # MPI's world
        self._fault: Exception | None = None

    def start(self) -> None:
        """Listen for the program, and carry what it and the others send.

        Waits until the bridges of all instances are there. Raises PoplarError when MPI cannot.
        """
        for peer in self._in:
            listener = listening(self._directory / str(peer))
            threading.Thread(target=self._take, args=(listener, peer), daemon=True).start()
            threading.Thread(target=self._give, args=(peer,), daemon=True).start()
        self._thread.start()
        self._joined.wait()
        if self._fault is not None:
            raise PoplarError(f"MPI: {self._fault}")

    def end(self) -> None:
        """Announce to the others that the program has ended, and wait until theirs have, too."""
        for peer in self._in:
            self._out.put((peer, ENDED, b""))
        self._thread.join()

    def _take(self, listener: socket.socket, peer: int) -> None:
        """Take in what the program sends to another instance."""
        while True:
            connection, _ = listener.accept()
            for _, kind, message in messages(connection):
                self._out.put((peer, kind, message))

    def _give(self, peer: int) -> None:
        """Send the program what another instance sends."""
        connection = None
        while True:
            kind, message = self._in[peer].get()
            with suppress(InstanceEndedError, OSError):  # the program has ended
                if connection is None:
                    mine = self._directory / str(self._instance)
                    connection = connected(mine, time.monotonic() + _LATE)
                assert connection is not None
                connection.sendall(framed(peer, kind, message))

    def _carry(self) -> None:
        """Send and receive by MPI until the programs of all instances have ended."""
        try:
            import mpi4py

            mpi4py.rc.finalize = False  # an instance that fails ends without the others
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            self._fault = error
            return
        finally:
            self._joined.set()
        world, status = MPI.COMM_WORLD, MPI.Status()
        sent: list[tuple[MPI.Request, bytes]] = []
        running, telling, pause = set(self._in), set(self._in), _SHORTEST_PAUSE
        while running or telling or sent:
            moved = False
            with suppress(queue.Empty):
                peer, kind, message = self._out.get_nowait()
                sent.append((world.Isend([message, MPI.BYTE], peer, kind), message))
                telling -= {peer} if kind == ENDED else set()
                moved = True
            while (arrived := world.Improbe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
                buffer = bytearray(status.Get_count(MPI.BYTE))
                arrived.Recv([buffer, MPI.BYTE])
                peer, kind = status.Get_source(), status.Get_tag()
                self._in[peer].put((kind, bytes(buffer)))
                running -= {peer} if kind == ENDED else set()
                moved = True
            sent = [one for one in sent if not one[0].Test()]
            pause = _SHORTEST_PAUSE if moved else min(2 * pause, _LONGEST_PAUSE)
            if not moved:
                time.sleep(pause)
        MPI.Finalize()
