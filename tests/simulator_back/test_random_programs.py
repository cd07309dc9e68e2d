"""Random programs give what NumPy gives, keep every law, and need nothing that is called dead."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pva.check import check
from pva.formats import registry
from simulator import poplar
from simulator.compiler.executable import Executable
from simulator.graph.replicas import everywhere
from simulator.runtime.execute import ValueRunner
from simulator.runtime.storage import Storage
from tests.poisoned_run import PoisonedRun, live_variables, run_together
from tests.program_model import Array, Machine
from tests.random_programs import Drawn, Variable


@st.composite
def drawn_programs(draw: st.DrawFn) -> Drawn:
    return Drawn(draw)


class Session:
    """An engine with a drawn program, its streams and buffers connected."""

    def __init__(self, drawn: Drawn, directory: str) -> None:
        self.drawn = drawn
        options = {"autoReport.all": bool(directory), "autoReport.directory": directory or "."}
        options |= drawn.options
        programs = [pair.program for pair in drawn.programs]
        self.engine = poplar.Engine(drawn.whole, programs, options)
        self.engine.load(drawn.device)
        self.executable: Executable = self.engine._executable
        self.storages: list[Storage] = self.engine._storages
        self.values: list[ValueRunner] = self.engine._values
        self.sent: dict[tuple[str, int], list[Array]] = {}
        self.text = io.StringIO()
        self.engine.setPrintStream(self.text)
        for variable in drawn.variables:
            if variable.initial is not None and variable.handle:
                self.engine.writeTensor(variable.handle, variable.initial)
        for stream, broadcast in drawn.streams:
            for replica in range(1 if broadcast else drawn.machine.replicas):
                self._connect(stream, broadcast, replica)
        for buffer, (rows, values) in drawn.buffers.items():
            for replica, part in enumerate(values):
                for row in range(rows):
                    self.engine.copyToRemoteBuffer(part[row], buffer.handle, row, replica)

    def _connect(self, stream: poplar.Stream, broadcast: bool, replica: int) -> None:
        where = [] if broadcast else [replica]
        if stream.direction == "in":
            memory = self.drawn.given[stream.handle, replica].reshape(-1)
            self.engine.connectStream(stream.handle, *where, memory)
        else:
            kept: list[Array] = []
            self.sent[stream.handle, replica] = kept
            self.engine.connectStreamToCallback(
                stream.handle, *where, lambda buffer: kept.append(buffer.copy())
            )

    def run_poisoned(self) -> None:
        runs = [
            PoisonedRun(self.executable, storage, values)
            for storage, values in zip(self.storages, self.values, strict=True)
        ]
        for index in self.drawn.runs:
            run_together(runs, self.values, self.executable.lowered.user_programs[index])

    def results(self) -> dict[str, Any]:
        """Return all that the host sees."""
        found: dict[str, Any] = {"text": self.text.getvalue()}
        for handle in self.drawn.reads:
            found[handle] = self.engine.readTensor(handle)
        for (name, replica), buffers in self.sent.items():
            found[f"{name} {replica}"] = np.array(buffers)
        for buffer, (rows, values) in self.drawn.buffers.items():
            for replica, part in enumerate(values):
                out = np.zeros_like(part)
                for row in range(rows):
                    self.engine.copyFromRemoteBuffer(buffer.handle, out[row], row, replica)
                found[f"{buffer.handle} {replica}"] = out
        return found


def wanted(drawn: Drawn, machine: Machine) -> dict[str, Any]:
    """Return what the host must see, by the model."""
    found: dict[str, Any] = {"text": machine.text}
    for handle, variable in drawn.reads.items():
        found[handle] = _of_replicas(drawn, machine, variable)
    for stream, _ in drawn.streams:
        for replica in range(drawn.machine.replicas):
            if stream.direction == "out":
                name = f"{stream.handle} {replica}"
                found[name] = np.array(machine.sent.get((stream.handle, replica), []))
    for handle, parts in machine.rows.items():
        found |= {f"{handle} {replica}": part for replica, part in enumerate(parts)}
    return found


def _of_replicas(drawn: Drawn, machine: Machine, variable: Variable) -> Array:
    replicas = range(drawn.machine.replicas)
    values = [machine.read(replica, variable.view) for replica in replicas]
    return np.stack(values) if len(replicas) > 1 else values[0]


def compare(drawn: Drawn, found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        variable = drawn.reads.get(name)
        if variable is not None:
            _compare_values(variable, found[name], values)
        else:
            assert np.array_equal(found[name], values), name


def _compare_values(variable: Variable, found: Array, expected: Array) -> None:
    name = variable.view.tensor.describe()
    assert found.dtype == expected.dtype, name
    if variable.exact:
        np.testing.assert_array_equal(found, expected, name)
    else:  # sums, whose order is the library's choice
        tolerance = 1e-2 if found.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=name)


def read_back_alike(directory: Path) -> None:
    """Hold the report against every law, in every format."""
    report = registry.read(directory / "profile.pop")
    assert [str(violation) for violation in check(report)] == []
    for name in ("json", "cbor", "pop"):
        registry.write(report, directory / f"again.{name}")
        assert registry.read(directory / f"again.{name}") == report, name


def nothing_live_shares_a_byte(executable: Executable) -> None:
    live, pieces, allocation = live_variables(executable), executable.pieces, executable.allocation
    for alive in np.unique(live, axis=0):
        rows = np.flatnonzero(alive[pieces.variable])
        order = rows[np.lexsort((allocation.address[rows], pieces.tile[rows]))]
        end = (allocation.address + pieces.bytes)[order][:-1]
        same = pieces.tile[order][1:] == pieces.tile[order][:-1]
        assert (allocation.address[order][1:][same] >= end[same]).all()


def hold(drawn: Drawn) -> None:
    machine = drawn.model()
    for index in drawn.runs:
        machine.run(drawn.programs[index].node, drawn.together)
    expected = wanted(drawn, machine)
    with tempfile.TemporaryDirectory() as directory:
        session = Session(drawn, directory)
        for index in drawn.runs:
            session.engine.run(index)
        compare(drawn, session.results(), expected)
        read_back_alike(Path(directory))
    for variable in drawn.variables:
        values = [storage.read(everywhere(variable.view.tensor)) for storage in session.storages]
        stacked = np.stack(values).reshape(_of_replicas(drawn, machine, variable).shape)
        _compare_values(variable, stacked, _of_replicas(drawn, machine, variable))
    nothing_live_shares_a_byte(session.executable)
    poisoned = Session(drawn, "")
    poisoned.run_poisoned()
    compare(drawn, poisoned.results(), expected)


@settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(drawn_programs())
def test_a_program_gives_what_numpy_gives_keeps_every_law_and_needs_nothing_dead(
    drawn: Drawn,
) -> None:
    hold(drawn)
