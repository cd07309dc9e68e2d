"""The least that must be given up for a program to fit: levers in the order of what they cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pva.schema.exploration import PointRow
from simulator.explore.levers import MODEL, Point, Space
from simulator.explore.work import is_of_limits

MAX_WAYS = 5
MAX_PAIRS = 12
SMALLER_BATCHES = 3  # halvings
OPTIMIZERS = ("adam", "momentum", "sgd")  # by the state that they keep
# In the order of what they cost: nothing but time first, then what the model computes.
FIRST = {"memory-proportion": ("0.4", "0.2", "0.1"), "partials": ("half",)}

Row = PointRow
Levers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The ways that were simulated and fit, the fastest first; else none and the nearest miss.

    `first` is the key of the way that gives up least; `tried` are all rows, in the order of cost.
    """

    ways: list[Row]
    first: str
    nearest: Row | None
    tried: list[Row]


def levers_of(
    program: str,
    shared: Sequence[str],
    ipus: Sequence[int],
    variations: Mapping[str, tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    """Return the levers that can be tried, mildest values first, in the order of what they cost."""
    levers: dict[str, tuple[str, ...]] = {}
    if program.endswith(MODEL):
        levers |= FIRST
        if "--train" in shared:
            levers["recompute"] = ("standard", "all")
        levers["batch"] = _smaller_batches(Path(program), shared)
        levers["precision"] = ("half",)
        if "--train" in shared:
            optimizer = _argument("--optimizer", shared) or OPTIMIZERS[-1]
            levers["optimizer"] = OPTIMIZERS[OPTIMIZERS.index(optimizer) + 1 :]
    levers["ipus"] = tuple(map(str, ipus[1:]))
    fixed = {name for name in levers if _argument(f"--{name}", shared)} - {"optimizer", "batch"}
    return {name: values for name, values in (levers | dict(variations)).items()
            if values and name not in fixed}  # fmt: skip


def fit(
    space: Space,
    base: Levers,
    levers: Mapping[str, tuple[str, ...]],
    run: Callable[[Sequence[Point]], None],
    rows: Mapping[str, Row],
) -> Answer:
    """Try a program as it is, then each lever alone, then pairs, then more and more of them."""
    tried: dict[str, Point] = {}

    def run_all(changes: Sequence[Levers]) -> list[tuple[Levers, Row]]:
        points = [space.point({**base, **change}) for change in changes]
        run(points)
        tried.update({point.key: point for point in points})
        return [(change, rows[point.key]) for change, point in zip(changes, points, strict=True)]

    rounds = _rounds(levers, run_all)
    fitting: list[Row] = []
    for results in rounds:
        fitting = [row for _, row in results if row.get("fits")]
        if fitting:
            break
    tried_rows = [rows[key] for key in tried]
    misses = [row for row in tried_rows if not row.get("error") and row.get("over")]
    nearest = min(misses, key=_distance, default=None)
    ways = sorted(fitting[:MAX_WAYS], key=lambda row: -float(row.get("samples_per_second") or 0))
    return Answer(
        ways, fitting[0]["key"] if fitting else "", None if fitting else nearest, tried_rows
    )


def _rounds(
    levers: Mapping[str, tuple[str, ...]],
    run_all: Callable[[Sequence[Levers]], list[tuple[Levers, Row]]],
) -> Iterator[list[tuple[Levers, Row]]]:
    """Run the rounds, each only when the one before has nothing that fits."""
    yield (as_it_is := run_all([{}]))
    if any(row.get("error") and not is_of_limits(row) for _, row in as_it_is):
        return  # a fault of the program, which no lever mends
    alone = run_all([{name: value} for name, values in levers.items() for value in values])
    yield _mildest(alone)
    best = _best_values(alone)
    pairs = [{**a, **b} for a, b in itertools.combinations(best, 2)][:MAX_PAIRS]
    yield run_all(pairs)
    # Pairs are done: three levers, then one more each time.
    for count in range(3, len(best) + 1):
        yield run_all([{name: value for change in best[:count] for name, value in change.items()}])


def _mildest(results: Sequence[tuple[Levers, Row]]) -> list[tuple[Levers, Row]]:
    """Keep of each lever the mildest value that fits."""
    mildest: dict[str, tuple[Levers, Row]] = {}
    for change, row in results:
        if row.get("fits"):
            mildest.setdefault(next(iter(change)), (change, row))
    return list(mildest.values())


def _best_values(alone: Sequence[tuple[Levers, Row]]) -> list[Levers]:
    """Return of each lever that has figures the value with which least is lacking."""
    best: dict[str, tuple[tuple[bool, float], Levers]] = {}
    for change, row in alone:
        if row.get("error") or row.get("over") is None:
            continue
        name, distance = next(iter(change)), _distance(row)
        if name not in best or distance < best[name][0]:
            best[name] = (distance, change)
    return [change for _, change in best.values()]


def _distance(row: Row) -> tuple[bool, float]:
    """Return how far a point is from one that fits; what has no plan is farther than a miss."""
    return row.get("tile") is None, float(row["over"])


def _smaller_batches(path: Path, shared: Sequence[str]) -> tuple[str, ...]:
    """Halve the batch of a model a few times; none where its size is not known."""
    batch = _argument("--batch", shared) or _own_batch(path)
    size = int(batch) if batch.isdigit() else 1
    halves = [size >> step for step in range(1, SMALLER_BATCHES + 1)]
    return tuple(str(half) for half in halves if half >= 1)


def _own_batch(path: Path) -> str:
    from simulator.popart.importing.model_files.model_file import read_model

    graph = read_model(path)[0].graph
    stored = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        sizes = value.type.tensor_type.shape.dim
        if value.name not in stored and sizes:
            return str(sizes[0].dim_value or 1)
    return "1"


def _argument(name: str, shared: Sequence[str]) -> str:
    """Return the value of an option among arguments, or nothing."""
    for at, text in enumerate(shared):
        if text.startswith(f"{name}="):
            return text.partition("=")[2]
        if text == name and at + 1 < len(shared):
            return shared[at + 1]
    return ""
