"""The arguments of events of Chrome trace JSON that have some at their begin and at their end."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import numpy as np

from pva.array_types import Integers
from pva.formats.builders import BLOCK, GrowingTexts, Texts
from pva.formats.memory_limit import Budget
from pva.formats.traces.chrome_events import KEY, object_of

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def of_begins(
    with_arguments: Integers, texts: Texts, begun: Integers, ended: Integers, budget: Budget
) -> tuple[Integers, Texts]:
    """Return the arguments of ends to the begins that they belong to: rows of events, and texts.

    Of a name in both, that of the end counts.
    """
    by_end = np.argsort(ended, kind="stable")
    place = np.minimum(
        np.searchsorted(ended, with_arguments, sorter=by_end), max(len(ended) - 1, 0)
    )
    of_end = (
        ended[by_end[place]] == with_arguments
        if len(ended)
        else np.zeros(len(with_arguments), np.bool_)
    )
    if not of_end.any():
        return with_arguments, texts
    begin = begun[by_end[place[of_end]]]
    at = np.minimum(np.searchsorted(with_arguments, begin), len(with_arguments) - 1)
    both = with_arguments[at] == begin
    first, second = at[both], np.flatnonzero(of_end)[both]
    moved = with_arguments.copy()
    moved[of_end] = begin
    merged_texts = GrowingTexts()
    for low in range(0, len(first), BLOCK):
        rows = slice(low, low + BLOCK)
        pairs = zip(texts[first[rows]], texts[second[rows]], strict=True)
        merged_texts.extend([_merged(one or "", second or "") for one, second in pairs])
    merged = merged_texts.taken()
    budget.spend(merged.nbytes, f"{KEY}.args")
    is_single = np.ones(len(with_arguments), np.bool_)
    is_single[first] = is_single[second] = False
    return (
        np.concatenate((moved[is_single], begin[both])),
        Texts.joined([texts[is_single], merged]) if len(merged) else texts[is_single],
    )


def _merged(one: str, second: str) -> bytes | str:
    """Put two objects of JSON together; where one is none, both stand in a list."""
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        return msgspec.json.encode(_FIELDS.decode(one) | _FIELDS.decode(second))
    objects = [object_of(text.encode()) for text in (one, second)]
    if not all(isinstance(values, dict) for values in objects):
        return f"[{one},{second}]"
    return json.dumps({**objects[0], **objects[1]}, ensure_ascii=False)
