"""Change one thing at a time in core modules, print the changes that no test notices, count them.

`make mutants [MODULES="pva.units* ..."]` runs mutmut with the tests that `pyproject.toml` names,
then this. `tools/equivalent_mutants.toml` has the changes that no test can see, each with its
reason; the others that survive are gaps. `tools/mutants.json` keeps the counts of each module that
was run, and is tracked: a module that is not in it was never run.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "tools" / "mutants.json"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.toml"
SURVIVED, NO_TESTS = 0, 33  # exit codes that mutmut keeps
MAX_GAPS = 0.1  # of the changes of all modules
Change = tuple[str, str, str]  # module, the lines before and after


def outcomes() -> Iterator[tuple[str, int]]:
    """List each mutant of the modules that were run to the end, and how its tests ended."""
    for file in sorted((ROOT / "mutants").rglob("*.meta")):
        codes = json.loads(file.read_text(encoding="utf-8"))["exit_code_by_key"]
        if None not in codes.values():
            yield from codes.items()


def change_of(module: str, diff: str) -> Change:
    """Return the lines that a diff removes and adds, without their indentation."""
    lines = [line for line in diff.splitlines() if re.match(r"[-+](?![-+]{2} )", line)]
    sides = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    before, after = sides
    return module, before, after


def equivalent(text: str) -> dict[Change, str]:
    """Read the changes that no test can see, with the reason of each."""
    entries = tomllib.loads(text).get("mutant", [])
    return {(one["module"], one["before"], one["after"]): one["why"] for one in entries}


def counts(codes: Mapping[str, int], survivors: Mapping[str, Change], explained: Iterable[Change]
           ) -> dict[str, dict[str, int]]:  # fmt: skip
    """Count the changes of each module: those noticed, those explained, and the gaps."""
    known = set(explained)
    changes = Counter(map(module_of, codes))
    unseen = Counter(change[0] for change in survivors.values() if change in known)
    gaps = Counter(change[0] for change in survivors.values() if change not in known)
    return {
        module: {
            "changes": count,
            "killed": count - unseen[module] - gaps[module],
            "equivalent": unseen[module],
            "survived": gaps[module],
        }
        for module, count in sorted(changes.items())
    }


def module_of(mutant: str) -> str:
    """Return the module of a mutant."""
    return mutant.rpartition(".")[0]


def main() -> int:
    """Print the gaps and a line for each module; return 1 where a tenth or more is a gap."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # `make mutants` installs it

    codes = dict(outcomes())
    survivors = {
        name: change_of(module_of(name), get_diff_for_mutant(name))
        for name, code in codes.items()
        if code in (SURVIVED, NO_TESTS)
    }
    explained = equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    for name, change in survivors.items():
        if change not in explained:
            print(name, f"    - {change[1]}", f"    + {change[2]}", sep="\n")
    ran = counts(codes, survivors, explained)
    for module, numbers in ran.items():
        print(f"{module}: {', '.join(f'{count} {name}' for name, count in numbers.items())}")
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    text = json.dumps(dict(sorted((record | ran).items())), indent=1)
    RECORD.write_text(f"{text}\n", encoding="utf-8")
    total = sum(numbers["changes"] for numbers in ran.values())
    return int(sum(numbers["survived"] for numbers in ran.values()) >= MAX_GAPS * max(total, 1))


if __name__ == "__main__":
    sys.exit(main())
