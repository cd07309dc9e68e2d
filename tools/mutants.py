"""Change one thing at a time in core modules, print the changes that no test notices, count them.

`make mutants [MODULES="pva.units ..."]` runs mutmut on each module with the tests that
`tools/mutants.toml` names for it. `tools/equivalent_mutants.toml` has the changes that no test can
see, each with its reason; the others that survive are gaps. `tools/mutants.json` keeps the counts
and the gaps of each module that was run, and is tracked: a module that is not in it was never run.
With AGAIN=1 only what survived the last run, and functions that changed since, are run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "tools" / "mutants.json"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.toml"
TESTS = ROOT / "tools" / "mutants.toml"
UNNOTICED = (0, 33)  # exit codes that mutmut keeps: of a survivor, and of what no test runs
MAX_GAPS = 0.1  # of the changes of all modules
ANY = "*"  # module of the changes that no test can see in any
Change = tuple[str, str, str]  # module, the lines before and after


def file_of(module: str) -> str:
    """Return the path of a module below the root."""
    return f"{module.replace('.', '/')}.py"


def run(module: str, again: bool = False) -> None:
    """Run mutmut on one module with its tests, in this process, from an empty `mutants/`.

    With `again` from what the last run left, whose survivors are forgotten.
    """
    from mutmut.__main__ import cli  # `make mutants` installs it
    from mutmut.configuration import config

    if again:
        for file in (ROOT / "mutants").rglob("*.meta"):
            file.write_text(forget_survivors(file.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    config().only_mutate[:] = [file_of(module)]
    config().pytest_add_cli_args_test_selection[:] = selection()[module]
    cli(["run", "--max-children", "1"])


def forget_survivors(meta: str) -> str:
    """Return what mutmut keeps of a file, without the outcome of the changes that survived."""
    kept = json.loads(meta)
    codes = kept["exit_code_by_key"]
    survived = dict.fromkeys((key for key, code in codes.items() if code in UNNOTICED), None)
    return json.dumps(kept | {"exit_code_by_key": codes | survived})


def selection() -> dict[str, list[str]]:
    """Return the tests that notice the changes of each module."""
    return tomllib.loads(TESTS.read_text(encoding="utf-8"))


def outcomes() -> Iterator[tuple[str, int]]:
    """List each mutant of the module that was run to the end, and how its tests ended."""
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
    return {
        (group["module"], before, after): group["why"]
        for group in tomllib.loads(text).get("unseen", [])
        for before, after in group["changes"]
    }


def is_explained(change: Change, explained: Collection[Change]) -> bool:
    """Return whether a change is one of those, or of a part of its line that is in any module."""
    module, before, after = change
    parts = ((old, new) for where, old, new in explained if where == ANY)
    return change in explained or any(
        f"{before[: match.start()]}{new}{before[match.end() :]}" == after
        for old, new in parts
        for match in re.finditer(re.escape(old), before)
    )


def counts(codes: Mapping[str, int], survivors: Mapping[str, Change], explained: Collection[Change]
           ) -> dict[str, dict[str, int]]:  # fmt: skip
    """Count the changes of each module: those noticed, those explained, and the gaps."""
    changes = Counter(map(module_of, codes))
    unseen = Counter(one[0] for one in survivors.values() if is_explained(one, explained))
    gaps = Counter(one[0] for one in survivors.values() if not is_explained(one, explained))
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


def recorded() -> dict[str, dict[str, int]]:
    """Count the changes of the module that was run, print its gaps and write the counts down."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    codes = dict(outcomes())
    survivors = {
        name: change_of(module_of(name), get_diff_for_mutant(name))
        for name, code in codes.items()
        if code in UNNOTICED
    }
    explained = equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    gaps = {name: one for name, one in survivors.items() if not is_explained(one, explained)}
    for name, (_, before, after) in gaps.items():
        print(name, f"    - {before}", f"    + {after}", sep="\n")
    ran = counts(codes, survivors, explained)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for module, numbers in ran.items():
        print(f"{module}: {', '.join(f'{count} {name}' for name, count in numbers.items())}")
        record[module] = numbers | {"gaps": [one[1:] for one in gaps.values() if one[0] == module]}
    text = json.dumps(dict(sorted(record.items())), indent=1)
    RECORD.write_text(f"{text}\n", encoding="utf-8")
    return ran


def main(modules: list[str], again: bool = False) -> int:
    """Run each module in a process of its own; return 1 where a tenth or more are gaps."""
    total: Counter[str] = Counter()
    for module in modules or selection():
        call = f"from tools.mutants import run; run({module!r}, again={again})"
        subprocess.run([sys.executable, "-c", call], cwd=ROOT, check=False)
        for numbers in recorded().values():
            total.update(numbers)
    return int(total["survived"] >= MAX_GAPS * max(total["changes"], 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], again=os.environ.get("AGAIN") == "1"))
