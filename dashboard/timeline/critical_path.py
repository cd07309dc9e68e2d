"""The critical path as a lane above those of the IPUs: what the runs are as long as, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dashboard.store import Report
from pva.analysis.timeline.pyramid import build
from pva.analysis.waiting.causes import path_steps
from pva.array_types import Values
from pva.plot.lanes import Lane, RowItems, Timeline
from pva.plot.theme import STEP_COLOURS, step_words

NAME = "Critical path"


def with_critical_path(timeline: Timeline, report: Report) -> Timeline:
    """Add the lane to a device timeline; raises NotRecordedError."""
    path = path_steps(report, count=np.iinfo(np.int32).max).frame()
    unnamed = path["name"] == "(" + path["type"] + ")"
    text = path["name"].mask(unnamed, path["type"].map(step_words))
    if report.dataset.of_replica("num_ipus") > 1:
        text = "IPU " + path["ipu"].astype(str) + ": " + text
    tokens = [token for token, _ in timeline.colours]
    colours = {kind: tokens.index(f"step-{kind}") for kind in STEP_COLOURS}
    colour = path["type"].map(colours).fillna(tokens.index("quiet")).astype(int)
    path = path.assign(text=text, colour=colour)
    shift = len(timeline.labels)
    number = path.groupby(["text", "colour"], sort=False).ngroup().to_numpy() + shift
    labels = path.drop_duplicates(["text", "colour"])
    begin, end = (path[name].to_numpy() for name in ("cycles_from", "cycles_to"))
    rows = timeline.tracks.rows
    kinds = np.concatenate((timeline.tracks.kind[:shift], labels["colour"].to_numpy(), [0]))
    lane = Lane(NAME, (), rows, rows + 1, ("Steps",), ("derived",), rows)
    items = timeline.items or tuple(RowItems() for _ in range(rows))
    return replace(
        timeline,
        lanes=(lane, *timeline.lanes),
        tracks=build(_rows(timeline, (begin, end, number)), lambda: kinds),
        labels=[*timeline.labels, *labels["text"].tolist()],
        items=(*items, RowItems(path["step"].to_numpy().astype(np.int32))),
    )


def _rows(
    timeline: Timeline, path: tuple[Values, Values, Values]
) -> Iterator[tuple[Values, Values, Values]]:
    tracks = timeline.tracks
    for row in range(tracks.rows):
        events = np.arange(*tracks.offset[row : row + 2])
        yield tracks.begin[events], tracks.ends(events), tracks.label[events].astype(np.int64)
    yield path
