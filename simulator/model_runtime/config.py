"""How programs are run: the settings of sessions and runners, each with what it is by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array

# TensorFlow's embedded runtime waits as long by default (5,000 us).
TIMEOUT_NS = 5_000_000
REPORTS = "autoReport."
NO_REPORT: Mapping[str, object] = {
    "autoReport.all": False,
    "autoReport.outputGraphProfile": False,
    "autoReport.outputExecutionProfile": False,
    "autoReport.outputDebugInfo": False,
    "autoReport.executionProfileProgramRunCount": 0,
}


class DeviceWaitStrategy(Enum):
    """What is done when no device is free."""

    NO_WAIT = "NO_WAIT"
    WAIT_WITH_TIMEOUT = "WAIT_WITH_TIMEOUT"
    WAIT_FOREVER = "WAIT_FOREVER"


@dataclass(slots=True)
class DeviceWaitConfig:
    """Whether and how long to wait for a device, and how often to ask again.

    >>> wait = DeviceWaitStrategy.WAIT_WITH_TIMEOUT
    >>> config = DeviceWaitConfig(wait, timeout=timedelta(seconds=2))
    >>> config.seconds
    2.0
    """

    strategy: DeviceWaitStrategy = DeviceWaitStrategy.NO_WAIT
    timeout: timedelta = timedelta(seconds=0)
    sleepTime: timedelta = timedelta(milliseconds=100)

    @property
    def seconds(self) -> float:
        """Return how long to wait.

        >>> DeviceWaitConfig(DeviceWaitStrategy.WAIT_FOREVER).seconds
        inf
        """
        waits = {
            DeviceWaitStrategy.NO_WAIT: 0.0,
            DeviceWaitStrategy.WAIT_FOREVER: float("inf"),
        }
        return waits.get(self.strategy, self.timeout.total_seconds())


@dataclass(slots=True)
class SessionConfig:
    """How a session loads a program.

    With `check_package_hash` a program of other versions is refused. `engine_options` are those of
    the engine: without any nothing is recorded, and no report is written. `wait_config` is of
    DeviceManager.acquireDevice: a model of a device is always free.

    >>> SessionConfig(engine_options={"debug.instrument": True}).options()["debug.instrument"]
    True
    """

    check_package_hash: bool = True
    wait_config: DeviceWaitConfig = field(default_factory=DeviceWaitConfig)
    engine_options: Mapping[str, object] = field(default_factory=dict)

    def options(self) -> dict[str, object]:
        """Return the options of the engine; a report that they ask for is theirs alone.

        >>> SessionConfig().options()["autoReport.all"]
        False
        """
        asked = any(name.startswith(REPORTS) for name in self.engine_options)
        return {**({} if asked else NO_REPORT), **self.engine_options}


@dataclass(slots=True)
class ModelRunnerConfig:
    """How a runner answers requests.

    replication_factor           copies of the program, on a device each, with a thread each
    frozen_inputs                inputs that are the same for all requests, by name
    timeout_ns                   how long a batch waits to be full, and a step for its next batch
    batching_dim                 0: requests of any size, cut and filled to batches; else None
    ring_buffer_size_multiplier  requests that wait, at most, for each transfer of a step
    validate_io_params           whether names, shapes and types of a request are checked
    check_package_hash           whether a program of other versions is refused
    device_wait_config           of DeviceManager.acquireDevice: a replica's model is always free
    engine_options               of the engine; without any nothing is recorded

    >>> ModelRunnerConfig(replication_factor=2, batching_dim=0).replication_factor
    2
    """

    replication_factor: int = 1
    frozen_inputs: Mapping[str, Array] = field(default_factory=dict)
    timeout_ns: int = TIMEOUT_NS
    batching_dim: int | None = None
    ring_buffer_size_multiplier: int = 64
    validate_io_params: bool = True
    check_package_hash: bool = True
    device_wait_config: DeviceWaitConfig = field(default_factory=DeviceWaitConfig)
    engine_options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (
            ("replication_factor", 1),
            ("timeout_ns", 0),
            ("ring_buffer_size_multiplier", 1),
        ):
            _check_number(name, getattr(self, name), least)
        if self.batching_dim not in (None, 0) or isinstance(self.batching_dim, bool):
            raise PoplarError(
                f"ModelRunnerConfig: batching_dim is {self.batching_dim!r}; 0 or None is needed"
            )

    def session(self) -> SessionConfig:
        """Return the settings of the sessions.

        >>> ModelRunnerConfig(check_package_hash=False).session().check_package_hash
        False
        """
        return SessionConfig(self.check_package_hash, self.device_wait_config, self.engine_options)


def _check_number(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PoplarError(
            f"ModelRunnerConfig: {name} is {value!r}; a whole number of at least {least} is needed"
        )
