"""Numbers as text: the one place that formats bytes, cycles, times and shares.

Bytes are bytes. kB and MB are 1024-based, as in the user guide ("Profile summary output"), unless
`write_as` chose otherwise for what runs in this context (a request of the dashboard).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

KILOBYTE = 1024
MEGABYTE = 1024 * 1024
GIGABYTE = 1024 * 1024 * 1024

ByteSteps = tuple[tuple[int, str], ...]

# The manners of writing bytes: name, words, units from the largest on.
BYTE_STEPS: dict[str, ByteSteps] = {
    "kB": ((GIGABYTE, "GB"), (MEGABYTE, "MB"), (KILOBYTE, "kB"), (1, "B")),
    "KiB": ((GIGABYTE, "GiB"), (MEGABYTE, "MiB"), (KILOBYTE, "KiB"), (1, "B")),
    "SI": ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")),
    "B": ((1, "B"),),
}
# Of these the longer unit first: every one ends in B or %.
_READ_STEPS = {
    "GiB": GIGABYTE, "MiB": MEGABYTE, "KiB": KILOBYTE,
    "GB": GIGABYTE, "MB": MEGABYTE, "kB": KILOBYTE, "B": 1, "%": 0.01,
}  # fmt: skip
TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))  # in seconds


@dataclass(frozen=True, slots=True)
class Writing:
    """How numbers are written: a key of BYTE_STEPS, and cycles as time when the clock is known."""

    sizes: str = "kB"
    clock: float = 0.0  # Hz; 0 writes cycles


_AS_IN_THE_SUMMARY = Writing()
_writing: ContextVar[Writing] = ContextVar("writing", default=_AS_IN_THE_SUMMARY)


def write_as(writing: Writing) -> None:
    """Choose how the functions below write, in this context alone."""
    _writing.set(writing)


def byte_steps() -> ByteSteps:
    """Return the units in which bytes are written now, the largest first."""
    return BYTE_STEPS[_writing.get().sizes]


def count(value: float) -> str:
    """Write a whole number with thousands commas."""
    return f"{value:,.0f}"


def size(value: float) -> str:
    """Write a number of bytes in the largest unit that keeps it at 1 or above, with one decimal."""
    for step, unit in byte_steps()[:-1]:
        if abs(value) >= step:
            return f"{value / step:,.1f} {unit}"
    return f"{value:,.0f} B"


def duration(seconds: float) -> str:
    """Write a time in the largest unit that keeps it at 1 or above, with one decimal."""
    for step, unit in TIME_STEPS[:-1]:
        if abs(seconds) >= step:
            return f"{seconds / step:,.1f} {unit}"
    return f"{seconds * 1e9:,.0f} ns"


def cycles(value: float, clock_frequency: float) -> str:
    """Write cycles with the time beside them; `clock_frequency` is in Hz."""
    return f"{value:,.0f} ({duration(value / clock_frequency)})"


def cycles_or_time(value: float) -> str:
    """Write cycles, as time where `write_as` was given a clock."""
    clock = _writing.get().clock
    return duration(value / clock) if clock else count(value)


def cycles_in_words(value: float) -> str:
    """Write cycles and say so, or as time where `write_as` was given a clock."""
    return cycles_or_time(value) if _writing.get().clock else f"{count(value)} cycles"


def manner() -> Writing:
    """Return how numbers are written now."""
    return _writing.get()


def share(value: float) -> str:
    """Write a fraction from 0 to 1 as a percentage with one decimal."""
    return f"{100 * value:.1f} %"


def times(number: float) -> str:
    """Write how often something happens."""
    return "once" if number == 1 else f"{count(number)} times"


def listed(texts: Sequence[str]) -> str:
    """Join texts as in a sentence: commas, and the last one after "and"."""
    return " and ".join(part for part in (", ".join(texts[:-1]), *texts[-1:]) if part)


def rate(per_second: float) -> str:
    """Write how many items pass in a second, below 100 with three digits."""
    return f"{per_second:,.0f} items/s" if per_second >= 100 else f"{per_second:.3g} items/s"


def frequency(hertz: float) -> str:
    """Write a clock frequency in MHz with one decimal."""
    return f"{hertz / 1e6:,.1f} MHz"


def number(text: str) -> float:
    """Read a number with or without commas, underscores and a unit: B, kB (KiB), MB, GB or %.

    Raises ValueError.
    """
    head = text.strip()
    for unit, step in _READ_STEPS.items():
        if head.endswith(unit):
            return float(head.removesuffix(unit).strip().replace(",", "")) * step
    return float(head.replace(",", ""))
