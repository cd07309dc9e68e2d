"""What `tilescope info` says about a PopEF file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.shared.fitting import labelled
from cli.shared.output import OBJECT, Rows, counted, printable, write, write_object, write_rows
from pva import units
from pva.plain_file import opened

if TYPE_CHECKING:
    from simulator.popef import ExecutableReader, Metadata, Reader
    from simulator.popef.facts import Fit

SUFFIX = ".popef"
_BEGIN = b"tsPopEF\n"
_LABEL_WIDTH = 12
_LARGEST = 3  # of the blobs that take the space
_COLUMNS = ("name", "way", "type", "shape", "when", "data")


def is_popef(path: Path) -> bool:
    """Return whether a path is called a PopEF file, or begins as ours do."""
    if path.suffix == SUFFIX:
        return not path.is_dir()
    if not path.is_file():
        return False
    with opened(path, "a file") as stream:
        return stream.read(len(_BEGIN)) == _BEGIN


def write_popef_info(path: str, form: str, limit: int | None) -> None:
    """Print what is in a PopEF file, whether it runs and fits, what takes its space."""
    from simulator.popef import Reader
    from simulator.popef.facts import anchors, fits, kinds, space

    reader = Reader()
    reader.parseFile(path)
    anchor_list = anchors(reader)
    if form == OBJECT:
        write_object(
            "info", path, kind="a PopEF file of tilescope", facts=dict(_facts(path, reader)),
            blobs=kinds(reader), space=space(reader), anchors=anchor_list,
            executables=[executable.info.values() for executable in reader.executables()],
            fits=[{"executable": executable.name, **dataclasses.asdict(fit), "fits": fit.fits}
                  for executable in reader.executables() for fit in fits(executable)],
        )  # fmt: skip
        return
    if form == "table":
        facts = _facts(path, reader)
        write(labelled(((label, printable(text)) for label, text in facts), _LABEL_WIDTH))
        if not anchor_list:
            return
        write([""])
    rows = [tuple(_text(row[name]) for name in _COLUMNS) for row in anchor_list]
    write_rows(Rows(_COLUMNS, rows, len(rows)), form, limit)


def _text(value: object) -> object:
    return ("x".join(map(str, value)) or "1") if isinstance(value, list) else value


def _facts(path: str, reader: Reader) -> Iterator[tuple[str, str]]:
    from simulator.popef.facts import kinds

    counts = ", ".join(f"{number} {kind}" for kind, number in kinds(reader).items() if number)
    size = units.size(Path(path).stat().st_size)
    yield "file", f"{path}: PopEF of tilescope, {size}; {counts}"
    for executable in reader.executables():
        yield from _of_executable(executable)
    for metadata in reader.metadata():
        yield from _of_metadata(metadata)
    yield "space", _space(reader)


def _of_executable(executable: ExecutableReader) -> Iterator[tuple[str, str]]:
    from simulator.popef.facts import fits, runs_here

    info = executable.info
    version = info.version() or "unknown"
    ours = "runs here" if runs_here(executable) else "does not run here: compile it anew"
    yield "executable", f"{executable.name}, of version {version}: {ours}"
    ipus = counted(info.numIpus(), "IPU")
    used, tiles = info.tilesUsed(), info.tilesPerIpu()
    yield "machine", f"{info.machine()}: {ipus}, {used:,} of {tiles:,} tiles used"
    compatible = fits(executable)
    if compatible:
        yield "fits", f"{_fit(compatible[0])} for its fullest tile"
        guesses = "; ".join(map(_fit, compatible[1:]))
        yield "elsewhere", f"guessed, as if compiled alike: {guesses}"


def _fit(fit: Fit) -> str:
    lacks = [f"{units.size(fit.bytes_missing)} a tile"] if fit.bytes_missing else []
    lacks += [counted(fit.tiles_missing, "tile")] if fit.tiles_missing else []
    verdict = f"no, {' and '.join(lacks)} too few" if lacks else "yes"
    return f"{fit.machine} {verdict}: {units.share(fit.share)} of {units.size(fit.bytes_per_tile)}"


def _of_metadata(metadata: Metadata) -> Iterator[tuple[str, str]]:
    kind = "inference" if metadata.isInference() else "training"
    steps = counted(metadata.deviceIterations(), "iteration")
    replicas = counted(metadata.replicationFactor(), "replica")
    yield "model", f"{kind}, {steps} a step, {replicas}"
    flow, names = metadata.programFlow(), metadata.programsMap()
    parts = (("load", flow.load()), ("main", flow.main()), ("save", flow.save()))
    texts = [
        f"{step} " + ", ".join(f"{number} {names.get(number, '')}".rstrip() for number in numbers)
        for step, numbers in parts
        if numbers
    ]
    yield "programs", "; ".join(texts) or "none"


def _space(reader: Reader) -> str:
    from simulator.popef.facts import space

    rows = sorted(space(reader), key=lambda row: -row["bytes"])
    total = sum(row["bytes"] for row in rows)
    texts = [
        f"{row['type']} {row['name']}".rstrip()
        + f" {units.size(row['bytes'])} ({units.share(row['bytes'] / total)})"
        for row in rows[:_LARGEST]
    ]
    unlisted = rows[_LARGEST:]
    size = units.size(sum(row["bytes"] for row in unlisted))
    texts += [f"{counted(len(unlisted), 'other blob')} {size}"] if unlisted else []
    return ", ".join(texts)
