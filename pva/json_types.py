"""The type of values that JSON can hold; a tuple is written as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "str | float | None | Sequence[Json] | Mapping[str, Json]"
