"""What the drawer says of an object: variable, program, step, operation, layer, tile, event.

An object is a text `kind:which`, as in `variable:12` or `operation:fc1`, under `object` in the
address. Each kind has a function that describes it, with the same words for the same parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dashboard.address import Address, AddressError, Range
from dashboard.elements import components
from dashboard.elements.components import Facts, recorded_fact
from dashboard.store import MAX_LETTERS, Report, Store
from dashboard.timeline.endpoint import alignment, host, host_flows
from dashboard.timeline.flows import flows_at
from pva import units
from pva.analysis.attribution import elapsed, executions, operations
from pva.analysis.debug_contexts import source_of
from pva.analysis.host.alignment import RUN
from pva.analysis.host.events import event_figures
from pva.analysis.host.flows import HostFlows
from pva.analysis.machine import bytes_per_tile
from pva.analysis.memory.liveness import live_at_peak
from pva.analysis.memory.one_variable import VariableFigures, variable_figures
from pva.analysis.memory.totals import category_label, memory_by_category, memory_by_tile
from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.details import operation_programs
from pva.analysis.programs.details import program_by_tile, program_figures
from pva.analysis.selection import chosen as known_number
from pva.data.long_texts import cut
from pva.errors import PvaError
from pva.plot.lanes import Timeline
from pva.plot.theme import step_words

KEY, VARIABLE, AT = "object", "variable", "at"
Related = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
MAX_RELATED = 5  # that are named


@dataclass(frozen=True, slots=True)
class Subject:
    """What is said of an object: its kind in words, its name, its figures, where else it is shown.

    `related` are other objects with what they are to this one, the name of each and its text.
    `about` are the fields of findings (variable, step, tile, name) that tell which are about it,
    `same` other objects as which it is marked: of a step its program.
    """

    kind: str
    name: str
    figures: Facts
    shown_in: tuple[tuple[str, Address], ...] = ()
    about: tuple[tuple[str, object], ...] = ()
    same: tuple[str, ...] = ()
    related: Related = ()


def with_object(state: Address, kind: str, which: object) -> Address:
    """Return the address with an object chosen."""
    options = tuple(pair for pair in state.options if pair[0] != KEY)
    return replace(state, options=tuple(sorted((*options, (KEY, f"{kind}:{which}")))))


def object_of(state: Address) -> str:
    """Return the object that an address chooses, the variable chosen last without one."""
    text = state.text(KEY)
    numbers = () if text else state.numbers(VARIABLE)
    return text or (f"variable:{numbers[-1]}" if numbers else "")


def describe(store: Store, state: Address, text: str) -> Subject:
    """Return what is said of an object; raises PvaError, AddressError."""
    kind, colon, which = text.partition(":")
    if kind not in KINDS or not colon:
        raise AddressError(f"{KEY}={text}: not there; known: {', '.join(KINDS)}, as in variable:3")
    report = state.report
    if kind == AT:  # of device and host on one axis: steps are odd, events are even
        number = _row(kind, which)
        kind, which = ("event", "step")[number % 2], str(number // 2)
        subject = describe(store, state, f"{kind}:{which}")
        return replace(subject, same=(f"{kind}:{which}", *subject.same))
    if kind == "event":
        return _event(store, report, _row(kind, which))
    opened = store.report(report)
    if kind in NAMED:
        return NAMED[kind](opened, report, which)
    return NUMBERED[kind](opened, report, _row(kind, which))


def _row(kind: str, which: str) -> int:
    if not (which.isascii() and which.isdigit() and len(which) < 19):
        raise AddressError(f"{KEY}={kind}:{which}: no number; write {kind}:12")
    return int(which)


def _source(place: tuple[str, int, str]) -> str:
    file, line, function = place
    inside = f" in {function}" if function not in ("", "<module>") else ""
    return f"{file}:{line}{inside}" if file else "not recorded"


def _taken(report: Report, cycles: int) -> str:
    """Write cycles with their share of those of the recorded runs."""
    every = int(elapsed(report).sum()) if report.dataset.has("steps") else 0
    share = f", {units.share(cycles / every)} of the runs" if every else ""
    return f"{units.cycles_in_words(cycles)}{share}"


def variable(report: Report, key: str, number: int) -> Subject:
    """Describe a variable by its row; raises PvaError."""
    figures = variable_figures(report, variable=number)
    place = (figures.file, figures.line, figures.function)
    pairs = [
        ("Created at", _source(place)),
        ("Part of", figures.operation or "–"),
        ("Category", category_label(figures.category)),
        ("Type and shape", f"{figures.type} {figures.shape}"),
        ("Bytes", units.size(figures.bytes)),
        *_lies(figures),
        ("Live", _life(figures)),
        ("At the peak", "yes" if figures.at_peak else "no"),
        *_uses("Written by", figures.writers, figures.last_writer),
        *_uses("Read by", figures.readers, figures.last_reader),
        *_cycles_of_users(report, number),
    ]
    option = ("variable", str(number))
    ways = (
        ("Memory", Address("/memory", key, options=(option,))),
        ("Liveness", Address("/liveness", key, options=(("tab", "lifetimes"), option))),
        ("Computation graph", Address("/graph", key, options=(("node", f"v{number}"),))),
        *_operation_link(key, figures.operation),
    )
    return Subject("Variable", figures.name, pairs, ways, (("variable", number),))


def _operation_link(key: str, operation: str) -> tuple[tuple[str, Address], ...]:
    options = (("operation", operation),)
    return (("Operations", Address("/operations", key, options=options)),) if operation else ()


def _cycles_of_users(report: Report, number: int) -> Facts:
    """Return what the steps that read or write a variable take."""
    data = report.dataset
    if not (data.has("access") and data.has("steps")):
        return []
    programs = data.column("access", "program")[data.column("access", "variable") == number]
    using = np.isin(data.column("steps", "program"), programs)
    return [("Cycles of these", _taken(report, int(elapsed(report)[using].sum())))]


def _lies(figures: VariableFigures) -> Facts:
    if figures.fullest_tile < 0:
        return []
    tiles = "1 tile" if figures.tiles == 1 else f"{units.count(figures.tiles)} tiles"
    most = f"{units.size(figures.most_bytes)} on tile {figures.fullest_tile:,}"
    return [("Lies on", f"{tiles}, at most {most}")]


def _life(figures: VariableFigures) -> str:
    if figures.always_live:
        return "always"
    if figures.first_step < 0:
        return "not recorded"
    ends = [
        f"step {step:,}{f' ({name})' if name else ''}"
        for step, name in (
            (figures.first_step, figures.first_name), (figures.last_step, figures.last_name)
        )
    ]  # fmt: skip
    return " to ".join(ends)


def _uses(words: str, count: int, last: str) -> Facts:
    if count < 0:
        return []
    programs = "1 program" if count == 1 else f"{units.count(count)} programs"
    return [(words, f"{programs}, last {last}" if count else "no program")]


def program(report: Report, key: str, number: int) -> Subject:
    """Describe a program by its row, such as a compute set or an exchange; raises PvaError."""
    figures = program_figures(report, program=number)
    data = report.dataset
    owner = str(operations(report)[number])
    context = int(data.column("programs", "debug_context")[number])
    ran = f"{units.count(figures.executions)} times, {units.cycles_in_words(figures.mean_cycles)}"
    pairs = [
        ("Created at", _source(source_of(report, context))),
        ("Part of", owner),
        ("Type", step_words(figures.type)),
        *recorded_fact("Vertices", figures.vertices, units.count),
        *recorded_fact("Bytes of its vertices", figures.vertex_state, units.size),
        *([("Bytes moved", units.size(figures.bytes_received))] if _moves(figures) else []),
        *_program_lies(report, number, figures.active_tiles),
        *_live_then(report, figures.liveness_step),
        *_variables_of(report, number),
        ("Cycles", _spent(report, figures.executions, figures.cycles)),
        *([("Executed", f"{ran} each")] if figures.executions > 0 else []),
    ]
    ways = [("Program tree", Address("/programs", key, options=(("program", str(number)),)))]
    if figures.longest_step >= 0:
        ways.append(("Execution", Address("/execution", key, steps=(figures.longest_step,))))
    if figures.liveness_step >= 0:
        ways.append(("Liveness", Address("/liveness", key, steps=(figures.liveness_step,))))
    ways += _operation_link(key, owner)
    name = figures.name or step_words(figures.type)
    about = (("name", owner), ("name", figures.name), ("step", figures.liveness_step))
    return Subject(_PROGRAMS.get(figures.type, "Program"), name, pairs, tuple(ways), about)


def _spent(report: Report, executions: int, cycles: int) -> str:
    """Write by how many cycles a program made the runs longer."""
    if executions < 1:
        return "never executed"
    return _taken(report, cycles) if cycles else "0 cycles: hidden behind other steps"


_PROGRAMS = {
    "OnTileExecute": "Compute set",
    "DoExchange": "Exchange",
    "GlobalExchange": "Exchange between IPUs",
    "StreamCopy": "Stream copy",
    "Sync": "Sync",
}


def _moves(figures: object) -> bool:
    return getattr(figures, "bytes_received", 0) > 0


def _program_lies(report: Report, number: int, active: int) -> Facts:
    frame = program_by_tile(report, program=number).frame()
    if active < 1 or not len(frame):
        return []
    place = int(frame["cycles"].to_numpy().argmax())
    longest = f"longest on tile {int(frame['tile'].iloc[place]):,}"
    return [("Lies on", f"{units.count(active)} tiles, {longest}")]


def _live_then(report: Report, step: int) -> Facts:
    if step < 0:
        return []
    live = int(report.dataset.column("liveness_steps", "bytes")[step])
    return [("Live then", f"{units.size(live)} not always live, at step {step:,}")]


def _variables_of(report: Report, number: int) -> Facts:
    """Name the variables that a program writes and reads, the largest first."""
    data = report.dataset
    if not data.has("access"):
        return []
    rows = np.flatnonzero(data.column("access", "program") == number)
    variables, written = (data.column("access", name)[rows] for name in ("variable", "write"))
    sizes = data.column("variables", "bytes")
    pairs = []
    for words, some in (("Writes", variables[written]), ("Reads", variables[~written])):
        largest = some[np.argsort(-sizes[some], kind="stable")]
        names = data.column("variables", "name")[largest[:2]].tolist()
        tail = f" and {len(largest) - 2:,} more" if len(largest) > 2 else ""
        pairs.append((words, ", ".join(map(str, names)) + tail if names else "nothing"))
    return pairs


def step(report: Report, key: str, number: int) -> Subject:
    """Describe an executed step by its row; raises PvaError."""
    data = report.dataset
    number = known_number("step", number, data.length("steps"))
    of = int(data.column("steps", "program")[number])
    way = ("Execution", Address("/execution", key, steps=(number,)))
    if of < 0:
        return Subject("Step", f"Step {number:,}", [], (way,))
    subject = program(report, key, of)
    ways = (way, *(pair for pair in subject.shown_in if pair[0] != "Execution"))
    return replace(
        subject, kind=f"Step {number:,}", shown_in=ways, same=(f"program:{of}",),
    )  # fmt: skip


def program_step(report: Report, key: str, number: int) -> Subject:
    """Describe a program step, of those in the order of liveness, by its row; raises PvaError."""
    data = report.dataset
    number = known_number("step", number, data.length("liveness_steps"))
    of = int(data.column("liveness_steps", "program")[number])
    subject = program(report, key, of)
    way = ("Liveness", Address("/liveness", key, steps=(number,)))
    ways = (way, *(pair for pair in subject.shown_in if pair[0] != "Liveness"))
    figures = [pair for pair in subject.figures if pair[0] != "Live then"]
    figures[-1:-1] = _live_then(report, number)
    about = (*(pair for pair in subject.about if pair[0] != "step"), ("step", number))
    return replace(
        subject, kind=f"Program step {number:,}", figures=figures, shown_in=ways, about=about,
        same=(f"program:{of}",),
    )  # fmt: skip


def tile(report: Report, key: str, number: int) -> Subject:
    """Describe a tile; raises PvaError."""
    by_tile = memory_by_tile(report).arrays
    number = known_number("tile", number, len(by_tile["total"]))
    used, free, ipu = (int(by_tile[name][number]) for name in ("total", "free", "ipu"))
    limit = bytes_per_tile(report)
    largest = {
        name: values[0] for name, values in memory_by_category(report, tile=number).arrays.items()
    }
    overlapped = int(largest["overlapped"])
    shared = f", {units.size(overlapped)} of it overlapped" if overlapped > 0 else ""
    words = f"{units.size(used)} of {units.size(limit)}"
    pairs = [
        ("Part of", f"IPU {ipu}"),
        ("Bytes", f"{words} ({units.share(used / max(limit, 1))})"),
        ("Most of it", f"{largest['label']}, {units.size(int(largest['total']))}{shared}"),
        ("Free", units.size(max(free, 0))),
        *_largest_on(report, number),
    ]
    ways = tuple(
        (words, Address(path, key, tiles=(number,)))
        for words, path in (("Memory", "/memory"), ("Liveness", "/liveness"))
    )
    return Subject("Tile", f"Tile {number:,}", pairs, ways, (("tile", number),))


def _largest_on(report: Report, number: int) -> Facts:
    if not report.dataset.has("liveness_steps") or not report.dataset.has("variable_pieces"):
        return []
    live = live_at_peak(report, tile=number).arrays
    variables = np.flatnonzero(live["variable"] >= 0)
    if not len(variables):
        return []
    name, size = (live[column][variables[0]] for column in ("name", "bytes"))
    return [("Largest at its peak", f"{name}, {units.size(int(size))}")]


def _operation(report: Report, key: str, name: str, layer: str, kind: str) -> Subject:
    frame = operation_costs(report, layer=layer).frame()
    rows = frame[frame["operation"] == name]
    if not len(rows):
        raise AddressError(f"{KEY}={layer}:{name}: not there")
    row = rows.iloc[0]
    programs = operation_programs(report, operation=name, layer=layer)
    contexts = report.dataset.column("programs", "debug_context")[programs].tolist()
    places = (source_of(report, context) for context in dict.fromkeys(contexts))
    place = next((place for place in places if place[0]), ("", -1, ""))
    ran = int(executions(report)[programs].sum()) if report.dataset.has("steps") else 0
    pairs = [
        ("Created at", _source(place)),
        *([("Type", str(row["kind"]))] if row["kind"] else []),
        ("Programs", f"{units.count(len(programs))}, executed {units.count(ran)} times"),
        *recorded_fact("Bytes of variables", row["variables"], units.size),
        *recorded_fact("Live at the peak", row["peak_bytes"], units.size),
        *recorded_fact("Code", row["code"], units.size),
        *([("Cycles", _taken(report, int(row["cycles"])))] if row["cycles"] >= 0 else []),
        *_phases_of(row),
        *recorded_fact("Floating-point operations", row["flops"], units.count),
    ]
    layer_option = () if layer == "operation" else (("layer", layer),)
    options = (*layer_option, ("operation", name))
    ways = (
        ("Operations", Address("/operations", key, options=options)),
        ("Execution", Address("/execution", key, options=(("filter", f"name~{name}"),))),
    )
    return Subject(kind, name, pairs, ways, (("name", name),))


def _phases_of(row: object) -> Facts:
    """Return what the cycles of an operation are spent on, where they are."""
    words = ("compute", "exchange", "host exchange", "sync")
    spent = [(word, int(row[word.replace(" ", "_")])) for word in words]  # type: ignore[index]
    total = sum(amount for _, amount in spent)
    parts = [f"{word} {units.share(amount / total)}" for word, amount in spent if amount > 0]
    return [("Spent on", ", ".join(parts))] if total > 0 else []


def operation(report: Report, key: str, name: str) -> Subject:
    """Describe an operation by its name; raises PvaError, AddressError."""
    return _operation(report, key, name, "operation", "Operation")


def layer(report: Report, key: str, name: str) -> Subject:
    """Describe a layer, the outermost scope of operations; raises PvaError, AddressError."""
    return _operation(report, key, name, "scope", "Layer")


def _event(store: Store, key: str, number: int) -> Subject:
    """Describe an event of the host; raises PvaError."""
    found = host(store, key)
    timeline = found.timeline
    figures = event_figures(timeline.tracks, number)
    lane = next(lane for lane in timeline.lanes if lane.first <= figures.row < lane.stop)
    first = lane.first + lane.kinds.count("flag")
    if figures.row >= first:
        figures = event_figures(timeline.tracks, number, (first, lane.stop))
    around = [timeline.labels[int(timeline.tracks.label[event])] for event in figures.around]
    length = figures.end - figures.begin
    still = ", not ended" if number in found.still_open else ""
    metadata = found.metadata.get(number, "")
    pairs = [
        ("Part of", " › ".join(around) or "–"),
        ("Type", timeline.colours[int(timeline.tracks.kind[figures.label])][1]),
        ("Lies on", " / ".join((*lane.path[1:], lane.name))),
        ("Begins at", units.duration(figures.begin / 1e9)),
        ("Takes", (units.duration(length / 1e9) if length else "an instant") + still),
        ("By itself", units.duration(figures.self_time / 1e9)),
        ("Events inside", units.count(figures.children)),
        *([("Metadata", cut(metadata, MAX_LETTERS))] if metadata else []),
    ]
    label = timeline.labels[figures.label]
    ways = (("Host trace", Address("/trace", key, event=number)),
            *_run(store, key, label, (figures.begin, figures.end)))  # fmt: skip
    return Subject(
        "Event of the host", label, pairs, ways,
        related=_flows(timeline, host_flows(store, key), number),
    )  # fmt: skip


def _run(
    store: Store, key: str, label: str, span: tuple[int, int]
) -> tuple[tuple[str, Address], ...]:
    """Lead from an event of a run to what the device did in it."""
    if label != RUN or not store.has_report(key):
        return ()
    try:
        found = alignment(store, key)
    except PvaError:
        return ()
    inside = np.flatnonzero((found.begin >= span[0]) & (found.end <= span[1]))
    if not len(inside) or int(found.run[inside[0]]) < 0:  # the profile has no steps of it
        return ()
    first = max(int(found.cycles_from[inside[0]]), 0)
    window = Range(first, first + max(int(found.cycles[inside[0]]), 1))
    return (("Execution", Address("/execution", key, range=window)),)


def _flows(whole: Timeline, flows: HostFlows, event: int) -> Related:
    """Return which events led to an event, and to which it led, with the time between them."""
    mine = flows_at(flows, event)
    later = flows.to_time - flows.time
    found: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for words, here, there in (
        ("Led to by", flows.to_event, flows.event), ("Leads to", flows.event, flows.to_event),
    ):  # fmt: skip
        rows = mine[here[mine] == event]
        named = tuple(
            (
                f"{whole.labels[int(whole.tracks.label[there[row]])]}, "
                f"{units.duration(abs(later[row]) / 1e9)} {_SIDES[words][int(later[row] < 0)]}",
                f"event:{there[row]}",
            )
            for row in rows[:MAX_RELATED].tolist()
        )
        more = len(rows) - len(named)
        found += [(f"{words} ({more:,} more)" if more else words, named)] if named else []
    return tuple(found)


_SIDES = {"Led to by": ("before", "after"), "Leads to": ("later", "earlier")}


NUMBERED: dict[str, Callable[[Report, str, int], Subject]] = {
    "variable": variable, "program": program, "step": step, "program-step": program_step,
    "tile": tile,
}  # fmt: skip
NAMED: dict[str, Callable[[Report, str, str], Subject]] = {"operation": operation, "layer": layer}
KINDS = (*NUMBERED, *NAMED, "event", AT)


def prose_of(pairs: Facts) -> Facts:
    """Return figures whose long names are cut as in sentences."""
    return [(words, components.prose(text)) for words, text in pairs]
