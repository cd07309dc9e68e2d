"""The report directory: written when a program has been compiled, and grown run by run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pva import schema
from pva.dataset import Dataset
from pva.formats import registry
from simulator.compiler.executable import Executable
from simulator.graph.errors import PoplarError
from simulator.profile.debug_info import debug_tables
from simulator.profile.execution_profile import ExecutionProfile
from simulator.profile.graph_profile import VERSION, graph_arrays, graph_tables
from simulator.runtime.run import RunRecord

PROFILE, DEBUG, FRAMEWORK = "profile.pop", "debug.cbor", "framework.json"


class ReportFiles:
    """The files of one engine's report; what has been appended survives a kill of the process."""

    def __init__(
        self, directory: Path, executable: Executable, options: Mapping[str, bool | int | str]
    ) -> None:
        """Write all that is known before the first run; an earlier report is replaced."""
        self._execution: ExecutionProfile | None = None
        self._writer: registry.ReportWriter | None = None
        tables: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        if options[schema.GRAPH_OPTION]:
            tables |= graph_tables(executable, options)
            arrays |= graph_arrays(executable)
        if options[schema.EXECUTION_OPTION]:
            self._execution = ExecutionProfile(executable)
            more_tables, more_arrays = self._execution.start()
            tables |= more_tables
            arrays |= more_arrays
        _make(directory)
        if tables:
            dataset = Dataset.of(tables, arrays, str(directory / PROFILE))
            self._writer = registry.ReportWriter(directory / PROFILE, dataset)
        if options[schema.DEBUG_OPTION]:
            debug = Dataset.of(debug_tables(executable.graph))
            registry.write(debug, directory / DEBUG)
        _write_framework(directory)

    def append(self, record: RunRecord) -> None:
        """Add a run."""
        if self._execution is not None and self._writer is not None:
            self._writer.append_run(*self._execution.append(record))

    def close(self) -> None:
        """Let go of the files."""
        if self._writer is not None:
            self._writer.close()


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PoplarError(
            f"autoReport.directory: cannot make {directory}: {error.strerror}"
        ) from None


def _write_framework(directory: Path) -> None:
    facts = {"framework": "tilescope simulator", "version": ".".join(map(str, VERSION))}
    text = json.dumps(facts, indent=2, sort_keys=True)
    (directory / FRAMEWORK).write_text(f"{text}\n", encoding="utf-8")
