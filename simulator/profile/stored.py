"""The graph profile of a program that is kept, made once: every report of it begins with its bytes.

What differs from report to report, the options, is a table that is written for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pva import schema
from pva.data.dataset import Dataset
from pva.formats import registry
from simulator import options as engine_options
from simulator.compiler.executable import Executable as Compiled
from simulator.executable import Executable, GraphProfile
from simulator.profile.graph_profile import graph_arrays, graph_tables, not_recorded

OPTIONS = "engine_options"
Options = Mapping[str, bool | int | str]


def with_profile(executable: Executable, options: Mapping[str, object] | None) -> Executable:
    """Return a program with its graph profile, where the options ask for a report of the graph."""
    settings, compiled = engine_options.resolve(options), executable.compiled
    if not settings[schema.GRAPH_OPTION]:
        return executable
    tables = graph_tables(compiled, settings)
    del tables[OPTIONS]
    content = registry.content_of(Dataset.of(tables, graph_arrays(compiled)))
    return replace(executable, profile=GraphProfile(_absent(compiled, settings), content))


def content_for(profile: GraphProfile | None, executable: Compiled, options: Options) -> bytes:
    """Return the bytes with which a report with some options begins; none where they differ."""
    if profile is None or not options[schema.GRAPH_OPTION]:
        return b""
    return profile.content if profile.absent == _absent(executable, options) else b""


def _absent(executable: Compiled, options: Options) -> tuple[str, ...]:
    return tuple(sorted(not_recorded(executable, options)))
