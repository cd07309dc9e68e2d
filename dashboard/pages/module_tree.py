"""Modules of PyTorch as the rows of a table: a tree, of which branches are opened and closed."""

from __future__ import annotations

import numpy as np

from dashboard.address import Address
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Frame
from pva.analysis.operations.module_lives import live_by_module

MODULE_NAME = Column("label", "Module", "branch", 300, "With all within")
SOURCE, MODULE_CLASS = declared_columns(live_by_module, "source/text@190 Code", "kind/text Class")
LEVELS = (("3", "3 levels"), ("1", "1"), ("2", "2"), ("all", "All levels"))
UNFOLDED = 1 << 30  # a depth that no module has


def branches(frame: Frame, state: Address) -> Frame:
    """Leave out what is in a closed module; of a filter all rows, by whole names.

    A level opens the modules above it, and each that `folded` names with the level is turned over.
    """
    if state.filter:
        return frame.assign(label=frame["operation"], depth=0, fold="", fold_key="")
    levels, turned = state.text("levels", LEVELS[0][0]), state.text("folded").split(",")
    depths, names = frame["depth"].to_numpy(), frame["operation"]
    least = len(depths) if levels == LEVELS[-1][0] else int(levels)
    keys = [f"{levels}:{name}" for name in names]
    is_open = (depths + 1 < least) ^ np.isin(keys, turned)
    is_parent = np.append(depths[1:], 0) > depths
    shown, closed = np.ones(len(depths), dtype=bool), UNFOLDED
    for place, depth in enumerate(depths.tolist()):  # of modules there are hundreds
        shown[place] = depth <= closed
        if shown[place]:
            closed = UNFOLDED if is_open[place] else depth
    return frame.assign(
        label=[name.rpartition(".")[2] for name in names],
        fold=np.where(is_parent, np.where(is_open, "open", "closed"), ""),
        fold_key=keys,
    )[shown]
