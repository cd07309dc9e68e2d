"""What an instance is told about its place in the run, in one variable of its environment.

What PopRun itself sets is in no public text: the name and the keys are ours. A program that MPI
starts without `poprun` has its place in OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from simulator.graph.errors import PoplarError

VARIABLE = "TILESCOPE_POPDIST"
RANK, SIZE, LOCAL_RANK = (
    f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK")
)  # Open MPI's


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of an instance among all: which of how many, with which replicas."""

    instance: int = 0
    instances: int = 1
    replicas: int = 1  # of all instances
    ipus_per_replica: int = 1
    ilds: int = 1  # IPU-Link domains, among which the instances are divided evenly
    timeout: float = 300.0  # seconds that an instance waits for another
    offline: bool = False  # nothing runs: compile only
    socket_directory: str = ""  # where instances reach each other

    @property
    def local_replicas(self) -> int:
        """Return the replicas of this instance."""
        return self.replicas // self.instances

    @property
    def replica_offset(self) -> int:
        """Return the index of the first replica of this instance among all."""
        return self.instance * self.local_replicas

    def as_text(self) -> str:
        """Return the value of the variable."""
        return json.dumps(asdict(self))


def placement(environment: Mapping[str, str] | None = None) -> Placement | None:
    """Read the place of this process; None when no `poprun` started it. Raises PoplarError."""
    text = (os.environ if environment is None else environment).get(VARIABLE)
    if text is None:
        return None
    try:
        values = json.loads(text)
        place = Placement(**{field.name: values[field.name] for field in fields(Placement)})
        ordered = 0 <= place.instance < place.instances <= place.replicas
    except (ValueError, TypeError, KeyError, RecursionError):
        ordered = False
    if not ordered:
        raise PoplarError(f"{VARIABLE} is {text[:200]!r}; poprun writes a JSON object there")
    return place
