"""The figures of the guide's sample are read as they are printed, and add up."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.sample_accuracy import PAGE, Figure, figures, published, rows, table

SUMMARY = """
Graph:
  Number of vertices:            5,564
        Overlapped
            Variables:                              340,056 B
          Total After Overlapping:                  394,596 B
  Cycles by vertex type:
    poprand::SetSeedSupervisor    (1216 instances):      177,536
Steps
  --- External Sync ---
  StreamCopy (cycles 118 - 118): epoch
    Active Tiles:                       1 / 1,216
    Tile Balance:                       0.1%
  DoExchange (cycles 826 - 946): a/ExchangePre
    Cycles:                             120 (0 overlapped with previous)
"""


def test_the_numbers_of_a_summary_are_found_by_part_and_label() -> None:
    assert figures(SUMMARY) == {
        Figure("graph", "Number of vertices"): 5564,
        Figure("overlapped", "Variables"): 340_056,
        Figure("overlapped", "Total After Overlapping"): 394_596,
        Figure("cycles by type", "poprand::SetSeedSupervisor"): 177_536,
        Figure("instances", "poprand::SetSeedSupervisor"): 1216,
        Figure("stream copy 1", "Active Tiles"): 1,
        Figure("stream copy 1", "Tile Balance"): 0.1,
        Figure("step a/ExchangePre", "Cycles"): 120,
    }


def test_the_published_figures_add_up() -> None:
    figures_of, sums = published(), defaultdict(float)
    for figure, value in figures_of.items():
        if not figure.label.startswith("Total"):
            sums[figure.part] += value
    assert sums["instances"] == figures_of[Figure("graph", "Number of vertices")]
    for part in ("not overlapped", "overlapped"):
        assert sums[part] == figures_of[Figure(part, "Total")]
    assert sums["vertex data"] == 106_509  # Poplar's own total of them


def test_a_row_names_the_reason_of_what_is_far_off() -> None:
    near, far = Figure("graph", "Number of edges"), Figure("cycles by type", "popops::Reduce<x>")
    lines = list(rows({near: 100.0, far: 3584.0}, {near: 110.0}))
    assert lines == [
        "| graph | Number of edges | 100 | 110 | +10.0 % |  |",
        "| cycles by type | popops::Reduce\\<x> | 3,584 | 0 | -100.0 % "
        "| follows where the products lie |",
    ]


def test_the_page_has_the_figures_of_today() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
