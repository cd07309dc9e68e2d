"""Where variables and compute sets were made, as the table of debug contexts."""

from __future__ import annotations

import json
from typing import Any

from simulator.graph.graph import Graph


def _further(arguments: dict[str, str]) -> str | None:
    """Give a layer's own keys as a JSON object."""
    if not arguments:
        return None
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
