"""The profiles of an engine in memory: as plain values, which the documents hold, and as a report.

Figures of the execution are those since the last reset; its clock begins with the first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pva import schema
from pva.data.dataset import Dataset
from pva.formats import registry
from simulator.compiler.executable import Executable
from simulator.profile.debug_info import debug_tables
from simulator.profile.execution_profile import ExecutionProfile
from simulator.profile.graph_profile import graph_arrays, graph_tables, program_table
from simulator.runtime.run import RunRecord

Value = dict[str, Any]
Part = tuple[dict[str, Any], dict[str, Any]]


def graph_profile_value(executable: Executable, options: Mapping[str, bool | int | str]) -> Value:
    """Return the graph profile; equal to what `graph.json` holds."""
    tables, arrays = graph_tables(executable, options), graph_arrays(executable)
    return registry.value_of(Dataset.of(tables, arrays, "graph profile"), "graph")


def execution_profile_value(
    executable: Executable, records: Sequence[RunRecord], *, profiled: bool = True
) -> Value:
    """Return the execution profile of some consecutive runs, such as those since a reset.

    Equal to what `execution.json` holds when these are all runs; the clock begins with the first of
    them. One that is not `profiled` has the mode NONE and no steps.
    """
    tables, arrays = _execution(executable, records, profiled=profiled)
    # Steps repeat the names and operands of their programs.
    tables["programs"] = program_table(executable)
    return registry.value_of(Dataset.of(tables, arrays, "execution profile"), "execution")


def report_dataset(
    executable: Executable,
    options: Mapping[str, bool | int | str],
    records: Sequence[RunRecord] | None,
    *,
    profiled: bool = True,
) -> Dataset:
    """Make the report that a directory would hold; without `records` that of the compilation."""
    tables = graph_tables(executable, options) | debug_tables(executable.graph)
    arrays = graph_arrays(executable)
    if records is not None:
        more_tables, more_arrays = _execution(executable, records, profiled=profiled)
        tables, arrays = tables | more_tables, arrays | more_arrays
    return Dataset.of(tables, arrays, "report of an engine")


def _execution(executable: Executable, records: Sequence[RunRecord], *, profiled: bool) -> Part:
    """Make tables and arrays of the execution, of runs that follow each other."""
    origin = records[0].cycles_from if records else 0
    profile = ExecutionProfile(executable, origin, profiled=profiled)
    parts = [
        _without_clocks(origin, part) for part in (profile.start(), *map(profile.append, records))
    ]
    tables: dict[str, dict[str, Any]] = {}
    arrays: dict[str, Any] = {}
    for more_tables, more_arrays in parts:
        for name, columns in more_tables.items():
            tables[name] = _grown(name, tables.get(name), columns)
        for name, values in more_arrays.items():
            arrays[name] = _stacked(name, arrays.get(name), values)
    return tables, arrays


def _without_clocks(origin: int, part: Part) -> Part:
    """Leave out the clocks of tiles, unless the first step is the first of the engine.

    They are kept at every so many steps of the engine, not of what ran since.
    """
    tables, arrays = part
    if origin:
        arrays = {name: values for name, values in arrays.items() if name != "tile_clock"}
    return tables, arrays


def dataset_of(
    graph: Mapping[str, object], execution: Mapping[str, object] | None = None
) -> Dataset:
    """Turn profiles given as values into a dataset; raises PvaError."""
    return registry.of_values(graph=graph, execution=execution)


def _grown(
    name: str, before: dict[str, object] | None, columns: Mapping[str, object]
) -> dict[str, object]:
    """Append rows to a table; a table of one row is replaced."""
    if before is None or schema.TABLE[name].layout == "object":
        return dict(columns)
    return {column: np.concatenate([before[column], columns[column]]) for column in columns}


def _stacked(name: str, before: object, values: object) -> object:
    """Append rows to an array; one that is measured anew is replaced."""
    if before is None or schema.ARRAY[name].replaced:
        return values
    return np.concatenate([before, values])
