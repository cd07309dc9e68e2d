"""Runs of several instances, made by hand of small reports and traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pva.data.dataset import Dataset
from pva.formats.run_file import (
    Clock,
    InstanceFile,
    RunFile,
    Topology,
    folder_name,
    write_instance,
    write_run,
)
from tests.builders import small_report, write_report

RUN = "0123"
BEGIN = Clock(clock_ns=1_000, wall_ns=5_000)


def instance_file(index: int, seconds: int, run: str = RUN) -> InstanceFile:
    """Return what an instance on a host of its own says; its process is 100 and its index."""
    end = Clock(clock_ns=1_000 + seconds * 10**9, wall_ns=5_000 + seconds * 10**9)
    return InstanceFile(run=run, instance=index, host=f"h{index}", pid=100 + index,
                        command=("train",), begin=BEGIN, end=end, exit_code=0)  # fmt: skip


def write_instances(directory: Path, count: int, changed: dict[int, Dataset] | None = None) -> Path:
    """Write a run whose instance i took i + 1 seconds; `changed` has other reports by instance."""
    files = []
    for index in range(count):
        folder = directory / folder_name(index)
        write_report(folder, (changed or {}).get(index))
        files.append(instance_file(index, index + 1))
        write_instance(folder, files[-1])
    hosts = tuple(f"h{index}" for index in range(count))
    topology = Topology(hosts=hosts, instances=count, replicas=count)
    run = RunFile(run=RUN, command=("train",), topology=topology, launcher="processes",
                  begin=BEGIN, host="h0", end=files[-1].end, exit_code=0)  # fmt: skip
    write_run(directory, replace(run, instances=tuple(files)))
    return directory


def other_report() -> Dataset:
    """Return a report whose second compute set has another name."""
    names = small_report().column("compute_sets", "name").tolist()
    names[1] = "other"
    return small_report(compute_sets={"name": names})
