"""Where variables and compute sets were made, as the table of debug contexts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from simulator.compiler.executable import Executable, LoweredProgram
from simulator.compiler.global_exchange import GLOBAL_EXCHANGE
from simulator.graph.graph import Graph

POPLAR = "poplar"  # the layer of variables and compute sets; all others are of libraries


def _further(arguments: dict[str, str]) -> str:
    """Return a layer's own keys as a JSON object; empty without any."""
    if not arguments:
        return ""
    return json.dumps({"arguments": arguments}, separators=(",", ":"), ensure_ascii=False)


def debug_tables(graph: Graph) -> dict[str, dict[str, Any]]:
    """Make the table of debug contexts; a context without a parent has -1."""
    contexts = graph.debug_contexts
    return {
        "debug_contexts": {
            "id": [context["id"] for context in contexts],
            "parent": [context["parentId"] or -1 for context in contexts],
            "name": [context["name"] for context in contexts],
            "layer": [context["layer"] for context in contexts],
            "file": [context["location"]["fileName"] for context in contexts],
            "function": [context["location"]["functionName"] for context in contexts],
            "line": [context["location"]["lineNumber"] for context in contexts],
            "json": [_further(context["arguments"]) for context in contexts],
        }
    }


def program_contexts(executable: Executable) -> list[int]:
    """Return the debug context that each program comes from, -1 where there is none.

    That of its compute set; what the compiler made belongs to what its name begins with, such as
    the compute set that an exchange goes before. A container only has that of a library's call.
    """
    graph = executable.graph
    contexts = [c for c in reversed(graph.debug_contexts) if c["name"]]
    calls = {c["name"]: c["id"] for c in contexts if c["layer"] != POPLAR}
    by_set = {c.name: c.debug_context for c in reversed(graph.compute_sets) if c.debug_context}
    named = {c["name"]: c["id"] for c in contexts} | calls | by_set

    def context_of(program: LoweredProgram) -> int:
        if program.context or 0 <= program.compute_set < len(graph.compute_sets):
            return program.context or graph.compute_sets[program.compute_set].debug_context or -1
        if program.compute_set < 0 and program.exchange < 0:
            return calls.get(program.name, -1)
        return _nearest(program.name.removesuffix(GLOBAL_EXCHANGE), named)

    return [context_of(program) for program in executable.lowered.programs]


def _nearest(name: str, named: Mapping[str, int]) -> int:
    """Return the longest known path of a name; -1 when none is known."""
    while name and name not in named:
        name = name.rpartition("/")[0]
    return named.get(name, -1)
