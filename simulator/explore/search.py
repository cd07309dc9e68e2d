"""Which points are run: all of a small space, else what Optuna asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pva.errors import MissingPackageError
from pva.schema.exploration import PointFigures, PointRow
from simulator.explore.levers import Point, Space

if TYPE_CHECKING:
    import optuna

STUDY = "study.log"
BATCH = 8  # points that Optuna asks for before it hears of any: the same with any engine
INSTALL = "pip install 'tilescope[search]'"
MISS = 1e30  # what an objective of a point that does not fit counts as, on its bad side

Rows = Mapping[str, PointRow]


def whole(space: Space, run: Callable[[Sequence[Point]], None]) -> None:
    """Run every point."""
    run(list(space.points()))


def searched(
    space: Space,
    run: Callable[[Sequence[Point]], None],
    rows: Rows,
    objectives: Mapping[str, int],
    points: int,
    seed: int,
    folder: Path,
) -> None:
    """Run so many points that Optuna chooses; its study is written beside them.

    The study begins anew each time: the same seed asks for the same points, and those that are
    there already cost nothing. `objectives` are columns, with 1 where more is better, else -1.
    """
    study = _study(objectives, seed, folder)
    seen: set[str] = set()
    stalled = 0
    while len(seen) < min(points, space.size) and stalled < points:
        trials = [study.ask() for _ in range(min(BATCH, points - len(seen)))]
        batch = [
            space.point({n: t.suggest_categorical(n, list(v)) for n, v in space.levers.items()})
            for t in trials
        ]
        fresh = {point.key: point for point in batch if point.key not in seen}
        stalled = 0 if fresh else stalled + 1
        run(list(fresh.values()))
        seen |= set(fresh)
        for trial, point in zip(trials, batch, strict=True):
            study.tell(trial, _values(rows.get(point.key, {}), objectives))


def _values(row: PointFigures, objectives: Mapping[str, int]) -> list[float]:
    """Return the objectives of a row; of a miss they are bad by how much it lacks."""
    values = [row.get(name) for name in objectives]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if row.get("fits") and len(numbers) == len(values):
        return numbers
    lacks = float(row.get("over") or MISS)
    return [-sign * (MISS + lacks) for sign in objectives.values()]


def _study(objectives: Mapping[str, int], seed: int, folder: Path) -> optuna.Study:
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise MissingPackageError(folder, "a search of part of a space", INSTALL) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    log = folder / STUDY
    log.unlink(missing_ok=True)
    directions = ["maximize" if sign > 0 else "minimize" for sign in objectives.values()]
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(log))),
        sampler=optuna.samplers.TPESampler(seed=seed, multivariate=False),
        study_name="exploration",
        directions=directions,
    )
