"""`python -m tests.fuzz.many CASES [FIRST] [KIND]`: spoil files at random and walk each.

Prints each new fault with the number that makes it again (`many 1 NUMBER`), and at the end how many
cases there were, the longest and the largest of them.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.fuzz.isolated import Isolated
from tests.fuzz.mutations import spoilt
from tests.fuzz.seeds import seeds


def main(cases: int, first: int, kind: str) -> int:
    """Run the cases; give how many faults were found."""
    chosen = [seed for seed in seeds() if not kind or seed.name == kind]
    isolated = Isolated()
    known: dict[str, int] = {}
    longest, largest, opened = 0.0, 0, 0
    for number in range(first, first + cases):
        generator = random.Random(number)
        seed = spoilt(chosen[number % len(chosen)], generator.randrange)
        with tempfile.TemporaryDirectory() as directory:
            verdict = isolated.walk(seed.write(Path(directory) / "report"))
        longest, largest = max(longest, verdict.seconds), max(largest, verdict.peak)
        opened += verdict.opened
        for fault in verdict.faults:
            place = fault.split(": ", 1)[-1][:90]
            known[place] = known.get(place, 0) + 1
            if known[place] == 1:
                print(f"{number} {seed.name}: {fault[:300]}", flush=True)
    isolated.close()
    print(
        f"{cases} cases, {opened} of them opened, {len(known)} faults; "
        f"longest {longest:.1f} s, most memory {largest >> 20} MB"
    )
    for place, count in sorted(known.items(), key=lambda item: -item[1])[:200]:
        print(f"  {count:5} {place}")
    return len(known)


if __name__ == "__main__":
    given = [*sys.argv[1:], "", "", ""]
    sys.exit(bool(main(int(given[0] or 1000), int(given[1] or 0), given[2])))
