"""The words for a target and its kind, as the header and the summary show them."""

from __future__ import annotations

from dashboard.elements.components import prose
from dashboard.pages.headlines import counted
from dashboard.store import Report
from pva.analysis.machine import Target, target

KINDS = {"IPU_MODEL": "IPU Model", "IPU": "IPU", "CPU": "CPU"}
ARCHITECTURES = {"ipu1": "Mk1", "ipu2": "Mk2"}


def kind_words(target: Target) -> str:
    """Return the kind of target in words."""
    return KINDS.get(target.type, target.type)


def architecture_words(target: Target) -> str:
    """Return the architecture as people call it."""
    return ARCHITECTURES.get(target.architecture, target.architecture)


def target_words(report: Report) -> str:
    """Describe the target in a line."""
    machine = target(report)
    if machine.type == "CPU":
        return kind_words(machine)
    replicas = machine.num_replicas
    parts = (
        kind_words(machine),
        architecture_words(machine),
        counted(machine.num_ipus, "IPU"),
        counted(machine.num_tiles, "tile"),
        f"{replicas} replicas of which one is shown" if replicas > 1 else "",
    )
    return prose(", ".join(part for part in parts if part))
