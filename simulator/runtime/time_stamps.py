"""Stamps of the host's time and the device's cycles, and what passed between two of them."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Self

from simulator.graph.arguments import refuse_in


@refuse_in
class TimerTimePoint(int):
    """Nanoseconds on the clock of the host trace, with the `cycles` that the device has run.

    >>> TimerTimePoint.now(cycles=100).cycles
    100
    """

    cycles: int

    @classmethod
    def now(cls, cycles: int) -> Self:
        """Stamp the time.

        >>> TimerTimePoint.now(cycles=100).cycles
        100
        """
        stamp = cls(perf_counter_ns())
        stamp.cycles = cycles
        return stamp

    def since(self, start: TimerTimePoint, clock_frequency: float) -> str:
        """Return what passed since another stamp.

        >>> start, end = TimerTimePoint.now(cycles=100), TimerTimePoint.now(cycles=1100)
        >>> end.since(start, clock_frequency=1e9)
        '... ms on the host; 1,000 cycles (1.00 us) on the device'
        """
        cycles = self.cycles - start.cycles
        return (
            f"{(self - start) / 1e6:,.3f} ms on the host; {cycles:,} cycles "
            f"({cycles / clock_frequency * 1e6:,.2f} us) on the device"
        )
