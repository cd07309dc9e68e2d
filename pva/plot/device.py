"""The device timeline: one lane an IPU, with rows of runs, layers, executed steps and blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pva.analysis.operations.layers import MODULE, OUTSIDE, owners_in
from pva.analysis.operations.modules import around, modules_of, name_of_whole
from pva.analysis.selection import program_texts
from pva.analysis.spans import bridged, depths, grouped, without_overlap
from pva.analysis.timeline.pyramid import build
from pva.array_types import Integers, Truths
from pva.data.tile_sets import IO, has_io_tiles, sets_of_steps
from pva.plot.lanes import Labels, Lane, RowItems, Timeline
from pva.plot.theme import STEP_COLOURS, step_words
from pva.report import Report

Row = tuple[Integers, Integers, Integers]

MAX_LAYERS = 5  # rows of layers a lane
RUN, LAYER, FIRST_STEP = 0, 1, 2  # colours
QUIET = FIRST_STEP + len(STEP_COLOURS)
WORK_STEPS = ("OnTileExecute", "DoExchange", "GlobalExchange", "CopySharedStructure")
HOST_STEPS = ("StreamCopy", "StreamCopyBegin", "StreamCopyEnd")
BLOCK_COLOURS = {
    "common": ("block", "Block"),
    "streamCopy": ("step-StreamCopy", "Block of a stream copy"),
    "blockFlush": ("block-flush", "Profiling buffer sent to the host"),
    "overflow": ("block-overflow", "Profiling buffer full: blocks are missing"),
}


@dataclass(frozen=True, slots=True)
class _Steps:
    """The executed steps as arrays; labels and layers by program."""

    run: Integers
    program: Integers
    label: Integers
    unnamed: npt.NDArray[np.bool_]
    host: npt.NDArray[np.bool_]
    work: npt.NDArray[np.bool_]
    layers: list[Integers]


@dataclass(slots=True)
class _Making:
    """What the rows add to while they are given out."""

    labels: Labels
    lanes: list[Lane]
    items: list[RowItems]
    names: list[str]
    kinds: list[str]

    def row(self, name: str, kind: str, row: Row, items: Integers | None = None) -> Row:
        """Note a row of the lane in the making."""
        self.names.append(name)
        self.kinds.append(kind)
        self.items.append(RowItems() if items is None else RowItems.of(items))
        return row

    def lane(self, name: str) -> None:
        """Make a lane of the rows noted since the last one."""
        first = self.lanes[-1].stop if self.lanes else 0
        main = next((n for n, kind in enumerate(self.kinds) if kind in {"step", "block"}), 0)
        stop = first + len(self.names)
        self.lanes.append(
            Lane(name, (), first, stop, tuple(self.names), tuple(self.kinds), first + main)
        )
        self.names.clear()
        self.kinds.clear()


def device_timeline(report: Report, *, modules: bool = False) -> Timeline:
    """Lay out the executed steps: per IPU rows of runs, layers, steps, overlapped I/O, blocks.

    Layers are those of names, or the `modules` of PyTorch.
    """
    kinds = list(STEP_COLOURS)
    making = _Making(Labels(), [], [], [], [])
    tracks = build(_rows(report, making, kinds, modules), lambda: [*making.labels.colours, 0])
    colours = [("run", "Run"), ("layer", "Layer"), *((f"step-{k}", step_words(k)) for k in kinds)]
    clock = float(report.dataset.value("target", "clock_frequency"))
    return Timeline(
        unit="cycles",
        clock=clock,
        lanes=tuple(making.lanes),
        tracks=tracks,
        labels=making.labels.texts,
        colours=[*colours, ("quiet", "Other"), *BLOCK_COLOURS.values()],
        items=tuple(making.items),
    )


def _rows(report: Report, making: _Making, kinds: list[str], modules: bool) -> Iterator[Row]:
    data = report.dataset
    steps = _steps(report, making.labels, kinds, modules) if data.has("steps") else None
    runs = _runs(report, making.labels)
    has_blocks = data.has("blocks") and data.length("blocks") > 0
    for ipu in range(data.of_replica("num_ipus")):
        yield making.row("Runs", "run", runs)
        if steps is not None:
            yield from _step_rows(report, ipu, steps, making)
        if has_blocks:
            yield from _block_rows(report, ipu, making, 3 + len(kinds))
        making.lane(f"IPU {ipu}")


def _step_rows(report: Report, ipu: int, steps: _Steps, making: _Making) -> Iterator[Row]:
    """Return the rows of layers and steps of one IPU, and of what it exchanged meanwhile."""
    mine, begin, end = _clock(report, ipu)
    program = steps.program[mine]
    apart = has_io_tiles(report.dataset)
    if apart:
        aside = sets_of_steps(report.dataset)[mine] == IO
    else:
        aside = overlapped(begin, end, steps.host[program], steps.work[program])
    main = mine[~aside]
    begins, ends = without_overlap(begin[~aside], end[~aside])
    programs = program[~aside]
    for number, codes in enumerate(steps.layers):
        layer = _layer(begins, ends, codes[programs], (steps.run[main], steps.unnamed[programs]))
        yield making.row("Layers" if number == 0 else "", "layer", layer)
    row = (begins, ends, steps.label[programs])
    yield making.row("Steps", "step", row, main)
    if aside.any():
        begins, ends = without_overlap(begin[aside], end[aside])
        row = (begins, ends, steps.label[program[aside]])
        yield making.row("I/O tiles" if apart else "Overlapped I/O", "io", row, mine[aside])


def overlapped(begin: Integers, end: Integers, host: Truths, work: Truths) -> Truths:
    """Return which exchanges with the host go on, for half of their time, beside other work."""
    before = np.maximum.accumulate(np.where(work, end, 0))
    behind = np.where(work, begin, np.iinfo(np.int64).max)
    behind = np.minimum.accumulate(behind[::-1])[::-1]
    beside = np.maximum(np.minimum(before, end) - begin, end - np.maximum(behind, begin))
    overlaps: Truths = host & (2 * beside > end - begin)
    return overlaps


def _runs(report: Report, labels: Labels) -> Row:
    """Make the row of the runs whose place on the device's clock is known."""
    data = report.dataset
    if not data.has("runs"):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    names = data.column("runs", "name")
    begin, cycles = (data.column("runs", name) for name in ("cycles_from", "cycles"))
    placed = np.flatnonzero(
        (begin >= 0) & (cycles >= 0) & (_in_full(report) | (not data.has("steps")))
    )
    begin, end = begin[placed], begin[placed] + cycles[placed]
    numbers = [labels.number(run_label(run, names[run]), RUN) for run in placed.tolist()]
    gaps = _between(report, labels, begin, end)
    rows = zip((begin, end, np.array(numbers, dtype=np.int64)), gaps, strict=True)
    begin, end, number = (np.concatenate(parts) for parts in rows)
    order = np.argsort(begin, kind="stable")
    return *without_overlap(begin[order], end[order]), number[order]


def _between(report: Report, labels: Labels, begin: Integers, end: Integers) -> Row:
    """Return the runs outside the profile that lie between these."""
    data = report.dataset
    if not (data.has("other_runs") and len(begin)):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing
    names = data.column("other_runs", "name")
    first, cycles = (data.column("other_runs", name) for name in ("cycles_from", "cycles"))
    rows = np.flatnonzero((first >= begin.min()) & (first + cycles <= end.max()) & (cycles >= 0))
    numbers = [labels.number(run_label(-1, names[row]), QUIET) for row in rows.tolist()]
    return first[rows], (first + cycles)[rows], np.array(numbers, dtype=np.int64)


def run_label(run: int, name: str) -> str:
    """Name a run; one outside the profile has no number."""
    number = f" #{run}" if run >= 0 else ", not profiled"
    return f"Engine::run{number}: {name}".removesuffix(": ")


def _in_full(report: Report) -> npt.NDArray[np.bool_]:
    data = report.dataset
    full: npt.NDArray[np.bool_] = data.column("runs", "end_step") > data.column(
        "runs", "first_step"
    )
    return full


def _steps(report: Report, labels: Labels, kinds: list[str], modules: bool) -> _Steps:
    """Label programs, list their layers and the program of each step; texts once a program."""
    data = report.dataset
    programs, first, place = np.unique(
        data.column("steps", "program"), return_index=True, return_inverse=True
    )
    _, names = program_texts(report, programs)
    types = data.texts("steps", "type")[first].tolist()
    texts = [name or step_words(kind) for name, kind in zip(names, types, strict=True)]
    colours = [FIRST_STEP + (kinds.index(k) if k in kinds else len(kinds)) for k in types]
    numbers = [labels.number(*pair) for pair in zip(texts, colours, strict=True)]
    return _Steps(
        run=data.column("steps", "run"),
        program=place.astype(np.int32),
        label=np.array(numbers, dtype=np.int64),
        unnamed=np.array([not name for name in names], dtype=np.bool_),
        host=np.array([kind in HOST_STEPS for kind in types], dtype=np.bool_),
        work=np.array([kind in WORK_STEPS for kind in types], dtype=np.bool_),
        layers=module_codes(report, programs, labels) if modules else layer_codes(names, labels),
    )


def layer_codes(names: list[str], labels: Labels) -> list[Integers]:
    """Return, from the outermost layer inwards, the label of each name's layer, or -1.

    A layer is a beginning `a/b` that names share up to a slash; a name that is itself such a
    beginning lies in its own layer.
    """
    ordered = sorted(names)  # what begins with a text follows it at once
    following = [bisect_left(ordered, f"{name}/") for name in names]
    begins = [
        place < len(ordered) and ordered[place].startswith(f"{name}/")
        for name, place in zip(names, following, strict=True)
    ]
    parts = [name.split("/", MAX_LAYERS) for name in names]
    deep = [len(p) - 1 + begun for p, begun in zip(parts, begins, strict=True)]
    return [
        np.array(
            [
                labels.number("/".join(p[: layer + 1]), LAYER) if layer < d else -1
                for p, d in zip(parts, deep, strict=True)
            ],
            dtype=np.int64,
        )
        for layer in range(min(max(deep, default=0), MAX_LAYERS))
    ]


def module_codes(report: Report, programs: Integers, labels: Labels) -> list[Integers]:
    """Return, from the outermost module inwards, the label of each program's module, or -1."""
    root = name_of_whole(modules_of(report))
    owners = owners_in(report, MODULE)[programs]
    paths = [around(name, root) if name != OUTSIDE else [] for name in owners.tolist()]
    return [
        np.array(
            [labels.number(path[layer], LAYER) if layer < len(path) else -1 for path in paths],
            dtype=np.int64,
        )
        for layer in range(min(max(map(len, paths), default=0), MAX_LAYERS))
    ]


def _layer(
    begin: Integers, end: Integers, codes: Integers, of_step: tuple[Integers, Truths]
) -> Row:
    """Join the steps of one layer to spans; syncs between them belong, other runs do not."""
    run, unnamed = of_step
    codes = bridged(codes, unnamed)
    most = int(codes.max(initial=0)) + 1
    by_run = np.where(codes >= 0, run * most + codes, -1)
    first, last, joined = grouped(begin, end, by_run)
    return first, last, joined % most


def _clock(report: Report, ipu: int) -> tuple[Integers, Integers, Integers]:
    """Return the steps in which an IPU takes part, with their begin and end on it.

    One IPU has all steps, as long as they are on any tile, unless its I/O tiles go their own way.
    """
    data = report.dataset
    alone = data.of_replica("num_ipus") == 1 and not has_io_tiles(data)
    if alone or not data.length("steps_by_ipu"):
        begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
        return np.arange(len(begin)), np.maximum(begin, 0), np.maximum(end, 0)
    rows = data.rows_where("steps_by_ipu", "ipu", ipu)
    steps, begin, end = (
        data.column("steps_by_ipu", name)[rows] for name in ("step", "from_min", "to_max")
    )
    return steps, np.maximum(begin, 0), np.maximum(end, 0)


def _block_rows(report: Report, ipu: int, making: _Making, colour: int) -> Iterator[Row]:
    """Return rows of blocks that lightweight profiling saw on a tile of an IPU, by their depth."""
    data = report.dataset
    rows = data.rows_where("blocks", "ipu", ipu)
    begin, end, program, kind = (
        data.column("blocks", name)[rows]
        for name in ("cycles_from", "cycles_to", "program", "kind")
    )
    order = np.lexsort((-end, begin))
    begin, end, program, kind = (values[order] for values in (begin, end, program, kind))
    words = data.texts("blocks", "kind")[rows][order]
    pairs, place = np.unique(np.stack((program, kind)), axis=1, return_inverse=True)
    first = np.unique(place, return_index=True)[1] if len(place) else place
    _, names = program_texts(report, pairs[0])
    numbers = []
    for name, word in zip(names, words[first].tolist(), strict=True):
        token = list(BLOCK_COLOURS).index(word) if word in BLOCK_COLOURS else 0
        numbers.append(making.labels.number(name or BLOCK_COLOURS[word][1], colour + token))
    label = np.array(numbers, dtype=np.int64)[place]
    depth = depths(begin, end)
    for level in range(int(depth.max(initial=-1)) + 1):
        at_depth = depth == level
        row = (*without_overlap(begin[at_depth], end[at_depth]), label[at_depth])
        yield making.row("Blocks" if level == 0 else "", "block", row)
