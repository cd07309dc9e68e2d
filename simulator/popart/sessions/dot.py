"""The graph as DOT files, at the stages that POPART_DOT_CHECKS or the options name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import Ir, Node

# Before and after the patterns, with the backward pass, as it is lowered.
STAGES = ("FWD0", "FWD1", "BWD0", "PREALIAS", "FINAL")
VARIABLE = "POPART_DOT_CHECKS"
DUMP = "POPART_IR_DUMP"


def wanted(options: Iterable[str]) -> set[str]:
    """Return the stages that the variable and the options name together."""
    from_environment = [stage for stage in os.environ.get(VARIABLE, "").split(":") if stage]
    stages = {str(stage).upper() for stage in (*from_environment, *options)}
    unknown = sorted(stages - set(STAGES))
    if unknown:
        raise popart_exception(f"{VARIABLE}: {unknown[0]!r}; known are {', '.join(STAGES)}")
    return stages


def write_dot(ir: Ir, stage: str, folder: Path, backward: Sequence[Node] = ()) -> Path:
    """Write a stage as `<stage>.dot`; `backward` are nodes of that pass. Gives the file.

    Its first line has the hash of the others. Raises popart_exception for a file in its place that
    somebody else wrote, or changed.
    """
    path = folder / f"{stage.lower()}.dot"
    try:
        if os.path.lexists(path) and not _is_own(path):
            raise popart_exception(
                f"{path}: there already, and not as it was written; move it away, or set logDir"
            )
        path.write_bytes(_signed(text_of(ir, stage, backward).encode(errors="backslashreplace")))
    except OSError as error:
        raise popart_exception(f"{path}: {error.strerror}") from None
    return path


def _signed(text: bytes) -> bytes:
    return f"// tilescope {hashlib.sha256(text).hexdigest()}\n".encode() + text


def _is_own(path: Path) -> bool:
    """Return whether a file is as it was written here."""
    if path.is_symlink() or not path.is_file():
        return False
    data = path.read_bytes()
    return data == _signed(data.partition(b"\n")[2])


def text_of(ir: Ir, stage: str, backward: Sequence[Node] = ()) -> str:
    """Return the graph: a box for each node, an edge for each tensor that one gives another."""
    nodes = [*ir.nodes, *backward]
    makers = {name: place for place, node in enumerate(nodes) for name in node.outputs}
    lines = [f"digraph {_quoted(stage)} {{"]
    lines += [f"  n{p} [shape=box, label={_label(n.operator, n.name)}];"
              for p, n in enumerate(nodes)]  # fmt: skip
    outside = sorted({i for node in nodes for i in node.inputs if i and i not in makers})
    numbers = {name: place for place, name in enumerate(outside)}
    lines += [f"  t{numbers[name]} [label={_label(name, str(ir.infos.get(name, '')))}];"
              for name in outside]  # fmt: skip
    for place, node in enumerate(nodes):
        for name in filter(None, node.inputs):
            source = f"n{makers[name]}" if name in makers else f"t{numbers[name]}"
            lines.append(f"  {source} -> n{place} [label={_quoted(name)}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _label(*lines: str) -> str:
    return '"' + "\\n".join(_quoted(line)[1:-1] for line in lines) + '"'


def dump_ir(ir: Ir) -> None:
    """Write the graph as JSON to the file that POPART_IR_DUMP names; nothing without it."""
    path = os.environ.get(DUMP)
    if not path:
        return
    document = {
        "inputs": {name: str(ir.infos[name]) for name in ir.inputs},
        "weights": {name: str(ir.infos[name]) for name in ir.weights},
        "constants": {name: str(ir.infos[name]) for name in ir.constants},
        "outputs": ir.outputs,
        "nodes": [
            {"name": n.name, "operator": n.kind, "inputs": n.inputs, "outputs": n.outputs}
            for n in ir.nodes
        ],
    }
    try:
        Path(path).write_text(json.dumps(document), encoding="utf-8")
    except OSError as error:
        raise popart_exception(f"{DUMP} {path}: {error.strerror}") from None
