"""Into how many slices a convolution is cut that are computed one after another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SerialSplit:
    """A dimension of a problem, and into how many slices it is cut; `kernel` is its first one."""

    dimension: str = ""
    count: int = 1

    def has(self, slices: tuple[tuple[str, int], ...], *, swapped: bool) -> bool:
        """Return whether dimensions are cut into so many slices; `outputs` are what is written."""
        dimension = "outputs" if swapped and self.dimension == "batch" else self.dimension
        return all((self.count if dimension == name else 1) == count for name, count in slices)

    def describe(self) -> str:
        """Name the split."""
        return f"{self.count} slices of the {self.dimension}; " if self.count > 1 else ""
