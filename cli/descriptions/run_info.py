"""What `tilescope info` says about a run of several instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.shared.fitting import labelled
from cli.shared.output import OBJECT, Rows, counted, printable, write, write_object, write_rows
from pva import units
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.many.run import Run

_LABEL_WIDTH = 12
_SHOWN = ("instance", "host", "pid", "exit_code", "seconds", "runs", "cycles", "trace_seconds")


def _cycles(cycles: float) -> str:
    return f"{int(cycles):,}"


_MEASURES: dict[str, Callable[[float], str]] = {"seconds": units.duration, "cycles": _cycles}


def is_run(path: Path) -> bool:
    """Return whether a path is a run: a directory that `poprun` wrote, or its `run.json`."""
    from pva.formats.run_file import NAME, folder_name

    if path.name == NAME:
        return path.is_file()
    return path.is_dir() and ((path / NAME).is_file() or (path / folder_name(0)).is_dir())


def write_run_info(path: str, form: str, limit: int | None) -> None:
    """Print what is in a run, who took longest, who compiled something else; raises PvaError."""
    from pva.analysis import equal_graphs, instances
    from pva.many.run import openRun

    run = openRun(path)
    frame, graphs = instances(run).frame(), equal_graphs(run).frame()
    rows = [tuple(None if value != value else value for value in row)
            for row in frame[list(_SHOWN)].astype(object).where(frame[list(_SHOWN)].notna(), None)
            .itertuples(index=False)]  # fmt: skip
    if form == OBJECT:
        write_object(
            "info", path, kind="a run", facts=dict(_facts(run, frame, graphs)),
            instances=[dict(zip(_SHOWN, row, strict=True)) for row in rows],
            problems=list(run.problems),
        )  # fmt: skip
        return
    if form == "table":
        facts = _facts(run, frame, graphs)
        write(labelled(((label, printable(text)) for label, text in facts), _LABEL_WIDTH))
        write([""])
    write_rows(Rows(_SHOWN, rows, len(rows)), form, limit)


def _facts(run: Run, frame: pd.DataFrame, graphs: pd.DataFrame) -> Iterator[tuple[str, str]]:
    reports, traces = counted(len(run.reports), "report"), counted(len(run.traces), "host trace")
    yield "run", f"{run.name}: {counted(len(run.instances), 'instance')}, {reports}, {traces}"
    if run.file is not None:
        topology = run.file.topology
        hosts = counted(len(topology.hosts), "host")
        code = run.file.exit_code
        ended = "runs, or was killed" if code is None else f"ended with {code}"
        replicas = counted(topology.replicas, "replica")
        yield "topology", f"{replicas} on {hosts}, by {run.file.launcher}; {ended}"
    for name, words in _MEASURES.items():
        values = frame[["instance", name]].dropna().sort_values(name, kind="stable")
        if len(values):
            yield name, _spread(values, name, words)
    yield "graphs", _graphs(graphs)
    for one in run.instances:
        if one.file and one.file.exit_code:
            yield "failed", f"instance {one.index} ended with {one.file.exit_code}"
        elif one.file and one.file.end is None:
            yield "failed", f"instance {one.index} has not ended, or was killed"
    for problem in run.problems:
        yield "left out", problem


def _spread(values: pd.DataFrame, name: str, words: Callable[[float], str]) -> str:
    """Write the least, the (lower) median and the most of sorted values, and whose they are."""
    least, most = values[name].iloc[0], values[name].iloc[-1]
    if least == most:
        return f"{words(most)} in {'all' if len(values) > 1 else 'one'}"
    parts = (("least", 0), ("median", (len(values) - 1) // 2), ("most", -1))
    return ", ".join(
        f"{part} {words(values[name].iloc[at])} (instance {values['instance'].iloc[at]})"
        for part, at in parts
    )


def _graphs(graphs: pd.DataFrame) -> str:
    different = graphs[graphs["differs"]]
    if not len(graphs):
        return "none was recorded"
    if not len(different):
        return f"equal in all {len(graphs)}" if len(graphs) > 1 else "of one instance alone"
    first: Any = next(different.itertuples())
    where = f"{first.table}.{first.column}" + (f" row {first.row}" * (first.row == first.row))
    return (
        f"{len(different)} of {len(graphs)} differ: instance {first.instance} first in {where},"
        f" {first.value} instead of {first.most}"
    )
