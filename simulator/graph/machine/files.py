"""Machines are data: simulator/machines/ has a TOML file a machine, and a user may give another.

A constant is a number, or a table of its `value`, its `source` and its `provenance`. A file that
says `like = "mk2"` has the constants of that machine but for its own.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simulator.graph.errors import PoplarError
from simulator.graph.machine.constants import Machine, TargetType, sync_line

SUFFIX = ".toml"
FOLDER = Path(__file__).parents[2] / "machines"
PROVENANCES = ("exact", "formula", "fitted", "guessed")
NAME, LIKE, ARCHITECTURE, FARTHEST = "name", "like", "architecture", "max_sync_delay"
TEXTS = (NAME, LIKE, ARCHITECTURE)
# Constants that may be 0, and the most of those whose size costs memory here.
FROM_0 = {"min_sync_delay", FARTHEST, "global_sync_cycles", "host_fill_bytes_per_second",
          "read_past_bytes", "exchange_apart", "fp8_in_fp16_out_conv_units"}  # fmt: skip
MOST = {"tiles_per_ipu": 1 << 20, "workers": 1 << 10, "exchange_apart": 1}
LARGEST = (1 << 40) - 1
CPU_BYTES = LARGEST + 1  # a CPU target names no limit: more than any program here needs
LENGTHS = {"link_bundles": 4}


class Constant(NamedTuple):
    """A constant of a machine as its file says it; source and provenance may be empty."""

    value: Any
    source: str
    provenance: str


# The constants that a file may have, each with its kind, in the order of the files.
CONSTANTS: dict[str, str] = {
    FARTHEST if column.name == "relative_sync_delay" else column.name: str(column.type)
    for column in fields(Machine)
    if column.default is MISSING and column.name not in TEXTS
}


def read_machine(path: Path, machines: Mapping[str, Machine]) -> Machine:
    """Read a machine; `machines` are those that it may be like. Raises PoplarError."""
    entries = _read(path)
    values = {name: _constant(path, name, value).value for name, value in entries.items()}
    name = values.get(NAME, path.stem)
    like = values.get(LIKE, "")
    if like and like not in machines:
        raise PoplarError(
            f"{path}: like = {like!r}: no such machine; {_nearest_names(like, machines)}"
        )
    if not like and (missing := [key for key in (ARCHITECTURE, *CONSTANTS) if key not in values]):
        raise PoplarError(f'{path}: no {missing[0]}; write it, or like = "mk2"')
    base = machines[like] if like else None
    changes = {key: value for key, value in values.items() if key not in (NAME, LIKE)}
    _check_sizes(path, changes, base)
    if base is None or {"tiles_per_ipu", "min_sync_delay", FARTHEST} & set(changes):
        changes["relative_sync_delay"] = _sync_delays(changes, base)
    changes.pop(FARTHEST, None)
    names = {NAME: name, LIKE: like or name}
    return replace(base, **names, **changes) if base else Machine(**names, **changes)


def constants(path: Path) -> dict[str, Constant]:
    """Return what a file says of each constant that it has; raises PoplarError."""
    return {name: _constant(path, name, value) for name, value in _read(path).items()}


@cache
def built_in() -> dict[str, Machine]:
    """Read the machines of simulator/machines/, and make that of a CPU."""
    machines: dict[str, Machine] = {}
    for name in ("mk1", "mk2", "bow", "tiny", "ipu21"):
        machines[name] = read_machine(FOLDER / f"{name}{SUFFIX}", machines)
    # These are parts of their own, not a user's changes of one.
    machines = {name: replace(machine, like=name) for name, machine in machines.items()}
    return machines | {"cpu": _cpu(machines["mk2"])}


def _cpu(machine: Machine) -> Machine:
    """Make a CPU, which runs values alone: one tile, one worker; its other figures mean nothing."""
    return replace(
        machine,
        name="cpu",
        like="cpu",
        architecture="cpu",
        tiles_per_ipu=1,
        bytes_per_tile=CPU_BYTES,
        clock_frequency=10**9,
        interleaved_base=CPU_BYTES,
        min_sync_delay=0,
        relative_sync_delay=sync_line(1, 0, 0),
        tiles_per_exchange_bus=1,
        target_type=TargetType.CPU,
        workers=1,
        memory_element_bytes=CPU_BYTES,
        global_sync_cycles=0,
    )


def _read(path: Path) -> dict[str, Any]:
    """Read a file whose keys are all known; raises PoplarError."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise PoplarError(f"{path}: {error.strerror}; give the file of a machine") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PoplarError(f"{path}: not TOML: {error}") from error
    names = (*TEXTS, *CONSTANTS)
    for key in entries:
        if key not in names:
            raise PoplarError(f"{path}: no constant {key!r}; {_nearest_names(key, names)}")
    return entries


def _nearest_names(word: str, names: Mapping[str, object] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, list(names), n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"


def _constant(path: Path, name: str, entry: object) -> Constant:
    """Check a constant: a value, or a table with its source and provenance."""
    table = entry if isinstance(entry, dict) else {"value": entry}
    if unknown := sorted(set(table) - set(Constant._fields)):
        raise PoplarError(f"{path}: {name}: no {unknown[0]!r}; a value, source and provenance")
    if "value" not in table:
        raise PoplarError(f"{path}: {name}: no value; write {{ value = ..., source = ... }}")
    provenance = table.get("provenance", "")
    if provenance not in ("", *PROVENANCES):
        names = ", ".join(PROVENANCES)
        raise PoplarError(f"{path}: {name}: provenance {provenance!r}; there are {names}")
    value = table["value"]
    if wrong := _wrong(name, value):
        raise PoplarError(f"{path}: {name} is {value!r}; {wrong} is needed")
    value = tuple(value) if isinstance(value, list) else value
    return Constant(value, str(table.get("source", "")), provenance)


def _wrong(name: str, value: Any) -> str:
    """Return what is needed where the value of a constant is of another kind; else nothing."""
    if name in TEXTS:
        plain = isinstance(value, str) and value.strip() and value.isprintable()
        return "" if plain else "a word in quotes"
    kind = CONSTANTS[name]
    least, most = int(name not in FROM_0), MOST.get(name, LARGEST)
    if kind.startswith("tuple"):
        good = isinstance(value, list) and len(value) and all(_between(v, 0, most) for v in value)
        length = LENGTHS.get(name)
        if good and (not length or (len(value) == length and min(value) > 0)):
            return ""
        return f"a list of {length or 'some'} numbers"
    if kind == "float":
        return "" if _between(value, least, 10**18) else f"a number from {least}"
    fits = isinstance(value, int) and _between(value, least, most)
    return "" if fits else f"a whole number from {least} to {most:,}"


def _between(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _check_sizes(path: Path, values: Mapping[str, object], base: Machine | None) -> None:
    """Raise PoplarError for constants that cannot be of one machine."""

    def value(key: str) -> Any:
        if key == FARTHEST and key not in values and base:
            return base.min_sync_delay + int(base.relative_sync_delay.max())
        return values[key] if key in values else getattr(base, key)

    for key, limit in (
        ("memory_element_bytes", "bytes_per_tile"),
        ("min_sync_delay", FARTHEST),
        *([("interleaved_base", "bytes_per_tile")] if "interleaved_base" in values else []),
    ):
        if value(key) > value(limit):
            raise PoplarError(
                f"{path}: {key} is {value(key):,}, more than {limit}, which is {value(limit):,}"
            )
    places, cycles = value("exchange_latency_tiles"), value("exchange_latency")
    rising = list(places) == sorted(set(places)) and places[-1] > 0
    if len(places) != len(cycles) or not rising:
        raise PoplarError(
            f"{path}: exchange_latency_tiles is {list(places)}; rising tiles, one for each of the"
            f" {len(cycles)} of exchange_latency, are needed"
        )
    if value("data_path_width") % 64:
        width = value("data_path_width")
        raise PoplarError(f"{path}: data_path_width is {width}; a multiple of 64 bits is needed")


def _sync_delays(values: Mapping[str, Any], base: Machine | None) -> object:
    if base is None:
        tiles, nearest, farthest = (
            values[key] for key in ("tiles_per_ipu", "min_sync_delay", FARTHEST)
        )
        return sync_line(tiles, nearest, farthest)
    nearest = values.get("min_sync_delay", base.min_sync_delay)
    before = base.min_sync_delay + int(base.relative_sync_delay.max())
    tiles = values.get("tiles_per_ipu", base.tiles_per_ipu)
    return sync_line(tiles, nearest, values.get(FARTHEST, before))


def differences(machine: Machine, base: Machine) -> Iterator[tuple[str, object, object]]:
    """Yield the constants of a machine that differ from another's: name, its own, the other's."""
    for name in (ARCHITECTURE, *CONSTANTS):
        value, base_value = (
            one.min_sync_delay + int(one.relative_sync_delay.max(initial=0))
            if name == FARTHEST
            else getattr(one, name)
            for one in (machine, base)
        )
        if value != base_value and not (name == "global_sync_cycles" and machine.num_ipus > 1):
            yield name, value, base_value
