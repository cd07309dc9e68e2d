"""Write the reference of a package from its docstrings: `python -m tools.api_reference simulator`.

A test compares docs/api-simulator.md and docs/api-pvti.md with what this prints.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

HEADS = {
    "simulator": """# Reference: simulator

All public names of `simulator`. They are those of Poplar, PopLibs, PopART, PopEF, Model Runtime and
PopDist, so that a program is written as there: [simulator.md](simulator.md),
[popart.md](popart.md), [model-runtime.md](model-runtime.md), [instances.md](instances.md).
Arguments that Poplar has mean what they mean there.
""",
    "pvti": """# Reference: pvti

All public names of `pvti`, which is also `libpvti` ([tracing.md](tracing.md)).
""",
}
MODULES = {
    "simulator": (
        "simulator.poplar",
        "simulator.graph.program",
        "simulator.poplibs.popops",
        "simulator.poplibs.poplin",
        "simulator.poplibs.popnn",
        "simulator.poplibs.poprand",
        "simulator.poplibs.popfloat.experimental",
        "simulator.poplibs.popsparse",
        "simulator.poplibs.popsparse.dynamic",
        "simulator.poplibs.popsparse.static_",
        "simulator.poplibs.poputil",
        "simulator.trial",
        "simulator.popart",
        "simulator.popart.trial",
        "simulator.popef",
        "simulator.model_runtime",
        "simulator.popdist",
        "simulator.popdist.popart",
    ),
    "pvti": ("pvti",),
}
TITLES = {"simulator.graph.program": "simulator.poplar.program"}
MAX_ARGUMENTS = 90  # letters of a signature; a longer one ends in ...


def first_sentence(thing: object) -> str:
    """Return what a docstring says up to its first full stop, in one line."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0].replace("|", r"\|")


def arguments(thing: Any) -> str:
    """Return the names and defaults of a function's arguments, without self."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "..."
    rows = [
        argument.replace(annotation=inspect.Parameter.empty)
        for name, argument in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    shown = str(signature.replace(parameters=rows, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<([\w.]+)[^>]*>", r"\1", shown.removeprefix("(").removesuffix(")"))
    cut = text if len(text) <= MAX_ARGUMENTS else text[:MAX_ARGUMENTS].rsplit(",", 1)[0] + ", ..."
    return cut.replace("|", r"\|")


def own_members(kind: type) -> Iterator[tuple[str, Any]]:
    """List the public methods and properties of a class that have a docstring, in their order."""
    for base in reversed(kind.__mro__):
        if base.__module__.split(".")[0] not in MODULES:
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or getattr(kind, name, None) is None:
                continue
            plain = getattr(member, "__func__", member)
            if (callable(plain) or isinstance(plain, property)) and inspect.getdoc(plain):
                yield name, plain


def row(name: str, thing: Any) -> str:
    """Write a line of a table."""
    call = name if isinstance(thing, property) else f"{name}({arguments(thing)})"
    return f"| `{call}` | {first_sentence(thing)} |"


def class_section(name: str, kind: type) -> Iterator[str]:
    """Write what a class is, and its members as a table."""
    yield f"### `{name}`\n\n{first_sentence(kind)}\n"
    if issubclass(kind, Enum):
        yield ", ".join(f"`{member}`" for member in kind.__members__) + "\n"
        return
    members = dict(own_members(kind))
    if members:
        yield "| member | meaning |\n| --- | --- |"
        yield from (row(*member) for member in members.items())
        yield ""


def section(module: ModuleType) -> Iterator[str]:
    """Write the functions of a module as a table, and its classes."""
    yield f"## `{TITLES.get(module.__name__, module.__name__.replace('.poplibs', ''))}`\n"
    public = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    ]
    things = {name: getattr(module, name) for name in sorted(public, key=str.lower)}
    functions = {name: thing for name, thing in things.items() if inspect.isfunction(thing)}
    if functions:
        yield "| function | meaning |\n| --- | --- |"
        yield from (row(*function) for function in functions.items())
        yield ""
    classes = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
    if values := [f"`{name}`" for name in things if name not in {**functions, **classes}]:
        yield f"Values: {', '.join(values)}.\n"
    for name, kind in classes.items():
        yield from class_section(name, kind)


def markdown(package: str) -> str:
    """Return the reference of a package."""
    foot = "\nThis file is made from the docstrings by `make documents`.\n"
    lines = [HEADS[package] + foot]
    for name in MODULES[package]:
        lines += section(importlib.import_module(name))
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    print(markdown(sys.argv[1]), end="")
