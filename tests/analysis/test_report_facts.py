"""The facts of machine, graph, writer and runs that several views show, on the hand-made report."""

from __future__ import annotations

import pytest

from pva.analysis.execution.totals import total_of_runs
from pva.analysis.machine import target
from pva.analysis.whole_report.overview import GraphSize, ReportWriter, graph_size, report_writer
from pva.analysis.whole_report.provenance import figure_quality
from pva.errors import NotRecordedError
from tests.analysis.samples import small


def test_the_target_is_two_ipus_of_five_tiles() -> None:
    machine = target(small())
    assert (machine.num_ipus, machine.tiles_per_ipu, machine.num_tiles) == (2, 5, 10)
    assert (machine.bytes_per_tile, machine.total_memory) == (2048, 20480)
    assert (machine.type, machine.architecture, machine.machine) == ("IPU_MODEL", "tiny", "")


def test_a_report_without_a_target_says_which_table_is_missing() -> None:
    with pytest.raises(NotRecordedError, match="target"):
        target(small(target=None))


def test_graph_and_writer_are_those_of_their_tables() -> None:
    report = small()
    assert graph_size(report) == GraphSize(compute_sets=3, vertices=18, edges=34, variables=44)
    assert report_writer(report) == ReportWriter("1.2.3", "abc", "2020-01-01T00:00:00Z")


def test_runs_count_without_their_steps() -> None:
    spent = total_of_runs(small(steps=None))  # two of 512 cycles, at 1 GHz
    assert (spent.runs, spent.cycles) == (2, 1024)
    assert spent.seconds == pytest.approx(1024e-9)


def test_a_report_without_runs_has_none() -> None:
    assert total_of_runs(small(runs=None)).runs == 0


def test_the_quality_of_what_a_report_lacks_is_left_out() -> None:
    assert [row.item for row in figure_quality(small())] == ["memory_by_tile"]
    assert figure_quality(small(memory_by_tile=None)) == []
    assert figure_quality(small(provenance=None)) == []
