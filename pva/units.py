"""Numbers as text: the one place that formats bytes, cycles, times and shares.

Bytes are bytes. kB and MB are 1024-based, as in the user guide ("Profile summary output").
"""

from __future__ import annotations

KILOBYTE = 1024
MEGABYTE = 1024 * 1024
GIGABYTE = 1024 * 1024 * 1024

_BYTE_STEPS = ((GIGABYTE, "GB"), (MEGABYTE, "MB"), (KILOBYTE, "kB"))
# Of these the longer unit first: every one ends in B or %.
_READ_STEPS = {"GB": GIGABYTE, "MB": MEGABYTE, "kB": KILOBYTE, "B": 1, "%": 0.01}
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def count(value: float) -> str:
    """Write a whole number with thousands commas."""
    return f"{value:,.0f}"


def size(value: float) -> str:
    """Write a number of bytes in the largest unit that keeps it at 1 or above, with one decimal."""
    for step, unit in _BYTE_STEPS:
        if abs(value) >= step:
            return f"{value / step:,.1f} {unit}"
    return f"{value:,.0f} B"


def exact_size(value: float) -> str:
    """Write a number of bytes in full."""
    return f"{value:,.0f} B"


def duration(seconds: float) -> str:
    """Write a time in the largest unit that keeps it at 1 or above, with one decimal."""
    for step, unit in _TIME_STEPS:
        if abs(seconds) >= step:
            return f"{seconds / step:,.1f} {unit}"
    return f"{seconds * 1e9:,.0f} ns"


def cycles(value: float, clock_frequency: float) -> str:
    """Write cycles with the time beside them; `clock_frequency` is in Hz."""
    return f"{value:,.0f} ({duration(value / clock_frequency)})"


def share(value: float) -> str:
    """Write a fraction from 0 to 1 as a percentage with one decimal."""
    return f"{100 * value:.1f} %"


def frequency(hertz: float) -> str:
    """Write a clock frequency in MHz with one decimal."""
    return f"{hertz / 1e6:,.1f} MHz"


def number(text: str) -> float:
    """Read a number with or without commas, underscores and a unit: B, kB, MB, GB or %.

    Raises ValueError.
    """
    head = text.strip()
    for unit, step in _READ_STEPS.items():
        if head.endswith(unit):
            return float(head.removesuffix(unit).strip().replace(",", "")) * step
    return float(head.replace(",", ""))
