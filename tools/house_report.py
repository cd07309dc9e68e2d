"""Print sizes, nesting, vague names and the share of `Any`: `make lint` ends with it.

A number here is a reason to look; a file is as long as what it knows. Only the share of `Any` has a
limit, in the tests.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("pva", "pvti", "simulator", "dashboard", "cli", "libpvti")
LONG_FILE, LONG_FUNCTION, DEEP = 400, 60, 3
ROWS = 5  # of a list
# Words that do not say what they name.
VAGUE = frozenset(
    [
        "found",
        "told",
        "given",
        "made",
        "known",
        "chosen",
        "asked",
        "wanted",
        "held",
        "here",
        "there",
        "each",
        "other",
        "others",
        "this",
        "what",
        "more",
        "rest",
        "few",
        "those",
        "brought",
        "kept",
        "said",
        "several",
        "whole",
        "own",
        "left",
        "come",
        "gone",
        "taken",
        "met",
        "done",
    ]
)
# Verbs that do not say what a function does: at the begin of no docstring.
VAGUE_VERBS = frozenset(
    {"Find", "Finds", "Give", "Gives", "Tell", "Tells", "Say", "Says", "Have", "Has"}
)
MAX_ANY = 0.05  # of the functions: a limit of the tests, as the next
MAX_VAGUE = 0.01  # of the bound names
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> dict[str, str]:
    """Read every source file, by its path from the root."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def depth(node: ast.AST, level: int = 0) -> int:
    """Count how deep blocks are nested; `elif` is no deeper than its `if`."""
    deepest = level
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef):
                continue
            chained = isinstance(node, ast.If) and field == "orelse" and isinstance(child, ast.If)
            deeper = isinstance(child, BLOCKS) and not chained
            deepest = max(deepest, depth(child, level + deeper))
    return deepest


def bound_names(tree: ast.AST) -> Iterator[str]:
    """List the names that arguments and assignments bind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def share_of_vague(trees: Iterable[ast.AST]) -> float:
    """Return the fraction of bound names that do not say what they name."""
    names = [name for tree in trees for name in bound_names(tree)]
    return sum(name in VAGUE for name in names) / max(len(names), 1)


def vague_docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield the first line of each docstring that begins with one of VAGUE_VERBS."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        text = (ast.get_docstring(node) or "") if isinstance(node, documented) else ""
        if re.split(r"\W", text, maxsplit=1)[0] in VAGUE_VERBS:
            yield text.partition("\n")[0]


def has_any(function: Function) -> bool:
    """Return whether an annotation of the arguments or of the result has `Any` in it."""
    parts = ast.walk(function.args)
    annotations = [part.annotation for part in parts if isinstance(part, ast.arg)]
    nodes = [node for one in (*annotations, function.returns) if one for node in ast.walk(one)]
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    quoted = any(re.search(r"\bAny\b", text) for text in texts if isinstance(text, str))
    return quoted or any(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)


def share_of_any(trees: Iterable[ast.AST]) -> float:
    """Return the fraction of functions that have `Any` in their signature."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    with_any = [has_any(node) for node in nodes if isinstance(node, Function)]
    return sum(with_any) / max(len(with_any), 1)


def row(title: str, sizes: dict[str, int], limit: int) -> str:
    """Write median, ninth decile and largest of some sizes, and the largest above a limit."""
    ordered = sorted(sizes.values())
    middle, decile = (ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.9))
    above = sorted((name for name in sizes if sizes[name] > limit), key=lambda n: -sizes[n])
    names = ", ".join(f"{name} {sizes[name]}" for name in above[:ROWS])
    outliers = f"; {len(above)} above {limit}: {names}" if above else ""
    return f"{title}: median {middle}, p90 {decile}, most {ordered[-1]}{outliers}"


def report(texts: dict[str, str]) -> list[str]:
    """Write the lines of the report."""
    trees = {name: ast.parse(text) for name, text in texts.items()}
    functions = {
        f"{name}:{node.name}": node
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
    }
    lengths = {name: (f.end_lineno or 0) - f.lineno + 1 for name, f in functions.items()}
    names = Counter(name for tree in trees.values() for name in bound_names(tree))
    vague = Counter({name: count for name, count in names.items() if name in VAGUE})
    words = ", ".join(f"{name} {count}" for name, count in vague.most_common(ROWS))
    share = 100 * vague.total() / max(names.total(), 1)
    return [
        row(
            "lines a file",
            {name: len(text.splitlines()) for name, text in texts.items()},
            LONG_FILE,
        ),
        row("lines a function", lengths, LONG_FUNCTION),
        row("nesting", {name: depth(node) for name, node in functions.items()}, DEEP),
        f"vague names: {share:.1f} % of {names.total():,} ({words})",
        f"functions with Any in their signature: {100 * share_of_any(trees.values()):.1f} %",
    ]


if __name__ == "__main__":
    print("\n".join(report(sources())))
