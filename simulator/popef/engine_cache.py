"""The programs of a plain engine in the folder of compiled programs, as those of a session are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from simulator import options as engine_options
from simulator.executable import Executable
from simulator.fingerprint import fingerprint
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.logging import log
from simulator.popef.cache import cached
from simulator.popef.engine_model import FLOW, write_program
from simulator.popef.model import Model
from simulator.popef.writer import FileWriter


def kept_program(
    folder: Path,
    graph: Graph,
    programs: object,
    options: Mapping[str, object] | None,
    compiled: Callable[[], Executable],
) -> Executable:
    """Return what a graph is compiled to: from a folder, else compiled and kept there.

    A graph whose parts have no hash, such as one with functions of the host, is compiled each time.
    """
    settings = engine_options.that_compile(engine_options.resolve(options))
    executables: list[Executable] = []
    try:
        digest = fingerprint(graph, programs, settings)
    except PoplarError as error:
        log("PO", "ENGINE", "INFO", f"cache: {error}; the program is not kept")
        return compiled()

    def take(model: Model) -> None:
        executables.append(model.executable.load())

    def write(writer: FileWriter) -> None:
        from simulator.profile.stored import with_profile

        executables[0] = with_profile(executables[0], options)
        flow = {step: list(numbers) for step, numbers in FLOW.items()}
        write_program(writer, executables[0], flow)

    cached(folder, digest, take, lambda: executables.append(compiled()), write)
    return replace(executables[-1], options=dict(engine_options.OptionFlags(options or {})))
