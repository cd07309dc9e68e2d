"""`docs/laws.md`, written from the laws: `python -m pva.check.document`."""

from __future__ import annotations

import sys

from pva.check import LAWS
from pva.check.alone import REASONS

INTRODUCTION = """# The laws of a report

This file is generated from `pva/check` by `python -m pva.check.document`; a test compares the two.

Many figures of a report are told twice: the bytes of a tile by region and by category, the cycles
of a step by tile and in all. `tilescope check REPORT` and `report.check()` hold them against each
other. A law *holds*, is *broken*, with the first place and both figures, or was *not checked*: what
it speaks of was not recorded, or there was nothing to compare. The dashboard marks the pages whose
figures break a law.
"""
ALONE = """
## What nothing can contradict

These columns are told once. A wrong value in them is noticed by no law; each other column and
array is, by at least one, which a test shows by spoiling each of them. A law that compares with a
limit, such as that a tile's exchange has no more code than its category, notices what is beyond it.
So the items, batches and times of a run, the order of the sync delays of the tiles and the names of
programs without a compute set can be changed within limits. Nor does anything contradict a value
that says what its absence says, such as 0 cycles overlapped for -1 where none was hidden.
"""


def markdown() -> str:
    """Return the document."""
    laws = "".join(f"| `{law.name}` | {law.meaning} | {_names(law.needs)} |\n" for law in LAWS)
    alone = "".join(f"| {_names(items.split())} | {reason} |\n" for reason, items in REASONS)
    return (
        f"{INTRODUCTION}\n## {len(LAWS)} laws\n\n| law | what must be | needs |\n"
        f"| --- | --- | --- |\n{laws}{ALONE}\n| columns | why |\n| --- | --- |\n{alone}"
    )


def _names(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(markdown())
