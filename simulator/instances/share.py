"""The share of an instance in the replicas of a graph, and their copies from one to another."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.instances.sockets import InstanceEndedError, Links, links

_FAILING = 1.0  # seconds that poprun has to end the others of an instance that failed
_LENGTH_BYTES = 4  # of the place at the begin of a message


@dataclass(frozen=True, slots=True)
class Place:
    """A copy between replicas, as all instances count it."""

    step: int  # runs of the engine before
    run: str
    number: int  # of the copies of the run, from 1
    name: str

    def __str__(self) -> str:
        return f"{self.name!r} (copy {self.number} of step {self.step}, {self.run!r})"


class Share:
    """The replicas `first` to `first + count - 1` of a graph, which run in this process.

    The others run in other instances, which have as many each, in their order.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count = first, count
        self._here = first // count
        self._last: dict[int, str] = {}  # where each other instance was last

    @property
    def _links(self) -> Links:
        return links()  # made when they are needed first

    def exchange(self, place: Place, replica_map: Mapping[int, int], sent: Sequence[Array]) -> (
        dict[int, Array]
    ):  # fmt: skip
        """Move what each replica of this instance holds to where the map says.

        Returns what each replica of this instance gets. Raises PoplarError when an instance does
        not come, comes to another copy, or has ended.
        """
        values: dict[int, Array] = {}
        out: dict[int, list[Array]] = {}
        into: dict[int, list[int]] = {}
        for sender, receiver in sorted(replica_map.items()):
            source, target = sender // self.count, receiver // self.count
            if source == target == self._here:
                values[receiver] = sent[sender - self.first]
            elif source == self._here:
                out.setdefault(target, []).append(sent[sender - self.first])
            elif target == self._here:
                into.setdefault(source, []).append(receiver)
        begun = time.monotonic()
        for instance, arrays in out.items():
            self._send(place, instance, arrays, begun)
        for instance, receivers in into.items():
            whole = np.frombuffer(self._receive(place, instance, begun), sent[0].dtype)
            parts = np.split(whole, len(receivers))
            values |= dict(zip(receivers, parts, strict=True))
        return values

    def _send(self, place: Place, instance: int, arrays: Sequence[Array], begun: float) -> None:
        text = json.dumps([place.step, place.run, place.number, place.name]).encode()
        head = len(text).to_bytes(_LENGTH_BYTES, "little")
        message = b"".join((head, text, *(array.tobytes() for array in arrays)))
        limit = begun + self._links.placement.timeout
        try:
            reached = self._links.send(instance, message, limit)
        except InstanceEndedError:
            raise PoplarError(self._ended(place, instance)) from None
        if not reached:
            raise PoplarError(self._late(place, instance))

    def _receive(self, place: Place, instance: int, begun: float) -> bytes:
        """Return what an instance sends for this copy."""
        timeout = self._links.placement.timeout
        try:
            message = self._links.receive(instance, begun + timeout / 2)
            if message is None:  # the others are told, so that whoever gives up knows of it
                self._links.note(
                    json.dumps([instance, f"waits in {place} for instance {instance}"])
                )
                message = self._links.receive(instance, begun + timeout)
                if message is not None:
                    self._links.note("")
        except InstanceEndedError:
            raise PoplarError(self._ended(place, instance)) from None
        if message is None:
            raise PoplarError(self._late(place, instance))
        size = int.from_bytes(message[:_LENGTH_BYTES], "little")
        begin = _LENGTH_BYTES + size
        there = Place(*json.loads(message[_LENGTH_BYTES:begin]))
        self._last[instance] = str(there)
        if there != place:
            raise PoplarError(
                f"instance {self._here} is in {place}, instance {instance} in {there}: their "
                "programs took different ways"
            )
        return message[begin:]

    def _late(self, place: Place, instance: int) -> str:
        """Write who waits where for whom, along to the instance that does not wait."""
        timeout = self._links.placement.timeout
        parts = [
            f"instance {self._here} has waited {timeout:g} s in {place} for instance {instance}"
        ]
        notes = {number: json.loads(text) for number, text in self._links.notes().items() if text}
        seen = {self._here}
        while instance in notes and instance not in seen:
            seen.add(instance)
            parts.append(f"instance {instance} {notes[instance][1]}")
            instance = notes[instance][0]
        if instance not in seen:
            parts.append(f"instance {instance} {self._last_seen(instance)}")
        return "; ".join(parts)

    def _ended(self, place: Place, instance: int) -> str:
        """Write who has ended, once there was time for poprun to end all when that had failed."""
        time.sleep(_FAILING)
        return (
            f"instance {self._here} is in {place} and needs instance {instance}, which has ended; "
            f"it {self._last_seen(instance)}"
        )

    def _last_seen(self, instance: int) -> str:
        last = self._last.get(instance)
        none = f"has come to no copy with instance {self._here}"
        return none if last is None else f"was last in {last}"
