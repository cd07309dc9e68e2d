"""Operations as each software layer sees them: PopLibs, PopART, ONNX, TensorFlow, user scopes.

One program is part of a call of PopLibs, which is part of an operation of PopART, which stands for
one of ONNX; debug contexts tell which. What no context of a layer is around is OUTSIDE.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import labels, layer_of, operations, owners
from pva.analysis.columns import analysis
from pva.analysis.selection import SelectionError
from pva.analysis.table import Columns
from pva.array_types import Integers, Texts

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 180  # of its analyses in the catalogue
OUTSIDE = "(outside)"
DEFAULT, STAGE, MODULE = "operation", "stage", "module"


@dataclass(frozen=True, slots=True)
class Layer:
    """A software layer: the words of debug contexts that are of it, and which of them counts.

    `outermost` takes the call that the program was made for, otherwise it is the nearest. `key` is
    an argument by which contexts of another layer name an operation of this one.
    """

    label: str
    words: frozenset[str] = frozenset()
    outermost: bool = False
    key: str = ""


# PopLibs is the family of libraries of Poplar; the words of frameworks are those of Graphcore's
# forks: popart's builder, popxl, and the layers of the TensorFlow driver.
LAYERS = {
    DEFAULT: Layer("Operations"),
    "scope": Layer("User scope"),
    MODULE: Layer("Modules", frozenset({"poptorch"})),
    "onnx": Layer("ONNX", frozenset({"onnx"}), key="onnxLayer"),
    "popart": Layer("PopART", frozenset({"popart", "popartbuilder", "popxl"})),
    STAGE: Layer("Pipeline stages", key="pipelineStage"),
    "tensorflow": Layer(
        "TensorFlow",
        frozenset({"hloinstruction", "xla_op", "xlaop", "tensorflow", "poplar_driver"}),
    ),
    "poplibs": Layer(
        "PopLibs",
        frozenset({"poplibs", "popops", "poplin", "popnn", "poprand", "popsolver", "poputil",
                   "popsparse", "popfft", "popfloat"}),
        outermost=True,
    ),
    "poplar": Layer("Poplar"),
}  # fmt: skip


@analysis(
    "layer label operations programs contexts", layer="software layer", label="words for the layer"
)
def software_layers(report: Report) -> Columns:
    """Return by which software layers operations can be counted, and what each of them covers.

    `operations` of the layer and the `programs` that are parts of them; `contexts` are its debug
    contexts. The layer `operation` takes for each program the nearest of a framework, else of a
    library; `scope` the outermost part of that path; `poplar` the program's own name. The others
    are there where debug contexts name them. Raises NotRecordedError.
    """
    rows = []
    for layer, entry in LAYERS.items():
        by_contexts = bool(entry.words or entry.key)
        contexts = len(_contexts_of(report, entry)) if by_contexts else 0
        if by_contexts and not contexts:
            continue
        names = owners_in(report, layer)[:-1]
        inside = names[names != OUTSIDE]
        rows.append((layer, entry.label, len(set(inside.tolist())), len(inside), contexts))
    keys = ("layer", "label", "operations", "programs", "contexts")
    return dict(zip(keys, map(list, zip(*rows, strict=True)), strict=True))


def owners_in(report: Report, layer: str) -> Texts:
    """Name the operation of a layer that each program is part of, and last an unknown program's.

    Raises SelectionError for a layer that there is not.
    """
    data = report.dataset
    count = len(data.column("programs", "name"))
    if _checked_layer(layer) == "poplar":
        return labels(report, np.arange(count + 1))
    if layer in (DEFAULT, "scope"):
        names = operations(report)
        return names if layer == DEFAULT else _scopes(names)
    names = labels(report, np.arange(count + 1))
    contexts = np.append(data.column("programs", "debug_context"), -1)
    return _inside(report, LAYERS[layer], names, contexts)


def variable_owners_in(report: Report, layer: str) -> Texts:
    """Name the operation of a layer that each variable is part of; raises SelectionError."""
    data = report.dataset
    names, contexts = (data.column("variables", name) for name in ("name", "debug_context"))
    if _checked_layer(layer) == "poplar":
        return names
    if layer in (DEFAULT, "scope"):
        operations = owners(report, names, contexts)
        return operations if layer == DEFAULT else _scopes(operations)
    return _inside(report, LAYERS[layer], names, contexts)


def _checked_layer(layer: str) -> str:
    if layer not in LAYERS:
        raise SelectionError(f"layer {layer}", "not there", f"known: {', '.join(LAYERS)}")
    return layer


def _scopes(names: Texts) -> Texts:
    return np.array([layer_of(name) for name in names.tolist()], dtype=object)


def _contexts_of(report: Report, layer: Layer) -> Integers:
    """Return the rows of the debug contexts of a layer."""
    data = report.dataset
    if not data.has("debug_contexts"):
        return np.zeros(0, dtype=np.int64)
    words = data.column("debug_contexts", "layer").tolist()
    named = np.array([word.lower() in layer.words for word in words], dtype=bool)
    if layer.key:
        quoted = f'"{layer.key}"'
        documents = data.column("debug_contexts", "json").tolist()
        named |= np.array([quoted in document for document in documents], dtype=bool)
    return np.flatnonzero(named)


def _context_names(report: Report, layer: Layer) -> Texts:
    """Return the names of debug contexts, in the words of the layer."""
    data = report.dataset
    names = data.column("debug_contexts", "name").copy()
    documents = data.column("debug_contexts", "json")
    for row in _contexts_of(report, layer).tolist() if layer.key else ():
        names[row] = argument(documents[row], layer.key) or names[row]
    return names


def operation_kinds(report: Report, layer: str) -> dict[str, str]:
    """Return what the operations of a layer are, by name: the operator, or the library called."""
    data = report.dataset
    if not data.has("debug_contexts"):
        return {}
    software_layer = LAYERS[_checked_layer(layer)]
    every = frozenset[str]().union(*(entry.words for entry in LAYERS.values()))
    rows = _contexts_of(
        report, software_layer if software_layer.words else Layer("", every)
    ).tolist()
    names, words = (data.column("debug_contexts", name) for name in ("name", "layer"))
    if software_layer.key:
        return {}
    documents = data.column("debug_contexts", "json")
    kinds = {names[row]: argument(documents[row], "operator") or words[row] for row in rows[::-1]}
    return {str(name): str(kind) for name, kind in kinds.items()}


def argument(document: str, key: str) -> str:
    """Return an argument from the further keys of a debug context; nothing where there is none."""
    try:
        read = json.loads(document) if document else None
    except (ValueError, RecursionError):
        return ""
    arguments = read.get("arguments") if isinstance(read, dict) else None
    text = arguments.get(key) if isinstance(arguments, dict) else None
    return text if isinstance(text, str) else ""


def _inside(report: Report, layer: Layer, names: Texts, contexts: Integers) -> Texts:
    """Name the operation of a layer around each context, or that its path begins with."""
    owner = _owner_rows(report, layer)
    operations = np.full(len(names), OUTSIDE, dtype=object)
    if len(owner):
        data = report.dataset
        rows = _rows_of(data.column("debug_contexts", "id"), contexts)
        in_layer = (rows >= 0) & (owner[rows] >= 0)
        operations[in_layer] = _context_names(report, layer)[owner[rows[in_layer]]]
    operations[operations == ""] = OUTSIDE
    distinct = {name for name in operations.tolist() if name != OUTSIDE}
    for place in np.flatnonzero(operations == OUTSIDE).tolist() if distinct else ():
        operations[place] = _by_path(names[place], distinct)
    return operations


def _by_path(name: str, operations: set[str]) -> str:
    while name and name not in operations:
        name = name.rpartition("/")[0]
    return name or OUTSIDE


def _owner_rows(report: Report, layer: Layer) -> Integers:
    """Return for each debug context the row of the layer's context around it, -1 for none.

    Each round doubles how far a row has looked up, so that deep contexts need few rounds and
    contexts in a circle end as well.
    """
    data = report.dataset
    mine = _contexts_of(report, layer)
    if not len(mine):
        return np.zeros(0, dtype=np.int64)
    ids, parents = (data.column("debug_contexts", name) for name in ("id", "parent"))
    parent = _rows_of(ids, parents)
    is_mine = np.zeros(len(ids), dtype=bool)
    is_mine[mine] = True
    rows = np.arange(len(ids))
    up = np.where(is_mine | (parent < 0), rows, parent)
    nearest = _ends(up)
    nearest = np.where(is_mine[nearest], nearest, -1)
    if not layer.outermost:
        return nearest
    higher = np.where(parent >= 0, nearest[parent], -1)
    top = _ends(np.where(is_mine & (higher >= 0), higher, rows))
    return np.where(nearest >= 0, top[nearest], -1)


def _ends(up: Integers) -> Integers:
    """Follow each row upward until nothing changes, or a circle is known to be one."""
    for _ in range(len(up).bit_length() + 1):
        up = up[up]
    return up


def _rows_of(ids: npt.NDArray[np.int64], keys: Integers) -> Integers:
    """Look up the row of each id, -1 for those that are not there."""
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], keys), len(ids) - 1)
    rows: Integers = order[place] if len(ids) else np.zeros(len(keys), dtype=np.int64)
    return np.where((keys >= 0) & (ids[rows] == keys), rows, -1) if len(ids) else rows - 1
