"""Functions that PopLibs has in several forms: their arguments by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NEEDED = object()  # stands for an argument without a default


def arguments_of(
    function: str,
    form: Mapping[str, object],
    arguments: Sequence[object],
    named: Mapping[str, object],
) -> dict[str, Any]:
    """Return the arguments of one form of a function, which maps their names to the defaults.

    Raises TypeError, as Python does, for too many, missing or unknown ones.
    """
    if len(arguments) > len(form):
        raise TypeError(f"{function}: {len(arguments)} arguments; it takes {', '.join(form)}")
    by_position = dict(zip(form, arguments, strict=False))
    twice = [name for name in named if name in by_position or name not in form]
    values = {**form, **by_position, **named}
    missing = [name for name, value in values.items() if value is NEEDED]
    if twice or missing:
        raise TypeError(f"{function}: takes {', '.join(form)}; wrong or missing: {twice + missing}")
    return values
