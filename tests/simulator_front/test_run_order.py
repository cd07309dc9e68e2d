"""The order in which the programs of a tree are executed."""

from __future__ import annotations

from simulator.compiler.executable import LoweredProgram
from simulator.runtime.flow import lay_out

# 0 Sequence(1 Sync, 2 Switch(3 Repeat(4 Sequence(5, 6)), 7 Sequence(8)))
TREE = [
    LoweredProgram("Sequence", children=[1, 2]),
    LoweredProgram("Sync"),
    LoweredProgram("Switch", children=[3, 7]),
    LoweredProgram("Repeat", children=[4], count=3),
    LoweredProgram("Sequence", children=[5, 6]),
    LoweredProgram("DoExchange"),
    LoweredProgram("OnTileExecute"),
    LoweredProgram("Sequence", children=[8]),
    LoweredProgram("StreamCopy"),
]


def test_a_repeat_runs_its_body_again_and_a_switch_one_child() -> None:
    assert lay_out(TREE, 0, 3).tolist() == [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6]
    assert lay_out(TREE, 0, 7).tolist() == [0, 1, 2, 7, 8]


def test_a_repeat_of_nothing_leaves_only_itself() -> None:
    tree = [LoweredProgram("Repeat", children=[1], count=0), LoweredProgram("Sync")]
    assert lay_out(tree, 0, 0).tolist() == [0]


def test_a_deep_tree_needs_no_deep_stack() -> None:
    depth = 50_000
    tree = [LoweredProgram("Sequence", children=[i + 1]) for i in range(depth)]
    assert len(lay_out([*tree, LoweredProgram("Sync")], 0, 0)) == depth + 1
