"""Into how many slices a convolution is cut that are computed one after another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SerialSplit:
    """A dimension of a problem, and into how many slices it is cut; `kernel` is its first one."""

    dimension: str = ""
    count: int = 1

    def describe(self) -> str:
        """Name the split."""
        return f"{self.count} slices of the {self.dimension}; " if self.count > 1 else ""
