"""The device timeline: one lane an IPU, with rows of runs, layers and executed steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dashboard.store import Report
from dashboard.theme import STEP_COLOURS, step_words
from dashboard.timeline.lanes import Labels, Row, Timeline
from pva.analysis import execution
from pva.analysis.level_of_detail import Track, bridged, grouped, without_overlap

Integers = npt.NDArray[np.int64]

MAX_LAYERS = 5  # rows of layers a lane
RUN, LAYER, FIRST_STEP = 0, 1, 2  # colours


@dataclass(frozen=True, slots=True)
class _Steps:
    """The executed steps as arrays; labels, colours and layers by step."""

    run: Integers
    label: Integers
    colour: Integers
    unnamed: npt.NDArray[np.bool_]
    layers: list[Integers]

    def rows(self, chosen: Integers) -> _Steps:
        """Keep the chosen steps."""
        return _Steps(
            run=self.run[chosen],
            label=self.label[chosen],
            colour=self.colour[chosen],
            unnamed=self.unnamed[chosen],
            layers=[codes[chosen] for codes in self.layers],
        )


def device_timeline(report: Report) -> Timeline:
    """Lay out the executed steps: per IPU a row of runs, rows of layers and a row of steps."""
    labels = Labels()
    kinds = list(STEP_COLOURS)
    steps = _steps(report, labels, kinds)
    runs = _runs(report, labels)
    rows: list[Row] = []
    for ipu, (mine, begin, end) in enumerate(_clocks(report)):
        lane = f"IPU {ipu}"
        rows.append(Row(lane, "Runs", runs))
        own = steps.rows(mine)
        for number, codes in enumerate(own.layers):
            track = _layer(begin, end, codes, own)
            rows.append(Row(lane, "Layers" if number == 0 else "", track, layer=True))
        track = Track(begin, end, own.colour, own.label, mine)
        rows.append(Row(lane, "Steps", track, overview=True))
    colours = [("run", "Run"), ("layer", "Layer"), *((f"step-{k}", step_words(k)) for k in kinds)]
    clock = float(report.dataset.value("target", "clock_frequency"))
    return Timeline("cycles", clock, tuple(rows), labels.texts, [*colours, ("quiet", "Other")])


def _runs(report: Report, labels: Labels) -> Track:
    """Make the row of the runs that were recorded in full."""
    runs = execution.runs(report)
    runs = runs[runs["recorded"]]
    begin = runs["cycles_from"].to_numpy(np.int64)
    begin, end = without_overlap(begin, begin + runs["cycles"].to_numpy(np.int64))
    texts = [
        f"Run {run}: {name}" if name else f"Run {run}"
        for run, name in zip(runs["run"], runs["name"], strict=True)
    ]
    numbers = np.array([labels.number(text) for text in texts], dtype=np.int64)
    return Track(begin, end, np.full(len(begin), RUN), numbers, np.full(len(begin), -1))


def _steps(report: Report, labels: Labels, kinds: list[str]) -> _Steps:
    """Give every step its label, colour and layers; texts are handled once a program."""
    frame = execution.steps(report)
    programs, first, step = np.unique(
        frame["program"].to_numpy(np.int64), return_index=True, return_inverse=True
    )
    names = frame["name"].to_numpy()[first].tolist()
    types = frame["type"].to_numpy()[first].tolist()
    texts = [name or step_words(kind) for name, kind in zip(names, types, strict=True)]
    numbers = [labels.number(text) for text in texts]
    colours = [FIRST_STEP + (kinds.index(k) if k in kinds else len(kinds)) for k in types]
    layers = layer_codes(names, labels)
    return _Steps(
        run=frame["run"].to_numpy(np.int64),
        label=np.array(numbers, dtype=np.int64)[step],
        colour=np.array(colours, dtype=np.int64)[step],
        unnamed=np.array([not name for name in names], dtype=np.bool_)[step],
        layers=[codes[step] for codes in layers],
    )


def layer_codes(names: list[str], labels: Labels) -> list[Integers]:
    """Give, from the outermost layer inwards, the label of each name's layer, or -1.

    A layer is a beginning `a/b` that names share up to a slash; a name that is itself such a
    beginning lies in its own layer.
    """
    prefixes = {
        name[:place] for name in names for place, letter in enumerate(name) if letter == "/"
    }
    parts = [name.split("/") for name in names]
    deep = [
        len(p) if name in prefixes else len(p) - 1 for name, p in zip(names, parts, strict=True)
    ]
    return [
        np.array(
            [
                labels.number("/".join(p[: layer + 1])) if layer < d else -1
                for p, d in zip(parts, deep, strict=True)
            ],
            dtype=np.int64,
        )
        for layer in range(min(max(deep, default=0), MAX_LAYERS))
    ]


def _layer(begin: Integers, end: Integers, codes: Integers, steps: _Steps) -> Track:
    """Join the steps of one layer to spans; syncs between them belong, other runs do not."""
    codes = bridged(codes, steps.unnamed)
    most = int(codes.max(initial=0)) + 1
    by_run = np.where(codes >= 0, steps.run * most + codes, -1)
    first, last, joined = grouped(begin, end, by_run)
    size = len(joined)
    return Track(first, last, np.full(size, LAYER), joined % most, np.full(size, -1))


def _clocks(report: Report) -> list[tuple[Integers, Integers, Integers]]:
    """Give of each IPU the steps in which it takes part, with their begin and end on it.

    One IPU has all steps, as long as they are on any tile.
    """
    data = report.dataset
    ipus = data.of_replica("num_ipus")
    if ipus == 1 or not data.length("steps_by_ipu"):
        begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
        clock = without_overlap(np.maximum(begin, 0), np.maximum(end, 0))
        return [(np.arange(len(begin)), *clock)]
    names = ("step", "from_min", "to_max")
    steps, begin, end = (data.column("steps_by_ipu", name) for name in names)
    of_ipu = [data.rows_where("steps_by_ipu", "ipu", ipu) for ipu in range(ipus)]
    return [(steps[rows], *without_overlap(begin[rows], end[rows])) for rows in of_ipu]
