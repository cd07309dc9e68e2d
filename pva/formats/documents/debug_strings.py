"""The table of strings of debug information: each text kept once.

`{"contexts": [{id, parentId, name, layer, location, ...}], "stringTable": [...]}`: name and, in
location, fileName and functionName are indexes into the string table; the further keys of a layer
stand beside them. Documents with texts in their place are read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pva import schema
from pva.errors import DamagedFileError
from pva.formats.values import shown

STRINGS = "stringTable"
CONTEXTS = schema.TABLE["debug_contexts"].place
JSON_KEY = "json"
OWN_KEYS = {
    column.document_key.partition(".")[0] for column in schema.TABLE["debug_contexts"].columns
}
LOCATION = "location"
LOCATION_TEXTS = ("fileName", "functionName")


def resolved(file: object, root: object) -> Any:
    """Put texts in place of indexes and gather the further keys; raises DamagedFileError."""
    if not isinstance(root, Mapping) or not isinstance(root.get(CONTEXTS), list):
        return root
    strings = root.get(STRINGS) or []
    if not isinstance(strings, list):
        raise DamagedFileError(file, f"found {shown(strings)}", "a list of texts", place=STRINGS)
    contexts = [
        _resolved(file, row, context, strings) for row, context in enumerate(root[CONTEXTS])
    ]
    return {**root, CONTEXTS: contexts}


def _resolved(file: object, row: int, context: object, strings: list[object]) -> dict[str, object]:
    place = f"{CONTEXTS}[{row}]"
    if not isinstance(context, dict):
        raise DamagedFileError(file, f"found {shown(context)}", "an object", place=place)
    resolved = dict(context)
    further = {key: resolved.pop(key) for key in context.keys() - OWN_KEYS}
    if "name" in resolved:
        resolved["name"] = _text(file, place, resolved["name"], strings)
    location = resolved.get(LOCATION)
    if isinstance(location, dict):
        texts = {key: _text(file, place, location[key], strings) for key in LOCATION_TEXTS
                 if key in location}  # fmt: skip
        resolved[LOCATION] = location | texts
    if not further:
        return resolved
    in_order = {key: further[key] for key in context if key in further}
    return resolved | _as_text(file, place, in_order)


def _as_text(file: object, place: str, further: dict[object, object]) -> dict[str, str]:
    try:
        return {JSON_KEY: orjson.dumps(further, option=orjson.OPT_SERIALIZE_NUMPY).decode()}
    except TypeError as error:
        raise DamagedFileError(file, str(error), "values that JSON has", place=place) from error


def _text(file: object, place: str, value: object, strings: list[object]) -> Any:
    if type(value) is int:
        if 0 <= value < len(strings):
            return strings[value]
        remedy = f"an index below {len(strings)} into {STRINGS}"
        raise DamagedFileError(file, f"found {value}", remedy, place=place)
    return value


def shared(document: dict[str, Any]) -> dict[str, Any]:
    """Put indexes in place of texts and spread the further keys."""
    strings: dict[str, int] = {}
    for context in document.get(CONTEXTS, ()):
        location = context.get(LOCATION, {})
        places = [(context, "name"), *((location, key) for key in LOCATION_TEXTS)]
        for holder, key in places:
            if key in holder:
                holder[key] = strings.setdefault(holder[key], len(strings))
        context.update(_spread(context))
        if context.get(JSON_KEY) is None:
            context.pop(JSON_KEY, None)
    return {**document, STRINGS: list(strings)}


def _spread(context: dict[str, Any]) -> dict[str, Any]:
    """Parse the further keys, where writing them again gives the same text; else keep the text."""
    text = context.get(JSON_KEY, "")
    try:
        further = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    same = isinstance(further, dict) and further and orjson.dumps(further).decode() == text
    if not same or OWN_KEYS & set(further):
        return {}
    return {**further, JSON_KEY: None}
