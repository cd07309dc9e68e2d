"""The words for a target and its kind, as the header and the summary show them."""

from __future__ import annotations

from dashboard.components import prose
from dashboard.store import Report
from pva import units
from pva.analysis.machine import architecture

KINDS = {"IPU_MODEL": "IPU Model", "IPU": "IPU", "CPU": "CPU"}
ARCHITECTURES = {"ipu1": "Mk1", "ipu2": "Mk2"}


def kind_words(report: Report) -> str:
    """Return the kind of target in words."""
    kind = str(report.dataset.texts("target", "type")[0])
    return KINDS.get(kind, kind)


def architecture_words(report: Report) -> str:
    """Return the architecture as people call it."""
    name = architecture(report)
    return ARCHITECTURES.get(name, name)


def target_words(report: Report) -> str:
    """Describe the target in a line."""
    data = report.dataset
    if data.texts("target", "type")[0] == "CPU":
        return kind_words(report)
    names = ("num_ipus", "num_tiles", "num_replicas")
    ipus, tiles, replicas = (int(data.value("target", name)) for name in names)
    parts = (
        kind_words(report),
        architecture_words(report),
        f"{ipus} IPU" if ipus == 1 else f"{ipus} IPUs",
        f"{tiles} tile" if tiles == 1 else f"{units.count(tiles)} tiles",
        f"{replicas} replicas of which one is shown" if replicas > 1 else "",
    )
    return prose(", ".join(part for part in parts if part))
