"""How tensors are padded, and where the padding lies."""

from __future__ import annotations

from enum import Enum

__all__ = ["MappingMethod", "Type"]


class Type(Enum):
    """What padding repeats: the element at the edge, or the elements before it in turn."""

    EDGE = "EDGE"
    REFLECT = "REFLECT"


class MappingMethod(Enum):
    """Where constant padding lies: nowhere yet, on tile 0, or where the nearest element lies."""

    NONE = "NONE"
    ZERO = "ZERO"
    EDGE = "EDGE"
