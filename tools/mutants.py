"""Change one thing at a time in twelve core modules, and print the changes that no test notices.

`make mutants [MODULES="pva.units* ..."]` runs mutmut with the tests that `pyproject.toml` names,
then this. What EQUIVALENT explains changes nothing that a test could see; the others are gaps.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SURVIVED, NO_TESTS = 0, 33  # exit codes that mutmut keeps
# What a changed line has, and why no test can see the change.
EQUIVALENT = {
    r"dtype=|\.astype\(": "the numbers have that type already, or take it when they are stored",
    r"strict=": "the lengths are equal",
    r"\beach\(": "words of a progress bar",
    r"-1\)": "NumPy takes any negative number for the size that is left",
    r"raise |Error\(|_line\(": "words of an error",
    r"cast\(|: \w+ = None$": "a type alone",
}


def outcomes() -> Iterator[tuple[str, int]]:
    """List each mutant and how its tests ended."""
    for file in sorted((ROOT / "mutants").rglob("*.meta")):
        keys = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        yield from ((name, code) for name, code in keys.items() if code is not None)


def changed_lines(diff: str) -> list[str]:
    """Return the lines that a diff takes away and adds."""
    return [line for line in diff.splitlines() if re.match(r"[-+](?![-+]{2} )", line)]


def reason(lines: list[str]) -> str:
    """Return why a change cannot be seen; empty where it can."""
    text = " ".join(lines)
    return next((why for pattern, why in EQUIVALENT.items() if re.search(pattern, text)), "")


def main() -> int:
    """Print the gaps and a line for each module; return 1 where a tenth or more is a gap."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # `make mutants` installs it

    ran: Counter[str] = Counter()
    gaps: Counter[str] = Counter()
    for name, code in outcomes():
        module = name.rpartition(".")[0]
        ran[module] += 1
        if code not in (SURVIVED, NO_TESTS):
            continue
        lines = changed_lines(get_diff_for_mutant(name))
        if not reason(lines):
            gaps[module] += 1
            print(name, *lines, sep="\n    ")
    for module, count in ran.items():
        print(f"{module}: {gaps[module]} of {count} changes are not noticed")
    return int(10 * gaps.total() >= ran.total())


if __name__ == "__main__":
    sys.exit(main())
