"""Executed steps in the documents: each type has the keys of the user guide, syncs hardly any.

What the chapter repeats from the program of a step (name, compute set, exchange) is written and not
read. Of a sync it tells the kind alone: the rest of what is known stands in `simulation.syncs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats.documents.nested import columns_of, look_up, put, rows_of
from pva.formats.values import column_of

Nested = dict[str, Any]
Columns = dict[str, Values]

# Under which key a step names its row in the list of compute sets or exchanges of its type.
STEP_KEYS = {
    "OnTileExecute": ("computeSet", "compute_set"),
    "DoExchange": ("exchange", "exchange"),
    "GlobalExchange": ("externalExchange", "exchange"),
    "StreamCopy": ("hostExchange", "exchange"),
}
SYNC = "Sync"
KEPT = ("type", "sync_type")  # all that the chapter has of a sync; the trace has its program
TRACE = "programTrace"
VERSION_KEY = "formatVersion"  # documents of other writers have none
SYNCS = replace(
    schema.TABLE["steps"],
    place="simulation.syncs",
    layout="columns",
    columns=(
        schema.Column("step", "int", "", "row of steps"),
        *(
            replace(c, optional=True)
            for c in schema.TABLE["steps"].columns
            if c.name not in (*KEPT, "program")
        ),
    ),
)


def write_steps(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    """Write the steps and the trace of their programs."""
    rows = rows_of(table, dataset)
    _repeat_programs(rows, dataset)
    syncs = np.flatnonzero(dataset.texts(table.name, "type") == SYNC)
    keys = [table.column(name).document_key for name in KEPT]
    for step in syncs.tolist():
        rows[step] = {key: rows[step][key] for key in keys if key in rows[step]}
    put(root, table.place, rows)
    if len(syncs):
        put(root, SYNCS.place, _sync_columns(dataset, syncs))
    put(root, TRACE, dataset.column(table.name, "program"))


def _repeat_programs(rows: list[Nested], dataset: Dataset) -> None:
    """Add to each step what the chapter repeats from its program."""
    if not dataset.has("programs"):
        return
    columns = {
        name: dataset.column("programs", name).tolist()
        for name in ("name", "compute_set", "exchange")
    }
    for row in rows:
        program = row["program"]
        if program < 0:
            continue
        if columns["name"][program]:
            row["name"] = columns["name"][program]
        key, column = STEP_KEYS.get(row["type"], ("", ""))
        if key and columns[column][program] >= 0:
            row[key] = columns[column][program]


def _sync_columns(dataset: Dataset, syncs: Values) -> Nested:
    nested: Nested = {"step": syncs}
    for column in SYNCS.columns[1:]:
        values = dataset.column("steps", column.name)[syncs]
        missing = schema.MISSING[column.kind]
        if not all(values == missing) and not (column.kind == "float" and np.isnan(values).all()):
            nested[column.document_key] = values
    return nested


def read_steps(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    """Read the steps; programs that they do not tell are those of the trace."""
    columns = columns_of(file, look_up(file, root, table.place), table)
    if columns is None and VERSION_KEY not in root:
        trace = root.get(TRACE)
        return None if trace is None else columns_of(file, {"program": trace}, table)
    if columns is None:
        return columns
    _read_syncs(file, root, columns)
    trace = root.get(TRACE)
    if isinstance(trace, list | np.ndarray):
        programs = column_of(file, TRACE, table.column("program"), trace)
        if len(programs) == len(columns["program"]):
            columns["program"] = np.where(columns["program"] < 0, programs, columns["program"])
    return columns


def _read_syncs(file: object, root: Mapping[str, object], columns: Columns) -> None:
    """Fill in what is known of syncs; raises DamagedFileError for steps that are not there."""
    sync_columns = columns_of(file, look_up(file, root, SYNCS.place), SYNCS)
    if sync_columns is None:
        return
    steps, last = sync_columns.pop("step"), len(columns["type"]) - 1
    wrong = steps[(steps < 0) | (steps > last)]
    if len(wrong):
        place = f"{SYNCS.place}.step"
        raise DamagedFileError(file, f"found {wrong[0]}", f"0 to {last}", place=place)
    for name, values in sync_columns.items():
        columns[name] = columns[name].copy()
        columns[name][steps] = values
