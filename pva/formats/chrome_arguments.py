"""The arguments of events of Chrome trace JSON that have some at their begin and at their end."""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import numpy as np
import numpy.typing as npt

from pva.formats.budget import Budget
from pva.formats.chrome_events import KEY, object_of
from pva.formats.growing import BLOCK, GrowingTexts, Texts

Integers = npt.NDArray[np.int64]

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def of_begins(
    told: Integers, texts: Texts, begun: Integers, ended: Integers, budget: Budget
) -> tuple[Integers, Texts]:
    """Return the arguments of ends to the begins that they belong to: rows of events, and texts.

    Of a name in both, that of the end counts.
    """
    by_end = np.argsort(ended, kind="stable")
    place = np.minimum(np.searchsorted(ended, told, sorter=by_end), max(len(ended) - 1, 0))
    of_end = ended[by_end[place]] == told if len(ended) else np.zeros(len(told), np.bool_)
    if not of_end.any():
        return told, texts
    begin = begun[by_end[place[of_end]]]
    at = np.minimum(np.searchsorted(told, begin), len(told) - 1)
    both = told[at] == begin
    first, second = at[both], np.flatnonzero(of_end)[both]
    moved = told.copy()
    moved[of_end] = begin
    more = GrowingTexts()
    for low in range(0, len(first), BLOCK):
        rows = slice(low, low + BLOCK)
        pairs = zip(texts[first[rows]], texts[second[rows]], strict=True)
        more.extend([_merged(one or "", other or "") for one, other in pairs])
    merged = more.taken()
    budget.spend(merged.nbytes, f"{KEY}.args")
    kept = np.ones(len(told), np.bool_)
    kept[first] = kept[second] = False
    return (
        np.concatenate((moved[kept], begin[both])),
        Texts.joined([texts[kept], merged]) if len(merged) else texts[kept],
    )


def _merged(one: str, other: str) -> bytes | str:
    """Put two objects of JSON together; where one is none, both stand in a list."""
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        return msgspec.json.encode(_FIELDS.decode(one) | _FIELDS.decode(other))
    told = [object_of(text.encode()) for text in (one, other)]
    if not all(isinstance(values, dict) for values in told):
        return f"[{one},{other}]"
    return json.dumps({**told[0], **told[1]}, ensure_ascii=False)
