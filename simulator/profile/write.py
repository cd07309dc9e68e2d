"""The report directory: written when a program has been compiled, and grown run by run."""

from __future__ import annotations

import json
import os
import re
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import PvaError
from pva.formats import registry, report_directory
from pva.formats.report_directory import Claim
from pva.version import VERSION
from simulator.compiler.executable import Executable
from simulator.executable import GraphProfile
from simulator.graph.errors import PoplarError
from simulator.profile.debug_info import debug_tables
from simulator.profile.execution_profile import ExecutionProfile
from simulator.profile.graph_profile import graph_arrays, graph_tables, options_table
from simulator.profile.stored import OPTIONS, content_for
from simulator.runtime.run import RunRecord

FILES = PROFILE, DEBUG, FRAMEWORK, APP = "profile.pop", "debug.cbor", "framework.json", "app.json"
STREAM_OPTION, APP_OPTION = "autoReport.streamAtEachRun", "autoReport.app"
COMMAND_VARIABLE = "TILESCOPE_COMMAND"  # the words of a command of ours, as a JSON list
RUNS_OPTION = "autoReport.executionProfileProgramRunCount"
# The folders that something stands in, wherever they begin in an argument; a slash at the end.
_FOLDERS = re.compile(r"[^\s=,;\"']*[/\\](?=[^\s=,;\"'])")
_LAST_SLASH = re.compile(r"[/\\]+(?=[\s=,;\"']|$)")
_Rows = tuple[Any, ...]


class ReportFiles:
    """The files of one engine's report; what has been appended survives a kill of the process.

    Without `autoReport.streamAtEachRun` runs are kept back until `flush`, or the end of the object
    or of the process. `framework` is what the program was written with, poplar or popart.
    """

    def __init__(
        self,
        directory: Path,
        executable: Executable,
        options: Mapping[str, bool | int | str],
        framework: str = "poplar",
        profile: GraphProfile | None = None,
    ) -> None:
        """Write all that is known before the first run; an earlier report is replaced.

        A `profile` that was made with such options is taken in the place of the graph's tables.
        Raises PoplarError, with nothing touched, when something else stands in its place.
        """
        self._execution: ExecutionProfile | None = None
        self._writer: registry.ReportWriter | None = None
        self._streamed = bool(options[STREAM_OPTION])
        self._kept: list[_Rows] = []
        tables: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        content = content_for(profile, executable, options)
        if content:
            tables[OPTIONS] = options_table(options)
        elif options[schema.GRAPH_OPTION]:
            tables |= graph_tables(executable, options)
            arrays |= graph_arrays(executable)
        if options[schema.EXECUTION_OPTION]:
            profiled = int(options[RUNS_OPTION]) > 0
            self._execution = ExecutionProfile(executable, profiled=profiled)
            more_tables, more_arrays = self._execution.start()
            tables |= more_tables
            arrays |= more_arrays
        app = application(str(options[APP_OPTION]))
        claim = _claimed(directory)
        finish = _Finish(claim, self._kept, os.getpid())
        self._finish = weakref.finalize(self, finish)
        try:
            if tables:
                dataset = Dataset.of(tables, arrays, str(directory / PROFILE))
                finish.identity = claim.grow(PROFILE)
                where = directory / PROFILE
                self._writer = registry.ReportWriter(where, dataset, finish.identity, content)
                finish.writer = self._writer
            if options[schema.DEBUG_OPTION]:
                debug = Dataset.of(debug_tables(executable.graph))
                with claim.writing(DEBUG) as part:
                    registry.write(debug, part, "debug")
            simulator = f"tilescope {VERSION}"
            facts = {"framework": framework, "version": VERSION, "simulator": simulator}
            write_facts(claim, FRAMEWORK, facts)
            write_facts(claim, APP, app)
        except BaseException:
            self._finish()
            raise

    def append(self, record: RunRecord) -> None:
        """Add a run."""
        if self._execution is not None and self._writer is not None:
            self._kept.append(self._execution.append(record))
            if self._streamed:
                self.flush()

    def flush(self) -> None:
        """Write what has been kept back, so that a reader finds all runs."""
        if self._writer is not None:
            _append(self._writer, self._kept)

    def close(self) -> None:
        """Write what has been kept back and let go of the files."""
        self.flush()
        self._finish()


def _append(writer: registry.ReportWriter, backlog: list[_Rows]) -> None:
    while backlog:
        writer.append_run(*backlog[0])
        del backlog[0]


@dataclass(slots=True)
class _Finish:
    """The end of a report: what has been kept back is written, and its directory let go."""

    claim: Claim
    kept: list[_Rows]
    process: int
    writer: registry.ReportWriter | None = None
    identity: str = ""

    def __call__(self) -> None:
        """End the report; nobody is there who could be told but by a line."""
        if os.getpid() != self.process:  # a forked child ends: the report is its parent's
            return
        try:
            if self.writer is not None:
                _append(self.writer, self.kept)
        except RuntimeError as error:  # a PvaError is one
            print(f"autoReport: {len(self.kept)} run(s) not written: {error}", file=sys.stderr)
        finally:
            if self.writer is not None:
                self.writer.close()
                self.claim.seal(PROFILE, self.identity)
            self.claim.release()


def _claimed(directory: Path) -> Claim:
    if not _is_text(str(directory)):
        raise PoplarError(f"autoReport.directory: {str(directory)!r} is no UTF-8")
    try:
        return report_directory.claim(directory, FILES)
    except PvaError as error:
        raise PoplarError(f"autoReport.directory: {error}") from None


def _is_text(name: str) -> bool:
    """Return whether a name is valid UTF-8; other bytes appear as surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def application(text: str) -> dict[str, object]:
    """Return the facts of app.json: those given as a JSON object, else name and arguments.

    Of a path in the arguments only its last part is kept. Under `tilescope simulate` its words
    are there, too, as `command`.
    """
    command = os.environ.get(COMMAND_VARIABLE)
    words = {"command": json.loads(command)} if command else {}
    if text:
        return {**json.loads(text), **words}
    name, *arguments = [without_folders(argument) for argument in sys.argv or [""]]
    return {"application": name, "arguments": arguments, **words}


def without_folders(argument: str) -> str:
    """Take the folders of every path out of an argument: `--out=a/b` becomes `--out=b`."""
    return _FOLDERS.sub("", _LAST_SLASH.sub("", argument))


def with_folders_below(place: Path, argument: str) -> str:
    """Write the paths of an argument as seen from a directory; of others the last part is kept."""

    def below(match: re.Match[str]) -> str:
        if "\\" in match[0] and os.sep == "/":  # of another system
            return ""
        folder = os.path.normpath(place / match[0])
        inside = Path(folder).relative_to(place) if Path(folder).is_relative_to(place) else Path()
        return "" if inside == Path() else f"{inside.as_posix()}/"

    return _FOLDERS.sub(below, _LAST_SLASH.sub("", argument))


def write_facts(claim: Claim, name: str, facts: Mapping[str, object]) -> None:
    """Write a small file of facts as JSON."""
    with claim.writing(name) as part:
        part.write_text(f"{json.dumps(facts, indent=2)}\n", encoding="utf-8")
